/* rng.h - counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011).
 *
 * Number i of stream s with seed k is a pure function of (k, s, i). So a number does not depend on
 * other streams, threads share no state, and a resumed run draws the same numbers as an
 * uninterrupted one. */
#ifndef SNAPMLA_BASE_RNG_H
#define SNAPMLA_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t seed, stream, counter;
    uint32_t block[4]; /* numbers of the current Philox block; the last `left` are unused */
    int left;
    double spare; /* second number of a Box-Muller pair; valid if has_spare */
    int has_spare;
} rng;

rng rng_make(uint64_t seed, uint64_t stream);
uint32_t rng_u32(rng *r);
uint64_t rng_u64(rng *r);
void rng_fill(rng *r, uint64_t *out, size_t n); /* the next @n numbers of rng_u64(), in less time */
double rng_uniform(rng *r);                     /* [0, 1), 53 bits */
double rng_normal(rng *r);                      /* N(0, 1) */
uint32_t rng_below(rng *r, uint32_t bound);     /* unbiased 0 .. bound-1; bound >= 1 */

/* A stream number from text, such as a problem's id (FNV-1a 64). */
uint64_t rng_stream_of(const char *text);

/* One Philox4x32-10 block: 128 random bits for (key, counter). */
void rng_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

#endif
