/* model_record.h - a row of the section `model_fidelity`: how cache formats change a model. The
 * kind of a row decides which fields it has:
 *
 *   predictions  next-token distributions of a format compared with those of the first format
 *   layer        error of attention in one layer, compared with FP64 on the same numbers
 *   values       magnitudes of the numbers that one layer caches
 *   bound        rounding error in one layer, and the bound that the norms of its weights give
 *   divergence   free continuations in a format compared with those of the first format
 *   depth        difference of the residual stream after one layer from that of the first format
 *   forecast     predicted accuracy of a format on a task, compared with that of the first format
 *
 * "First format" means the first cache format of the run. */
#ifndef SNAPMLA_HARNESS_RECORD_MODEL_RECORD_H
#define SNAPMLA_HARNESS_RECORD_MODEL_RECORD_H

#include "harness/record/field.h"

enum {
    MODEL_PREDICTIONS = 1 << 0,
    MODEL_LAYER = 1 << 1,
    MODEL_VALUES = 1 << 2,
    MODEL_BOUND = 1 << 3,
    MODEL_DEPTH = 1 << 4,
    MODEL_TEXT = 1 << 5, /* the text is named; each row of predictions has this part */
    MODEL_DIVERGENCE = 1 << 6,
    MODEL_FORECAST = 1 << 7,
    MODEL_LAYERS = MODEL_LAYER | MODEL_VALUES | MODEL_BOUND | MODEL_DEPTH,
};

typedef struct {
    unsigned parts;   /* the part of the kind, and MODEL_TEXT if text_sha256 and decoded are set */
    const char *kind; /* "predictions", "divergence", "layer", "values", "bound", "depth",
                         "forecast" */
    const char *model, *origin;
    const char *checkpoint_sha256;
    /* MODEL_TEXT */
    const char *text_sha256;
    bool decoded; /* the text was decoded step by step, not read as a prompt */
    /* predictions */
    int64_t first, last; /* range of positions; missing if the row covers all positions of the
                            text */
    int64_t tokens;      /* number of positions at which a token is predicted */
    double perplexity, kl_mean, kl_max, flips_pct, logits_rel_l2; /* the KL divergence is in nats */
    int64_t cache_bytes_a_token;                                  /* bytes that the format takes
                                                                     per token, over all layers,
                                                                     rounded up */
    const char *format_sha256; /* hash of the format's file; "": it has none */
    int64_t peak_rss_bytes;    /* peak memory of the whole
                                                                     process; only in rows that
                                                                     cover all positions */
    /* divergence */
    const char *continuation; /* "greedy", "sampled" */
    int64_t places, steps;    /* continuations, and the most tokens of each */
    double changed_pct;       /* share of continuations with a token that differs */
    double first_change;      /* median number of the first such token, from 1; missing if at most
                                 half of the continuations have one */
    double equal_tokens;      /* mean number of equal tokens at the start */
    record_bins survival;     /* share of continuations whose first 2^exponent tokens are equal */
    /* forecast; the answers are those of the first format */
    const char *task;
    const char *data_sha256;     /* hash of the problems, as in eval rows */
    int64_t problems, answers;   /* answers: over all problems */
    int64_t mixed_problems;      /* with both right and wrong answers; missing in older rows */
    double temperature, top_p;   /* of the draws */
    double accuracy_pct;         /* of the answers */
    double kl_answer;            /* mean over answers of the sum of KL divergences, in nats */
    double diverged_pct;         /* share of answers that differ, if the draws of both formats agree
                                  as often as they can */
    double unseen_pct;           /* share of this format's answers about which the answers of the
                                  first one say nothing */
    double delta_pp, ci95_pp[2]; /* predicted accuracy minus that of the first format */
    double se_pp, assumed_se_pp; /* as in evals/forecast.h; missing in older rows */
    record_numbers seen_pp;      /* covariance of each problem; empty in older rows */
    /* predictions, divergence, depth, forecast */
    const char *precision, *reference; /* the cache format, and the first format */
    /* layer, values, bound, depth */
    int64_t layer, context; /* index of the layer, from 0; tokens in the cache at that moment */
    /* kind layer, where config names a configuration of the ablation; rel_l2 also kind depth */
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

/* A row of kind @kind without values. `kind` and `parts` are set; @kind is borrowed. */
model_record model_record_new(const char *kind);

#endif
