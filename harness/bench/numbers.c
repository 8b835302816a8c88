#include "harness/bench/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/formats.h"

static const char *const kind_names[NUMBERS_KINDS] = {"normal", "mla", "sink", "adversarial"};

const char *numbers_kind_name(numbers_kind k) {
    return kind_names[k];
}

snap_status numbers_kind_parse(const char *name, numbers_kind *out, snap_err *err) {
    for (int k = 0; k < NUMBERS_KINDS; k++)
        if (strcmp(name, kind_names[k]) == 0) {
            *out = (numbers_kind)k;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_USAGE,
                   "--distribution must be normal, mla, sink or adversarial, got '%s'", name);
}

static uint16_t *draw_pool(int width, uint64_t seed, const char *stream) {
    uint16_t *pool = malloc(sizeof *pool * (size_t)DRAW_POOL * (size_t)width);
    rng r = rng_make(seed, rng_stream_of(stream));
    for (size_t i = 0; pool && i < (size_t)DRAW_POOL * (size_t)width; i++)
        pool[i] = bf16_from_f32((float)rng_normal(&r));
    return pool;
}

/* The outlier columns have a standard deviation of a twentieth of their mean. They widen the range
 * of the logits. */
static void add_outliers(numbers *n) {
    static const float means[] = {1000.0f, -300.0f, 100.0f, -30.0f};
    enum { kColumns = sizeof means / sizeof *means };
    size_t width = (size_t)n->d_c + (size_t)n->d_r;
    for (size_t row = 0; row < DRAW_POOL; row++)
        for (int k = 0; k < kColumns; k++) {
            size_t column = (size_t)n->d_c + (size_t)((2 * k + 1) * n->d_r / (2 * kColumns));
            uint16_t *x = &n->tokens[row * width + column];
            *x = bf16_from_f32(means[k] * (1.0f + 0.05f * bf16_to_f32(*x)));
        }
}

static void scale(uint16_t *x, int n, float factor, float more) {
    for (int i = 0; i < n; i++)
        x[i] = bf16_from_f32(bf16_to_f32(x[i]) * factor + more);
}

/* In the pool, a quarter of the RoPE columns is increased by 1 in queries and by 8 in sinks. With
 * 64 RoPE columns and a softmax scale of 1/sqrt(192), the logits of the sinks are then on average
 * about 9 above the others. */
static void add_sinks(numbers *n) {
    enum { kEvery = 1024, kSink = 7 };
    size_t width = (size_t)n->d_c + (size_t)n->d_r;
    for (size_t row = 0; row < DRAW_POOL; row++) {
        uint16_t *token = n->tokens + row * width;
        scale(n->queries + row * width + n->d_c, n->d_r / 4, 1, 1);
        if (row % kEvery == kSink) {
            scale(token, n->d_c, 1.0f / 16, 0);
            scale(token + n->d_c, n->d_r / 4, 1, 8);
        }
    }
}

/* A query has the same number in both columns, and a token has opposite numbers there. */
static void add_cancelling(numbers *n, uint64_t seed) {
    rng r = rng_make(seed, rng_stream_of("bench norms"));
    size_t width = (size_t)n->d_c + (size_t)n->d_r;
    for (size_t row = 0; row < DRAW_POOL; row++) {
        uint16_t *token = n->tokens + row * width, *query = n->queries + row * width + n->d_c;
        float norm = exp2f((float)rng_normal(&r));
        scale(token, n->d_c + n->d_r, norm, 0);
        token += n->d_c;
        token[0] = bf16_from_f32(1000 * norm);
        token[n->d_r / 2] = bf16_from_f32(-1000 * norm);
        query[n->d_r / 2] = query[0];
    }
}

snap_status numbers_create(numbers *out, numbers_kind kind, int d_c, int d_r, uint64_t seed,
                           snap_err *err) {
    *out = (numbers){.d_c = d_c, .d_r = d_r, .seed = seed};
    out->tokens = draw_pool(d_c + d_r, seed, "bench tokens");
    out->queries = draw_pool(d_c + d_r, seed, "bench queries");
    if (!out->tokens || !out->queries) {
        free(out->tokens);
        free(out->queries);
        *out = (numbers){0};
        return err_set(err, SNAP_E_NOMEM, "out of memory for the pool of random numbers");
    }
    if (kind == NUMBERS_MLA)
        add_outliers(out);
    else if (kind == NUMBERS_SINK)
        add_sinks(out);
    else if (kind == NUMBERS_ADVERSARIAL)
        add_cancelling(out, seed);
    return SNAP_OK;
}

void numbers_release(numbers *n) {
    if (n->be) {
        mla_free(n->be, n->device_tokens);
        mla_free(n->be, n->device_queries);
    }
    if (!n->is_shared) {
        free(n->tokens);
        free(n->queries);
    }
    *n = (numbers){0};
}

void numbers_share(numbers *out, const numbers *from) {
    *out = (numbers){.d_c = from->d_c,
                     .d_r = from->d_r,
                     .seed = from->seed,
                     .tokens = from->tokens,
                     .queries = from->queries,
                     .is_shared = true};
}

static snap_status upload(mla_backend *be, const uint16_t *pool, size_t bytes, uint16_t **out,
                          snap_err *err) {
    *out = mla_alloc(be, bytes, err);
    return *out ? mla_copy_in(be, *out, pool, bytes, err) : SNAP_E_NOMEM;
}

snap_status numbers_upload(numbers *n, mla_backend *be, snap_err *err) {
    mla_backend_info info;
    mla_backend_describe(be, &info);
    if (info.host_memory)
        return SNAP_OK;
    size_t bytes = sizeof *n->tokens * DRAW_POOL * ((size_t)n->d_c + (size_t)n->d_r);
    n->be = be;
    snap_status st = upload(be, n->tokens, bytes, &n->device_tokens, err);
    return st == SNAP_OK ? upload(be, n->queries, bytes, &n->device_queries, err) : st;
}

static draw_source source_of(const numbers *n, const uint16_t *pool) {
    return (draw_source){.pool = pool, .d_c = n->d_c, .d_r = n->d_r, .seed = n->seed};
}

draw_source numbers_tokens(const numbers *n) {
    return source_of(n, n->device_tokens ? n->device_tokens : n->tokens);
}

draw_source numbers_queries(const numbers *n) {
    return source_of(n, n->device_queries ? n->device_queries : n->queries);
}

void numbers_token(const numbers *n, uint64_t index, uint16_t *row) {
    draw_source from = source_of(n, n->tokens);
    draw_row(&from, index, row);
}

void numbers_query(const numbers *n, uint64_t index, uint16_t *row) {
    draw_source from = source_of(n, n->queries);
    draw_row(&from, index, row);
}
