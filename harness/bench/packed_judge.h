/* packed_judge.h - compares rows of the output of an arm that has a cache format with the FP64
 * oracle of that format (kernels/format). */
#ifndef SNAPMLA_HARNESS_BENCH_PACKED_JUDGE_H
#define SNAPMLA_HARNESS_BENCH_PACKED_JUDGE_H

#include "harness/bench/bench_arm.h"
#include "kernels/judge.h"

typedef struct {
    const bench_arm *arm;
    const bench_output *o;
    const int *sequence; /* [sequences] which sequences are compared */
    int sequences;
    int64_t rows;  /* rows to compare in each of these sequences: at most s_q * heads */
    uint64_t seed; /* determines which rows are compared */
} packed_sample;

/* The results of the oracle for the samples of one shape. They are the same for all arms with the
 * same format, input and rows, so they are computed once. {0} is an empty list. */
typedef struct packed_reference packed_reference;
typedef struct {
    packed_reference *first;
} packed_references;

void packed_references_release(packed_references *r); /* leaves an empty list */

/* Compares the rows of @in with the oracle. The oracle reads tokens that it packs itself from the
 * random numbers, and not the arm's cache. So the comparison also finds errors in how the arm reads
 * its cache. The rows of a sequence lie at about equal distances, beginning with a random one. All
 * processors are used.
 * @known: the list for the arm's shape and random numbers, to which the oracle's results are added;
 *         NULL: they are computed, and not kept
 *
 * Errors: SNAP_E_NOMEM. */
snap_status packed_judge(judge_error *out, const packed_sample *in, packed_references *known,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
