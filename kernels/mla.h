/* mla.h - one dense MLA decode step: the contract that every backend implements.
 *
 *   S[b,s,h,j] = scale * (q_c[b,s,h] . c[b,j] + q_r[b,s,h] . r[b,j])      j < L[b] - (s_q - 1 - s)
 *   O[b,s,h,:] = softmax_j(S) . c[b]                                   V = c: the first d_c columns
 *   LSE[b,s,h] = ln(sum_j exp(S))                      no visible token: O = 0, LSE = -inf
 *
 * Source: DeepSeek-V2 report (arXiv 2405.04434) section 2.1, absorbed form; SnapMLA (arXiv
 * 2602.10718) for the FP8 arm.
 *
 * Objects
 *   mla_backend   One device and one stream of work. Every pointer below that is marked "device" is
 *                 memory of that device (mla_alloc). Only one thread may call a backend.
 *   mla_plan      The workspace and split metadata for all steps up to a capacity. It is allocated
 *                 by mla_plan_create().
 *   mla_schedule  Reads the sequence lengths on the device and stores the split metadata of one
 *                 step in the plan. It is called once per step, and its result serves every layer.
 *   mla_run       Attention, and the merge of the splits, for one layer.
 * mla_schedule(), mla_run() and the dataflow operations do not allocate, synchronise or read device
 * data on the host. (Backends whose device is the host, and the wrapper of staged.h, are
 * exceptions.) Their launches depend only on numbers that the host knows, such as batch, s_q,
 * heads, table_width and the plan's capacity. So a CUDA graph may capture them and replay them with
 * other sequence lengths.
 * These functions cannot report errors in device data (a page outside the pool, a length beyond the
 * capacity). They clamp such entries and never access memory out of bounds. mla_check_step() checks
 * the entries on the host and reports the first that is out of range.
 *
 * The paged cache. A page holds MLA_PAGE tokens. Token j of sequence b is slot j % MLA_PAGE of page
 * block_table[b][j / MLA_PAGE]. Slots and table entries past the end of a sequence may hold any
 * value, including NaN. A score that is NaN makes all results of its row NaN, and no other row's.
 *   plane     MLA_BF16                                    MLA_FP8 (644 bytes per token at 512 + 64)
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
    MLA_PAGE = 64,          /* tokens per page */
    MLA_MAX_HEADS = 128,    /* most query heads on one device */
    MLA_MAX_SQ = 4,         /* most query tokens per sequence and step: 1 + draft tokens */
    MLA_MAX_CONTENT = 1024, /* widest d_c */
    MLA_MAX_ROPE = 256,     /* widest d_r */
    MLA_ALIGN = 256,        /* bytes; alignment of planes, q, q8, q_rope and out */
};
#define MLA_MAX_CONTEXT ((int64_t)1 << 20) /* tokens per sequence */

typedef enum { MLA_BF16 = 0, MLA_FP8 = 1 } mla_precision;

/* How MLA_FP8 chooses the scale a of a row (a query or a token) from the largest magnitude of its
 * content. With a power of two, dividing the RoPE part by the scale changes no mantissa. */
typedef enum {
    MLA_SCALE_MAX = 0,  /* a = max(max|c|, 1e-10) / 448 in FP32, as the SnapMLA paper has it */
    MLA_SCALE_POW2 = 1, /* the smallest power of two that is not below the a of MLA_SCALE_MAX */
} mla_scale;

/* "max", "pow2" */
const char *mla_scale_name(mla_scale s);

/* False for any other name. */
bool mla_scale_parse(const char *name, mla_scale *out);

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
    const char *isa;       /* Instruction set or device. cpu: "auto", "portable", "avx2", "avx512f",
                              "avx512" (needs BF16 dot products and VBMI), "amx" (also needs
                              BF16 tiles), "amx-emulated" (for tests); cuda: "auto", "sm90a",
                              "portable"; opencl: "auto", "gpu", "cpu", part of a device name. NULL
                              = "auto" */
    int threads;           /* cpu only: worker threads, 0 = all cores that this process may use */
    struct parallel *pool; /* cpu only: the caller's thread pool (base/parallel.h), borrowed. NULL =
                              the backend creates its own pool. Two pools in one process would
                              compete for the cores */
    mla_scale scale;       /* how the backend chooses the scale of each row that it quantises */
    int device;            /* cuda only: number of the device, from 0 */
} mla_backend_options;

/* How the device sums FP8 products, if it does so less precisely than FP32. One instruction takes
 * `products` products. It aligns them and the running sum to the largest exponent among them,
 * truncates each at 2^-bits of that exponent, adds them, and truncates the new sum to the same
 * number of bits. Valid: bits 1..53, products >= 1. Both 0: the sums are as precise as FP32. */
typedef struct {
    int bits, products;
} mla_cut_sums;

typedef struct {
    char name[32];         /* "cpu", "cuda", "opencl", or the name of a plugin */
    char device[128];      /* "AMD EPYC, 2 threads"; "NVIDIA H200" */
    char kernel[64];       /* the implementation in use: "avx512bf16", "sm90a" */
    bool host_memory;      /* the host may dereference device pointers */
    size_t memory_bytes;   /* memory of the device */
    size_t cache_bytes;    /* last-level cache, for cold measurements; 0 = unknown */
    char pci[24];          /* PCI address, "0000:1b:00.0"; "1b:00.0" if the domain is unknown; "" if
                              the backend gives none */
    mla_cut_sums fp8_sums; /* how the backend's FP8 kernels sum */
    mla_scale scale;       /* as in mla_backend_options */
    bool processors;       /* the host's processors compute, although host_memory may be false */
} mla_backend_info;

/* Whether the backend computes on the host's processors. Then the processors' clock and energy are
 * those of the measurement, and other programs can disturb it. */
static inline bool mla_on_processors(const mla_backend_info *info) {
    return info->host_memory || info->processors;
}

/**
 * mla_backend_open - open the backend with that name on this machine
 *
 * @out:  caller owns it, release with mla_backend_close(); NULL on failure
 * @name: a name from mla_backend_list(), such as "cpu"; or "plugin:PATH" for a shared object as
 *        kernels/plugin/plugin.h describes; or "python:FILE" for a Python file (docs/plugin.md)
 * @opt:  may be NULL
 *
 * Errors: SNAP_E_USAGE for an unknown name or isa; SNAP_E_UNSUPPORTED if this machine or build
 * lacks what the backend needs, or if the backend cannot choose scales
 * as opt->scale says (the message names it); SNAP_E_NOMEM; SNAP_E_DEVICE; for a plugin,
 * those of plugin_backend_open().
 */
snap_status mla_backend_open(mla_backend **out, const char *name, const mla_backend_options *opt,
                             snap_err *err) SNAP_CHECK_RESULT;
void mla_backend_close(mla_backend *be); /* NULL is allowed */
void mla_backend_describe(const mla_backend *be, mla_backend_info *out);

/* Names of the backends in this build, NULL-terminated; static memory. */
const char *const *mla_backend_list(void);

/* Allocates uninitialised device memory, aligned to MLA_ALIGN. Returns NULL on failure and sets the
 * error: SNAP_E_SHAPE for 0 bytes or more than PTRDIFF_MAX, SNAP_E_NOMEM, SNAP_E_DEVICE. */
void *mla_alloc(mla_backend *be, size_t bytes, snap_err *err);
void mla_free(mla_backend *be, void *device); /* NULL is allowed */

/* Stream-ordered copies between host and device memory. mla_copy_out() returns after the bytes have
 * arrived. A copy of 0 bytes does nothing. SNAP_E_SHAPE: a pointer is null, or there are more than
 * PTRDIFF_MAX bytes. Whether the bytes lie within an allocation is not checked. */
snap_status mla_copy_in(mla_backend *be, void *device, const void *host, size_t bytes,
                        snap_err *err) SNAP_CHECK_RESULT;
snap_status mla_copy_out(mla_backend *be, void *host, const void *device, size_t bytes,
                         snap_err *err) SNAP_CHECK_RESULT;
/* Waits for all enqueued work and reports its asynchronous errors. */
snap_status mla_sync(mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;

/* Measures the time, in nanoseconds, that the stream takes for the work enqueued between start and
 * stop. Where the device has events, the time excludes the cost of reading the clock.
 * mla_timer_stop() waits for the work. */
snap_status mla_timer_start(mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;
snap_status mla_timer_stop(mla_backend *be, double *ns, snap_err *err) SNAP_CHECK_RESULT;

/* ---- one step ---------------------------------------------------------------------------- */

/* The largest step that a plan serves. */
typedef struct {
    mla_precision precision;
    int heads;          /* 1..MLA_MAX_HEADS; every run has exactly this many */
    int d_c, d_r;       /* multiples of 32; the Hopper kernels take 512 + 64 only; MiniCPM3 has 256
                           + 32 */
    int batch;          /* sequences, >= 1 */
    int s_q;            /* query tokens per sequence, 1..MLA_MAX_SQ */
    int64_t max_tokens; /* longest sequence, 1..MLA_MAX_CONTEXT */
    int splits;         /* most parts that a sequence is split into; 0 = the backend chooses, 1 =
                           never split. A larger bound than useful is not an error */
} mla_capacity;

typedef struct mla_plan mla_plan;

/**
 * mla_plan_create - reserve what every step up to these capacities needs
 *
 * @out: caller owns it, release with mla_plan_free() before the backend is closed; NULL on failure
 * @cap: copied
 *
 * Errors: SNAP_E_SHAPE (the message names the field and its range), SNAP_E_UNSUPPORTED,
 * SNAP_E_NOMEM, SNAP_E_DEVICE.
 */
snap_status mla_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                            snap_err *err) SNAP_CHECK_RESULT;
void mla_plan_free(mla_plan *plan); /* NULL is allowed */

/* The sequences of one step, the same for all layers. */
typedef struct {
    int batch;                  /* 1..capacity */
    int s_q;                    /* 1..capacity */
    const int32_t *seqlens;     /* [batch] tokens in cache, incl. this step's; 0 allowed; device */
    const int32_t *block_table; /* [batch][table_width] page numbers; device */
    int table_width;            /* entries per row, >= ceil(longest / MLA_PAGE) */
} mla_step;

/* One layer's cache. All planes are device memory, borrowed. */
typedef struct {
    int64_t pages; /* size of the pool; page numbers outside 0..pages-1 are clamped */
    void *content, *rope;
    float *scale;
} mla_cache;

/* One layer's queries and results. Device memory, borrowed. */
typedef struct {
    const void *q;      /* MLA_BF16: bf16 [batch][s_q][heads][d_c + d_r]; MLA_FP8: e4m3 [..][d_c] */
    const void *q_rope; /* MLA_FP8: bf16 [batch][s_q][heads][d_r], divided by q_scale; else NULL */
    const float *q_scale; /* MLA_FP8: fp32 [batch][s_q][heads]; else NULL */
    float softmax_scale;  /* finite, > 0; the benchmarks use 1/sqrt(192) */
    void *out;            /* bf16 [batch][s_q][heads][d_c] */
    float *lse;           /* fp32 [batch][s_q][heads], natural logarithm; may be NULL */
} mla_attn;

/* Stores the split metadata of this step in the plan. Only the device reads device data.
 * SNAP_E_SHAPE means that a number is out of its range, or that a pointer is null or misaligned;
 * the previously scheduled step then stays valid. After any other failure, no step is scheduled. */
snap_status mla_schedule(mla_plan *plan, const mla_step *step, snap_err *err) SNAP_CHECK_RESULT;

/**
 * mla_run - attention over the cache for one layer
 *
 * @step: the step last given to mla_schedule() or mla_prepare() on this plan, with the same
 *        pointers and numbers
 *
 * Equal inputs, plan capacity and backend give bit-identical results. With a fixed `splits`, the
 * result of a row does not depend on the other sequences of the batch. Errors: SNAP_E_SHAPE (a
 * null or misaligned pointer, a number out of its range, or a batch, s_q or table_width that
 * differs from the scheduled step's), SNAP_E_DEVICE.
 */
snap_status mla_run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                    const mla_attn *attn, snap_err *err) SNAP_CHECK_RESULT;

/* Copies lengths and block table to the host. Checks every length, and the table entries of the
 * pages that the lengths use. SNAP_E_SHAPE: one of them or an argument is out of range; the message
 * names it. SNAP_E_NOMEM, SNAP_E_DEVICE. Slow: for benchmarks and tests, never inside a captured
 * step. */
snap_status mla_check_step(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                           snap_err *err) SNAP_CHECK_RESULT;

/* ---- dataflow: the operations before attention in a step (SnapMLA, "end-to-end dataflow") -- */

/* Fused-Q-Quant: quantises absorbed queries, bf16 [rows][d_c + d_r] with rows = batch * s_q *
 * heads, to the three query planes of MLA_FP8. The scale of a row is chosen as mla_scale says. */
snap_status mla_quant_q(mla_backend *be, int64_t rows, int d_c, int d_r, const void *q, void *q8,
                        void *q_rope, float *q_scale, snap_err *err) SNAP_CHECK_RESULT;

/* Fused-K-Append: writes the s_q new tokens of each sequence, bf16 [batch][s_q][d_c + d_r], to
 * positions L - s_q .. L - 1 of the cache (seqlens already counts them). MLA_FP8 quantises them,
 * MLA_BF16 copies them. If L < s_q, only the last L tokens are written. */
snap_status mla_append_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                          const void *kv, snap_err *err) SNAP_CHECK_RESULT;

/* The new tokens and queries of one layer. Device memory, borrowed. */
typedef struct {
    const void *kv; /* the new tokens, as for mla_append_kv() */
    const void *q;  /* the queries, as for mla_quant_q(); NULL: there are no queries to quantise */
    void *q8, *q_rope;
    float *q_scale;
} mla_fresh;

/**
 * mla_prepare - do everything that a step needs before its first mla_run()
 *
 * Does the work of mla_quant_q() (if there are queries), mla_append_kv() and mla_schedule(), in
 * one launch if the backend can. None of the three depends on another's result. The results are
 * bit-identical to those of the three separate calls. The errors are theirs; in addition, queries
 * on a plan for MLA_BF16 give SNAP_E_SHAPE.
 */
snap_status mla_prepare(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                        const mla_fresh *fresh, snap_err *err) SNAP_CHECK_RESULT;

/* Fused-Fetch-Dequant: copies tokens first .. first + count - 1 of sequence `seq` to contiguous
 * bf16 [count][d_c + d_r]. MLA_FP8 dequantises them (c8 * a_k and r' * a_k, rounded once). Tokens
 * past the end of the sequence are written as zeros. */
snap_status mla_fetch_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache, int seq,
                         int64_t first, int64_t count, void *kv, snap_err *err) SNAP_CHECK_RESULT;

#endif
