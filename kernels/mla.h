/* mla.h - one dense MLA decode step: the contract that every backend implements.
 *
 *   S[b,s,h,j] = scale * (q_c[b,s,h] . c[b,j] + q_r[b,s,h] . r[b,j])      j < L[b] - (s_q - 1 - s)
 *   O[b,s,h,:] = softmax_j(S) . c[b]                                     V = c: the first d_c columns
 *   LSE[b,s,h] = ln(sum_j exp(S))                      no visible token: O = 0, LSE = -inf
 *
 * Source: DeepSeek-V2 report (arXiv 2405.04434) section 2.1, absorbed form; SnapMLA (arXiv 2602.10718)
 * for the FP8 arm.
 *
 * Objects
 *   mla_backend   one device and one stream of work; every pointer below that says "device" is
 *                 memory of that device (mla_alloc). Calls on one backend come from one thread.
 *   mla_plan      what all steps up to a capacity need (workspace, split metadata). The only
 *                 thing that allocates is mla_plan_create().
 *   mla_schedule  reads the lengths ON THE DEVICE and leaves the metadata of one step in the plan.
 *                 Called once a step, its result serves every layer.
 *   mla_run       attention and combine, one layer.
 * Neither mla_schedule() nor mla_run() nor the dataflow operations allocate, synchronise or read
 * device data on the host: their launches depend on host-known numbers only (batch, s_q, heads,
 * table_width and the plan's capacity), so a CUDA graph may capture them and replay with other lengths.
 * Errors in device data (a page outside the pool, a length beyond the capacity) can't be reported
 * from there: such entries are clamped, never followed out of bounds, and mla_check_step() finds
 * them, on the host, for whoever wants the message.
 *
 * The paged cache. A page holds MLA_PAGE tokens; token j of sequence b is slot j % MLA_PAGE of page
 * block_table[b][j / MLA_PAGE]. Slots and table entries past a sequence's length may hold anything,
 * NaN included.
 *   plane     MLA_BF16                                    MLA_FP8 (644 bytes a token at 512 + 64)
 *   content   bf16 [pages][64][d_c + d_r], RoPE last      e4m3 [pages][64][d_c]     c / a_k
 *   rope      NULL                                        bf16 [pages][64][d_r]     r / a_k
 *   scale     NULL                                        fp32 [pages][64]          a_k
 * Every plane starts at a multiple of MLA_ALIGN bytes. */
#ifndef SNAPMLA_KERNELS_MLA_H
#define SNAPMLA_KERNELS_MLA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    MLA_PAGE = 64,          /* tokens a page */
    MLA_MAX_HEADS = 128,    /* query heads on one device */
    MLA_MAX_SQ = 4,         /* query tokens a sequence and step: 1 + drafts */
    MLA_MAX_CONTENT = 1024, /* widest d_c */
    MLA_MAX_ROPE = 256,     /* widest d_r */
    MLA_ALIGN = 256,        /* bytes; alignment of planes, q and out */
};
#define MLA_MAX_CONTEXT ((int64_t)1 << 20) /* tokens a sequence */

typedef enum { MLA_BF16 = 0, MLA_FP8 = 1 } mla_precision;

/* "bf16", "fp8" */
const char *mla_precision_name(mla_precision p);

/* Bytes of one page of each plane; rope and scale are 0 for MLA_BF16. */
typedef struct {
    size_t content, rope, scale;
} mla_page_bytes;
mla_page_bytes mla_cache_page_bytes(mla_precision p, int d_c, int d_r);

/* Bytes that one cached token takes over all planes: 1152 and 644 for 512 + 64. */
size_t mla_cache_token_bytes(mla_precision p, int d_c, int d_r);

/* ---- backends ---------------------------------------------------------------------------- */

typedef struct mla_backend mla_backend;

typedef struct {
    const char *isa; /* cpu: "auto", "portable", "avx2", "avx512f", "avx512" (which needs BF16 dot
                        products); cuda: "auto", "sm90a", "portable"; opencl: "auto", "gpu", "cpu", part
                        of a device's name; NULL = "auto" */
    int threads; /* cpu: worker threads, 0 = all cores this process may use. Ignored elsewhere */
    struct parallel *pool; /* cpu: the caller's threads (base/parallel.h), borrowed, in place of own
                              ones: two pools would fight for the cores. NULL = own. Ignored elsewhere */
} mla_backend_options;

/* How FP8 scores are summed where that is coarser than FP32: an instruction aligns `products` products and the
 * sum so far to the largest exponent among them, drops what lies below 2^-bits of that, and cuts its sum to as
 * many bits (1..53; at least one product). All 0: it isn't. */
typedef struct {
    int bits, products;
} mla_cut_sums;

typedef struct {
    char name[32];         /* "cpu", "cuda", a plugin's own name */
    char device[128];      /* "AMD EPYC, 2 threads"; "NVIDIA H200" */
    char kernel[64];       /* which implementation runs: "avx512bf16", "sm90a" */
    bool host_memory;      /* device pointers may be dereferenced by the host */
    size_t memory_bytes;   /* of the device, as found */
    size_t cache_bytes;    /* last-level cache, for cold measurements; 0 = unknown */
    char pci[24];          /* "0000:1b:00.0" where the device has such an address, else "" */
    mla_cut_sums fp8_sums; /* of its FP8 kernels */
} mla_backend_info;

/**
 * mla_backend_open - the backend of that name on this machine
 *
 * @out:  caller owns it, release with mla_backend_close(); NULL on failure
 * @name: "cpu", or another name that mla_backend_list() gives; "plugin:PATH" for a shared object as
 *        kernels/plugin/plugin.h describes
 * @opt:  may be NULL
 *
 * Errors: SNAP_E_USAGE for an unknown name, SNAP_E_UNSUPPORTED where this machine or build lacks
 * what it needs (the message says what), SNAP_E_NOMEM.
 */
snap_status mla_backend_open(mla_backend **out, const char *name, const mla_backend_options *opt,
                             snap_err *err) SNAP_CHECK_RESULT;
void mla_backend_close(mla_backend *be); /* NULL is allowed */
void mla_backend_describe(const mla_backend *be, mla_backend_info *out);

/* Names of the backends in this build, NULL-terminated; static memory. */
const char *const *mla_backend_list(void);

/* Device memory, MLA_ALIGN-aligned, uninitialised; NULL on failure with the error set. */
void *mla_alloc(mla_backend *be, size_t bytes, snap_err *err);
void mla_free(mla_backend *be, void *device); /* NULL is allowed */

/* Stream-ordered copies between host and device memory. mla_copy_out() returns with the bytes there. */
snap_status mla_copy_in(mla_backend *be, void *device, const void *host, size_t bytes,
                        snap_err *err) SNAP_CHECK_RESULT;
snap_status mla_copy_out(mla_backend *be, void *host, const void *device, size_t bytes,
                         snap_err *err) SNAP_CHECK_RESULT;
/* Waits for all work; reports what failed asynchronously. */
snap_status mla_sync(mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;

/* Time of the stream around enqueued work, in nanoseconds, without the cost of the clock itself
 * where the device allows (events). mla_timer_stop() waits. */
snap_status mla_timer_start(mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;
snap_status mla_timer_stop(mla_backend *be, double *ns, snap_err *err) SNAP_CHECK_RESULT;

/* ---- one step ---------------------------------------------------------------------------- */

/* The largest step that a plan serves. */
typedef struct {
    mla_precision precision;
    int heads;          /* 1..MLA_MAX_HEADS, exactly what every run brings */
    int d_c, d_r;       /* multiples of 32: 512 + 64 (fast), 256 + 32 (MiniCPM3) */
    int batch;          /* sequences, >= 1 */
    int s_q;            /* query tokens a sequence, 1..MLA_MAX_SQ */
    int64_t max_tokens; /* longest sequence, 1..MLA_MAX_CONTEXT */
    int splits;         /* parts a sequence may be cut into; 0 = the backend chooses, 1 = never cut.
                           A higher bound than useful is not an error */
    int ablation;       /* 0; else a lab_ablation of kernels/lab.h, where the backend has that */
} mla_capacity;

typedef struct mla_plan mla_plan;

/**
 * mla_plan_create - reserve what every step up to these capacities needs
 *
 * @out: caller owns it, release with mla_plan_free() before the backend is closed; NULL on failure
 * @cap: copied
 *
 * Errors: SNAP_E_SHAPE (the message names the field and its range), SNAP_E_UNSUPPORTED, SNAP_E_NOMEM.
 */
snap_status mla_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                            snap_err *err) SNAP_CHECK_RESULT;
void mla_plan_free(mla_plan *plan); /* NULL is allowed */

/* What one step attends to: the same for all layers. */
typedef struct {
    int batch; /* 1..capacity */
    int s_q;   /* 1..capacity */
    const int32_t
        *seqlens; /* [batch] tokens in the cache, this step's included; 0 allowed; device */
    const int32_t *block_table; /* [batch][table_width] page numbers; device */
    int table_width;            /* entries a row, >= ceil(longest / MLA_PAGE) */
} mla_step;

/* One layer's cache, all planes device memory, borrowed. */
typedef struct {
    int64_t pages; /* in the pool; page numbers outside 0..pages-1 are clamped */
    void *content, *rope;
    float *scale;
} mla_cache;

/* One layer's queries and results, device memory, borrowed. */
typedef struct {
    const void *q;      /* MLA_BF16: bf16 [batch][s_q][heads][d_c + d_r]; MLA_FP8: e4m3 [..][d_c] */
    const void *q_rope; /* MLA_FP8: bf16 [batch][s_q][heads][d_r], divided by q_scale; else NULL */
    const float *q_scale; /* MLA_FP8: fp32 [batch][s_q][heads]; else NULL */
    float softmax_scale;  /* finite, > 0; benches use 1/sqrt(192) */
    void *out;            /* bf16 [batch][s_q][heads][d_c] */
    float *lse;           /* fp32 [batch][s_q][heads], natural logarithm; may be NULL */
} mla_attn;

/* Leaves the split metadata of this step in the plan. SNAP_E_SHAPE when the step exceeds the
 * capacity, which leaves the step before; other failures leave none. Device data is read by the device
 * only. */
snap_status mla_schedule(mla_plan *plan, const mla_step *step, snap_err *err) SNAP_CHECK_RESULT;

/**
 * mla_run - attention over the cache for one layer
 *
 * @step: the one last given to mla_schedule() or mla_prepare() on this plan, same pointers and numbers
 *
 * Bit-identical for equal inputs, plan capacity and backend; rows do not depend on their
 * neighbours in the batch when `splits` is fixed. Errors: SNAP_E_SHAPE (null or misaligned pointer,
 * numbers beyond the capacity, another batch, s_q or table_width than the scheduled step's),
 * SNAP_E_DEVICE.
 */
snap_status mla_run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                    const mla_attn *attn, snap_err *err) SNAP_CHECK_RESULT;

/* Copies lengths and table to the host and says which entry is out of range: SNAP_E_SHAPE. Slow;
 * for harnesses and tests, never inside a captured step. */
snap_status mla_check_step(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                           snap_err *err) SNAP_CHECK_RESULT;

/* ---- dataflow: what stands around attention in a step (SnapMLA section "end-to-end dataflow") - */

/* Fused-Q-Quant: rows = batch * s_q * heads absorbed queries, bf16 [rows][d_c + d_r], to the three
 * query planes of MLA_FP8. a_q = max(max|q_c|, 1e-10) / 448 a row. */
snap_status mla_quant_q(mla_backend *be, int64_t rows, int d_c, int d_r, const void *q, void *q8,
                        void *q_rope, float *q_scale, snap_err *err) SNAP_CHECK_RESULT;

/* Fused-K-Append: the step's s_q new tokens of each sequence, bf16 [batch][s_q][d_c + d_r], go to
 * positions L - s_q .. L - 1 (seqlens counts them already), quantised on the way for MLA_FP8, copied
 * for MLA_BF16. A sequence with L < s_q gets its last L tokens. */
snap_status mla_append_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                          const void *kv, snap_err *err) SNAP_CHECK_RESULT;

/* What a layer's new tokens bring to a step, device memory, borrowed. */
typedef struct {
    const void *kv; /* as mla_append_kv() */
    const void
        *q; /* as mla_quant_q(), with rows = batch * s_q * heads; NULL: no queries to quantise */
    void *q8, *q_rope;
    float *q_scale;
} mla_fresh;

/**
 * mla_prepare - all that a step needs before its first mla_run(): mla_quant_q() where there are queries,
 * mla_append_kv() and mla_schedule(), in one launch where the backend can
 *
 * None of the three depends on another's result; theirs to the bit. Errors: those of the three.
 */
snap_status mla_prepare(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                        const mla_fresh *fresh, snap_err *err) SNAP_CHECK_RESULT;

/* Fused-Fetch-Dequant: tokens first .. first + count - 1 of sequence `seq` to contiguous bf16
 * [count][d_c + d_r] (for MLA_FP8: c8 * a_k and r' * a_k, rounded once). Tokens past the sequence's
 * length come out as zeros. */
snap_status mla_fetch_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache, int seq,
                         int64_t first, int64_t count, void *kv, snap_err *err) SNAP_CHECK_RESULT;

#endif
