/* cache.h - the paged cache of all layers: one pool of pages, with the same page numbers in every
 * layer.
 *
 * BF16 and FP8 are the formats of the attention arms (kernels/mla.h). With other formats the cache
 * is BF16, but its rows are rounded through the format before attention reads them. FP32 is for
 * debugging: rows are stored unchanged, and only the attention of chunk.c reads them. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_CACHE_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_CACHE_H

#include "kernels/mla.h"

typedef enum {
    CACHE_BF16,
    CACHE_FP8,
    CACHE_F32,     /* debugging */
    CACHE_NO_PV,   /* the rows of CACHE_FP8, stored as bf16: the cache is rounded as there, but not
                      the queries and not P */
    CACHE_ROUNDED, /* rows are rounded through a format of docs/formats.md, see rounding.h */
    CACHE_FORMATS
} kv_format;

/* Parses "bf16", "fp8", "fp32", "noPV", or what rounding_load() reads, which is CACHE_ROUNDED. The
 * file of such a format is not read yet. SNAP_E_USAGE for anything else. */
snap_status kv_format_parse(const char *name, kv_format *out, snap_err *err) SNAP_CHECK_RESULT;

/* Returns the name from which kv_format_parse() gives @f; for CACHE_ROUNDED, which has many names,
 * "rounded". */
const char *kv_format_name(kv_format f);

/* The attention arm that reads the format. CACHE_F32 has none and gives MLA_BF16. */
mla_precision cache_precision(kv_format f);

typedef struct kv_cache kv_cache;

/**
 * kv_cache_create - create a cache of @layers layers with @pages pages each
 *
 * @precision: name or path of the format if @format is CACHE_ROUNDED, else not used
 *
 * Caller owns *out: kv_cache_free(). SNAP_E_NOMEM; with CACHE_ROUNDED also the errors of
 * rounding_load().
 */
snap_status kv_cache_create(kv_cache **out, mla_backend *be, kv_format format,
                            const char *precision, int layers, int64_t pages, int d_c, int d_r,
                            snap_err *err) SNAP_CHECK_RESULT;
void kv_cache_free(kv_cache *c); /* NULL is allowed */

/* The name of the format: of CACHE_ROUNDED the one that its file states. */
const char *kv_cache_precision(const kv_cache *c);

/* SHA-256 of the file of a CACHE_ROUNDED format; "" for formats without a file. */
const char *kv_cache_format_sha256(const kv_cache *c);

/* Bytes that the format takes for a token over all layers. A CACHE_ROUNDED or CACHE_NO_PV format
 * takes more in memory here, because its rows are stored as bf16. */
double kv_cache_token_bytes(const kv_cache *c);

int64_t kv_cache_pages(const kv_cache *c);
size_t kv_cache_page_bytes(const kv_cache *c); /* of one page, over all layers */
const mla_cache *kv_cache_layer(const kv_cache *c, int layer);

/* A CACHE_F32 layer: [pages][MLA_PAGE][d_c + d_r]. */
float *kv_cache_rows_f32(const kv_cache *c, int layer);

typedef struct row_format row_format; /* kernels/format/round_row.h */

/* How the rows of CACHE_NO_PV and CACHE_ROUNDED are rounded; NULL for the other formats. */
const row_format *kv_cache_row_format(const kv_cache *c);

/* Rounds bf16 rows [n][d_c + d_r] as kv_cache_row_format() says; without one they are unchanged.
 * The rows are appended together to one sequence. The first is at @position, which lies in @page;
 * rows that are stored there may be rounded, too (rounding.h). The cache lies in host memory. */
void kv_cache_round_rows(const kv_cache *c, int layer, uint16_t *rows, int64_t n, int64_t position,
                         int32_t page);

/* Copies a page of all layers to host memory [kv_cache_page_bytes()], or back. */
snap_status kv_cache_read_page(kv_cache *c, int32_t page, void *host,
                               snap_err *err) SNAP_CHECK_RESULT;
snap_status kv_cache_write_page(kv_cache *c, int32_t page, const void *host,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Copies page @from to page @to in all layers, through host memory. */
snap_status kv_cache_copy_page(kv_cache *c, int32_t from, int32_t to,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
