/* lab.h - what benchmarks and checks need of a backend beyond mla.h: ablated plans and kernel
 * names, filled memory, a flushed cache, random rows generated on the device, the unfused
 * dataflow, steps recorded once and replayed, and attention in FP64.
 *
 * lab_fill() and lab_draw() work on every backend. If the backend has no function for them, the
 * host computes the bytes, and copies them if it cannot write to the device's memory. The other
 * functions are optional: where they are missing, those with a status return SNAP_E_UNSUPPORTED.
 * lab_fill(), lab_flush(), lab_draw(), lab_unfused() and lab_replay() enqueue their work as mla.h
 * does. */
#ifndef SNAPMLA_KERNELS_LAB_H
#define SNAPMLA_KERNELS_LAB_H

#include "kernels/draw.h"
#include "kernels/mla.h"

/* An ablation: the FP8 kernel with one technique left out or replaced, to measure what that
 * technique contributes to speed and error. LAB_WHOLE leaves nothing out. */
typedef enum {
    LAB_WHOLE,
    LAB_WIDENED,    /* pages are dequantised on chip, the arithmetic is BF16; mla_attn.q is bf16, as
                     for MLA_BF16 */
    LAB_IN_PLACE,   /* the tensor cores add products to the output accumulator, in their own
                     precision */
    LAB_SHALLOW,    /* the fewest pages in shared memory that the kernel can work with */
    LAB_PAGE_UNITS, /* P of each page is rounded in a unit of its own, as in the paper */
    LAB_PAGE_ORDER, /* LAB_PAGE_UNITS, with the products of a tile's two pages added in the
                       opposite order */
    LAB_ABLATIONS
} lab_ablation;

/**
 * lab_plan_create - mla_plan_create() with an ablation
 *
 * @cap:      its precision must be MLA_FP8 unless @ablation is LAB_WHOLE
 * @ablation: LAB_WHOLE is mla_plan_create() itself
 *
 * Errors: SNAP_E_SHAPE for an unknown ablation, SNAP_E_UNSUPPORTED if the backend has no kernel for
 * it or the precision is not MLA_FP8, and those of mla_plan_create().
 */
snap_status lab_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                            lab_ablation ablation, snap_err *err) SNAP_CHECK_RESULT;

/* The name of the kernel that serves a plan's steps, such as "sm90_fp8". Static memory; NULL if the
 * backend has no laboratory functions. */
const char *lab_plan_kernel(const mla_plan *plan);

/* Sets every byte of a piece of device memory to @byte. */
snap_status lab_fill(mla_backend *be, void *device, int byte, size_t bytes,
                     snap_err *err) SNAP_CHECK_RESULT;

/* True if lab_flush() is supported. */
bool lab_can_flush(const mla_backend *be);

/* Evicts the contents of the last-level cache by reading other memory, which leaves no dirty lines
 * to write back. Does not wait. Work that is enqueued during the flush starts after it, so its
 * launch overhead is not part of the time that mla_timer_start() measures. */
snap_status lab_flush(mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;

/**
 * lab_draw - generate rows of a source into device memory
 *
 * @from:  its pool is device memory
 * @first: [groups] the source row that each group begins with, device memory
 * @out:   bf16 [groups][rows][d_c + d_r], device memory
 */
snap_status lab_draw(mla_backend *be, const draw_source *from, const uint64_t *first, int groups,
                     int64_t rows, void *out, snap_err *err) SNAP_CHECK_RESULT;

/* Rows in the format of MLA_FP8: e4m3 [rows][d_c], bf16 [rows][d_r], fp32 [rows]; device memory. */
typedef struct {
    void *content, *rope;
    float *scale;
} lab_rows;

/**
 * lab_unfused - the work of mla_quant_q() and mla_append_kv() for one step, without fusion
 *
 * Separate launches find each row's largest magnitude, quantise its content and scale its RoPE
 * part, for the queries and for the new tokens. One more launch copies the new tokens to their
 * pages.
 *
 * @plan:   for MLA_FP8; SNAP_E_USAGE if not
 * @q, @kv: as for mla_quant_q() and mla_append_kv()
 * @q8:     [batch * s_q * heads], the query planes of mla_attn
 * @staged: [batch * s_q], scratch
 *
 * The results are bit-identical to those of mla_quant_q() and mla_append_kv(). The other arguments
 * are not checked.
 */
snap_status lab_unfused(mla_plan *plan, const mla_step *step, const mla_cache *cache, const void *q,
                        const void *kv, const lab_rows *q8, const lab_rows *staged,
                        snap_err *err) SNAP_CHECK_RESULT;

/* ---- recording ---- */

typedef struct lab_recording lab_recording;

bool lab_can_record(const mla_backend *be);

/* Work enqueued between lab_record() and lab_record_end() is recorded and not run. Only steps may
 * be recorded, no copies and no waits. */
snap_status lab_record(mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;
snap_status lab_record_end(mla_backend *be, lab_recording **out, snap_err *err) SNAP_CHECK_RESULT;

snap_status lab_replay(mla_backend *be, lab_recording *r, snap_err *err) SNAP_CHECK_RESULT;
void lab_recording_free(mla_backend *be, lab_recording *r); /* NULL is allowed */

/* ---- FP64 ---- */

/* A step of generated rows. Sequence b consists of the rows b * context .. (b + 1) * context - 1 of
 * `tokens`; query row i is row i of `queries`. */
typedef struct {
    mla_precision precision;
    int heads, s_q;
    int64_t context;
    float softmax_scale;
    draw_source tokens, queries; /* pools in device memory */
    bool bf16_queries;           /* MLA_FP8 only: the queries are not quantised */
    mla_cut_sums sums;           /* MLA_FP8 only: how the content part of the scores is summed; bits
                                    0, products above 32 or bf16_queries: in FP64 */
} lab_step;

bool lab_can_attend(const mla_backend *be);

/**
 * lab_attend - rows of a step in FP64, with exact probabilities
 *
 * Its own code quantises the rows, independent of the kernels under test.
 *
 * @row: [rows] the rows to compute: (b * s_q + s) * heads + h; host memory
 * @out: [rows][d_c] host memory
 * @lse: [rows] natural logarithm, host memory
 *
 * Allocates and waits. SNAP_E_NOMEM, SNAP_E_DEVICE.
 */
snap_status lab_attend(mla_backend *be, const lab_step *step, const int64_t *row, int rows,
                       double *out, double *lse, snap_err *err) SNAP_CHECK_RESULT;

#endif
