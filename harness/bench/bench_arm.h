/* bench_arm.h - one arm of a benchmark on the device: its cache, its queries, one timed step.
 *
 * Every step starts cold. Where the backend can flush its caches, a step is enqueued behind a
 * flush. Elsewhere the data exist several times ("sets"), and the steps go through the sets in
 * turn, so that between two uses of a byte at least four times the last-level cache has been read
 * (four, because a guest may see one slice of a cache where its threads use several). All sets lie
 * in one pool whose pages are shuffled. Slots past a sequence's length, and one page of the pool,
 * hold NaN; table entries past it hold numbers outside the pool or of that page. */
#ifndef SNAPMLA_HARNESS_BENCH_BENCH_ARM_H
#define SNAPMLA_HARNESS_BENCH_BENCH_ARM_H

#include "harness/bench/grid.h"
#include "harness/bench/numbers.h"
#include "kernels/mla.h"

typedef struct bench_arm bench_arm;

/* Sets that make a step cold on a device with that last-level cache; 1 when it is unknown (0). */
int bench_arm_sets(const bench_shape *s, bench_kind k, size_t cache_bytes);

/* Does one set alone turn a cache of that size over? */
bool bench_arm_is_large(const bench_shape *s, bench_kind k, size_t cache_bytes);

/* Device memory that so many sets take, without the plan's own. */
double bench_arm_bytes(const bench_shape *s, bench_kind k, int sets);

/**
 * bench_arm_create - allocate, and fill through the backend's own append and query quantiser
 *
 * @out:  caller owns it, bench_arm_free(); NULL on failure
 * @from: borrowed for the arm's life; uploaded to the backend
 * @flush: flush the caches before each step
 *
 * Errors: SNAP_E_UNSUPPORTED for an arm of the ablation on a backend without one, those of
 * mla_plan_create(), mla_alloc() and the dataflow operations.
 */
snap_status bench_arm_create(bench_arm **out, mla_backend *be, const bench_shape *shape,
                             bench_kind kind, const numbers *from, int sets, bool flush,
                             snap_err *err) SNAP_CHECK_RESULT;
void bench_arm_free(bench_arm *arm); /* NULL is allowed */

mla_backend *bench_arm_backend(const bench_arm *arm);
const char *bench_arm_kernel(const bench_arm *arm); /* lab_plan_kernel() */
bench_kind bench_arm_kind(const bench_arm *arm);
mla_precision bench_arm_precision(const bench_arm *arm);
const bench_shape *bench_arm_shape(const bench_arm *arm);
const numbers *bench_arm_numbers(const bench_arm *arm);

/* One step of the scope on the next set; *ns is its time. */
snap_status bench_arm_step(bench_arm *arm, bench_scope scope, double *ns,
                           snap_err *err) SNAP_CHECK_RESULT;

/* @steps steps without a pause; *ns is the mean time of one. The kernel scope's metadata are those
 * of the first step: it wants an arm of one set. */
snap_status bench_arm_loop(bench_arm *arm, bench_scope scope, int steps, double *ns,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Back to set 0: the next step runs on it. */
void bench_arm_rewind(bench_arm *arm);

/* Rows of one step, batch * s_q * heads. */
int64_t bench_arm_rows(const bench_arm *arm);

/* Set 0's results to host memory: bf16 [rows][d_c] and fp32 [rows]. */
snap_status bench_arm_result(bench_arm *arm, uint16_t *out, float *lse,
                             snap_err *err) SNAP_CHECK_RESULT;

/* What set 0 was made of: numbers_token() of token @token of sequence @b, numbers_query() of a
 * row. */
uint64_t bench_arm_token_index(const bench_arm *arm, int b, int64_t token);
uint64_t bench_arm_query_index(const bench_arm *arm, int64_t row);

float bench_softmax_scale(void); /* 1/sqrt(192) */

#endif
