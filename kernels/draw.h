/* draw.h - random rows, any of them at any time, on the host or the device.
 *
 * Row i of a source is a pure function of (pool, seed, i): the content of a row of the pool turned by a
 * random number of columns, with the RoPE part of another row. Drawing some hundred million normal
 * numbers would take longer than the benchmark that reads them. */
#ifndef SNAPMLA_KERNELS_DRAW_H
#define SNAPMLA_KERNELS_DRAW_H

#include <stdint.h>

enum { DRAW_POOL = 4096 }; /* rows of a pool */

/* Rows bf16 [DRAW_POOL][d_c + d_r], RoPE last; borrowed, in the memory of whoever draws. */
typedef struct {
    const uint16_t *pool;
    int d_c, d_r;
    uint64_t seed;
} draw_source;

/* Of what a row is made: rows of the pool, and columns by which content is turned to the left. */
typedef struct {
    uint32_t content, rope, turn;
} draw_parts;

#ifdef __CUDACC__
#define DRAW_FN static __host__ __device__ inline
#else
#define DRAW_FN static inline
#endif

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014): 64 well mixed bits of a counter. */
DRAW_FN uint64_t draw_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

DRAW_FN draw_parts draw_parts_of(uint64_t seed, uint64_t index, int d_c) {
    uint64_t bits = draw_mix(draw_mix(seed) ^ index);
    draw_parts p;
    p.content = (uint32_t)(bits % DRAW_POOL);
    p.rope = (uint32_t)((bits >> 16) % DRAW_POOL);
    p.turn = (uint32_t)((bits >> 32) % (uint64_t)d_c);
    return p;
}

/* bf16 [d_c + d_r], RoPE last; the pool is host memory. */
void draw_row(const draw_source *s, uint64_t index, uint16_t *row);

#endif
