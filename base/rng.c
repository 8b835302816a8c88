#include "base/rng.h"

#include <math.h>

void rng_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

rng rng_make(uint64_t seed, uint64_t stream) {
    return (rng){.seed = seed, .stream = stream};
}

uint32_t rng_u32(rng *r) {
    if (!r->left) {
        uint32_t key[2] = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)};
        uint32_t ctr[4] = {(uint32_t)r->counter, (uint32_t)(r->counter >> 32), (uint32_t)r->stream,
                           (uint32_t)(r->stream >> 32)};
        rng_philox(key, ctr, r->block);
        r->counter++;
        r->left = 4;
    }
    return r->block[4 - r->left--];
}

uint64_t rng_u64(rng *r) {
    uint64_t hi = rng_u32(r);
    return hi << 32 | rng_u32(r);
}

double rng_uniform(rng *r) {
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

double rng_normal(rng *r) {
    if (r->has_spare) {
        r->has_spare = 0;
        return r->spare;
    }
    double radius = sqrt(-2.0 * log(1.0 - rng_uniform(r)));
    double angle = 6.283185307179586476925 * rng_uniform(r);
    r->spare = radius * sin(angle);
    r->has_spare = 1;
    return radius * cos(angle);
}

uint32_t rng_below(rng *r, uint32_t bound) {
    uint32_t reject = (uint32_t)(-bound) % bound; /* Lemire's method, arXiv 1805.10941 */
    for (;;) {
        uint64_t m = (uint64_t)rng_u32(r) * bound;
        if ((uint32_t)m >= reject)
            return (uint32_t)(m >> 32);
    }
}

uint64_t rng_stream_of(const char *text) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}
