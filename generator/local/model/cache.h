/* cache.h - the paged cache of all layers: one pool of pages, the same numbers in every layer.
 *
 * The formats are the attention arms' own (kernels/mla.h). The damaged ones, for the ablation, store a
 * BF16 cache whose rows went through a coarser format and back before they were written.
 * FP32 is for debugging: rows as they are, read by our own attention. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_CACHE_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_CACHE_H

#include "kernels/mla.h"

typedef enum {
    CACHE_BF16,
    CACHE_FP8,
    CACHE_F32, /* debugging */
    CACHE_A,   /* content and RoPE e4m3, a scale a token each */
    CACHE_B,   /* both e4m3, scale 1 */
    CACHE_E,   /* content e4m3 with a scale for every 128 numbers, RoPE bf16 */
    CACHE_F,   /* as FP8, the scale rounded up to a power of two, RoPE bf16 exact */
    CACHE_FORMATS
} cache_format;

/* "bf16", "fp8", "fp32", "A", "B", "E", "F"; SNAP_E_USAGE for anything else. */
snap_status cache_format_parse(const char *name, cache_format *out,
                               snap_err *err) SNAP_CHECK_RESULT;
const char *cache_format_name(cache_format f);

/* The attention arm that reads it; CACHE_F32 has none and gives MLA_BF16. */
mla_precision cache_precision(cache_format f);

typedef struct kv_cache kv_cache;

/* @layers planes of @pages pages. Caller owns *out: kv_cache_free(). SNAP_E_NOMEM. */
snap_status kv_cache_create(kv_cache **out, mla_backend *be, cache_format format, int layers,
                            int64_t pages, int d_c, int d_r, snap_err *err) SNAP_CHECK_RESULT;
void kv_cache_free(kv_cache *c); /* NULL is allowed */

cache_format kv_cache_format(const kv_cache *c);
int64_t kv_cache_pages(const kv_cache *c);
size_t kv_cache_page_bytes(const kv_cache *c); /* over all layers */
const mla_cache *kv_cache_layer(const kv_cache *c, int layer);

/* A CACHE_F32 layer: [pages][MLA_PAGE][d_c + d_r]. */
float *kv_cache_rows_f32(const kv_cache *c, int layer);

/* bf16 rows [n][d_c + d_r] as a damaged format leaves them; nothing for the others. */
void kv_cache_damage(const kv_cache *c, uint16_t *rows, int64_t n);

/* A page of all layers to host memory [kv_cache_page_bytes()] and back. */
snap_status kv_cache_read_page(kv_cache *c, int32_t page, void *host,
                               snap_err *err) SNAP_CHECK_RESULT;
snap_status kv_cache_write_page(kv_cache *c, int32_t page, const void *host,
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
