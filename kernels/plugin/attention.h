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
enum { SNAPMLA_ATTENTION_ABI = 1 };

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

typedef struct {
    uint32_t abi;         /* SNAPMLA_ATTENTION_ABI */
    uint32_t table_bytes; /* sizeof(snapmla_attention) */
    uint32_t err_bytes;   /* sizeof(snap_err) */
    const char *name;     /* as snapmla_plugin.name: the name of the backend in results */
    const char *kernel;   /* the name of the kernel in results; NULL: the same as `name` */
    const char *device;   /* "host": all pointers are host memory. "cuda": they are memory of the
                             program's CUDA device, and the work is enqueued on `stream` */
    unsigned precisions;  /* SNAPMLA_HAS_BF16 | SNAPMLA_HAS_FP8: what attend() supports */
    double limit_s; /* "host" only: a call of attend() that takes longer than this many seconds
                             is ended, and the arm fails. 0: 60 seconds; at most 3600 */

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
} snapmla_attention;

#endif
