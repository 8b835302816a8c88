/* amx_product.h - one tile product of the processor, for comparison with the one in software. */
#ifndef SNAPMLA_KERNELS_TEST_AMX_PRODUCT_H
#define SNAPMLA_KERNELS_TEST_AMX_PRODUCT_H

#include <stdint.h>

/* c [16][16] += a [16][32] * b [16][16][2] (amx_tiles.h). Call it only if amx_lacks() returns
 * NULL. */
void amx_product(float *c, const uint16_t *a, const uint16_t *b);

#endif
