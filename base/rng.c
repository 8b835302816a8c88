#include "base/rng.h"

#include <math.h>
#include <string.h>

typedef struct {
    uint32_t word[4];
} philox_block;

/* The arguments are values, not memory, because sanitizers check each access to memory. */
static inline philox_block philox(uint64_t key, uint64_t counter, uint64_t stream) {
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
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
    return (philox_block){{c0, c1, c2, c3}};
}

static uint64_t join(uint32_t high, uint32_t low) {
    return (uint64_t)high << 32 | low;
}

void rng_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]) {
    philox_block b =
        philox(join(key[1], key[0]), join(counter[1], counter[0]), join(counter[3], counter[2]));
    memcpy(out, b.word, sizeof b.word);
}

rng rng_make(uint64_t seed, uint64_t stream) {
    return (rng){.seed = seed, .stream = stream};
}

uint32_t rng_u32(rng *r) {
    if (!r->left) {
        philox_block b = philox(r->seed, r->counter++, r->stream);
        memcpy(r->block, b.word, sizeof b.word);
        r->left = 4;
    }
    return r->block[4 - r->left--];
}

uint64_t rng_u64(rng *r) {
    uint32_t high = rng_u32(r);
    return join(high, rng_u32(r));
}

void rng_fill(rng *r, uint64_t *out, size_t n) {
    size_t i = 0;
    if (!r->left)
        for (uint64_t seed = r->seed, stream = r->stream; i + 2 <= n; i += 2) {
            philox_block b = philox(seed, r->counter++, stream);
            out[i] = join(b.word[0], b.word[1]);
            out[i + 1] = join(b.word[2], b.word[3]);
        }
    for (; i < n; i++)
        out[i] = rng_u64(r);
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
