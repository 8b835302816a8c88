#include "kernels/format/scale.h"

#include <stdlib.h>

#include "kernels/format/scale_rule.h"

static void widen(scale_range *r, float x) {
    r->low = x < r->low ? x : r->low;
    r->high = x > r->high ? x : r->high;
}

static void find_ranges(const scale_set *s, scale_range *r, scale_rows x) {
    int columns = x.columns / s->groups;
    for (int64_t i = 0; i < x.rows; i++) {
        scale_range *unit = r + i / s->tokens_per_unit * s->groups;
        for (int d = 0; d < columns * s->groups; d += columns)
            for (int k = 0; k < columns; k++)
                widen(&unit[d / columns], x.at[i * x.width + d + k]);
    }
}

static float second_level(const cache_part *part, const scale_range *r, int64_t n) {
    float largest = 0.0f;
    for (int64_t i = 0; i < n; i++)
        largest = fmaxf(largest, scale_magnitude(r[i]));
    return scale_second_level(part, largest);
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

static void set_values(scale_set *out, const cache_part *part, const scale_range *r,
                       const scale_given *given) {
    const cache_scale *s = &part->scale;
    int64_t n = out->units * out->groups;
    if (s->tensor.columns)
        out->tensor = given ? given->tensor : second_level(part, r, n);
    for (int64_t i = 0; i < n; i++) {
        float ideal = scale_ideal(part, r[i], out->tensor);
        out->code[i] = element_encode(s->plane.type, (double)ideal);
        out->value[i] = element_decode(s->plane.type, out->code[i]);
        if (out->zero)
            out->zero[i] = scale_zero_point(part, r[i], out->value[i]);
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
    scale_range *r = calloc(n, sizeof *r);
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
