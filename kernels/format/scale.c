#include "kernels/format/scale.h"

#include <math.h>
#include <stdlib.h>

/* The smallest and the largest number of a group, 0 included. NaNs are ignored. */
typedef struct {
    float low, high;
} range;

static void widen(range *r, float x) {
    r->low = x < r->low ? x : r->low;
    r->high = x > r->high ? x : r->high;
}

static float magnitude(range r) {
    return r.high >= -r.low ? r.high : -r.low; /* 0 stays 0, not -0 */
}

static void find_ranges(const scale_set *s, range *r, scale_rows x) {
    int columns = x.columns / s->groups;
    for (int64_t i = 0; i < x.rows; i++) {
        range *unit = r + i / s->tokens_per_unit * s->groups;
        for (int d = 0; d < x.columns; d++)
            widen(&unit[d / columns], x.at[i * x.width + d]);
    }
}

/* The smallest power of two >= x. Zero and infinity stay. */
static float pow2_at_least(float x) {
    int e;
    if (x == 0.0f || isinf(x))
        return x;
    float m = frexpf(x, &e);
    return m > 0.5f ? ldexpf(1.0f, e) : x;
}

static float pow2_floor(float largest, float type_largest) {
    if (largest == 0.0f || isinf(largest))
        return largest;
    return ldexpf(1.0f, ilogbf(largest) - ilogbf(type_largest));
}

/* The scale of a group before it is stored. @steps: what the largest magnitude, or the width of the
 * range if there is a zero point, is divided by. */
static float ideal_scale(const cache_part *part, range r, float steps, float tensor) {
    const cache_scale *s = &part->scale;
    float extent = part->zero.columns ? r.high - r.low : magnitude(r);
    float scale = extent / steps;
    if (s->rounding == SCALE_POW2_FLOOR)
        scale = pow2_floor(extent, steps);
    else if (s->tensor.columns)
        scale = tensor > 0.0f ? scale / tensor : 0.0f;
    scale = fmaxf(scale, s->min);
    return s->rounding == SCALE_EXACT ? scale : pow2_at_least(scale);
}

/* The code that stands for 0, so that the least code stands for the low end of the range. */
static float zero_point(const cache_part *part, range r, float scale) {
    float most = element_largest(part->plane.type), least = -most - 1.0f;
    float zero = scale > 0.0f ? rintf(least - r.low / scale) : 0.0f;
    return fminf(fmaxf(zero, least), most);
}

static float second_level(const cache_part *part, const range *r, int64_t n) {
    float largest = 0.0f;
    for (int64_t i = 0; i < n; i++)
        largest = fmaxf(largest, magnitude(r[i]));
    return largest / (element_largest(part->plane.type) * element_largest(part->scale.plane.type));
}

/* Takes over the scales and zero points of a whole tensor. */
static void take_values(scale_set *out, const cache_part *part, const scale_given *given) {
    for (int g = 0; g < out->groups; g++) {
        out->code[g] = given->code[g];
        out->value[g] = element_decode(part->scale.plane.type, given->code[g]);
        if (out->zero)
            out->zero[g] = given->zero[g];
    }
}

static void set_values(scale_set *out, const cache_part *part, const range *r,
                       const scale_given *given) {
    const cache_scale *s = &part->scale;
    float most = element_largest(part->plane.type);
    float steps = part->zero.columns ? 2.0f * most + 1.0f : most;
    int64_t n = out->units * out->groups;
    if (s->tensor.columns)
        out->tensor = given ? given->tensor : second_level(part, r, n);
    for (int64_t i = 0; i < n; i++) {
        float ideal = ideal_scale(part, r[i], steps, out->tensor);
        out->code[i] = element_encode(s->plane.type, (double)ideal);
        out->value[i] = element_decode(s->plane.type, out->code[i]);
        if (out->zero)
            out->zero[i] = zero_point(part, r[i], out->value[i]);
    }
}

static int64_t tokens_per_unit(const cache_scale *s, int page_tokens, int64_t rows) {
    return s->per == SCALE_PER_TOKEN ? 1 : s->per == SCALE_PER_PAGE ? page_tokens : rows ? rows : 1;
}

snap_status scale_choose(scale_set *out, const cache_part *part, int page_tokens, scale_rows x,
                         scale_rows also, const scale_given *given, snap_err *err) {
    const cache_scale *s = &part->scale;
    bool own = s->kind == SCALE_OWN;
    int64_t per = own ? tokens_per_unit(s, page_tokens, x.rows) : x.rows ? x.rows : 1;
    int64_t units = x.rows ? (x.rows + per - 1) / per : s->per == SCALE_PER_TENSOR || !own;
    *out = (scale_set){.units = units, .tokens_per_unit = per, .groups = 1, .tensor = 1.0f};
    if (own)
        out->groups = x.columns / s->columns;
    size_t n = (size_t)(units * out->groups) + 1;
    range *r = calloc(n, sizeof *r);
    out->value = calloc(n, sizeof *out->value);
    out->code = own ? calloc(n, sizeof *out->code) : NULL;
    out->zero = part->zero.columns ? calloc(n, sizeof *out->zero) : NULL;
    snap_status st = SNAP_OK;
    if (!r || !out->value || (own && !out->code) || (part->zero.columns && !out->zero))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for the scales of %lld tokens",
                     (long long)x.rows);
    else if (!own) {
        out->value[0] = s->kind == SCALE_FIXED ? s->fixed : 1.0f;
    } else if (given && given->code) {
        take_values(out, part, given);
    } else {
        find_ranges(out, r, x);
        if (also.at)
            find_ranges(out, r, also);
        set_values(out, part, r, given);
    }
    free(r);
    if (st != SNAP_OK)
        scale_release(out);
    return st;
}

void scale_release(scale_set *s) {
    free(s->value);
    free(s->zero);
    free(s->code);
    *s = (scale_set){0};
}
