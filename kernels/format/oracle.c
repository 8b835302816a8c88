/* oracle.c - attention in FP64 over what a format holds. */
#include <math.h>
#include <stdlib.h>

#include "kernels/format/layout.h"
#include "kernels/format/transform.h"
#include "kernels/formats.h"

void cache_oracle_release(cache_oracle *o) {
    ref_rows_release(&o->q);
    ref_rows_release(&o->k);
    free(o->offset);
    free(o->q_offset);
    *o = (cache_oracle){0};
}

/* Rotates the queries as the cached tokens are, and rounds them as the format says. */
static snap_status plain_queries(cache_oracle *o, const float *q, int64_t queries, snap_err *err) {
    const cache_format *f = o->format;
    int width = f->d_c + f->d_r;
    float *rotated = malloc(((size_t)queries * (size_t)width + 1) * sizeof *rotated);
    if (!rotated)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld queries", (long long)queries);
    for (int64_t i = 0; i < queries; i++) {
        double row[MLA_MAX_CONTENT];
        for (int d = 0; d < f->d_c; d++)
            row[d] = (double)q[i * width + d];
        transform_hadamard(row, f->d_c, f->hadamard);
        for (int d = 0; d < width; d++)
            rotated[i * width + d] = d < f->d_c ? (float)row[d] : q[i * width + d];
    }
    snap_status st = ref_rows_quantise(&o->q, f->queries == QUERIES_BF16 ? REF_BF16 : REF_PLAIN,
                                       rotated, queries, f->d_c, f->d_r, err);
    free(rotated);
    return st;
}

static snap_status format_queries(cache_oracle *o, const float *q, int64_t queries, snap_err *err) {
    cache_bytes b = {0};
    snap_status st = cache_format_pack(&b, o->format, q, queries, err);
    if (st == SNAP_OK)
        st = cache_format_rows(&o->q, o->format, &b, NULL, queries, err);
    cache_bytes_release(&b);
    return st;
}

/* The offset adds the same number to all scores of a query, and itself to every output. */
static snap_status read_offset(cache_oracle *o, const float *q, int64_t queries,
                               const cache_bytes *b, snap_err *err) {
    const cache_format *f = o->format;
    const cache_plane *p = &f->offset;
    if (!p->columns)
        return SNAP_OK;
    o->offset = malloc((size_t)f->d_c * sizeof *o->offset);
    o->q_offset = calloc((size_t)queries + 1, sizeof *o->q_offset);
    if (!o->offset || !o->q_offset)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld queries", (long long)queries);
    const uint8_t *at = layout_at(f, b, p, 0, 0);
    for (int d = 0; d < f->d_c; d++)
        o->offset[d] = (double)element_decode(p->type, element_load(p->type, at, d));
    for (int64_t i = 0; i < queries; i++)
        for (int d = 0; d < f->d_c; d++)
            o->q_offset[i] += (double)q[i * (f->d_c + f->d_r) + d] * o->offset[d];
    return SNAP_OK;
}

snap_status cache_oracle_begin(cache_oracle *o, const cache_format *f, const float *q,
                               int64_t queries, const cache_bytes *like, int64_t tokens,
                               snap_err *err) {
    snap_status st = SNAP_OK;
    *o = (cache_oracle){.format = f};
    if (queries < 0 || tokens < 0 || queries > MLA_MAX_CONTEXT || tokens > MLA_MAX_CONTEXT)
        return err_set(err, SNAP_E_SHAPE, "queries and tokens must be 0..%lld",
                       (long long)MLA_MAX_CONTEXT);
    TRY(cache_format_rows_init(&o->k, f, tokens, err));
    if (f->queries == QUERIES_FORMAT)
        TRY(format_queries(o, q, queries, err));
    else
        TRY(plain_queries(o, q, queries, err));
    TRY(read_offset(o, q, queries, like, err));
cleanup:
    if (st != SNAP_OK)
        cache_oracle_release(o);
    return st;
}

void cache_oracle_add(cache_oracle *o, const cache_bytes *part, int64_t first, int64_t count) {
    cache_format_rows_set(&o->k, first, o->format, part, NULL, count);
}

snap_status cache_oracle_init(cache_oracle *o, const cache_format *f, const float *q,
                              int64_t queries, const cache_bytes *b, const int32_t *table_row,
                              int64_t tokens, snap_err *err) {
    snap_status st = cache_oracle_begin(o, f, q, queries, b, tokens, err);
    if (st == SNAP_OK)
        cache_format_rows_set(&o->k, 0, f, b, table_row, tokens);
    return st;
}

void cache_oracle_attend(const cache_oracle *o, int64_t query, int64_t visible,
                         double softmax_scale, ref_pv pv, double *out, double *lse) {
    const cache_format *f = o->format;
    ref_attend(&o->q, query, &o->k, visible, softmax_scale, pv, out, lse);
    transform_hadamard(out, f->d_c, f->hadamard);
    for (int d = 0; d < f->d_c && o->offset && visible > 0; d++)
        out[d] += o->offset[d];
    if (lse && o->offset && visible > 0)
        *lse += softmax_scale * o->q_offset[query];
}
