/* amx_vectors_once.h - functions of kernels/cpu/amx_vectors.h, which need AVX-512, for tests. */
#ifndef SNAPMLA_KERNELS_TEST_AMX_VECTORS_ONCE_H
#define SNAPMLA_KERNELS_TEST_AMX_VECTORS_ONCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the processor has the instructions of the functions below. */
bool vectors_usable(void);

void decode_once(uint16_t *out, const uint8_t *in, size_t n, bool sorted);
void interleave_once(uint32_t *to, const uint16_t *even, const uint16_t *odd, size_t tiles,
                     bool sorted);
void sort_once(float *o, size_t n, bool decoded);

#endif
