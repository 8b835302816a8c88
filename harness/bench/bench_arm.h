/* bench_arm.h - one arm of a benchmark on the device: its KV cache, its queries and one timed step.
 *
 * Steps that are timed one by one start cold: none of their data are in the last-level cache of the
 * device. The exceptions are named below. If the backend can flush these caches, they are flushed
 * before each step. Otherwise the data exist several times ("sets"), and the steps use the sets in
 * turn. Between two uses of a set, the steps read and write about four times the size of the
 * last-level cache or more. The factor is four because a virtual machine may report one slice of a
 * cache while its threads use several.
 *
 * In three cases there is one set and no flush. The first is sustained loops (sustained.h), where
 * steps start cold only if one set has at least four times the size of the last-level cache. The
 * second is a backend that can neither flush nor report the size of its last-level cache. The third
 * is a backend that cannot flush, under `gate` without --cold (gate/worker.c). `fidelity` uses one
 * set and no flush too, but it does not use the times.
 *
 * The pages of all sets lie in one pool, in random order. Token slots after the end of a sequence,
 * and one whole page of the pool, hold NaN. (With a cache format, all bytes of this page are 0xff,
 * which is NaN in most types, and unused slots of a last page are 0.) Block-table entries after a
 * sequence's last page are out of range or refer to the NaN page. */
#ifndef SNAPMLA_HARNESS_BENCH_BENCH_ARM_H
#define SNAPMLA_HARNESS_BENCH_BENCH_ARM_H

#include "harness/bench/arm_format.h"
#include "harness/bench/grid.h"
#include "harness/bench/numbers.h"
#include "kernels/mla.h"

typedef struct bench_arm bench_arm;

/* In these functions, @f is the cache format of the arm, or NULL. */

/* The number of sets that makes steps cold on a device with a last-level cache of this size. It is
 * 1 if the size is unknown (0). */
int bench_arm_sets(const bench_shape *s, bench_kind k, const arm_format *f, size_t last_level);

/* Whether one set has at least four times the size of a cache of that size; false for 0. */
bool bench_arm_is_large(const bench_shape *s, bench_kind k, const arm_format *f, size_t last_level);

/* The device memory of @sets sets, estimated: pages of the cache, queries, outputs, and the BF16
 * copy of BENCH_COPIED. */
double bench_arm_bytes(const bench_shape *s, bench_kind k, const arm_format *f, int sets);

/**
 * bench_arm_create - allocate an arm and fill it with the backend's own append and query quantiser
 *
 * @out:   caller owns it, bench_arm_free(); NULL on failure
 * @shape: copied, except for its lengths, which must live as long as the arm. An arm of the
 *         ablation needs sequences of equal length
 * @format: borrowed as long as the arm exists; NULL: the cache is that of mla.h. With a format, the
 *         host packs the tokens, the queries are bf16, and there is no scope "served"
 * @from:  already uploaded to the backend; borrowed as long as the arm exists
 * @sets:  1 or more
 * @flush: flush the caches before each step
 *
 * Errors: SNAP_E_UNSUPPORTED for an arm of the ablation on a backend without lab_can_attend(),
 * SNAP_E_NOMEM, and those of lab_plan_create() (with a format packed_plan_create()), mla_alloc()
 * and the dataflow operations.
 */
snap_status bench_arm_create(bench_arm **out, mla_backend *be, const bench_shape *shape,
                             bench_kind kind, const arm_format *format, const numbers *from,
                             int sets, bool flush, snap_err *err) SNAP_CHECK_RESULT;
void bench_arm_free(bench_arm *arm); /* NULL is allowed */

mla_backend *bench_arm_backend(const bench_arm *arm);
const char *bench_arm_kernel(const bench_arm *arm); /* the kernel's name: lab_plan_kernel() */
bench_kind bench_arm_kind(const bench_arm *arm);
mla_precision bench_arm_precision(const bench_arm *arm);
const bench_shape *bench_arm_shape(const bench_arm *arm);
const numbers *bench_arm_numbers(const bench_arm *arm);
const arm_format *bench_arm_format(const bench_arm *arm);  /* the format of its cache; NULL: none */
const cache_bytes *bench_arm_shared(const bench_arm *arm); /* with a format: the values that all its
                                                              tokens share, for
                                                              cache_format_pack_like() */

/* False if the arm has a format, the backend can record, and the step could not be recorded, so
 * that its times contain the host's part of each launch. */
bool bench_arm_is_captured(const bench_arm *arm);

/* Whether, in more than half of the samples or loops since bench_arm_reset(), at least a tenth of a
 * step's time passed before the host had enqueued the whole step. Such times can contain the
 * device's waiting for the host. False for a backend in host memory, where the host computes. */
bool bench_arm_is_host_limited(const bench_arm *arm);

/* False if the plugin of an arm with a format does not compute the log-sum-exp. */
bool bench_arm_has_lse(const bench_arm *arm);

/* Checks what a plugin with one function wrote: packed_check(). */
snap_status bench_arm_check(bench_arm *arm, snap_err *err) SNAP_CHECK_RESULT;

/* Runs one step of the scope on the next set. *ns is the time of the step, without the flush. */
snap_status bench_arm_step(bench_arm *arm, bench_scope scope, double *ns,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Runs a timed step whose output may be checked later, and then gives the set other queries, so
 * that no two such steps since bench_arm_reset() have the same queries. One of their outputs is
 * kept (bench_arm_kept()): it is chosen at random among those whose queries differ from the first
 * ones of the arm, or is the first one if there are none. *ns is the time of the step alone. */
snap_status bench_arm_sample(bench_arm *arm, bench_scope scope, double *ns,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Runs one untimed step and then @steps steps without a pause. *ns is the mean time of these
 * @steps. In the kernel scope, all steps use the schedule of the first, so the arm should have one
 * set. */
snap_status bench_arm_loop(bench_arm *arm, bench_scope scope, int steps, double *ns,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Makes set 0 the next set, with the cache and the queries that it had first. Forgets the kept
 * output. */
snap_status bench_arm_reset(bench_arm *arm, snap_err *err) SNAP_CHECK_RESULT;

/* The number of rows of one step: batch * s_q * heads. */
int64_t bench_arm_rows(const bench_arm *arm);

/* The output of one step in host memory, and where its input came from. */
typedef struct {
    int set;
    uint64_t query_seed; /* row i of the queries is row i of the source of this seed */
    uint16_t *out;       /* bf16 [rows][d_c], owned */
    float *lse;          /* fp32 [rows], owned */
} bench_output;
void bench_output_release(bench_output *o); /* sets @o to {0}, which is also its initial value */

/* Copies the output of the last step, replacing @o. */
snap_status bench_arm_output(bench_arm *arm, bench_output *o, snap_err *err) SNAP_CHECK_RESULT;

/* The output that bench_arm_sample() kept; NULL if it has not run since bench_arm_reset(). */
const bench_output *bench_arm_kept(const bench_arm *arm);

/* The index from which a token was made, for numbers_token(). @sequence is set * batch + b. */
uint64_t bench_arm_token_index(const bench_arm *arm, int64_t sequence, int64_t token);

/* ---- planted tokens ---- */

/**
 * bench_arm_plant - give set 0 an input whose output is known and depends on each of its pages
 *
 * The pages of the set are exchanged at random, which gives it another block table. (If the lengths
 * of sequences differ, last pages stay where they are.) In each page
 * one token is replaced, always in the same slot. Its content is 1 in one column, which depends on
 * the sequence and the page, and 0 in the others. All queries become equal. They give each of these
 * tokens the same logit, and all others a much lower one. So element d of a sequence's output rows
 * is, up to rounding, the share of its replaced tokens whose column is d.
 *
 * Set 0 becomes the next set. bench_arm_reset() restores it. In the last page no token is replaced
 * if all tokens there are new ones of the step.
 *
 * Errors: those of the backend, SNAP_E_NOMEM.
 */
snap_status bench_arm_plant(bench_arm *arm, uint64_t seed, snap_err *err) SNAP_CHECK_RESULT;

/* Returns the number of replaced tokens of sequence @b. @want: [d_c] the expected output of the
 * sequence's rows, times the returned number. Without a format, this is how many of these tokens
 * have their 1 in each column. *lse is the log-sum-exp of these rows. Returns 0 if no token is
 * replaced, or if the format cannot hold the tokens so that their logits stand out. */
int64_t bench_arm_planted(const bench_arm *arm, int b, double *want, double *lse);

float bench_softmax_scale(void); /* 1/sqrt(192) */

#endif
