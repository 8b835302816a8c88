#include "harness/record/model_record.h"

#include <string.h>

#include "harness/record/words.h"

/* clang-format off */
static const char *const kKinds[] = {"predictions", "divergence", "layer", "values",
                                     "bound", "depth", "forecast", NULL};
static const char *const kContinuations[] = {"greedy", "sampled", NULL};
static const char *const kParts[] = {"content", "rope", NULL};

static const record_kind kinds[] = {
    {"predictions", MODEL_PREDICTIONS | MODEL_TEXT},
    {"divergence", MODEL_DIVERGENCE | MODEL_TEXT},
    {"layer", MODEL_LAYER},
    {"values", MODEL_VALUES},
    {"bound", MODEL_BOUND},
    {"depth", MODEL_DEPTH},
    {"forecast", MODEL_FORECAST},
};

enum {
    OPT = FIELD_OPTIONAL,
    FROM_0 = FIELD_NULLABLE | FIELD_FROM_0,
    PERCENT = FIELD_NULLABLE | FIELD_PERCENT,
    COMPARED = MODEL_PREDICTIONS | MODEL_DIVERGENCE | MODEL_DEPTH | MODEL_FORECAST,
};

#define M(member) FIELD_OF(model_record, member)
static const field fields[] = {
    {M(kind), FIELD_TEXT, .words = kKinds},
    {M(model), FIELD_TEXT, FIELD_NAME, .csv = "model"},
    {M(origin), FIELD_TEXT, .words = record_origins, .csv = "origin"},
    {M(checkpoint_sha256), FIELD_TEXT, OPT | FIELD_SHA256},
    {M(text_sha256), FIELD_TEXT, FIELD_SHA256, MODEL_TEXT},
    {M(decoded), FIELD_BOOL, 0, MODEL_TEXT,
     .about = "the text was decoded step by step, not read as a prompt"},
    {M(precision), FIELD_TEXT, FIELD_NAME, COMPARED, .csv = "config"},
    {M(reference), FIELD_TEXT, 0, COMPARED, .csv = "reference",
     .about = "the precision that predictions, divergence, depth and forecast are compared with"},
    {M(first), FIELD_COUNT, OPT, MODEL_PREDICTIONS, .csv = "first",
     .about = "first position of the range; absent = all positions"},
    {M(last), FIELD_COUNT, OPT, MODEL_PREDICTIONS, .csv = "last"},
    {M(tokens), FIELD_COUNT, 0, MODEL_PREDICTIONS, .csv = "tokens"},
    {M(perplexity), FIELD_NUMBER, FROM_0, MODEL_PREDICTIONS, .csv = "perplexity"},
    {M(kl_mean), FIELD_NUMBER, FROM_0, MODEL_PREDICTIONS, .csv = "kl_mean", .about = "nats"},
    {M(kl_max), FIELD_NUMBER, FROM_0, MODEL_PREDICTIONS, .csv = "kl_max", .about = "nats"},
    {M(flips_pct), FIELD_NUMBER, PERCENT, MODEL_PREDICTIONS, .csv = "flips_pct"},
    {M(logits_rel_l2), FIELD_NUMBER, FROM_0, MODEL_PREDICTIONS, .csv = "logits_rel_l2"},
    {M(cache_bytes_a_token), FIELD_COUNT, 0, MODEL_PREDICTIONS, .csv = "cache_bytes",
     .about = "bytes that the format takes per token, over all layers, rounded up"},
    {M(format_sha256), FIELD_TEXT, OPT | FIELD_SHA256, MODEL_PREDICTIONS,
     .about = "of the file of the format in docs/formats.md; absent = a format of the attention "
              "arms"},
    {M(peak_rss_bytes), FIELD_COUNT, OPT, MODEL_PREDICTIONS, .csv = "peak_bytes"},
    {M(continuation), FIELD_TEXT, 0, MODEL_DIVERGENCE, .words = kContinuations,
     .csv = "continuation"},
    {M(places), FIELD_COUNT, 0, MODEL_DIVERGENCE, .csv = "places"},
    {M(steps), FIELD_COUNT, 0, MODEL_DIVERGENCE, .csv = "steps"},
    {M(changed_pct), FIELD_NUMBER, FIELD_PERCENT, MODEL_DIVERGENCE, .csv = "changed_pct",
     .about = "share of continuations with a token that differs"},
    {M(first_change), FIELD_NUMBER, FROM_0, MODEL_DIVERGENCE, .csv = "first_change",
     .about = "median number of the first token that differs; null: at most half have one"},
    {M(equal_tokens), FIELD_NUMBER, FIELD_FROM_0, MODEL_DIVERGENCE, .csv = "equal_tokens",
     .about = "mean number of equal tokens at the start"},
    {M(survival), FIELD_BINS, 0, MODEL_DIVERGENCE,
     .about = "[e, share of continuations whose first 2^e tokens are equal]"},
    {M(task), FIELD_TEXT, FIELD_NAME, MODEL_FORECAST, .csv = "task"},
    {M(data_sha256), FIELD_TEXT, FIELD_SHA256, MODEL_FORECAST},
    {M(problems), FIELD_COUNT, 0, MODEL_FORECAST, .csv = "problems"},
    {M(answers), FIELD_COUNT, 0, MODEL_FORECAST, .csv = "answers",
     .about = "of the reference, over all problems"},
    {M(mixed_problems), FIELD_COUNT, OPT, MODEL_FORECAST,
     .about = "problems of which the reference gave both right and wrong answers"},
    {M(temperature), FIELD_NUMBER, FIELD_FROM_0, MODEL_FORECAST},
    {M(top_p), FIELD_NUMBER, FIELD_FROM_0, MODEL_FORECAST},
    {M(accuracy_pct), FIELD_NUMBER, FIELD_PERCENT, MODEL_FORECAST, .csv = "accuracy_pct",
     .about = "of the reference's answers"},
    {M(kl_answer), FIELD_NUMBER, FROM_0, MODEL_FORECAST, .csv = "kl_answer",
     .about = "mean over answers of the sum of their KL divergences, nats"},
    {M(diverged_pct), FIELD_NUMBER, FIELD_PERCENT, MODEL_FORECAST, .csv = "diverged_pct",
     .about = "share of answers that differ if the draws agree as often as they can"},
    {M(unseen_pct), FIELD_NUMBER, FIELD_PERCENT, MODEL_FORECAST, .csv = "unseen_pct",
     .about = "share of the precision's answers about which the reference's answers say nothing"},
    {M(delta_pp), FIELD_NUMBER, FIELD_NULLABLE, MODEL_FORECAST, .csv = "delta_pp",
     .about = "predicted accuracy minus that of the reference, percentage points"},
    {M(ci95_pp), FIELD_INTERVAL, FIELD_NULLABLE, MODEL_FORECAST, .csv = "ci95"},
    {M(se_pp), FIELD_NUMBER, FROM_0 | OPT, MODEL_FORECAST,
     .about = "standard error of delta_pp; null: there is no interval"},
    {M(assumed_se_pp), FIELD_NUMBER, FROM_0 | OPT, MODEL_FORECAST,
     .about = "the part of se_pp that more problems do not reduce"},
    {M(seen_pp), FIELD_NUMBERS, OPT, MODEL_FORECAST,
     .about = "for each problem: the covariance of likelihood ratio and verdict over its answers"},
    {M(layer), FIELD_COUNT, 0, MODEL_LAYERS, .csv = "layer"},
    {M(context), FIELD_COUNT, 0, MODEL_LAYERS, .csv = "context"},
    {M(config), FIELD_TEXT, FIELD_NAME, MODEL_LAYER, .csv = "config"},
    {M(rmse), FIELD_NUMBER, FROM_0, MODEL_LAYER, .csv = "rmse"},
    {M(cosine_diff), FIELD_NUMBER, FIELD_NULLABLE, MODEL_LAYER, .csv = "cosine_diff"},
    {M(rel_l2), FIELD_NUMBER, FROM_0, MODEL_LAYER | MODEL_DEPTH, .csv = "rel_l2"},
    {M(lse_error), FIELD_NUMBER, FROM_0, MODEL_LAYER, .csv = "lse_error"},
    {M(max_abs), FIELD_NUMBER, FROM_0, MODEL_LAYER, .csv = "max_abs"},
    {M(part), FIELD_TEXT, 0, MODEL_VALUES, .words = kParts, .csv = "part"},
    {M(values), FIELD_COUNT, 0, MODEL_VALUES},
    {M(rms), FIELD_NUMBER, FROM_0, MODEL_VALUES, .csv = "rms"},
    {M(p50), FIELD_NUMBER, FROM_0, MODEL_VALUES, .csv = "p50"},
    {M(p99), FIELD_NUMBER, FROM_0, MODEL_VALUES, .csv = "p99"},
    {M(p999), FIELD_NUMBER, FROM_0, MODEL_VALUES, .csv = "p999"},
    {M(max), FIELD_NUMBER, FROM_0, MODEL_VALUES, .csv = "max"},
    {M(histogram), FIELD_BINS, 0, MODEL_VALUES,
     .about = "[e, share of magnitudes from 2^e up to 2^(e+1)]"},
    {M(logit_error), FIELD_NUMBER, FROM_0, MODEL_BOUND, .csv = "logit_error"},
    {M(logit_bound), FIELD_NUMBER, FROM_0, MODEL_BOUND, .csv = "logit_bound"},
    {M(value_error), FIELD_NUMBER, FROM_0, MODEL_BOUND, .csv = "value_error"},
    {M(value_bound), FIELD_NUMBER, FROM_0, MODEL_BOUND, .csv = "value_bound"},
};
#undef M
const record_type model_type = {
    .name = "model_fidelity", .size = sizeof(model_record), RECORD_FIELDS(fields),
    .parts = RECORD_MEMBER(model_record, parts),
    .kinds = kinds, .n_kinds = sizeof kinds / sizeof *kinds};
/* clang-format on */

model_record model_record_new(const char *kind) {
    model_record row;
    record_init(&model_type, &row);
    row.kind = kind;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].word, kind) == 0)
            row.parts = kinds[i].parts;
    return row;
}
