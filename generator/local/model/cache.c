#include "generator/local/model/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/model/ablation_formats.h"

enum { kPlanes = 3 };

struct kv_cache {
    mla_backend *be; /* borrowed */
    kv_format format;
    int layers, d_c, d_r;
    int64_t pages;
    size_t bytes[kPlanes]; /* bytes of a page of one layer in each plane: content, rope, scale */
    mla_cache *layer;      /* [layers]; CACHE_F32 keeps floats in `content` */
};

static const char *const names[CACHE_FORMATS] = {"bf16", "fp8", "fp32", "A", "B",
                                                 "C",    "D",   "E",    "F", "noPV"};

snap_status kv_format_parse(const char *name, kv_format *out, snap_err *err) {
    for (int f = 0; f < CACHE_FORMATS; f++)
        if (text_equal(name, names[f])) {
            *out = (kv_format)f;
            return SNAP_OK;
        }
    return err_set(
        err, SNAP_E_USAGE,
        "unknown precision '%s' (bf16, fp8; fp32 for debugging; A to F, noPV for the ablation)",
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

snap_status kv_cache_create(kv_cache **out, mla_backend *be, kv_format format, int layers,
                            int64_t pages, int d_c, int d_r, snap_err *err) {
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
                    .layer = planes};
    snap_status st = allocate(c, err);
    if (st != SNAP_OK) {
        kv_cache_free(c);
        return st;
    }
    *out = c;
    return SNAP_OK;
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

void kv_cache_quantise_rows(const kv_cache *c, int layer, uint16_t *rows, int64_t n,
                            int64_t position, int32_t page) {
    size_t stored = c->bytes[0] * (size_t)page; /* ablation formats are always in host memory */
    if (c->format >= CACHE_A)
        ablation_quantise(c->format, c->d_c, c->d_r, rows, n,
                          (uint16_t *)(void *)((char *)c->layer[layer].content + stored),
                          (int)(position % MLA_PAGE));
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
