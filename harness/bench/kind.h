/* kind.h - the arms of a benchmark. Two of them are compared. The others belong to the ablation:
 * each is the FP8 arm with one technique left out or replaced. */
#ifndef SNAPMLA_HARNESS_BENCH_KIND_H
#define SNAPMLA_HARNESS_BENCH_KIND_H

#include <stdbool.h>

#include "kernels/judge.h"
#include "kernels/lab.h"

/* The work inside the timed window:
 *   kernel   attention and merge; the schedule exists already
 *   served   quantising the queries (if attention reads FP8 queries), appending the step's tokens,
 *            schedule, attention, merge; for BENCH_COPIED also the conversion of the cache */
typedef enum { BENCH_KERNEL, BENCH_SERVED } bench_scope;
const char *bench_scope_name(bench_scope s); /* "kernel", "served" */

/* The order is that of a sweep's rows. */
typedef enum {
    BENCH_BF16,
    BENCH_FP8,
    BENCH_WIDENED,    /* BF16 arithmetic on values dequantised on chip */
    BENCH_IN_PLACE,   /* output summed in the precision of the tensor cores */
    BENCH_SHALLOW,    /* the fewest pages in shared memory that the kernel can work with */
    BENCH_PAGE_UNITS, /* a unit of P for each page, as in the paper */
    BENCH_PAGE_ORDER, /* like BENCH_PAGE_UNITS, but the products of two pages are added in the
                         opposite order */
    BENCH_UNFUSED, /* separate passes quantise queries and new tokens, and copy the tokens to their
                       pages */
    BENCH_COPIED,  /* the cache is converted to BF16 in memory before attention reads it */
    BENCH_ARMS,
    BENCH_COMPARED = BENCH_WIDENED, /* the first arm of the ablation; the arms before it are
                                       compared */
} bench_kind;
enum { BENCH_SCOPES = 2 };

const char *bench_kind_name(bench_kind k); /* "bf16", "fp8", "fp8-widened", ... */
bool bench_kind_parse(const char *name, bench_kind *out);
mla_precision bench_kind_precision(bench_kind k); /* precision of the arm's cache */
lab_ablation bench_kind_ablation(bench_kind k);   /* what the arm's plan leaves out, or LAB_WHOLE */
bool bench_kind_has(bench_kind k, bench_scope s); /* whether a sweep times the arm in this scope;
                                                     the last two arms exist only in the scope
                                                     "served" */
bool bench_kind_plain_queries(bench_kind k);      /* whether an FP8 arm keeps its queries in bf16 */

/* The error bound of the arm's output. Summing in place is known to lose accuracy, so that arm has
 * four times the bounds of the output. Its bound of the log-sum-exp is the usual one. */
judge_bound bench_kind_bound(bench_kind k, ref_pv pv);

#endif
