/* model_fidelity.h - what a cache format does to a model's predictions: the same text, token by token,
 * through the same weights with each format, against the first one.
 *
 * Of every position the KL divergence of the next-token distribution, its perplexity, whether the
 * likeliest token is another, and how far the logits moved; means by position, in ranges that double from
 * MODEL_FIDELITY_FIRST on, and over all. Decoded step by step, the ranges show how errors grow over the
 * steps. Each format sees the text itself, never its own errors' choice of words.
 *
 * At chosen lengths of the context the layers are looked into as well (model_layers.h). */
#ifndef SNAPMLA_HARNESS_BENCH_MODEL_FIDELITY_H
#define SNAPMLA_HARNESS_BENCH_MODEL_FIDELITY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/bench/model_layers.h"

enum {
    MODEL_FIDELITY_FORMATS = 12,
    MODEL_FIDELITY_FIRST = 64,
    MODEL_FIDELITY_RANGES = 16,
    MODEL_FIDELITY_MOMENTS = 16
};

typedef struct {
    int64_t tokens; /* positions that predict a token of the text */
    double nll;     /* sum of -ln p(next), nats */
    double kl;      /* sum of KL(first format || this one), nats */
    double kl_max;
    int64_t flips; /* another likeliest token than the first format's */
    double moved;  /* sum of |logits - first format's| / |first format's| */
} model_fidelity_sums;

typedef struct {
    const char *format;                               /* static */
    model_fidelity_sums all;                          /* every position */
    model_fidelity_sums range[MODEL_FIDELITY_RANGES]; /* 0 .. 63, 64 .. 127, 128 .. 255, ... */
    int64_t cache_bytes;                              /* of one token over all layers */
} model_fidelity_row;

typedef struct {
    const char *dir;     /* the checkpoint */
    const char *text;    /* NUL-terminated */
    const char *formats; /* "bf16,fp8,A": names of cache.h; the first is the reference */
    int64_t max_tokens;  /* of the text; 0 = all, as far as the model reaches */
    bool chunks;         /* as a prompt, by chunks, in place of decoding step by step */
    int threads;
    const char *device; /* runner.h; layers are looked into on the CPU (NULL) alone */
    int64_t moments[MODEL_FIDELITY_MOMENTS]; /* contexts to look into the layers at; those beyond
                                                the text fall to its end */
    int n_moments;
    model_fidelity_emit emit;            /* of the layers; NULL = they are not looked into */
    const volatile sig_atomic_t *cancel; /* may be NULL */
    void (*progress)(void *ctx, int64_t done, int64_t all); /* may be NULL */
    void *ctx;                                              /* of emit and progress */
} model_fidelity_options;

/* Fills rows[0 .. *n - 1], one a format. SNAP_E_USAGE for a format that is unknown, SNAP_E_INPUT for a text of
 * fewer than two tokens, SNAP_E_CANCELLED; what opening and running the model can give. */
snap_status model_fidelity_run(const model_fidelity_options *opt, model_fidelity_row *rows, int *n,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Rows of the result file's `model_fidelity` section, kind "predictions": each format's of all positions and
 * of each range, in this order. */
snap_status model_fidelity_tell(const model_fidelity_row *rows, int n, model_fidelity_emit emit,
                                void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
