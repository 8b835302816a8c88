/* kind.h - the arms of a benchmark: the two that are compared, and the ablation's, each of which is
 * the FP8 arm with one technique left out. */
#ifndef SNAPMLA_HARNESS_BENCH_KIND_H
#define SNAPMLA_HARNESS_BENCH_KIND_H

#include <stdbool.h>

#include "kernels/judge.h"
#include "kernels/lab.h"

/* What is inside the timed window:
 *   kernel   attention and combine, metadata ready
 *   served   quantising the query, appending the step's tokens, metadata, attention, combine */
typedef enum { BENCH_KERNEL, BENCH_SERVED } bench_scope;
const char *bench_scope_name(bench_scope s); /* "kernel", "served" */

/* In the order of a sweep's rows. */
typedef enum {
    BENCH_BF16,
    BENCH_FP8,
    BENCH_WIDENED,  /* BF16 arithmetic on what is dequantised on chip */
    BENCH_IN_PLACE, /* output summed in the tensor cores' precision */
    BENCH_SHALLOW,  /* no pages loaded ahead but the one that the schedule needs */
    BENCH_UNFUSED, /* queries and new tokens quantised a pass a thing, then copied to their pages */
    BENCH_COPIED,  /* the cache brought to BF16 in memory, and attention over that */
    BENCH_ARMS,
    BENCH_COMPARED = BENCH_WIDENED, /* arms before it are compared, the others are the ablation's */
} bench_kind;
enum { BENCH_SCOPES = 2 };

const char *bench_kind_name(bench_kind k); /* "bf16", "fp8", "fp8-widened", ... */
bool bench_kind_parse(const char *name, bench_kind *out);
mla_precision bench_kind_precision(bench_kind k); /* of its cache */
lab_ablation bench_kind_ablation(bench_kind k);   /* of its plan */
bool bench_kind_has(bench_kind k, bench_scope s); /* what is left out shows in that scope */
bool bench_kind_plain_queries(bench_kind k);      /* an FP8 cache, and queries in bf16 */

/* What its error is held against. In-place sums are meant to lose accuracy: four times the
 * bound. */
judge_bound bench_kind_bound(bench_kind k, ref_pv pv);

#endif
