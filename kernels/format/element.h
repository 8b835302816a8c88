/* element.h - the number types of cached values and of their scales, one value at a time.
 *
 *   type       bits  layout          largest  smallest > 0  infinity  NaN codes  source
 *   bf16        16   s e8 m7         3.4e38   2^-133        yes       yes        upper half of FP32
 *   fp16        16   s e5 m10        65504    2^-24         yes       yes        IEEE 754 binary16
 *   fp32        32   s e8 m23        3.4e38   2^-149        yes       yes        IEEE 754 binary32
 *   e4m3fn       8   s e4 m3         448      2^-9          no        0x7f 0xff  OCP OFP8 1.0
 *   e4m3fnuz     8   s e4 m3         240      2^-10         no        0x80       bias 8, no -0
 *   e5m2         8   s e5 m2         57344    2^-16         yes       yes        OCP OFP8 1.0
 *   e2m1         4   s e2 m1         6        0.5           no        none       OCP MX 1.0
 *   ue8m0        8   e8              2^127    2^-127        no        0xff       OCP MX 1.0
 *   int8         8   two's compl.    127      1             no        none
 *   int4         4   two's compl.    7        1             no        none
 *
 * Encoding rounds once, to nearest, ties to even. Values beyond the range saturate, infinities
 * included, except in bf16, fp16 and fp32, where they become infinity as IEEE 754 says. e5m2
 * saturates at 57344. A NaN stays a NaN in types that have one; in int8, int4 and e2m1 it becomes
 * 0. ue8m0 has no sign and rounds up to a power of two: zero and negative numbers become 2^-127,
 * and numbers above 2^127 become NaN. */
#ifndef SNAPMLA_KERNELS_FORMAT_ELEMENT_H
#define SNAPMLA_KERNELS_FORMAT_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    ELEMENT_BF16,
    ELEMENT_FP16,
    ELEMENT_FP32,
    ELEMENT_E4M3FN,
    ELEMENT_E4M3FNUZ,
    ELEMENT_E5M2,
    ELEMENT_E2M1,
    ELEMENT_UE8M0,
    ELEMENT_INT8,
    ELEMENT_INT4,
    ELEMENT_TYPES
} element_type;

const char *element_name(element_type t); /* "bf16", ... */
/* False if no type has that name. */
bool element_parse(const char *name, element_type *out);

int element_bits(element_type t);      /* 4, 8, 16 or 32 */
float element_largest(element_type t); /* largest finite magnitude, for both signs; 7 and 127 for
                                          integers */
bool element_is_integer(element_type t);

/* The code of @x, in the low bits. */
uint32_t element_encode(element_type t, double x);
/* The value of a code; bits above the type's width are ignored. Exact in FP32. */
float element_decode(element_type t, uint32_t code);

/* Stores or loads element @i of an array at @at. Elements of 16 and 32 bits are little endian and
 * need no alignment. Of two 4-bit elements in a byte, the one with the even index is in the low
 * bits. */
void element_store(element_type t, uint8_t *at, int64_t i, uint32_t code);
uint32_t element_load(element_type t, const uint8_t *at, int64_t i);

#endif
