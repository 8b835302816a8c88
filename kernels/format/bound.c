/* bound.c - how far the values of a format, and a backend's results, may lie from the truth. */
#include <math.h>

#include "kernels/format/layout.h"

/* Stored mantissa bits of a floating point type. */
static int mantissa_bits(element_type t) {
    float one = 1.0f, next = element_decode(t, element_encode(t, 1.0) + 1u);
    return -ilogbf(next - one);
}

/* The largest rounding error of the codes. For integers it is divided by the largest value of the
 * type, for floating point numbers (not subnormal ones) by the number itself. */
static double rounding_of_codes(element_type t) {
    if (element_is_integer(t))
        return 0.5 / (double)element_largest(t);
    return ldexp(1.0, -mantissa_bits(t) - 1);
}

/* The least and the largest factor by which rounding may change a scale. */
typedef struct {
    double low, high;
} factors;

static factors rounding_of_scale(const cache_scale *s, double largest) {
    double two = 2.0, octave = ldexp(1.0, ilogb(largest) + 1);
    if (s->rounding == SCALE_POW2_UP)
        return (factors){1.0, two};
    if (s->rounding == SCALE_POW2_FLOOR) /* largest / scale lies in octave/2 .. octave */
        return (factors){largest / octave, two * largest / octave};
    if (s->plane.type == ELEMENT_FP32)
        return (factors){1.0, 1.0};
    double half = rounding_of_codes(s->plane.type);
    return (factors){1.0 / (1.0 + half), 1.0 / (1.0 - half)};
}

/* The error of a number that is half a step from its neighbours, just below the largest, divided by
 * the largest. */
static double rounding_at_top(element_type t, double largest) {
    if (element_is_integer(t))
        return 0.5 / largest;
    return ldexp(0.5, ilogb(largest) - mantissa_bits(t)) / largest;
}

double cache_part_rounding(const cache_format *f, const cache_part *part) {
    const cache_scale *s = part->scale.kind == SCALE_SHARED ? &f->content.scale : &part->scale;
    const double fp32 = 0x1p-21; /* error of the division, the products of scales and the last
                                    rounding */
    element_type t = part->plane.type;
    double codes = rounding_of_codes(t), largest = (double)element_largest(t);
    if (part->zero.columns) { /* half a step of the range, which is at most twice the magnitude */
        double up = s->rounding == SCALE_EXACT ? 1.0 : 2.0;
        return up / (2.0 * largest + 1.0) + fp32;
    }
    if (s->kind != SCALE_OWN)
        return codes + fp32;
    factors k = rounding_of_scale(s, largest);
    double rounded = rounding_at_top(t, largest) * k.high;
    if (!element_is_integer(t))
        rounded = fmin(rounded, codes);
    return fmax(rounded, 1.0 - k.low) + fp32; /* 1 - k.low: if the scale was rounded down, the
                                                 largest number saturates */
}

/* True if every value is exact in bf16, in which a backend may hold what it multiplies. */
static bool exact_in_bf16(const cache_part *part) {
    const cache_scale *s = &part->scale;
    bool pow2 = s->kind == SCALE_NONE || (s->kind == SCALE_OWN && s->rounding != SCALE_EXACT);
    return pow2 && (element_bits(part->plane.type) <= 8 || part->plane.type == ELEMENT_BF16);
}

judge_bound cache_format_bound(const cache_format *f) {
    if (f->pv == REF_P_E4M3)
        return judge_bound_of(MLA_FP8, f->pv);
    judge_bound bound = judge_bound_of(MLA_BF16, f->pv);
    if (!exact_in_bf16(&f->content) || !exact_in_bf16(&f->rope) || f->hadamard || f->offset.columns)
        bound = (judge_bound){.out_rel = 2 * bound.out_rel,
                              .row_rel = 2 * bound.row_rel,
                              .lse_err = judge_bound_of(MLA_FP8, f->pv).lse_err};
    return bound;
}
