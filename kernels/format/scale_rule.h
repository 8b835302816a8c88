/* scale_rule.h - the scale and the zero point of one group of numbers, as inline functions, which
 * CUDA kernels can call, too. */
#ifndef SNAPMLA_KERNELS_FORMAT_SCALE_RULE_H
#define SNAPMLA_KERNELS_FORMAT_SCALE_RULE_H

#include "kernels/format/element_code.h"
#include "kernels/format/format.h"

/* The smallest and the largest of 0 and the numbers of a group. NaNs are ignored. */
typedef struct {
    float low, high;
} scale_range;

FORMAT_INLINE float scale_magnitude(scale_range r) {
    return r.high >= -r.low ? r.high : -r.low; /* 0 stays 0, not -0 */
}

/* The smallest power of two >= x. Zero and infinity are returned unchanged. */
FORMAT_INLINE float scale_pow2_at_least(float x) {
    if (x == 0.0f || isinf(x))
        return x;
    int e = element_exponent((double)x);
    double below = element_power(e);
    return below < (double)x ? (float)(2.0 * below) : x;
}

/* The rule SCALE_POW2_FLOOR: 2^(floor(log2 largest) - floor(log2 type_largest)). Zero and infinity
 * are returned unchanged. */
FORMAT_INLINE float scale_pow2_floor(float largest, float type_largest) {
    if (largest == 0.0f || isinf(largest))
        return largest;
    return (float)element_power(element_exponent((double)largest) -
                                element_exponent((double)type_largest));
}

/* The divisor that gives the scale: of the largest magnitude, or with a zero point of the width of
 * the range (high - low). */
FORMAT_INLINE float scale_steps(const cache_part *part) {
    float most = element_spec_of(part->plane.type).largest;
    return part->zero.columns ? 2.0f * most + 1.0f : most;
}

/* The scale of a group before it is rounded to the type in which it is stored. @tensor: the
 * second-level scale, used only if the format has one. */
FORMAT_INLINE float scale_ideal(const cache_part *part, scale_range r, float tensor) {
    const cache_scale *s = &part->scale;
    float steps = scale_steps(part);
    float extent = part->zero.columns ? r.high - r.low : scale_magnitude(r);
    float scale = extent / steps;
    if (s->rounding == SCALE_POW2_FLOOR)
        scale = scale_pow2_floor(extent, steps);
    else if (s->tensor.columns)
        scale = tensor > 0.0f ? scale / tensor : 0.0f;
    scale = fmaxf(scale, s->min);
    return s->rounding == SCALE_EXACT ? scale : scale_pow2_at_least(scale);
}

/* The second-level scale. @largest: the largest magnitude of the tensor. */
FORMAT_INLINE float scale_second_level(const cache_part *part, float largest) {
    return largest / (element_spec_of(part->plane.type).largest *
                      element_spec_of(part->scale.plane.type).largest);
}

/* The zero point: the code whose value is 0. It is chosen such that the least code has the value at
 * the low end of the range. */
FORMAT_INLINE float scale_zero_point(const cache_part *part, scale_range r, float scale) {
    float most = element_spec_of(part->plane.type).largest, least = -most - 1.0f;
    float zero = scale > 0.0f ? rintf(least - r.low / scale) : 0.0f;
    return fminf(fmaxf(zero, least), most);
}

/* The code of one number. With the scale 0 every number gets the code whose value is 0. */
FORMAT_INLINE uint32_t scale_code(element_type type, float x, float scale, float zero) {
    if (scale == 0.0f)
        return element_code(type, (double)zero);
    double quotient = (double)(x / scale);
    if (!element_integer(type))
        return element_code(type, quotient);
    return element_code(type, (isnan(quotient) ? 0.0 : nearbyint(quotient)) + (double)zero);
}

#endif
