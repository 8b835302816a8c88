#include "harness/record/prediction.h"

/* clang-format off */
static const char *const kOrigins[] = {"predicted", NULL};
static const char *const kWeights[] = {"bf16", "e4m3", NULL};
static const char *const kExchanges[] = {"all_to_all", NULL};
static const char *const kLimits[] = {"attention", "exchange", "experts", "rest", NULL};

#define P(member) FIELD_OF(prediction_record, member)
static const field fields[] = {
    {P(origin), FIELD_TEXT, .words = kOrigins, .csv = "origin"},
    {P(model_config), FIELD_TEXT, FIELD_NAME, .csv = "model_config"},
    {P(layout), FIELD_TEXT, FIELD_NAME, .csv = "layout",
     .about = "how the model is divided over the GPUs"},
    {P(gpus), FIELD_COUNT, .low = 1, .csv = "gpus"},
    {P(weights), FIELD_TEXT, .words = kWeights, .csv = "weights",
     .about = "number format of the weights in memory"},
    {P(link), FIELD_TEXT, FIELD_NAME, .csv = "link",
     .about = "between the GPUs of a node: a link of configs/links.json, or measured"},
    {P(network), FIELD_TEXT, FIELD_NAME | FIELD_OPTIONAL | FIELD_OMITTED, .csv = "network",
     .about = "between nodes: a link of configs/links.json; absent = one node"},
    {P(exchange), FIELD_TEXT, FIELD_OPTIONAL | FIELD_OMITTED, .words = kExchanges,
     .csv = "exchange",
     .about = "all_to_all: rows of experts may go only to the ranks that need them, where that is "
              "shorter; absent = all-gathers and reduce-scatters, as in the engine"},
    {P(arm), FIELD_TEXT, FIELD_NAME, .csv = "arm"},
    {P(context), FIELD_COUNT, .csv = "context"},
    {P(batch), FIELD_COUNT, .csv = "batch", .about = "sequences of all GPUs; 0 = they do not fit"},
    {P(largest), FIELD_BOOL, .about = "the largest batch that fits"},
    {P(best), FIELD_BOOL, .csv = "best",
     .about = "no other layout of as many GPUs has more tokens per second"},
    {P(weight_bytes), FIELD_COUNT, .csv = "weight_bytes", .about = "on each GPU"},
    {P(buffer_bytes), FIELD_COUNT, .csv = "buffer_bytes", .about = "on each GPU"},
    {P(cache_bytes), FIELD_COUNT, .csv = "cache_bytes", .about = "on each GPU"},
    {P(median_ns), FIELD_NUMBER, FIELD_ABOVE_0, PREDICTION_FITS, .csv = "median_ns",
     .about = "predicted median time of a step"},
    {P(interval_ns), FIELD_INTERVAL, FIELD_FROM_0, PREDICTION_FITS, .csv = "interval_ns",
     .about = "from the errors of the rules and from the range of the exchange"},
    {P(attention_ns), FIELD_NUMBER, FIELD_FROM_0, PREDICTION_FITS, .csv = "attention_ns"},
    {P(exchange_ns), FIELD_NUMBER, FIELD_FROM_0, PREDICTION_FITS, .csv = "exchange_ns"},
    {P(experts_ns), FIELD_NUMBER, FIELD_FROM_0, PREDICTION_FITS, .csv = "experts_ns"},
    {P(rest_ns), FIELD_NUMBER, FIELD_FROM_0, PREDICTION_FITS, .csv = "rest_ns"},
    {P(waiting_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, PREDICTION_FITS,
     .csv = "waiting_ns",
     .about = "how long a rank of EP waits for the rank that reads the most experts in each layer"},
    {P(limit), FIELD_TEXT, 0, PREDICTION_FITS, .words = kLimits, .csv = "limit",
     .about = "the largest part"},
    {P(tokens_s), FIELD_NUMBER, FIELD_ABOVE_0, PREDICTION_FITS, .csv = "tokens_s"},
    {P(tokens_s_interval), FIELD_INTERVAL, FIELD_FROM_0, PREDICTION_FITS,
     .csv = "tokens_s_interval"},
    {P(fp8_over_bf16), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_ABOVE_0, PREDICTION_FITS,
     .csv = "fp8_over_bf16"},
    {P(fp8_over_bf16_interval), FIELD_INTERVAL, FIELD_OPTIONAL | FIELD_FROM_0, PREDICTION_FITS,
     .csv = "fp8_over_bf16_interval",
     .about = "same layout: from the error of such ratios of measured steps that were left out of "
              "the fit; else from the intervals of both rows"},
    {P(runner_up), FIELD_TEXT, FIELD_OPTIONAL | FIELD_OMITTED, PREDICTION_FITS, .csv = "runner_up",
     .about = "of a row that is best: the second fastest layout"},
    {P(runner_up_tokens_s), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_ABOVE_0, PREDICTION_FITS,
     .csv = "runner_up_tokens_s"},
    {P(runner_up_interval), FIELD_INTERVAL, FIELD_OPTIONAL | FIELD_FROM_0, PREDICTION_FITS,
     .csv = "runner_up_interval", .about = "of runner_up_tokens_s"},
    {P(tied), FIELD_COUNT, FIELD_OPTIONAL, PREDICTION_FITS, .csv = "tied",
     .about = "of a row that is best: how many other layouts have intervals of tokens_s that "
              "overlap that of the row"},
    {P(measured_ns), FIELD_NUMBER, FIELD_ABOVE_0, PREDICTION_MEASURED, .csv = "measured_ns",
     .about = "median time of the same step, which was measured and not used to predict it"},
    {P(error_pct), FIELD_NUMBER, 0, PREDICTION_MEASURED, .csv = "error_pct",
     .about = "predicted / measured - 1"},
    {P(measured_fp8_over_bf16), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_ABOVE_0, PREDICTION_MEASURED,
     .csv = "measured_fp8_over_bf16"},
    {P(measured_attention_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, PREDICTION_MEASURED},
    {P(measured_exchange_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, PREDICTION_MEASURED},
    {P(measured_experts_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, PREDICTION_MEASURED},
    {P(measured_rest_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, PREDICTION_MEASURED},
    {P(measured_waiting_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, PREDICTION_MEASURED,
     .about = "waiting of rank 0"},
};
#undef P
const record_type prediction_type = {
    .name = "prediction",
    .about = "a predicted decode step of a model on several GPUs; a row without median_ns: the "
             "memory is too small",
    .size = sizeof(prediction_record), RECORD_FIELDS(fields),
    .parts = RECORD_MEMBER(prediction_record, parts)};
/* clang-format on */
