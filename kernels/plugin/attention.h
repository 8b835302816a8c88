/* attention.h - the interface of a plugin that has one function: attention.
 *
 * The program does everything else: it allocates memory, copies, quantises queries, appends tokens,
 * measures time and probes the ceilings. The object defines one symbol:
 *
 *     const snapmla_attention snapmla_attention_v1 = {
 *         SNAPMLA_ATTENTION, .name = "mine", .device = "host", .precisions = SNAPMLA_HAS_BF16,
 *         .attend = my_attention};
 *
 * The object needs no symbol of the program: it is compiled against the headers alone and may be
 * linked with any library. docs/plugin.md is the manual, and example/attend.c a whole plugin. */
#ifndef SNAPMLA_KERNELS_PLUGIN_ATTENTION_H
#define SNAPMLA_KERNELS_PLUGIN_ATTENTION_H

#include "kernels/plugin/plugin.h"

/* Must be raised when a struct of this file, mla.h or err.h changes. */
enum { SNAPMLA_ATTENTION_ABI = 3 };

/* Initialises the first three members, which record what the object was compiled against. */
#define SNAPMLA_ATTENTION                                                                          \
    SNAPMLA_ATTENTION_ABI, (uint32_t)sizeof(snapmla_attention), (uint32_t)sizeof(snap_err)

enum { SNAPMLA_HAS_BF16 = 1 << MLA_BF16, SNAPMLA_HAS_FP8 = 1 << MLA_FP8 };

/* One decode step, as mla.h defines it. On the host, all lengths are within 0 .. max_tokens, and
 * the table entries of the pages that they use are within the pool. On a CUDA device these numbers
 * are not checked: the plugin must not read out of bounds, whatever they are. */
typedef struct {
    mla_precision precision;
    int heads, d_c, d_r;
    int64_t max_tokens;         /* the longest sequence of the plan */
    int batch, s_q;             /* at most those of the plan */
    const int32_t *seqlens;     /* [batch] tokens in cache, incl. this step's; may be 0 */
    const int32_t *block_table; /* [batch][table_width] page numbers */
    int table_width;
} snapmla_step;

/* The queries of a step: see mla_attn. */
typedef struct {
    const void *q;
    const void *q_rope;   /* NULL for MLA_BF16 */
    const float *q_scale; /* NULL for MLA_BF16 */
    float softmax_scale;
} snapmla_queries;

/* ---- caches in any format ----
 *
 * An arm of `snapmla bench` with a cache format (docs/formats.md) gives the plugin a cache that the
 * program has packed. The cache consists of pools. A pool is an array of pages of `bytes` bytes
 * each or, if it is not paged, one block of `bytes` bytes for the whole tensor. A plane is an array
 * inside a pool: content, RoPE part, scales. Its element 0 for token j of sequence b lies at
 *
 *     pool + p * bytes + offset + (j % page_tokens) * stride,
 *     p = block_table[b][j / page_tokens], or 0 in a pool that is not paged.
 *
 * A stride of 0 means that all tokens of the page, or of the tensor, share the values. Of two 4-bit
 * elements in a byte, the one with the even index is in the low bits. The content of a token is
 * (code - zero point) * scale, where each scale serves columns / (number of scales) neighbouring
 * columns. What the rotation and the means of a format are is explained in docs/formats.md.
 *
 * Table entries past the end of a sequence and slots past its last token may hold any value. One
 * page of each pool belongs to no sequence. All pools are aligned to MLA_ALIGN bytes, and must not
 * be written. The queries are bf16, as for MLA_BF16: a kernel that multiplies in FP8 quantises them
 * itself. A block table has pages of `page_tokens` tokens, not of MLA_PAGE. */
enum { SNAPMLA_PLANES = 8 };

typedef struct {
    const char *name; /* "content", "content.scale", "content.zero", "rope", "rope.scale",
                         "content.scale.tensor_scale", "rope.scale.tensor_scale" or
                         "content.mean"; a format has the first, "rope" and some of the others */
    const char *type; /* "bf16", "e4m3fn", "fp32", ...: docs/formats.md lists them */
    int columns;      /* elements for each token, page or tensor */
    int pool;
    int64_t offset, stride; /* bytes, used by the formula above */
} snapmla_plane;

typedef struct {
    bool paged;
    int64_t bytes; /* size of each page, or of the whole pool */
} snapmla_pool;

typedef struct {
    const char *name; /* "fp8_ds_mla" */
    const char *json; /* the descriptor */
    int page_tokens;
    int planes, pools;
    snapmla_plane plane[SNAPMLA_PLANES];
    snapmla_pool pool[SNAPMLA_PLANES];
} snapmla_format;

typedef struct {
    const snapmla_format *format;
    int64_t pages;
    const void *pool[SNAPMLA_PLANES]; /* [format->pools] memory of the device */
} snapmla_packed;

typedef struct snapmla_attention {
    uint32_t abi;            /* SNAPMLA_ATTENTION_ABI */
    uint32_t table_bytes;    /* sizeof(snapmla_attention) */
    uint32_t err_bytes;      /* sizeof(snap_err) */
    const char *name;        /* as snapmla_plugin.name: the name of the backend in results */
    const char *kernel;      /* the name of the kernel in results; NULL: the same as `name` */
    const char *device;      /* "host": all pointers are host memory. "cuda": they are memory of the
                             program's CUDA device, and the work is enqueued on `stream` */
    const char *device_name; /* the name of the device in results, for a kernel that computes on
                                another device than the memory is on. NULL: the name of the
                                processor or of the CUDA device */
    unsigned precisions;     /* SNAPMLA_HAS_BF16 | SNAPMLA_HAS_FP8: what attend() supports; 0 if
                             the plugin has only attend_packed() */
    /* "host" only: a call of plan(), attend() or a function for packed caches that takes longer
     * than this many seconds is ended, and the arm fails. 0: 60 seconds; at most 3600 */
    double limit_s;

    /* Reserves what every step up to these capacities needs; *state is the plugin's own. Returns
     * SNAP_E_UNSUPPORTED for a shape that it does not have. NULL: there is no state. plan_free()
     * releases *state; NULL: nothing to release. */
    snap_status (*plan)(void **state, const mla_capacity *cap, snap_err *err);
    void (*plan_free)(void *state);

    /**
     * attend - attention over the cache for one layer
     *
     * @state:  that of plan(), or NULL
     * @cache:  as mla.h defines it: pages, content, rope and scale
     * @out:    bf16 [batch][s_q][heads][d_c]
     * @lse:    fp32 [batch][s_q][heads], natural logarithm; may be NULL
     * @stream: NULL on the host, a cudaStream_t with "cuda". The call must not wait for the stream,
     *          and a CUDA graph must be able to capture what it enqueues
     *
     * It writes @out and @lse and no other memory of the program. Returns SNAP_OK, or what
     * plugin_fail() returns.
     */
    snap_status (*attend)(void *state, const snapmla_step *step, const snapmla_queries *q,
                          const mla_cache *cache, void *out, float *lse, void *stream,
                          snap_err *err);

    /* ---- caches in any format; all of these may be NULL or false ---- */

    const char *format; /* the format of an arm that names none: the name of a shipped format, or
                           the text of a descriptor, which begins with '{' */
    bool without_lse;   /* attend_packed() does not write `lse`, which is then not checked */
    void *self;         /* the plugin's own, passed to plan_packed() and drop() */

    /* Like plan(), for a cache in @format, which lives as long as the plan. SNAP_E_UNSUPPORTED for
     * a format or shape that it cannot read. plan_free() releases *state. */
    snap_status (*plan_packed)(void *self, void **state, const mla_capacity *cap,
                               const snapmla_format *format, snap_err *err);

    /* Reads the lengths and the block table of the next steps, as mla_schedule() does. It may wait
     * for the device, and its time is not measured. */
    snap_status (*schedule_packed)(void *state, const snapmla_step *step, const snapmla_queries *q,
                                   const snapmla_packed *cache, void *stream, snap_err *err);

    /* Like attend(), over a packed cache. In @step, `precision` is MLA_BF16. */
    snap_status (*attend_packed)(void *state, const snapmla_step *step, const snapmla_queries *q,
                                 const snapmla_packed *cache, void *out, float *lse, void *stream,
                                 snap_err *err);

    /* ---- objects that run what a file says, such as python:FILE ---- */

    /* Makes the plugin of one arm from the file @path. @isa is the arm's key of that name, or
     * "auto". *out is the plugin's own, and is used instead of the exported table until drop(),
     * which may be NULL, gets its `self`. */
    snap_status (*make)(const struct snapmla_attention **out, const char *path, const char *isa,
                        snap_err *err);
    void (*drop)(void *self);
} snapmla_attention;

#endif
