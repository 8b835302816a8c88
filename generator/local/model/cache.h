/* cache.h - the paged cache of all layers: one pool of pages, the same numbers in every layer.
 *
 * The formats are the attention arms' own (kernels/mla.h). The damaged ones, for the ablation,
 * store a BF16 cache whose rows went through a coarser format and back before they were written.
 * FP32 is for debugging: rows as they are, read by our own attention. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_CACHE_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_CACHE_H

#include "kernels/mla.h"

typedef enum {
    CACHE_BF16,
    CACHE_FP8,
    CACHE_F32, /* debugging */
    CACHE_A,   /* this and all that follow: damaged on the way in, damage.h */
    CACHE_B,
    CACHE_C,
    CACHE_D,
    CACHE_E,
    CACHE_F,
    CACHE_NO_PV,
    CACHE_FORMATS
} cache_format;

/* "bf16", "fp8", "fp32", "A" .. "F", "noPV"; SNAP_E_USAGE for anything else. */
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

int64_t kv_cache_pages(const kv_cache *c);
size_t kv_cache_page_bytes(const kv_cache *c); /* over all layers */
const mla_cache *kv_cache_layer(const kv_cache *c, int layer);

/* A CACHE_F32 layer: [pages][MLA_PAGE][d_c + d_r]. */
float *kv_cache_rows_f32(const kv_cache *c, int layer);

/* bf16 rows [n][d_c + d_r] as a damaged format leaves them; nothing for the others. They are one
 * sequence's, appended together, the first at @position, which lies in @page. */
void kv_cache_damage(const kv_cache *c, int layer, uint16_t *rows, int64_t n, int64_t position,
                     int32_t page);

/* A page of all layers to host memory [kv_cache_page_bytes()] and back. */
snap_status kv_cache_read_page(kv_cache *c, int32_t page, void *host,
                               snap_err *err) SNAP_CHECK_RESULT;
snap_status kv_cache_write_page(kv_cache *c, int32_t page, const void *host,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Page @to of all layers = page @from, through host memory. */
snap_status kv_cache_copy_page(kv_cache *c, int32_t from, int32_t to,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
