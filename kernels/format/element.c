#include "kernels/format/element.h"

#include <math.h>
#include <string.h>

#include "kernels/formats.h"

/* What happens beyond the largest number. */
typedef enum { TO_LARGEST, TO_INFINITY } overflow;

/* A floating-point type has a sign bit, an exponent field and @mantissa stored bits, and its
 * smallest normal number is 2^e_min. ue8m0 and the integers have functions of their own. */
typedef struct {
    const char *name;
    int bits, mantissa, e_min;
    float largest;
    overflow beyond;
    int nan; /* the code that encoding a NaN gives, without the sign; -1: none */
} element_spec;

static const element_spec specs[ELEMENT_TYPES] = {
    [ELEMENT_BF16] = {"bf16", 16, 7, -126, 0x1.fep127f, TO_INFINITY, 0x7fc0},
    [ELEMENT_FP16] = {"fp16", 16, 10, -14, 65504.0f, TO_INFINITY, 0x7e00},
    [ELEMENT_FP32] = {"fp32", 32, 23, -126, 0x1.fffffep127f, TO_INFINITY, 0x7fc00000},
    [ELEMENT_E4M3FN] = {"e4m3fn", 8, 3, -6, 448.0f, TO_LARGEST, 0x7f},
    [ELEMENT_E4M3FNUZ] = {"e4m3fnuz", 8, 3, -7, 240.0f, TO_LARGEST, 0x80},
    [ELEMENT_E5M2] = {"e5m2", 8, 2, -14, 57344.0f, TO_LARGEST, 0x7e},
    [ELEMENT_E2M1] = {"e2m1", 4, 1, 0, 6.0f, TO_LARGEST, -1},
    [ELEMENT_UE8M0] = {"ue8m0", 8, 0, -127, 0x1p127f, TO_LARGEST, 0xff},
    [ELEMENT_INT8] = {"int8", 8, 0, 0, 127.0f, TO_LARGEST, -1},
    [ELEMENT_INT4] = {"int4", 4, 0, 0, 7.0f, TO_LARGEST, -1},
};

const char *element_name(element_type t) {
    return specs[t].name;
}

bool element_parse(const char *name, element_type *out) {
    for (int t = 0; t < ELEMENT_TYPES; t++)
        if (strcmp(name, specs[t].name) == 0) {
            *out = (element_type)t;
            return true;
        }
    return false;
}

int element_bits(element_type t) {
    return specs[t].bits;
}

float element_largest(element_type t) {
    return specs[t].largest;
}

bool element_is_integer(element_type t) {
    return t == ELEMENT_INT8 || t == ELEMENT_INT4;
}

/* ---- encode ---------------------------------------------------------------------------------- */

/* The smallest power of two that is not below @x, as its exponent + 127. */
static uint32_t encode_ue8m0(double x) {
    if (isnan(x) || x > 0x1p127)
        return 0xff;
    if (x <= 0x1p-127)
        return 0;
    int e;
    double half = frexp(x, &e); /* x = half * 2^e with half in [0.5, 1) */
    return (uint32_t)(half > 0.5 ? e + 127 : e + 126);
}

static uint32_t encode_integer(const element_spec *s, double x) {
    if (isnan(x))
        return 0;
    double least = -(double)s->largest - 1.0;
    double rounded = nearbyint(fmin(fmax(x, least), (double)s->largest));
    return (uint32_t)(int32_t)rounded & ((1u << s->bits) - 1u);
}

/* Encodes a magnitude up to the largest one. The exponent and mantissa fields together count steps
 * of the type, so a carry out of the mantissa increments the exponent. */
static uint32_t encode_magnitude(const element_spec *s, double x) {
    if (x == 0.0)
        return 0;
    int e = ilogb(x);
    e = e < s->e_min ? s->e_min : e;
    uint32_t steps = (uint32_t)nearbyint(ldexp(x, s->mantissa - e));
    return ((uint32_t)(e - s->e_min) << s->mantissa) + steps;
}

static uint32_t encode_float(const element_spec *s, double x) {
    uint32_t sign = signbit(x) ? 1u << (s->bits - 1) : 0u;
    if (isnan(x))
        return s->nan < 0 ? 0u : sign | (uint32_t)s->nan;
    double magnitude = fabs(x), largest = (double)s->largest;
    if (magnitude <= largest)
        return sign | encode_magnitude(s, magnitude);
    uint32_t most = encode_magnitude(s, largest);
    /* Half a step beyond the largest number rounds to even, and that is infinity. */
    double step = ldexp(1.0, ilogb(largest) - s->mantissa);
    bool infinite = s->beyond == TO_INFINITY && magnitude >= largest + step / 2.0;
    return sign | (infinite ? most + 1u : most);
}

uint32_t element_encode(element_type t, double x) {
    const element_spec *s = &specs[t];
    if (t == ELEMENT_UE8M0)
        return encode_ue8m0(x);
    if (element_is_integer(t))
        return encode_integer(s, x);
    uint32_t code = encode_float(s, x);
    bool fnuz = t == ELEMENT_E4M3FNUZ; /* the code of -0 is its NaN */
    return fnuz && isnan(x) ? 0x80u : fnuz && code == 0x80u ? 0u : code;
}

/* ---- decode ---------------------------------------------------------------------------------- */

static float decode_float(const element_spec *s, uint32_t code) {
    uint32_t sign = code >> (s->bits - 1), magnitude = code & ~(1u << (s->bits - 1));
    int e = (int)(magnitude >> s->mantissa);
    uint32_t m = magnitude & ((1u << s->mantissa) - 1u);
    double x = e == 0 ? ldexp((double)m, s->e_min - s->mantissa)
                      : ldexp((double)(m + (1u << s->mantissa)), s->e_min - s->mantissa + e - 1);
    if (x > (double)s->largest)
        x = m == 0 ? (double)INFINITY : (double)NAN;
    return (float)(sign ? -x : x);
}

float element_decode(element_type t, uint32_t code) {
    const element_spec *s = &specs[t];
    if (s->bits < 32)
        code &= (1u << s->bits) - 1u;
    if (t == ELEMENT_FP32) {
        float x;
        memcpy(&x, &code, sizeof x);
        return x;
    }
    if (t == ELEMENT_BF16)
        return bf16_to_f32((uint16_t)code);
    if (t == ELEMENT_UE8M0)
        return code == 0xff ? NAN : ldexpf(1.0f, (int)code - 127);
    if (element_is_integer(t)) {
        int half = 1 << (s->bits - 1);
        return (float)((int)(code ^ (uint32_t)half) - half);
    }
    if (t == ELEMENT_E4M3FN)
        return e4m3_to_f32((uint8_t)code);
    if (t == ELEMENT_E4M3FNUZ && code == 0x80)
        return NAN;
    return decode_float(s, code);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

void element_store(element_type t, uint8_t *at, int64_t i, uint32_t code) {
    int bits = specs[t].bits;
    if (bits == 4) {
        int shift = i & 1 ? 4 : 0;
        uint8_t *byte = at + i / 2;
        *byte = (uint8_t)((*byte & ~(15u << shift)) | (code & 15u) << shift);
        return;
    }
    for (int b = 0; b < bits / 8; b++)
        at[i * (bits / 8) + b] = (uint8_t)(code >> (8 * b));
}

uint32_t element_load(element_type t, const uint8_t *at, int64_t i) {
    int bits = specs[t].bits;
    if (bits == 4)
        return (uint32_t)at[i / 2] >> (i & 1 ? 4 : 0) & 15u;
    uint32_t code = 0;
    for (int b = 0; b < bits / 8; b++)
        code |= (uint32_t)at[i * (bits / 8) + b] << (8 * b);
    return code;
}
