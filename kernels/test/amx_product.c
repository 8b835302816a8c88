#include "kernels/test/amx_product.h"

#if defined __x86_64__
#include "kernels/cpu/target.h"
TARGET_BEGIN("amx-tile,amx-bf16")
#include "kernels/cpu/amx_tiles.h"

void amx_product(float *c, const uint16_t *a, const uint16_t *b) {
    tiles_begin();
    TILE_FENCE();
    TILE_LOAD(0, c, 64);
    TILE_LOAD(1, a, 64);
    TILE_LOAD(2, b, 64);
    TILE_PRODUCT(0, 1, 2);
    TILE_STORE(0, c, 64);
    tiles_end();
}

TARGET_END
#endif
