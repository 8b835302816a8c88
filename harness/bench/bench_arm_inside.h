/* bench_arm_inside.h - what the files of an arm share: its struct, and the names of its numbers. */
#ifndef SNAPMLA_HARNESS_BENCH_BENCH_ARM_INSIDE_H
#define SNAPMLA_HARNESS_BENCH_BENCH_ARM_INSIDE_H

#include "harness/bench/bench_arm.h"

/* Device memory that holds one slice a set. */
typedef struct {
    unsigned char *at;
    size_t stride; /* bytes from set to set, a multiple of MLA_ALIGN */
} slices;

struct bench_arm {
    mla_backend *be; /* borrowed, as is numbers */
    const numbers *from;
    bench_shape shape;
    bench_kind kind;
    mla_precision precision;
    int sets, next;
    int pages_a_sequence, table_width;
    mla_plan *plan;
    mla_cache cache;
    slices table, q, q8, q_rope, q_scale, kv, out, lse;
    int32_t *seqlens; /* device [batch], the same for all sets */
    bool flush;       /* before each step, instead of many sets */
    bool host_memory;
    lab_rows staged;  /* BENCH_UNFUSED: new tokens on their way to their pages */
    mla_plan *copies; /* BENCH_COPIED: of BF16; its cache and pages, a sequence after the other */
    mla_cache copy;
    int32_t *copy_table;
    lab_recording **served; /* [sets] a served step each, recorded when it is first taken */
};

/* Set k's sequence b is sequence k * batch + b; its tokens' numbers. */
uint64_t arm_token_index(const bench_arm *arm, int64_t sequence, int64_t token);

/* Of one set. */
int64_t arm_pages(const bench_arm *arm);

/* Slice @set; NULL of a slice that has no memory. */
void *arm_slice(const slices *s, int set);

/* Cache, tables, queries, new tokens: everything that steps read; NaN where results go. */
snap_status arm_fill(bench_arm *arm, snap_err *err) SNAP_CHECK_RESULT;

#endif
