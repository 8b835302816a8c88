/* check.c - what makes a format valid: ranges, contradictions, and planes that do not overlap. */
#include <math.h>
#include <string.h>

#include "kernels/format/layout.h"

static snap_status wrong(snap_err *err, const char *field, const char *reason) {
    return err_set(err, SNAP_E_INPUT, "%s: %s", field, reason);
}

/* ---- scales ---------------------------------------------------------------------------------- */

static bool scalable(element_type t) {
    return element_bits(t) <= 8 && t != ELEMENT_UE8M0;
}

static bool scale_type(element_type t) {
    return t == ELEMENT_FP32 || t == ELEMENT_FP16 || t == ELEMENT_BF16 || t == ELEMENT_UE8M0 ||
           t == ELEMENT_E4M3FN;
}

/* Checks a stored scale of a part with @width columns. */
static snap_status check_own(const cache_part *p, int width, const char *field, snap_err *err) {
    const cache_scale *s = &p->scale;
    if (!scalable(p->plane.type))
        return err_set(err, SNAP_E_INPUT,
                       "%s: %s needs no scale of its own; only types of 8 and 4 bits have one",
                       field, element_name(p->plane.type));
    if (!scale_type(s->plane.type))
        return err_set(err, SNAP_E_INPUT,
                       "%s.type: a scale is fp32, fp16, bf16, ue8m0 or e4m3fn, not %s", field,
                       element_name(s->plane.type));
    if (s->columns < 1 || width % s->columns)
        return err_set(err, SNAP_E_SHAPE, "%s.columns: %d does not divide the %d columns", field,
                       s->columns, width);
    if (s->plane.columns != width / s->columns)
        return wrong(err, field, "the number of scales does not fit their columns");
    if (s->plane.type == ELEMENT_UE8M0 && s->rounding == SCALE_EXACT)
        return err_set(err, SNAP_E_INPUT,
                       "%s.rounding: ue8m0 holds powers of two only: \"pow2-up\" or "
                       "\"pow2-floor\"",
                       field);
    if (s->tensor.columns && s->plane.type != ELEMENT_E4M3FN)
        return err_set(err, SNAP_E_INPUT,
                       "%s.tensor_scale: a second level needs scales of type e4m3fn", field);
    if (s->tensor.columns && (s->per == SCALE_PER_TENSOR || s->rounding != SCALE_EXACT))
        return err_set(err, SNAP_E_INPUT,
                       "%s.tensor_scale: a second level needs \"per\": \"token\" or \"page\" and "
                       "\"rounding\": \"exact\"",
                       field);
    if (s->tensor.columns > 1 || (s->tensor.columns && s->tensor.type != ELEMENT_FP32))
        return err_set(err, SNAP_E_INPUT, "%s.tensor_scale: it is one fp32 number", field);
    return SNAP_OK;
}

static snap_status check_scale(const cache_part *p, int width, const char *field, snap_err *err) {
    const cache_scale *s = &p->scale;
    if (s->kind > SCALE_SHARED || s->per > SCALE_PER_TENSOR || s->rounding > SCALE_POW2_FLOOR)
        return wrong(err, field, "unknown kind, per or rounding");
    if (!isfinite(s->min) || s->min < 0.0f)
        return err_set(err, SNAP_E_INPUT, "%s.min: it must be a finite number from 0 up", field);
    if (s->kind == SCALE_FIXED && !(isfinite(s->fixed) && s->fixed > 0.0f))
        return err_set(err, SNAP_E_INPUT, "%s.fixed: it must be a finite number above 0", field);
    if (s->kind == SCALE_OWN)
        return check_own(p, width, field, err);
    if (s->plane.columns || s->tensor.columns)
        return wrong(err, field, "a scale that is not stored has no place");
    return SNAP_OK;
}

static snap_status check_content(const cache_format *f, snap_err *err) {
    const cache_part *c = &f->content;
    bool own = c->scale.kind == SCALE_OWN, integer = element_is_integer(c->plane.type);
    if (c->plane.columns != f->d_c)
        return err_set(err, SNAP_E_SHAPE, "content.columns: %d, but the content has %d columns",
                       c->plane.columns, f->d_c);
    if (c->plane.type == ELEMENT_UE8M0)
        return wrong(err, "content.type", "ue8m0 is a type of scales");
    if (c->scale.kind == SCALE_CONTENT || c->scale.kind == SCALE_SHARED)
        return wrong(err, "content.scale", "only the RoPE part can use the content's scale");
    if (integer && c->scale.kind == SCALE_NONE)
        return wrong(err, "content.scale", "integers need a scale");
    if (c->zero.columns && (!integer || !own || c->zero.type != c->plane.type))
        return wrong(err, "content.zero",
                     "a zero point needs integers with a stored scale, and has their type");
    if (c->zero.columns && c->zero.columns != c->scale.plane.columns)
        return wrong(err, "content.zero", "there is one zero point for each scale");
    if (c->zero.columns && (c->scale.rounding == SCALE_POW2_FLOOR || c->scale.tensor.columns))
        return wrong(err, "content.zero",
                     "the scale beside a zero point is rounded \"exact\" or \"pow2-up\"");
    return check_scale(c, f->d_c, "content.scale", err);
}

static snap_status check_rope(const cache_format *f, snap_err *err) {
    const cache_part *r = &f->rope, *c = &f->content;
    bool borrowed = r->scale.kind == SCALE_CONTENT || r->scale.kind == SCALE_SHARED;
    if (r->plane.columns != f->d_r)
        return err_set(err, SNAP_E_SHAPE, "rope.columns: %d, but the RoPE part has %d columns",
                       r->plane.columns, f->d_r);
    if (r->plane.type == ELEMENT_UE8M0)
        return wrong(err, "rope.type", "ue8m0 is a type of scales");
    if (r->zero.columns)
        return wrong(err, "rope.zero", "only the content can have a zero point");
    if (element_is_integer(r->plane.type) && r->scale.kind == SCALE_NONE)
        return wrong(err, "rope.scale", "integers need a scale");
    if (borrowed && (c->scale.kind != SCALE_OWN || c->scale.plane.columns != 1))
        return wrong(err, "rope.scale",
                     "the content must have one stored scale for all of its columns");
    if (r->scale.kind == SCALE_SHARED &&
        (r->plane.type != c->plane.type || c->zero.columns || f->hadamard || f->offset.columns))
        return wrong(err, "rope.scale",
                     "a shared scale needs content and RoPE part of one type, without zero point, "
                     "transform or mean");
    return check_scale(r, f->d_r, "rope.scale", err);
}

/* ---- checks of places in memory -------------------------------------------------------------- */

static int64_t slots_of(const cache_format *f, const cache_plane *p) {
    return layout_per(f, p) == SCALE_PER_TOKEN ? f->page_tokens : 1;
}

static snap_status check_place(const cache_format *f, const char *name, const cache_plane *p,
                               snap_err *err) {
    cache_scale_per per = layout_per(f, p);
    int64_t row = layout_row_bytes(p), unit = element_bits(p->type) < 8 ? 8 : element_bits(p->type);
    if (p->pool < 0 || p->pool >= f->pools)
        return wrong(err, name, "its pool does not exist");
    const cache_pool *pool = &f->pool[p->pool];
    if (pool->paged != (per != SCALE_PER_TENSOR))
        return wrong(err, name, "its pool has the wrong kind: paged or for the whole tensor");
    if (p->offset < 0 || p->stride < 0 || p->stride > CACHE_MAX_STRIDE)
        return err_set(err, SNAP_E_INPUT, "%s: offset and stride must lie in 0..%d", name,
                       CACHE_MAX_STRIDE);
    if (p->offset % (unit / 8) || p->stride % (unit / 8) || pool->bytes % (unit / 8))
        return err_set(err, SNAP_E_INPUT,
                       "%s: offset, stride and page must be multiples of its %lld bytes", name,
                       (long long)unit / 8);
    if (per != SCALE_PER_TOKEN && p->stride)
        return err_set(err, SNAP_E_INPUT, "%s.stride: it must be 0, all tokens share the values",
                       name);
    if (per == SCALE_PER_TOKEN && p->stride < row)
        return err_set(err, SNAP_E_INPUT,
                       "%s.stride: %lld bytes overlap the next token, a token takes %lld", name,
                       (long long)p->stride, (long long)row);
    if (p->offset > pool->bytes || (slots_of(f, p) - 1) * p->stride + row > pool->bytes - p->offset)
        return err_set(err, SNAP_E_INPUT, "%s: it reaches past its %lld bytes of the page", name,
                       (long long)pool->bytes);
    return SNAP_OK;
}

/* True if a row of one plane overlaps one of the other. Walks over the rows of both in the order of
 * their bytes. */
static bool overlap(const cache_format *f, const cache_plane *a, const cache_plane *b) {
    int64_t row_a = layout_row_bytes(a), row_b = layout_row_bytes(b);
    for (int64_t i = 0, j = 0; i < slots_of(f, a) && j < slots_of(f, b);) {
        int64_t at_a = a->offset + i * a->stride, at_b = b->offset + j * b->stride;
        if (at_a < at_b + row_b && at_b < at_a + row_a)
            return true;
        *(at_a < at_b ? &i : &j) += 1;
    }
    return false;
}

static snap_status check_places(const cache_format *f, snap_err *err) {
    cache_plane_name planes[CACHE_PLANES];
    int n = cache_format_planes(f, planes);
    for (int i = 0; i < f->pools; i++)
        if (f->pool[i].bytes < 1 || f->pool[i].bytes > (int64_t)CACHE_MAX_STRIDE * CACHE_MAX_PAGE)
            return err_set(err, SNAP_E_INPUT, "a page takes 1..%lld bytes, not %lld",
                           (long long)CACHE_MAX_STRIDE * CACHE_MAX_PAGE,
                           (long long)f->pool[i].bytes);
    for (int i = 0; i < n; i++) {
        snap_status st = check_place(f, planes[i].name, planes[i].plane, err);
        if (st != SNAP_OK)
            return st;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (planes[i].plane->pool == planes[j].plane->pool &&
                overlap(f, planes[j].plane, planes[i].plane))
                return err_set(err, SNAP_E_INPUT, "%s overlaps %s", planes[i].name, planes[j].name);
    return SNAP_OK;
}

/* ---- checks of a whole format ---------------------------------------------------------------- */

static snap_status check_transform(const cache_format *f, snap_err *err) {
    int n = f->hadamard;
    if (n && (n < 2 || (n & (n - 1))))
        return err_set(err, SNAP_E_INPUT, "content.hadamard: %d is not a power of two above 1", n);
    if (n && f->d_c % n)
        return err_set(err, SNAP_E_SHAPE, "content.hadamard: %d does not divide the %d columns", n,
                       f->d_c);
    if (f->offset.columns && (f->offset.columns != f->d_c || f->offset.type != ELEMENT_FP32))
        return wrong(err, "content.mean", "it is one fp32 number for each column");
    if (f->queries > QUERIES_FORMAT || f->pv > REF_P_E4M3)
        return wrong(err, "attention", "unknown form of queries or probabilities");
    if (f->queries == QUERIES_FORMAT && f->offset.columns)
        return wrong(err, "attention.queries",
                     "queries cannot have the format of tokens without their mean");
    return SNAP_OK;
}

static snap_status check_sizes(const cache_format *f, snap_err *err) {
    if (f->d_c < 1 || f->d_c > MLA_MAX_CONTENT || f->d_r < 1 || f->d_r > MLA_MAX_ROPE)
        return err_set(err, SNAP_E_SHAPE, "a token has 1..%d + 1..%d columns, not %d + %d",
                       MLA_MAX_CONTENT, MLA_MAX_ROPE, f->d_c, f->d_r);
    if (f->page_tokens < 1 || f->page_tokens > CACHE_MAX_PAGE)
        return err_set(err, SNAP_E_INPUT, "page_tokens: it must be 1..%d, not %d", CACHE_MAX_PAGE,
                       f->page_tokens);
    if (f->pools < 1 || f->pools > CACHE_POOLS)
        return err_set(err, SNAP_E_INPUT, "a format has 1..%d pools, not %d", CACHE_POOLS,
                       f->pools);
    if (!f->name[0] || !memchr(f->name, 0, sizeof f->name))
        return wrong(err, "name", "it must not be empty");
    cache_plane_name planes[CACHE_PLANES];
    for (int i = 0, n = cache_format_planes(f, planes); i < n; i++) {
        const cache_plane *p = planes[i].plane;
        if (p->type >= ELEMENT_TYPES || p->columns < 0 || p->columns > MLA_MAX_CONTENT)
            return wrong(err, planes[i].name, "unknown type, or too many columns");
    }
    return SNAP_OK;
}

snap_status cache_format_check(const cache_format *f, snap_err *err) {
    snap_status st = check_sizes(f, err);
    st = st == SNAP_OK ? check_content(f, err) : st;
    st = st == SNAP_OK ? check_rope(f, err) : st;
    st = st == SNAP_OK ? check_transform(f, err) : st;
    return st == SNAP_OK ? check_places(f, err) : st;
}
