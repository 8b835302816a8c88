/* mix.h - a fast hash of a few bytes. It is not safe against chosen inputs; the tables that use it
 * are limited in size by other means. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_MIX_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_MIX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t mix_u64(uint64_t x) {
    x *= 0x9E3779B97F4A7C15u;
    return x ^ (x >> 32);
}

static inline uint64_t mix_bytes(const char *s, size_t n) {
    uint64_t h = n, word;
    for (; n >= sizeof word; s += sizeof word, n -= sizeof word) {
        memcpy(&word, s, sizeof word);
        h = mix_u64(h ^ word);
    }
    word = 0;
    memcpy(&word, s, n);
    return mix_u64(mix_u64(h ^ word));
}

#endif
