#include "kernels/format/element.h"

#include <string.h>

#include "kernels/format/element_code.h"

static const char *const names[ELEMENT_TYPES] = {"bf16", "fp16", "fp32",  "e4m3fn", "e4m3fnuz",
                                                 "e5m2", "e2m1", "ue8m0", "int8",   "int4"};

const char *element_name(element_type t) {
    return names[t];
}

bool element_parse(const char *name, element_type *out) {
    for (int t = 0; t < ELEMENT_TYPES; t++)
        if (strcmp(name, names[t]) == 0) {
            *out = (element_type)t;
            return true;
        }
    return false;
}

int element_bits(element_type t) {
    return element_spec_of(t).bits;
}

float element_largest(element_type t) {
    return element_spec_of(t).largest;
}

bool element_is_integer(element_type t) {
    return element_integer(t);
}

uint32_t element_encode(element_type t, double x) {
    return element_code(t, x);
}

float element_decode(element_type t, uint32_t code) {
    return element_value(t, code);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

void element_store(element_type t, uint8_t *at, int64_t i, uint32_t code) {
    int bits = element_bits(t);
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
    int bits = element_bits(t);
    if (bits == 4)
        return (uint32_t)at[i / 2] >> (i & 1 ? 4 : 0) & 15u;
    uint32_t code = 0;
    for (int b = 0; b < bits / 8; b++)
        code |= (uint32_t)at[i * (bits / 8) + b] << (8 * b);
    return code;
}
