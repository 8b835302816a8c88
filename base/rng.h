/* rng.h - counter-based random numbers.
 *
 * Number i of stream s under seed k is a pure function of (k, s, i): a sample never depends on
 * its neighbours, threads need no shared state, and a resumed run draws what the first one would have.
 * Philox4x32-10 (Salmon et al., SC 2011). */
#ifndef SNAPMLA_BASE_RNG_H
#define SNAPMLA_BASE_RNG_H

#include <stdint.h>

typedef struct {
    uint64_t seed, stream, counter;
    uint32_t block[4]; /* numbers of the current counter not yet given out */
    int left;
    double spare; /* second normal of a Box-Muller pair */
    int has_spare;
} rng;

rng rng_make(uint64_t seed, uint64_t stream);
uint32_t rng_u32(rng *r);
uint64_t rng_u64(rng *r);
double rng_uniform(rng *r);                 /* [0, 1), 53 bits */
double rng_normal(rng *r);                  /* N(0, 1) */
uint32_t rng_below(rng *r, uint32_t bound); /* unbiased 0 .. bound-1; bound >= 1 */

/* A stream number from text (FNV-1a 64), e.g. of a problem's id. */
uint64_t rng_stream_of(const char *text);

/* One Philox4x32-10 block: 128 random bits of (key, counter). */
void rng_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

#endif
