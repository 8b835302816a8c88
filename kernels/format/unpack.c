/* unpack.c - reads the values that a cache holds. */
#include <math.h>

#include "kernels/format/layout.h"
#include "kernels/format/transform.h"
#include "kernels/formats.h"

/* One token of a cache. */
typedef struct {
    const cache_format *f;
    const cache_bytes *b;
    int64_t page, slot;
} token_at;

static token_at find_token(const cache_format *f, const cache_bytes *b, const int32_t *table_row,
                           int64_t token) {
    int64_t page = token / f->page_tokens;
    page = table_row ? table_row[page] : page;
    page = page < 0 ? 0 : page >= b->pages ? b->pages - 1 : page;
    return (token_at){f, b, page, token % f->page_tokens};
}

/* Decodes element @d of a plane. */
static float read_plane(token_at t, const cache_plane *p, int64_t d) {
    int64_t slot = layout_per(t.f, p) == SCALE_PER_TOKEN ? t.slot : 0;
    int64_t page = t.f->pool[p->pool].paged ? t.page : 0;
    return element_decode(p->type, element_load(p->type, layout_at(t.f, t.b, p, page, slot), d));
}

/* The scale of group @g: the product of both levels in FP32. */
static float read_scale(token_at t, const cache_part *part, int g) {
    const cache_scale *s = &part->scale;
    if (s->kind == SCALE_CONTENT || s->kind == SCALE_SHARED)
        return read_scale(t, &t.f->content, 0);
    if (s->kind != SCALE_OWN)
        return s->kind == SCALE_FIXED ? s->fixed : 1.0f;
    float tensor = s->tensor.columns ? read_plane(t, &s->tensor, 0) : 1.0f;
    return read_plane(t, &s->plane, g) * tensor;
}

static int groups_of(const cache_part *part) {
    const cache_scale *s = &part->scale;
    return s->kind == SCALE_OWN ? part->plane.columns / s->columns : 1;
}

/* Decodes the elements of a row. The two most frequent types have a loop of their own, which is
 * faster. */
static void decode_row(float *out, element_type type, const uint8_t *at, int n) {
    if (type == ELEMENT_BF16)
        for (int d = 0; d < n; d++)
            out[d] = bf16_to_f32((uint16_t)(at[2 * d] | at[2 * d + 1] << 8));
    else if (type == ELEMENT_E4M3FN)
        for (int d = 0; d < n; d++)
            out[d] = e4m3_to_f32(at[d]);
    else
        for (int d = 0; d < n; d++)
            out[d] = element_decode(type, element_load(type, at, d));
}

/* Decodes one part of a token: its codes, less their zero points, and its scales. */
static void read_part(token_at t, const cache_part *part, float *codes, float *scales) {
    const cache_plane *p = &part->plane;
    int groups = groups_of(part), columns = p->columns / groups;
    decode_row(codes, p->type, layout_at(t.f, t.b, p, t.page, t.slot), p->columns);
    for (int g = 0; g < groups; g++) {
        float zero = part->zero.columns ? read_plane(t, &part->zero, g) : 0.0f;
        scales[g] = read_scale(t, part, g);
        for (int d = g * columns; d < (g + 1) * columns; d++)
            codes[d] -= zero;
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static void unpack_content(float *x, token_at t) {
    const cache_format *f = t.f;
    float codes[MLA_MAX_CONTENT], scales[MLA_MAX_CONTENT] = {0};
    double row[MLA_MAX_CONTENT];
    int columns = f->d_c / groups_of(&f->content);
    read_part(t, &f->content, codes, scales);
    for (int d = 0; d < f->d_c; d++)
        row[d] = (double)codes[d] * (double)scales[d / columns];
    transform_hadamard(row, f->d_c, f->hadamard);
    for (int d = 0; d < f->d_c && f->offset.columns; d++)
        row[d] += (double)read_plane(t, &f->offset, d);
    for (int d = 0; d < f->d_c; d++)
        x[d] = (float)row[d];
}

static void unpack_rope(float *x, token_at t) {
    const cache_part *part = &t.f->rope;
    float codes[MLA_MAX_ROPE], scales[MLA_MAX_ROPE] = {0};
    int columns = t.f->d_r / groups_of(part);
    read_part(t, part, codes, scales);
    for (int d = 0; d < t.f->d_r; d++)
        x[d] = (float)((double)codes[d] * (double)scales[d / columns]);
}

void cache_format_unpack(float *x, const cache_format *f, const cache_bytes *b,
                         const int32_t *table_row, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        token_at t = find_token(f, b, table_row, first + i);
        float *row = x + i * (f->d_c + f->d_r);
        unpack_content(row, t);
        unpack_rope(row + f->d_c, t);
    }
}

snap_status cache_format_rows_init(ref_rows *out, const cache_format *f, int64_t tokens,
                                   snap_err *err) {
    int groups = groups_of(&f->content), rope_groups = groups_of(&f->rope);
    return ref_rows_init(out, tokens, f->d_c, f->d_r, f->d_c / groups, f->d_r / rope_groups, err);
}

void cache_format_rows_set(ref_rows *out, int64_t first, const cache_format *f,
                           const cache_bytes *b, const int32_t *table_row, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        token_at t = find_token(f, b, table_row, i);
        int64_t row = first + i;
        read_part(t, &f->content, out->content + row * f->d_c, out->scale + row * out->groups);
        read_part(t, &f->rope, out->rope + row * f->d_r, out->rope_scale + row * out->rope_groups);
    }
}

snap_status cache_format_rows(ref_rows *out, const cache_format *f, const cache_bytes *b,
                              const int32_t *table_row, int64_t tokens, snap_err *err) {
    snap_status st = cache_format_rows_init(out, f, tokens, err);
    if (st == SNAP_OK)
        cache_format_rows_set(out, 0, f, b, table_row, tokens);
    return st;
}
