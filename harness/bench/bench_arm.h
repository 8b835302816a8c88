/* bench_arm.h - one arm of a benchmark on the device: its KV cache, its queries and one timed step.
 *
 * Steps that are timed one by one start with a cold cache, except in the cases named below. If the
 * backend can flush its caches, they are flushed before each step. Otherwise the data exist several
 * times ("sets"), and the steps use the sets in turn. Between two uses of a set, the steps read and
 * write at least four times the size of the last-level cache. The factor is four because a virtual
 * machine may report one slice of a cache while its threads use several.
 *
 * In three cases there is one set and no flush. The first is sustained loops (sustained.h), where
 * the cache is cold only if one set has at least four times its size. The second is a backend that
 * can neither flush nor report the size of its cache. The third is a backend that cannot flush,
 * under `gate` without --cold (gate/worker.c). `fidelity` uses one set and no flush too, but it
 * does not use the times.
 *
 * The pages of all sets lie in one pool, in random order. Token slots after the end of a sequence,
 * and one whole page of the pool, hold NaN. Block-table entries after a sequence's last page are
 * out of range or refer to the NaN page. */
#ifndef SNAPMLA_HARNESS_BENCH_BENCH_ARM_H
#define SNAPMLA_HARNESS_BENCH_BENCH_ARM_H

#include "harness/bench/grid.h"
#include "harness/bench/numbers.h"
#include "kernels/mla.h"

typedef struct bench_arm bench_arm;

/* The number of sets that makes steps cold on a device with a last-level cache of this size. It is
 * 1 if the size is unknown (0). */
int bench_arm_sets(const bench_shape *s, bench_kind k, size_t cache_bytes);

/* Whether one set has at least four times the size of a cache of that size; false for 0. */
bool bench_arm_is_large(const bench_shape *s, bench_kind k, size_t cache_bytes);

/* The device memory of @sets sets, estimated: pages of the cache, queries, outputs, and the BF16
 * copy of BENCH_COPIED. */
double bench_arm_bytes(const bench_shape *s, bench_kind k, int sets);

/**
 * bench_arm_create - allocate an arm and fill it with the backend's own append and query quantiser
 *
 * @out:   caller owns it, bench_arm_free(); NULL on failure
 * @from:  already uploaded to the backend; borrowed as long as the arm exists
 * @sets:  1 or more
 * @flush: flush the caches before each step
 *
 * Errors: SNAP_E_UNSUPPORTED for an arm of the ablation on a backend without lab_can_attend(),
 * SNAP_E_NOMEM, and those of lab_plan_create(), mla_alloc() and the dataflow operations.
 */
snap_status bench_arm_create(bench_arm **out, mla_backend *be, const bench_shape *shape,
                             bench_kind kind, const numbers *from, int sets, bool flush,
                             snap_err *err) SNAP_CHECK_RESULT;
void bench_arm_free(bench_arm *arm); /* NULL is allowed */

mla_backend *bench_arm_backend(const bench_arm *arm);
const char *bench_arm_kernel(const bench_arm *arm); /* see lab_plan_kernel() */
bench_kind bench_arm_kind(const bench_arm *arm);
mla_precision bench_arm_precision(const bench_arm *arm);
const bench_shape *bench_arm_shape(const bench_arm *arm);
const numbers *bench_arm_numbers(const bench_arm *arm);

/* Runs one step of the scope on the next set. *ns is the time of the step, without the flush. */
snap_status bench_arm_step(bench_arm *arm, bench_scope scope, double *ns,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Runs one untimed step and then @steps steps without a pause. *ns is the mean time of these
 * @steps. In the kernel scope, all steps use the metadata of the first, so the arm should have one
 * set. */
snap_status bench_arm_loop(bench_arm *arm, bench_scope scope, int steps, double *ns,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Makes set 0 the next set. */
void bench_arm_rewind(bench_arm *arm);

/* The number of rows of one step: batch * s_q * heads. */
int64_t bench_arm_rows(const bench_arm *arm);

/* Copies the results of set 0 to host memory: bf16 [rows][d_c] and fp32 [rows]. */
snap_status bench_arm_result(bench_arm *arm, uint16_t *out, float *lse,
                             snap_err *err) SNAP_CHECK_RESULT;

/* The indices from which set 0 was made: that of token @token of sequence @b, for numbers_token(),
 * and that of a row, for numbers_query(). */
uint64_t bench_arm_token_index(const bench_arm *arm, int b, int64_t token);
uint64_t bench_arm_query_index(const bench_arm *arm, int64_t row);

float bench_softmax_scale(void); /* 1/sqrt(192) */

#endif
