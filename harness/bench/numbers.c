#include "harness/bench/numbers.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/formats.h"

enum { kNumbersPool = 4096 };

static const char *const kind_names[NUMBERS_KINDS] = {"normal", "mla"};

const char *numbers_kind_name(numbers_kind k) {
    return kind_names[k];
}

snap_status numbers_kind_parse(const char *name, numbers_kind *out, snap_err *err) {
    for (int k = 0; k < NUMBERS_KINDS; k++)
        if (strcmp(name, kind_names[k]) == 0) {
            *out = (numbers_kind)k;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_USAGE, "--distribution must be normal or mla, got '%s'", name);
}

static uint16_t *draw_pool(int width, uint64_t seed, const char *stream) {
    uint16_t *pool = malloc(sizeof *pool * (size_t)kNumbersPool * (size_t)width);
    rng r = rng_make(seed, rng_stream_of(stream));
    for (size_t i = 0; pool && i < (size_t)kNumbersPool * (size_t)width; i++)
        pool[i] = bf16_from_f32((float)rng_normal(&r));
    return pool;
}

/* The outlying columns spread by a twentieth of their mean, so that at a softmax scale of
 * 1/sqrt(192) they widen the logits without making the softmax one-hot. */
static void add_outliers(numbers *n) {
    static const float means[] = {1000.0f, -300.0f, 100.0f, -30.0f};
    enum { kColumns = sizeof means / sizeof *means };
    size_t width = (size_t)n->d_c + (size_t)n->d_r;
    for (size_t row = 0; row < kNumbersPool; row++)
        for (int k = 0; k < kColumns; k++) {
            size_t column = (size_t)n->d_c + (size_t)((2 * k + 1) * n->d_r / (2 * kColumns));
            uint16_t *x = &n->tokens[row * width + column];
            *x = bf16_from_f32(means[k] * (1.0f + 0.05f * bf16_to_f32(*x)));
        }
}

snap_status numbers_create(numbers *out, numbers_kind kind, int d_c, int d_r, uint64_t seed,
                           snap_err *err) {
    *out = (numbers){.d_c = d_c, .d_r = d_r, .seed = seed};
    out->tokens = draw_pool(d_c + d_r, seed, "bench tokens");
    out->queries = draw_pool(d_c + d_r, seed, "bench queries");
    if (!out->tokens || !out->queries) {
        numbers_release(out);
        return err_set(err, SNAP_E_NOMEM, "out of memory for the pool of random numbers");
    }
    if (kind == NUMBERS_MLA)
        add_outliers(out);
    return SNAP_OK;
}

void numbers_release(numbers *n) {
    free(n->tokens);
    free(n->queries);
    *n = (numbers){0};
}

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014): 64 well mixed bits of a counter. */
static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void make_row(const numbers *n, const uint16_t *pool, uint64_t index, uint16_t *row) {
    uint64_t bits = mix(mix(n->seed) ^ index);
    size_t d_c = (size_t)n->d_c, d_r = (size_t)n->d_r, width = d_c + d_r;
    size_t turn = (size_t)((bits >> 32) % d_c);
    const uint16_t *content = pool + bits % kNumbersPool * width;
    const uint16_t *rope = pool + (bits >> 16) % kNumbersPool * width + d_c;
    memcpy(row, content + turn, (d_c - turn) * sizeof *row);
    memcpy(row + d_c - turn, content, turn * sizeof *row);
    memcpy(row + d_c, rope, d_r * sizeof *row);
}

void numbers_token(const numbers *n, uint64_t index, uint16_t *row) {
    make_row(n, n->tokens, index, row);
}

void numbers_query(const numbers *n, uint64_t index, uint16_t *row) {
    make_row(n, n->queries, index, row);
}
