/* model_record.h - a row of the section `model_fidelity`: what a cache format does to a model.
 * Which fields a row has follows from its kind:
 *
 *   predictions  a format's next-token distributions against the first format's, over positions
 *   layer        error of a configuration in one layer, against FP64 attention on the same numbers
 *   values       magnitudes of what one layer caches
 *   bound        the error of rounding in one layer, beside what the norms of its weights admit
 *   depth        drift of the residual stream up to one layer, against the first format's run */
#ifndef SNAPMLA_HARNESS_RECORD_MODEL_RECORD_H
#define SNAPMLA_HARNESS_RECORD_MODEL_RECORD_H

#include "harness/record/field.h"

enum {
    MODEL_PREDICTIONS = 1 << 0,
    MODEL_LAYER = 1 << 1,
    MODEL_VALUES = 1 << 2,
    MODEL_BOUND = 1 << 3,
    MODEL_DEPTH = 1 << 4,
    MODEL_TEXT = 1 << 5, /* the text is known; every row of predictions has this part */
    MODEL_LAYERS = MODEL_LAYER | MODEL_VALUES | MODEL_BOUND | MODEL_DEPTH,
};

typedef struct {
    unsigned parts;   /* the kind's, and MODEL_TEXT */
    const char *kind; /* "predictions", "layer", "values", "bound", "depth" */
    const char *model, *origin;
    const char *checkpoint_sha256;
    /* MODEL_TEXT */
    const char *text_sha256;
    bool decoded; /* step by step, not as a prompt */
    /* predictions */
    int64_t first, last; /* positions; do not exist where the row is of all positions */
    int64_t tokens;      /* positions that predict a token */
    double perplexity, kl_mean, kl_max, flips_pct, logits_rel_l2; /* KL in nats */
    int64_t cache_bytes_a_token;                                  /* over all layers */
    int64_t peak_rss_bytes;                                       /* of the whole process */
    /* predictions, depth */
    const char *precision, *reference; /* the cache format, and the one it is compared with */
    /* layer, values, bound, depth */
    int64_t layer, context; /* context in tokens */
    /* layer; rel_l2 also of depth */
    const char *config;
    double rmse, cosine_diff, rel_l2, lse_error, max_abs;
    /* values */
    const char *part; /* "content", "rope" */
    int64_t values;
    double rms, p50, p99, p999, max;
    record_bins histogram;
    /* bound */
    double logit_error, logit_bound, value_error, value_bound;
} model_record;

extern const record_type model_type;

typedef struct {
    model_record *at;
    size_t n;
} model_list;

/* A row of that kind without values: kind and parts are set. */
model_record model_record_new(const char *kind);

#endif
