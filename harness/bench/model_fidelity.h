/* model_fidelity.h - how a cache format changes a model's predictions. Each format runs the same
 * text through the same weights, and the results are compared with those of the first format.
 *
 * For each position: the KL divergence of the next-token distribution, the probability of the
 * text's next token (for the perplexity), whether the most likely token differs, and how far the
 * logits moved. The means are over all positions and over ranges of positions, whose ends double
 * from MODEL_FIDELITY_FIRST on. If the text is decoded step by step, the ranges show how errors
 * grow with the steps. Every format is given the tokens of the text, never the tokens that its own
 * errors would choose.
 *
 * At chosen context lengths, and at the end of the text, the layers can be studied too
 * (model_layers.h). At places spread over the text, the formats can continue freely, each with the
 * tokens that it chooses itself (model_diverge.h). */
#ifndef SNAPMLA_HARNESS_BENCH_MODEL_FIDELITY_H
#define SNAPMLA_HARNESS_BENCH_MODEL_FIDELITY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "harness/bench/model_diverge.h"

enum {
    MODEL_FIDELITY_FORMATS = 40,
    MODEL_FIDELITY_FIRST = 64,
    MODEL_FIDELITY_RANGES = 16,
    MODEL_FIDELITY_MOMENTS = 16
};

typedef struct {
    int64_t tokens; /* number of positions at which a token of the text is predicted */
    double nll;     /* sum of -ln p(next token), in nats */
    double kl;      /* sum of KL(first format || this format), in nats */
    double kl_max;
    int64_t flips; /* positions whose most likely token differs from the first format's */
    double moved;  /* sum of |logits - logits of the first format| / |logits of the first format|
                      over the positions */
} model_fidelity_sums;

typedef struct {
    char format[64];              /* the name that the format's file states, or that of cache.h */
    char format_sha256[HASH_HEX]; /* hash of the format's file; "": it has none */
    model_fidelity_sums all;      /* every position except that of the last token */
    model_fidelity_sums range[MODEL_FIDELITY_RANGES]; /* 0 .. 63, 64 .. 127, 128 .. 255, ...; the
                                                         last one has no end */
    double cache_bytes;                               /* kv_cache_token_bytes() */
} model_fidelity_row;

typedef struct {
    const char *dir;     /* the checkpoint */
    const char *text;    /* NUL-terminated */
    const char *formats; /* comma-separated names and paths as in cache.h; the first is the
                            reference */
    int64_t max_tokens;  /* largest number of tokens taken from the text; 0 = LOCAL_CONTEXT, or the
                            model's limit if that is smaller */
    bool chunks;         /* run the text as a prompt in chunks, not step by step */
    int threads;
    const char *device; /* as in local_options; local_device_of() says which formats use it. The
                           layers can be studied only on the CPU */
    int64_t moments[MODEL_FIDELITY_MOMENTS]; /* context lengths at which the layers are studied,
                                                besides the end of the text */
    int n_moments;
    int diverge;              /* tokens of each free continuation; 0: none. Not with `chunks` */
    int diverge_places;       /* largest number of places where all formats continue */
    uint64_t seed;            /* seed of the continuations that are sampled */
    bool layers;              /* study the layers */
    model_fidelity_emit emit; /* receives the rows of layers and continuations; may be
                                            NULL without these */
    const volatile sig_atomic_t *cancel;                    /* may be NULL */
    void (*progress)(void *ctx, int64_t done, int64_t all); /* may be NULL */
    void *ctx;                                              /* for emit and progress */
} model_fidelity_options;

/* Fills rows[0 .. *n - 1], one for each format. SNAP_E_USAGE: an unknown format, or more than
 * MODEL_FIDELITY_FORMATS. SNAP_E_INPUT: a text of fewer than two tokens. SNAP_E_CANCELLED. Also the
 * errors of opening and running the model. */
snap_status model_fidelity_run(const model_fidelity_options *opt, model_fidelity_row *rows, int *n,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Emits the rows of kind "predictions": for each format the row of all positions, then a row for
 * each range that has positions. Also the errors of @emit. */
snap_status model_fidelity_emit_rows(const model_fidelity_row *rows, int n,
                                     model_fidelity_emit emit, void *ctx,
                                     snap_err *err) SNAP_CHECK_RESULT;

#endif
