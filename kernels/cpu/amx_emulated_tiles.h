/* amx_emulated_tiles.h - the tile operations of amx_tiles.h in software, bit for bit, for machines
 * without AMX. The including file needs FMA and the definitions of vec.h.
 *
 * TDPBF16PS computes each element of the product in this order: the products of the even elements
 * are added one by one, from zero, with fused multiply-adds; so are those of the odd elements; the
 * two sums are added; the result is added to the accumulator. Each step rounds to nearest.
 * Subnormal operands count as zero, and subnormal results become zero. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_EMULATED_TILES_H
#define SNAPMLA_KERNELS_CPU_AMX_EMULATED_TILES_H

#include <immintrin.h>

#include "kernels/cpu/vec.h"
#include "kernels/formats.h"

typedef struct {
    _Alignas(64) uint32_t row[16][16];
} emulated_tile;

typedef uint64_t vq __attribute__((vector_size(4 * LANES), may_alias));

static _Thread_local emulated_tile emulated[8];

#define TILE_ZERO(t)              memset(&emulated[t], 0, sizeof emulated[t])
#define TILE_LOAD(t, from, bytes) emulated_load((t), (from), (bytes))
#define TILE_STORE(t, to, bytes)  emulated_store((t), (to), (bytes))
#define TILE_PRODUCT(sum, a, b)   emulated_product((sum), (a), (b))
#define TILE_FENCE()              ((void)0)

static void tiles_begin(void) {
    memset(emulated, 0, sizeof emulated);
}

static void tiles_end(void) {
}

static void emulated_load(int t, const void *from, size_t bytes) {
    for (size_t r = 0; r < 16; r++)
        memcpy(emulated[t].row[r], (const char *)from + r * bytes, 64);
}

static void emulated_store(int t, void *to, size_t bytes) {
    for (size_t r = 0; r < 16; r++)
        memcpy((char *)to + r * bytes, emulated[t].row[r], 64);
}

/* Not inlined, so that all its arithmetic runs with the caller's setting of MXCSR. */
static __attribute__((noinline)) void multiply_tiles(emulated_tile *c, const emulated_tile *a,
                                                     const emulated_tile *b) {
    enum { kVectors = 32 / LANES };
    vf wide[16][kVectors];
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < kVectors; i++)
            wide[k][i] =
                vf_load_bf16((const uint16_t *)(const void *)b->row[k] + (size_t)i * LANES);
    for (int m = 0; m < 16; m++) {
        vf sum[kVectors] = {0};
        for (int k = 0; k < 16; k++) {
            uint64_t even = a->row[m][k] << 16, odd = a->row[m][k] & 0xffff0000u;
            vf x = (vf)((vq){0} + (even | odd << 32));
            UNROLL
            for (int i = 0; i < kVectors; i++)
                sum[i] = VF_FMA(x, wide[k][i], sum[i]);
        }
        float both[32];
        for (int i = 0; i < kVectors; i++)
            vf_store(both + (size_t)i * LANES, sum[i]);
        for (int n = 0; n < 16; n++) {
            float old;
            memcpy(&old, &c->row[m][n], sizeof old);
            old += both[2 * n] + both[2 * n + 1];
            memcpy(&c->row[m][n], &old, sizeof old);
        }
    }
}

static void emulated_product(int sum, int a, int b) {
    enum { kFlush = 0x8040, kMaskedNearest = 0x1f80 }; /* subnormals are zero; no exceptions */
    unsigned before = _mm_getcsr();
    _mm_setcsr(kMaskedNearest | kFlush);
    multiply_tiles(&emulated[sum], &emulated[a], &emulated[b]);
    _mm_setcsr(before);
}

#endif
