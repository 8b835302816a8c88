/* amx_tiles.h - tile registers of Intel AMX: 8 registers, each of 16 rows of 64 bytes.
 *
 * TILE_PRODUCT(sum, a, b) adds to @sum, 16 x 16 numbers in FP32, the product of @a, 16 rows of 32
 * bf16 numbers, and @b, 16 rows with a pair of bf16 numbers for each of 16 columns. Row k of @b
 * holds the rows 2k and 2k + 1 of the matrix. Register numbers are literals. @bytes is the distance
 * of two rows in memory.
 *
 * The compiler does not know that TILE_LOAD reads memory. TILE_FENCE() keeps earlier stores before
 * the loads that follow it. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_TILES_H
#define SNAPMLA_KERNELS_CPU_AMX_TILES_H

#include <immintrin.h>
#include <string.h>

#define TILE_ZERO(t)              _tile_zero(t)
#define TILE_LOAD(t, from, bytes) _tile_loadd(t, (from), (bytes))
#define TILE_STORE(t, to, bytes)  _tile_stored(t, (to), (bytes))
#define TILE_PRODUCT(sum, a, b)   _tile_dpbf16ps(sum, a, b)
#define TILE_FENCE()              __asm__ volatile("" : : : "memory")

/* Gives this thread 8 full tiles. The operands of the instruction are described in the manual under
 * LDTILECFG. */
static void tiles_begin(void) {
    struct {
        uint8_t palette, start_row, unused[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    _Static_assert(sizeof config == 64, "LDTILECFG reads 64 bytes");
    for (int t = 0; t < 8; t++) {
        config.row_bytes[t] = 64;
        config.rows[t] = 16;
    }
    TILE_FENCE();
    _tile_loadconfig(&config);
}

/* Returns the tile state to its initial value. The operating system then saves less, and the
 * processor may clock higher. */
static void tiles_end(void) {
    TILE_FENCE();
    _tile_release();
}

#endif
