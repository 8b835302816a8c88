/* draw.h - random rows, each computed independently of the others, on the host or the device.
 *
 * Row i of a source is a pure function of (pool, seed, i). Its content is that of a random row of
 * the pool, rotated by a random number of columns. Its RoPE part is that of a second random row of
 * the pool. Rows are copied from the pool so that no normal numbers are generated for each row. */
#ifndef SNAPMLA_KERNELS_DRAW_H
#define SNAPMLA_KERNELS_DRAW_H

#include <stdint.h>

enum { DRAW_POOL = 4096 }; /* rows in a pool */

/* The pool: bf16 [DRAW_POOL][d_c + d_r], RoPE last. Borrowed; memory of the machine (host or
 * device) that generates the rows. */
typedef struct {
    const uint16_t *pool;
    int d_c, d_r;
    uint64_t seed;
} draw_source;

/* The parts of one row: pool rows for content and RoPE, and the number of columns by which the
 * content is rotated to the left. */
typedef struct {
    uint32_t content, rope, turn;
} draw_parts;

#ifdef __CUDACC__
#define DRAW_FN static __host__ __device__ inline
#else
#define DRAW_FN static inline
#endif

/* One output of SplitMix64 (Steele, Lea, Flood 2014): 64 well mixed bits of a counter. */
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

/* Generates one row: bf16 [d_c + d_r], RoPE last. The pool is host memory. */
void draw_row(const draw_source *s, uint64_t index, uint16_t *row);

#endif
