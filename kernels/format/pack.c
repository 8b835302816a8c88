/* pack.c - quantises tokens and stores them in pages. */
#include <stdlib.h>
#include <string.h>

#include "kernels/format/layout.h"
#include "kernels/format/scale.h"
#include "kernels/format/scale_rule.h"
#include "kernels/format/transform.h"
#include "kernels/formats.h"

void cache_bytes_release(cache_bytes *b) {
    for (int i = 0; i < CACHE_POOLS; i++)
        free(b->pool[i]);
    *b = (cache_bytes){0};
}

static snap_status alloc_pools(cache_bytes *b, const cache_format *f, int64_t tokens,
                               snap_err *err) {
    b->pages = tokens / f->page_tokens + (tokens % f->page_tokens != 0);
    for (int i = 0; i < f->pools; i++) {
        int64_t bytes = cache_format_pool_bytes(f, i, b->pages);
        b->pool[i] = bytes < 0 ? NULL : calloc((size_t)bytes + 1, 1);
        if (!b->pool[i])
            return err_set(err, SNAP_E_NOMEM, "out of memory for %lld pages of format %s",
                           (long long)b->pages, f->name);
    }
    return SNAP_OK;
}

/* ---- the transformed content ----------------------------------------------------------------- */

/* The content of the tokens after its transforms (offset, mean, Hadamard matrix): the numbers that
 * are quantised. */
typedef struct {
    scale_rows rows;
    float *owned; /* [tokens][d_c] if there is a transform or an offset, else NULL */
} transformed;

static void transform_row(float *out, const cache_format *f, const float *x, const float *mean) {
    double row[MLA_MAX_CONTENT];
    for (int d = 0; d < f->d_c; d++)
        row[d] = (double)x[d] - (mean ? (double)mean[d] : 0.0);
    transform_hadamard(row, f->d_c, f->hadamard);
    for (int d = 0; d < f->d_c; d++)
        out[d] = (float)row[d];
}

static void store_floats(const cache_format *f, const cache_bytes *b, const cache_plane *p,
                         const float *x) {
    for (int d = 0; d < p->columns; d++)
        element_store(p->type, layout_at(f, b, p, 0, 0), d, element_encode(p->type, (double)x[d]));
}

static void load_floats(float *x, const cache_format *f, const cache_bytes *b,
                        const cache_plane *p) {
    for (int d = 0; d < p->columns; d++)
        x[d] = element_decode(p->type, element_load(p->type, layout_at(f, b, p, 0, 0), d));
}

static snap_status transform(transformed *out, const cache_format *f, const cache_bytes *b,
                             const cache_bytes *like, const float *x, int64_t tokens,
                             snap_err *err) {
    float mean[MLA_MAX_CONTENT];
    int64_t width = f->d_c + f->d_r;
    *out = (transformed){{x, tokens, width, f->d_c}, NULL};
    if (!f->hadamard && !f->offset.columns)
        return SNAP_OK;
    out->owned = calloc((size_t)tokens + 1, (size_t)f->d_c * sizeof *out->owned);
    if (!out->owned)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld tokens", (long long)tokens);
    if (f->offset.columns) {
        if (like)
            load_floats(mean, f, like, &f->offset);
        else
            transform_means(mean, x, tokens, width, f->d_c);
        store_floats(f, b, &f->offset, mean);
    }
    for (int64_t i = 0; i < tokens; i++)
        transform_row(out->owned + i * f->d_c, f, x + i * width, f->offset.columns ? mean : NULL);
    out->rows = (scale_rows){out->owned, tokens, f->d_c, f->d_c};
    return SNAP_OK;
}

/* ---- values that all tokens share ------------------------------------------------------------ */

/* The values of a part that are taken over from another cache. */
typedef struct {
    uint32_t code[MLA_MAX_CONTENT];
    float zero[MLA_MAX_CONTENT];
    scale_given given;
} shared_values;

/* Reads those values of a part that all tokens of @like share. */
static const scale_given *read_shared(shared_values *v, const cache_format *f,
                                      const cache_bytes *like, const cache_part *part) {
    const cache_scale *s = &part->scale;
    if (!like || s->kind != SCALE_OWN)
        return NULL;
    v->given = (scale_given){.tensor = 1.0f};
    if (s->tensor.columns)
        load_floats(&v->given.tensor, f, like, &s->tensor);
    if (s->per != SCALE_PER_TENSOR)
        return &v->given;
    for (int g = 0; g < s->plane.columns; g++)
        v->code[g] = element_load(s->plane.type, layout_at(f, like, &s->plane, 0, 0), g);
    v->given.code = v->code;
    if (part->zero.columns) {
        load_floats(v->zero, f, like, &part->zero);
        v->given.zero = v->zero;
    }
    return &v->given;
}

/* ---- storing --------------------------------------------------------------------------------- */

static void store_scales(const cache_format *f, const cache_bytes *b, const cache_part *part,
                         const scale_set *s) {
    const cache_plane *p = &part->scale.plane, *z = &part->zero;
    cache_scale_per per = part->scale.per;
    for (int64_t u = 0; u < s->units; u++) {
        int64_t page = per == SCALE_PER_TOKEN ? u / f->page_tokens : per == SCALE_PER_PAGE ? u : 0;
        int64_t slot = per == SCALE_PER_TOKEN ? u % f->page_tokens : 0;
        for (int g = 0; g < s->groups; g++) {
            element_store(p->type, layout_at(f, b, p, page, slot), g, s->code[u * s->groups + g]);
            if (s->zero)
                element_store(z->type, layout_at(f, b, z, page, slot), g,
                              element_encode(z->type, (double)s->zero[u * s->groups + g]));
        }
    }
    if (part->scale.tensor.columns)
        store_floats(f, b, &part->scale.tensor, &s->tensor);
}

/* The numbers of a token that share a scale: elements first .. first + n - 1 of the plane's row at
 * @at. */
typedef struct {
    const float *x; /* [n] */
    uint8_t *at;
    int first, n;
    float scale, zero;
} scaled_group;

/* A faster scale_code() for a floating-point type. The function is small, so that the compiler
 * copies it into a loop over numbers of one type, where @spec is constant. It leaves two cases to
 * scale_code(): quotients for which element_is_short() is false, and divisions by 0. */
static inline uint32_t quick_code(element_type type, float x, const scaled_group *g) {
    const element_spec spec = element_spec_of(type);
    float quotient = x / g->scale;
    return element_is_short(spec, (double)quotient) ? element_encode_short(spec, quotient)
                                                    : scale_code(type, x, g->scale, g->zero);
}

static void store_group(element_type type, const scaled_group *g) {
    if (type == ELEMENT_BF16)
        for (int i = 0; i < g->n; i++) {
            uint32_t code = quick_code(ELEMENT_BF16, g->x[i], g);
            g->at[2 * (g->first + i)] = (uint8_t)code;
            g->at[2 * (g->first + i) + 1] = (uint8_t)(code >> 8);
        }
    else if (type == ELEMENT_E4M3FN)
        for (int i = 0; i < g->n; i++)
            g->at[g->first + i] = (uint8_t)quick_code(ELEMENT_E4M3FN, g->x[i], g);
    else
        for (int i = 0; i < g->n; i++)
            element_store(type, g->at, g->first + i, scale_code(type, g->x[i], g->scale, g->zero));
}

static void store_part(const cache_format *f, const cache_bytes *b, const cache_part *part,
                       scale_rows x, const scale_set *s) {
    const cache_plane *p = &part->plane;
    int columns = x.columns / s->groups;
    for (int64_t i = 0; i < x.rows; i++) {
        uint8_t *at = layout_at(f, b, p, i / f->page_tokens, i % f->page_tokens);
        for (int g = 0; g < s->groups; g++) {
            int64_t unit = i / s->tokens_per_unit * s->groups + g;
            store_group(p->type,
                        &(scaled_group){.x = x.at + i * x.width + (int64_t)g * columns,
                                        .at = at,
                                        .first = g * columns,
                                        .n = columns,
                                        .scale = s->value[unit] * s->tensor,
                                        .zero = part->zero.columns ? s->zero[unit] : 0.0f});
        }
    }
}

static snap_status pack(cache_bytes *out, const cache_format *f, const cache_bytes *like,
                        const float *x, int64_t tokens, snap_err *err) {
    scale_set content_scale = {0}, rope_scale = {0};
    transformed content = {0};
    cache_scale_kind kind = f->rope.scale.kind;
    bool own = kind != SCALE_CONTENT && kind != SCALE_SHARED;
    int64_t width = f->d_c + f->d_r;
    const scale_rows rope = {x + f->d_c, tokens, width, f->d_r}, none = {0};
    snap_status st = SNAP_OK;
    shared_values shared;
    TRY(alloc_pools(out, f, tokens, err));
    TRY(transform(&content, f, out, like, x, tokens, err));
    TRY(scale_choose(&content_scale, &f->content, f->page_tokens, content.rows,
                     kind == SCALE_SHARED ? rope : none, read_shared(&shared, f, like, &f->content),
                     err));
    if (own)
        TRY(scale_choose(&rope_scale, &f->rope, f->page_tokens, rope, none,
                         read_shared(&shared, f, like, &f->rope), err));
    if (f->content.scale.kind == SCALE_OWN)
        store_scales(f, out, &f->content, &content_scale);
    if (f->rope.scale.kind == SCALE_OWN)
        store_scales(f, out, &f->rope, &rope_scale);
    store_part(f, out, &f->content, content.rows, &content_scale);
    store_part(f, out, &f->rope, rope, own ? &rope_scale : &content_scale);
cleanup:
    free(content.owned);
    scale_release(&content_scale);
    scale_release(&rope_scale);
    return st;
}

snap_status cache_format_pack(cache_bytes *out, const cache_format *f, const float *x,
                              int64_t tokens, snap_err *err) {
    return cache_format_pack_like(out, f, NULL, x, tokens, err);
}

snap_status cache_format_pack_like(cache_bytes *out, const cache_format *f, const cache_bytes *like,
                                   const float *x, int64_t tokens, snap_err *err) {
    *out = (cache_bytes){0};
    if (tokens < 0 || tokens > MLA_MAX_CONTEXT)
        return err_set(err, SNAP_E_SHAPE, "a cache packs 0..%lld tokens at a time, not %lld",
                       (long long)MLA_MAX_CONTEXT, (long long)tokens);
    snap_status st = pack(out, f, like, x, tokens, err);
    if (st != SNAP_OK)
        cache_bytes_release(out);
    return st;
}

snap_status cache_format_pack_bf16(cache_bytes *out, const cache_format *f, const uint16_t *x,
                                   int64_t tokens, snap_err *err) {
    int64_t n = tokens > 0 && tokens <= MLA_MAX_CONTEXT ? tokens * (f->d_c + f->d_r) : 0;
    float *wide = calloc((size_t)n + 1, sizeof *wide);
    *out = (cache_bytes){0};
    if (!wide)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld tokens", (long long)tokens);
    for (int64_t i = 0; i < n; i++)
        wide[i] = bf16_to_f32(x[i]);
    snap_status st = cache_format_pack(out, f, wide, tokens, err);
    free(wide);
    return st;
}
