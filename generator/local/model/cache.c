#include "generator/local/model/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/model/rounding.h"

enum { kPlanes = 3 };

struct kv_cache {
    mla_backend *be; /* borrowed */
    kv_format format;
    int layers, d_c, d_r;
    int64_t pages;
    size_t bytes[kPlanes];   /* bytes of a page of one layer in each plane: content, rope, scale */
    mla_cache *layer;        /* [layers]; CACHE_F32 keeps floats in `content` */
    cache_rounding rounding; /* CACHE_ROUNDED; of CACHE_NO_PV only the rows */
};

static const char *const names[CACHE_FORMATS] = {"bf16", "fp8", "fp32", "noPV", "rounded"};

snap_status kv_format_parse(const char *name, kv_format *out, snap_err *err) {
    for (int f = 0; f < CACHE_ROUNDED; f++)
        if (text_equal(name, names[f])) {
            *out = (kv_format)f;
            return SNAP_OK;
        }
    char *path = cache_format_path(name);
    free(path);
    *out = CACHE_ROUNDED;
    if (path || coded_format_find(name))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "unknown precision '%s' (bf16, fp8; fp32 for debugging; noPV; a name that "
                   "'snapmla formats' lists, or the path of a .json file)",
                   name);
}

const char *kv_format_name(kv_format f) {
    return names[f];
}

mla_precision cache_precision(kv_format f) {
    return f == CACHE_FP8 ? MLA_FP8 : MLA_BF16;
}

static void *plane(const kv_cache *c, int layer, int which) {
    const mla_cache *l = &c->layer[layer];
    return which == 0 ? l->content : which == 1 ? l->rope : (void *)l->scale;
}

static snap_status allocate(kv_cache *c, snap_err *err) {
    for (int i = 0; i < c->layers; i++) {
        mla_cache *l = &c->layer[i];
        l->pages = c->pages;
        l->content = mla_alloc(c->be, c->bytes[0] * (size_t)c->pages, err);
        if (c->bytes[1])
            l->rope = mla_alloc(c->be, c->bytes[1] * (size_t)c->pages, err);
        if (c->bytes[2])
            l->scale = mla_alloc(c->be, c->bytes[2] * (size_t)c->pages, err);
        for (int p = 0; p < kPlanes; p++)
            if (c->bytes[p] && !plane(c, i, p))
                return err_set(err, SNAP_E_NOMEM, "out of memory for %lld cache pages",
                               (long long)c->pages);
    }
    return SNAP_OK;
}

snap_status kv_cache_create(kv_cache **out, mla_backend *be, kv_format format,
                            const char *precision, int layers, int64_t pages, int d_c, int d_r,
                            snap_err *err) {
    snap_status st = SNAP_OK;
    *out = NULL;
    kv_cache *c = calloc(1, sizeof *c);
    mla_cache *planes = calloc((size_t)layers, sizeof *planes);
    if (!c || !planes) {
        free(c);
        free(planes);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a cache");
    }
    mla_page_bytes b = mla_cache_page_bytes(cache_precision(format), d_c, d_r);
    *c = (kv_cache){.be = be,
                    .format = format,
                    .layers = layers,
                    .d_c = d_c,
                    .d_r = d_r,
                    .pages = pages,
                    .bytes = {b.content * (format == CACHE_F32 ? 2 : 1), b.rope, b.scale},
                    .layer = planes,
                    .rounding.rows = {.rule = ROW_FP8, .d_c = d_c, .d_r = d_r, .columns = d_c}};
    if (format == CACHE_ROUNDED)
        TRY(rounding_load(&c->rounding, precision, d_c, d_r, err));
    TRY(allocate(c, err));
    *out = c;
    c = NULL;
cleanup:
    kv_cache_free(c);
    return st;
}

void kv_cache_free(kv_cache *c) {
    if (!c)
        return;
    for (int i = 0; i < c->layers; i++)
        for (int p = 0; p < kPlanes; p++)
            mla_free(c->be, plane(c, i, p));
    free(c->layer);
    free(c);
}

const char *kv_cache_precision(const kv_cache *c) {
    return c->format == CACHE_ROUNDED ? c->rounding.name : names[c->format];
}

const char *kv_cache_format_sha256(const kv_cache *c) {
    return c->rounding.sha256;
}

double kv_cache_token_bytes(const kv_cache *c) {
    if (c->format == CACHE_ROUNDED)
        return c->layers * rounding_token_bytes(&c->rounding);
    if (c->format == CACHE_NO_PV)
        return c->layers * (double)mla_cache_token_bytes(MLA_FP8, c->d_c, c->d_r);
    return (double)kv_cache_page_bytes(c) / MLA_PAGE;
}

int64_t kv_cache_pages(const kv_cache *c) {
    return c->pages;
}

size_t kv_cache_page_bytes(const kv_cache *c) {
    return (c->bytes[0] + c->bytes[1] + c->bytes[2]) * (size_t)c->layers;
}

const mla_cache *kv_cache_layer(const kv_cache *c, int layer) {
    return &c->layer[layer];
}

float *kv_cache_rows_f32(const kv_cache *c, int layer) {
    return c->layer[layer].content;
}

const row_format *kv_cache_row_format(const kv_cache *c) {
    return c->format == CACHE_ROUNDED || c->format == CACHE_NO_PV ? &c->rounding.rows : NULL;
}

void kv_cache_round_rows(const kv_cache *c, int layer, uint16_t *rows, int64_t n, int64_t position,
                         int32_t page) {
    const row_format *f = kv_cache_row_format(c);
    char *stored = (char *)c->layer[layer].content + c->bytes[0] * (size_t)page;
    if (f)
        rounding_apply(f, rows, n, (uint16_t *)(void *)stored, position);
}

/* ---- pages ----------------------------------------------------------------------------------- */

snap_status kv_cache_read_page(kv_cache *c, int32_t page, void *host, snap_err *err) {
    snap_status st = SNAP_OK;
    char *to = host;
    for (int i = 0; i < c->layers; i++)
        for (int p = 0; p < kPlanes; p++) {
            if (c->bytes[p])
                TRY(mla_copy_out(c->be, to,
                                 (const char *)plane(c, i, p) + c->bytes[p] * (size_t)page,
                                 c->bytes[p], err));
            to += c->bytes[p];
        }
cleanup:
    return st;
}

snap_status kv_cache_write_page(kv_cache *c, int32_t page, const void *host, snap_err *err) {
    snap_status st = SNAP_OK;
    const char *from = host;
    for (int i = 0; i < c->layers; i++)
        for (int p = 0; p < kPlanes; p++) {
            if (c->bytes[p])
                TRY(mla_copy_in(c->be, (char *)plane(c, i, p) + c->bytes[p] * (size_t)page, from,
                                c->bytes[p], err));
            from += c->bytes[p];
        }
cleanup:
    return st;
}

snap_status kv_cache_copy_page(kv_cache *c, int32_t from, int32_t to, snap_err *err) {
    snap_status st;
    char *page = malloc(kv_cache_page_bytes(c));
    if (!page)
        return err_set(err, SNAP_E_NOMEM, "out of memory for copying a page");
    TRY(kv_cache_read_page(c, from, page, err));
    TRY(kv_cache_write_page(c, to, page, err));
cleanup:
    free(page);
    return st;
}
