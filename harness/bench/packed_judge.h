/* packed_judge.h - compares rows of one sequence of an arm that has a cache format with the FP64
 * oracle of that format (kernels/format). */
#ifndef SNAPMLA_HARNESS_BENCH_PACKED_JUDGE_H
#define SNAPMLA_HARNESS_BENCH_PACKED_JUDGE_H

#include "harness/bench/bench_arm.h"
#include "kernels/judge.h"

typedef struct {
    const bench_arm *arm;
    const bench_output *o;
    int b;         /* the sequence */
    int64_t rows;  /* rows to compare: at most s_q * heads */
    uint64_t seed; /* chooses them */
} packed_sequence;

/* The tokens are packed again from the random numbers, so errors of the plugin's reading show. The
 * rows lie at about equal distances, beginning with a random one. Threads may call it for different
 * sequences at the same time. SNAP_E_NOMEM. */
snap_status packed_judge(judge_error *out, const packed_sequence *in,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
