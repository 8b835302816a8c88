/* lab.h - what a laboratory asks of a backend beside steps: cold caches, random rows made where they
 * are read, steps recorded once and replayed, the step's result in FP64.
 *
 * lab_fill() and lab_draw() work on every backend, by way of the host where the device can't; the rest is
 * there or not, and says so. All calls are enqueued like those of mla.h, unless they say that they wait. */
#ifndef SNAPMLA_KERNELS_LAB_H
#define SNAPMLA_KERNELS_LAB_H

#include "kernels/draw.h"
#include "kernels/mla.h"

/* One technique left out, so that its share of the speed and of the error is measured. For plans of
 * MLA_FP8 (mla_capacity.ablation); mla_plan_create() says where there is no such kernel. */
typedef enum {
    LAB_WHOLE,
    LAB_WIDENED, /* BF16 arithmetic on what is dequantised on chip; mla_attn.q is bf16, as for MLA_BF16 */
    LAB_IN_PLACE, /* products add to the output in the tensor cores' own precision */
    LAB_SHALLOW,  /* as few pages on chip as the kernel can do with */
    LAB_ABLATIONS
} lab_ablation;

/* Which implementation serves a plan's steps: "sm90_fp8". Static memory. */
const char *lab_plan_kernel(const mla_plan *plan);

/* Every byte of device memory to @byte. */
snap_status lab_fill(mla_backend *be, void *device, int byte, size_t bytes,
                     snap_err *err) SNAP_CHECK_RESULT;

/* Can lab_flush() be called? */
bool lab_can_flush(const mla_backend *be);

/* Evicts what the last-level cache holds by reading, which leaves nothing to be written back. Does not
 * wait: what is enqueued next finds the device busy, so that its launch costs no time on the clock of
 * mla_timer_start(). */
snap_status lab_flush(mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;

/**
 * lab_draw - rows of a source into device memory
 *
 * @from:  its pool is device memory
 * @first: [groups] row of the source with which a group begins, device memory
 * @out:   bf16 [groups][rows][d_c + d_r], device memory
 */
snap_status lab_draw(mla_backend *be, const draw_source *from, const uint64_t *first, int groups,
                     int64_t rows, void *out, snap_err *err) SNAP_CHECK_RESULT;

/* Rows as MLA_FP8 has them: e4m3 [rows][d_c], bf16 [rows][d_r], fp32 [rows]; device memory. */
typedef struct {
    void *content, *rope;
    float *scale;
} lab_rows;

/**
 * lab_unfused - what mla_quant_q() and mla_append_kv() do for a step, a pass a thing
 *
 * The largest number of each row, its content, its RoPE part, for queries and new tokens apart; then
 * the tokens once more, to their pages.
 *
 * @plan:   of MLA_FP8
 * @q, @kv: as for those two
 * @q8:     [batch * s_q * heads], the query planes of mla_attn
 * @staged: [batch * s_q], scratch
 *
 * Results are theirs to the bit. Errors: those of the two.
 */
snap_status lab_unfused(mla_plan *plan, const mla_step *step, const mla_cache *cache, const void *q,
                        const void *kv, const lab_rows *q8, const lab_rows *staged,
                        snap_err *err) SNAP_CHECK_RESULT;

/* ---- recording ---- */

typedef struct lab_recording lab_recording;

bool lab_can_record(const mla_backend *be);

/* What is enqueued between these two is recorded and not run: steps without copies and waits only. */
snap_status lab_record(mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;
snap_status lab_record_end(mla_backend *be, lab_recording **out, snap_err *err) SNAP_CHECK_RESULT;

snap_status lab_replay(mla_backend *be, lab_recording *r, snap_err *err) SNAP_CHECK_RESULT;
void lab_recording_free(mla_backend *be, lab_recording *r); /* NULL is allowed */

/* ---- FP64 ---- */

/* A step whose sequence b has the tokens b * context ... of `tokens`, and whose row i has query i of
 * `queries`. */
typedef struct {
    mla_precision precision;
    int heads, s_q;
    int64_t context;
    float softmax_scale;
    draw_source tokens, queries; /* pools in device memory */
    bool bf16_queries;           /* MLA_FP8: the queries are not quantised */
    mla_cut_sums sums;           /* MLA_FP8: of the scores' content; bits 0: in FP64 */
} lab_step;

bool lab_can_attend(const mla_backend *be);

/**
 * lab_attend - rows of a step in FP64 with exact probabilities, quantised by code of its own
 *
 * @row: [rows] which: (b * s_q + s) * heads + h; host memory
 * @out: [rows][d_c] host memory
 * @lse: [rows] natural logarithm, host memory
 *
 * Allocates and waits. SNAP_E_NOMEM, SNAP_E_DEVICE.
 */
snap_status lab_attend(mla_backend *be, const lab_step *step, const int64_t *row, int rows,
                       double *out, double *lse, snap_err *err) SNAP_CHECK_RESULT;

#endif
