/* input.c - tokens that try the edges of a format. */
#include <math.h>

#include "base/rng.h"
#include "kernels/format/format.h"
#include "kernels/formats.h"

static const char *const kNames[CACHE_INPUTS] = {
    [CACHE_INPUT_NORMAL] = "normal",         [CACHE_INPUT_ZERO] = "zero",
    [CACHE_INPUT_CODES] = "codes",           [CACHE_INPUT_TIES] = "ties",
    [CACHE_INPUT_RANGE] = "range",           [CACHE_INPUT_OUTLIERS] = "outliers",
    [CACHE_INPUT_NOT_FINITE] = "not-finite",
};

const char *cache_input_name(cache_input kind) {
    return kNames[kind];
}

/* The value of a code. The codes of types of 16 and 32 bits are those of e4m3fn, which are numbers
 * of these types as well. Not finite ones become 0. */
static double code_value(element_type t, int64_t code) {
    t = element_bits(t) > 8 ? ELEMENT_E4M3FN : t;
    double x = (double)element_decode(t, (uint32_t)code & ((1u << element_bits(t)) - 1u));
    return isfinite(x) ? x : 0.0;
}

/* The columns of a part run through the codes, and each token begins with another code. The
 * first column of a group holds the largest value, so that a chosen scale is 1. */
static double code_or_tie(const cache_part *part, int64_t token, int d, bool tie) {
    element_type t = part->plane.type;
    if (d % part->scale.columns == 0)
        return (double)element_largest(element_bits(t) > 8 ? ELEMENT_E4M3FN : t);
    double x = code_value(t, token * 37 + d);
    return tie ? (x + code_value(t, token * 37 + d + 1)) / 2.0 : x;
}

static double number(const cache_part *part, cache_input kind, int64_t token, int d, rng *r) {
    double x = rng_normal(r);
    switch (kind) {
    case CACHE_INPUT_ZERO:
        return x < 0.0 ? -0.0 : 0.0;
    case CACHE_INPUT_CODES:
    case CACHE_INPUT_TIES:
        return code_or_tie(part, token, d, kind == CACHE_INPUT_TIES);
    case CACHE_INPUT_RANGE:
        return copysign(ldexp(1.0 + fabs(x) / 8.0, (d + (int)(token % 32)) % 80 - 60), x);
    case CACHE_INPUT_OUTLIERS:
        return d % 128 == 5 ? 1000.0 * x : x;
    case CACHE_INPUT_NOT_FINITE:
        return token % 4 == 1 && d == 3   ? (double)NAN
               : token % 4 == 3 && d == 7 ? (double)-INFINITY
                                          : x;
    default:
        return x;
    }
}

void cache_format_input(float *x, const cache_format *f, cache_input kind, int64_t tokens,
                        uint64_t seed) {
    rng r = rng_make(seed, (uint64_t)kind);
    for (int64_t i = 0; i < tokens; i++)
        for (int d = 0; d < f->d_c + f->d_r; d++) {
            bool rope = d >= f->d_c;
            double value =
                number(rope ? &f->rope : &f->content, kind, i, rope ? d - f->d_c : d, &r);
            *x++ = bf16_to_f32(bf16_from_f64(value));
        }
}
