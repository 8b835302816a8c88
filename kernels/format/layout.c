#include "kernels/format/layout.h"

int64_t layout_row_bytes(const cache_plane *p) {
    return ((int64_t)p->columns * element_bits(p->type) + 7) / 8;
}

cache_scale_per layout_per(const cache_format *f, const cache_plane *p) {
    if (p == &f->content.scale.plane || p == &f->content.zero)
        return f->content.scale.per;
    if (p == &f->rope.scale.plane)
        return f->rope.scale.per;
    return p == &f->content.plane || p == &f->rope.plane ? SCALE_PER_TOKEN : SCALE_PER_TENSOR;
}

int cache_format_planes(const cache_format *f, cache_plane_name out[CACHE_PLANES]) {
    const cache_plane_name all[CACHE_PLANES] = {
        {"content", &f->content.plane},
        {"content.scale", &f->content.scale.plane},
        {"content.zero", &f->content.zero},
        {"rope", &f->rope.plane},
        {"rope.scale", &f->rope.scale.plane},
        {"content.scale.tensor_scale", &f->content.scale.tensor},
        {"rope.scale.tensor_scale", &f->rope.scale.tensor},
        {"content.mean", &f->offset},
    };
    int n = 0;
    for (int i = 0; i < CACHE_PLANES; i++)
        if (all[i].plane->columns)
            out[n++] = all[i];
    return n;
}

/* ---- automatic layout ------------------------------------------------------------------------ */

static int64_t round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t element_bytes(const cache_plane *p) {
    int bits = element_bits(p->type);
    return bits < 8 ? 1 : bits / 8;
}

/* Opens a pool and returns its index. Without room for it, the index is out of range, which
 * cache_format_check() refuses. */
static int add_pool(cache_format *f, bool paged) {
    if (f->pools < CACHE_POOLS)
        f->pool[f->pools] = (cache_pool){.paged = paged};
    return f->pools++;
}

/* Places a plane at the first free byte of its pool, unless its place is stated. */
static void place(cache_format *f, cache_plane *p, cache_scale_per per, int64_t stride) {
    if (p->pool >= CACHE_POOLS)
        return;
    cache_pool *pool = &f->pool[p->pool];
    if (p->stride < 0)
        p->stride = per == SCALE_PER_TOKEN ? stride : 0;
    if (p->offset < 0)
        p->offset = round_up(pool->bytes, element_bytes(p));
    int64_t slots = per == SCALE_PER_TOKEN ? f->page_tokens : 1;
    if (p->offset <= CACHE_MAX_STRIDE * (int64_t)CACHE_MAX_PAGE && p->stride <= CACHE_MAX_STRIDE)
        pool->bytes =
            larger(pool->bytes, p->offset + (slots - 1) * p->stride + layout_row_bytes(p));
}

/* Lays the values of one token after the other in a record, and returns the record's bytes. */
static int64_t fill_record(cache_format *f, cache_plane *const *planes, int n, int64_t record) {
    int64_t end = 0, unit = 1;
    for (int i = 0; i < n; i++) {
        cache_plane *p = planes[i];
        if (layout_per(f, p) != SCALE_PER_TOKEN)
            continue;
        if (p->offset < 0)
            p->offset = round_up(end, element_bytes(p));
        if (p->offset <= CACHE_MAX_STRIDE)
            end = larger(end, p->offset + layout_row_bytes(p));
        unit = larger(unit, element_bytes(p));
    }
    return record ? record : round_up(end, unit);
}

void layout_assign(cache_format *f, layout_order order, int64_t record, int64_t page) {
    cache_plane *all[CACHE_PLANES] = {
        &f->content.plane,    &f->content.scale.plane,  &f->content.zero,      &f->rope.plane,
        &f->rope.scale.plane, &f->content.scale.tensor, &f->rope.scale.tensor, &f->offset};
    cache_plane *planes[CACHE_PLANES];
    int n = 0, shared = -1;
    for (int i = 0; i < CACHE_PLANES; i++)
        if (all[i]->columns)
            planes[n++] = all[i];
    f->pools = 0;
    if (order == LAYOUT_INTERLEAVED)
        record = fill_record(f, planes, n, record);
    if (order != LAYOUT_PLANAR)
        shared = add_pool(f, true);
    if (order == LAYOUT_INTERLEAVED) /* values of the page follow the records */
        f->pool[shared].bytes = record * f->page_tokens;
    for (int i = 0; i < n; i++) {
        cache_plane *p = planes[i];
        cache_scale_per per = layout_per(f, p);
        bool paged = per != SCALE_PER_TENSOR;
        p->pool = paged && shared >= 0 ? shared : add_pool(f, paged);
        place(f, p, per, order == LAYOUT_INTERLEAVED ? record : layout_row_bytes(p));
    }
    if (order != LAYOUT_PLANAR && page)
        f->pool[shared].bytes = page;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

double cache_format_token_bytes(const cache_format *f) {
    double bytes = 0.0;
    for (int i = 0; i < f->pools; i++)
        bytes += f->pool[i].paged ? (double)f->pool[i].bytes / f->page_tokens : 0.0;
    return bytes;
}

int64_t cache_format_pool_bytes(const cache_format *f, int pool, int64_t pages) {
    const cache_pool *p = &f->pool[pool];
    if (!p->paged)
        return p->bytes;
    return pages > (INT64_C(1) << 62) / p->bytes ? -1 : pages * p->bytes;
}

double cache_format_read_bytes(const cache_format *f, int64_t tokens) {
    cache_plane_name planes[CACHE_PLANES];
    int64_t pages = (tokens + f->page_tokens - 1) / f->page_tokens;
    double bytes = 0.0;
    for (int i = 0, n = cache_format_planes(f, planes); i < n; i++) {
        cache_scale_per per = layout_per(f, planes[i].plane);
        double rows = per == SCALE_PER_TOKEN  ? (double)tokens
                      : per == SCALE_PER_PAGE ? (double)pages
                                              : 1.0;
        bytes += rows * (double)layout_row_bytes(planes[i].plane);
    }
    return bytes;
}

int cache_format_groups(const cache_format *f) {
    const cache_scale *s = &f->content.scale;
    return s->kind == SCALE_OWN ? f->d_c / s->columns : 1;
}

uint8_t *layout_at(const cache_format *f, const cache_bytes *b, const cache_plane *p, int64_t page,
                   int64_t slot) {
    int64_t base = f->pool[p->pool].paged ? page * f->pool[p->pool].bytes : 0;
    return b->pool[p->pool] + base + p->offset + slot * p->stride;
}
