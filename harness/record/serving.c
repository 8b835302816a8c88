#include "harness/record/serving.h"

#include <string.h>

/* clang-format off */
const char *const serving_kinds[] = {"load", "latency", "target", "difference", "series", "knee",
                                     "ratio", "part", NULL};
static const char *const kLoops[] = {"open", "closed", NULL};
static const char *const kStates[] = {"open", "meets", "fails", NULL};
static const char *const kVerdicts[] = {"equal", "faster", "slower", "inconclusive", NULL};
static const char *const kUnits[] = {"slices", "blocks", NULL};
static const char *const kQualities[] = {"equivalent", "not shown", "different", NULL};

static const record_kind kinds[] = {
    {"load", SERVED_POINT | SERVED_LOAD},
    {"latency", SERVED_POINT | SERVED_LATENCY},
    {"target", SERVED_POINT | SERVED_TARGET},
    {"difference", SERVED_POINT | SERVED_DIFFERENCE},
    {"series", SERVED_POINT | SERVED_SERIES},
    {"knee", SERVED_KNEE},
    {"ratio", SERVED_RATIO},
    {"part", SERVED_POINT | SERVED_PART},
};

enum {
    NUL = FIELD_NULLABLE,
    FROM_0 = FIELD_NULLABLE | FIELD_FROM_0,
    PERCENT = FIELD_NULLABLE | FIELD_PERCENT,
    LOAD = SERVED_LOAD,
    LATENCY = SERVED_LATENCY,
    TARGET = SERVED_TARGET,
    DIFF = SERVED_DIFFERENCE,
    SERIES = SERVED_SERIES,
    KNEE = SERVED_KNEE,
    RATIO = SERVED_RATIO,
    PART = SERVED_PART,
};

#define S(member) FIELD_OF(serving_record, member)
#define RATE(member, text)                                                                         \
    {S(member), FIELD_NUMBER, FROM_0, LOAD, .csv = #member, .about = (text)},                      \
    {S(member##_ci95), FIELD_INTERVAL, NUL, LOAD, .csv = #member}
#define TIME(member)                                                                               \
    {S(member), FIELD_NUMBER, FIELD_NULLABLE, LATENCY, .csv = #member},                            \
    {S(member##_ci95), FIELD_INTERVAL, NUL, LATENCY, .csv = #member}

static const field fields[] = {
    {S(kind), FIELD_TEXT, .words = serving_kinds},
    {S(arm), FIELD_TEXT, FIELD_NAME, .csv = "arm"},
    {S(loop), FIELD_TEXT, .words = kLoops, .csv = "loop",
     .about = "open: requests arrive at a rate; closed: a number of users wait for their answers"},
    {S(baseline), FIELD_TEXT, FIELD_NAME, DIFF | RATIO, .csv = "baseline"},
    {S(point), FIELD_COUNT, 0, SERVED_POINT, .csv = "point"},
    {S(load), FIELD_NUMBER, NUL | FIELD_ABOVE_0, SERVED_POINT, .csv = "load",
     .about = "requests per second; in a closed loop requests at a time"},
    {S(endpoint), FIELD_TEXT, NUL, LOAD, .csv = "endpoint"},
    {S(model), FIELD_TEXT, NUL, LOAD, .csv = "model"},
    {S(precision), FIELD_TEXT, NUL, LOAD},
    {S(workload), FIELD_TEXT, NUL, LOAD, .csv = "workload"},
    {S(blocks), FIELD_COUNT, 0, LOAD, .csv = "blocks"},
    {S(part), FIELD_COUNT, 0, PART, .csv = "part",
     .about = "number of the process, from 1"},
    {S(requests), FIELD_COUNT, 0, LOAD | PART, .csv = "requests"},
    {S(answered), FIELD_COUNT, 0, LOAD, .csv = "answered"},
    {S(failed), FIELD_COUNT, 0, LOAD, .csv = "failed"},
    {S(cut), FIELD_COUNT, 0, LOAD, .csv = "cut",
     .about = "requests that had not ended when their block did"},
    {S(cohort), FIELD_COUNT, 0, LOAD, .csv = "cohort",
     .about = "requests in the steady windows: the latencies are theirs"},
    {S(block_s), FIELD_NUMBER, FROM_0, LOAD, .csv = "block_s"},
    {S(window_s), FIELD_NUMBER, FROM_0, LOAD, .csv = "window_s"},
    {S(slices), FIELD_COUNT, 0, LOAD, .csv = "slices",
     .about = "slices of time that the bootstrap draws; 0: too few requests for intervals"},
    {S(units), FIELD_TEXT, NUL | FIELD_OPTIONAL, LOAD | TARGET | DIFF, .words = kUnits,
     .csv = "units",
     .about = "what intervals and tests count as one value. blocks: slices are correlated, so "
              "intervals also hold with whole blocks as units. Older files lack it"},
    {S(independence_p), FIELD_NUMBER, FROM_0 | FIELD_OPTIONAL, LOAD, .csv = "independence_p",
     .about = "p of \"the slices of all arms are independent\", before they were merged. Older "
              "files lack it: their flag correlated was not tested"},
    {S(steady), FIELD_BOOL, 0, LOAD, .csv = "steady"},
    {S(drift_pct), FIELD_NUMBER, PERCENT | FIELD_OPTIONAL, LOAD, .csv = "drift_pct",
     .about = "the largest drift of a block that counts as steady. Verdicts and states also hold "
              "for values that differ by it. Older files lack it: their drifts made blocks "
              "unsteady"},
    {S(saturated), FIELD_BOOL, 0, LOAD, .csv = "saturated"},
    {S(backlog_s), FIELD_NUMBER, NUL, LOAD, .csv = "backlog_s",
     .about = "growth of the requests in flight, per second"},
    {S(backlog_pct), FIELD_NUMBER, NUL, LOAD, .csv = "backlog_pct",
     .about = "the same in percent of the arrivals"},
    {S(backlog_p), FIELD_NUMBER, FROM_0, LOAD},
    {S(prompt_tokens_mean), FIELD_NUMBER, FROM_0, LOAD, .csv = "prompt_tokens_mean"},
    {S(completion_tokens_mean), FIELD_NUMBER, FROM_0, LOAD, .csv = "completion_tokens_mean"},
    {S(gpus), FIELD_NUMBER, FROM_0, LOAD, .csv = "gpus"},
    {S(lag_p50_ms), FIELD_NUMBER, FROM_0, LOAD | PART, .csv = "lag_p50_ms",
     .about = "delay that the client itself added"},
    {S(lag_p99_ms), FIELD_NUMBER, FROM_0, LOAD | PART, .csv = "lag_p99_ms"},
    {S(lag_max_ms), FIELD_NUMBER, FROM_0, LOAD | PART, .csv = "lag_max_ms"},
    RATE(offered_s, "requests that were due"),
    RATE(requests_s, "answered requests"),
    RATE(input_tok_s, "prompt tokens, by usage"),
    RATE(output_tok_s, "completion tokens, by usage"),
    RATE(pieces_s, "events that carried text"),
    RATE(gpu_tok_s, "completion tokens per second and GPU"),
    RATE(goodput_s, "answered requests that met every target"),
    RATE(user_tok_s, "tokens per second of one stream: mean of 1 / tpot"),
    RATE(good_pct, "share of the requests that met every target"),
    RATE(failed_pct, "share of the requests that failed"),
    {S(flags), FIELD_TEXTS, FIELD_NAME, LOAD, .csv = "flags"},
    {S(metric), FIELD_TEXT, FIELD_NAME, LATENCY | DIFF, .csv = "metric"},
    {S(values), FIELD_COUNT, 0, LATENCY | TARGET, .csv = "values"},
    TIME(mean_ms), TIME(p50_ms), TIME(p90_ms), TIME(p95_ms), TIME(p99_ms), TIME(p999_ms),
    {S(needed), FIELD_NUMBERS, FIELD_FROM_0, LATENCY,
     .about = "values that p50, p90, p95, p99 and p99.9 need; 0: there are enough"},
    {S(least_ms), FIELD_NUMBERS, FIELD_FROM_0 | FIELD_OPTIONAL, LATENCY,
     .about = "lower ends of the intervals of p50, p90, p95, p99 and p99.9 whose upper end is "
              "unknown; 0: there is none. Older files may lack it: then both ends of an "
              "interval that is null are unknown"},
    {S(cdf_ms), FIELD_NUMBERS, 0, LATENCY, .about = "quantiles 0, 0.01 ... 1"},
    {S(late), FIELD_BOOL, 0, LATENCY, .csv = "late",
     .about = "the client's lag can change the latency by more than 1 %"},
    {S(target), FIELD_TEXT, FIELD_NAME, TARGET, .csv = "target"},
    {S(limit_ms), FIELD_NUMBER, FIELD_ABOVE_0, TARGET, .csv = "limit_ms"},
    {S(share_pct), FIELD_NUMBER, PERCENT, TARGET, .csv = "share_pct",
     .about = "values within the limit"},
    {S(share_pct_ci), FIELD_INTERVAL, NUL, TARGET, .csv = "share_pct"},
    {S(level_pct), FIELD_NUMBER, PERCENT, TARGET, .about = "level of the interval of share_pct"},
    {S(percentile_ms), FIELD_NUMBER, FROM_0 | FIELD_OPTIONAL, TARGET, .csv = "percentile_ms",
     .about = "the percentile itself, if the share left the target open and it could be tested, or "
              "if units are blocks"},
    {S(percentile_ms_ci), FIELD_INTERVAL, NUL | FIELD_OPTIONAL, TARGET, .csv = "percentile"},
    {S(percentile_level_pct), FIELD_NUMBER, PERCENT | FIELD_OPTIONAL, TARGET,
     .about = "level of the interval of percentile_ms"},
    {S(values_needed), FIELD_COUNT, 0, TARGET, .csv = "values_needed"},
    {S(state), FIELD_TEXT, NUL, LOAD | TARGET, .words = kStates, .csv = "state"},
    {S(ratio), FIELD_NUMBER, FROM_0, DIFF | RATIO, .csv = "ratio",
     .about = "arm over baseline: of the metric, or of the knees"},
    {S(ratio_ci95), FIELD_INTERVAL, NUL, DIFF, .csv = "ratio95"},
    {S(ratio_ci90), FIELD_INTERVAL, NUL, DIFF, .csv = "ratio90"},
    {S(delta), FIELD_NUMBER, NUL, DIFF, .csv = "delta",
     .about = "arm minus baseline: ms, or the unit of the rate"},
    {S(delta_ci95), FIELD_INTERVAL, NUL, DIFF, .csv = "delta95"},
    {S(margin_pct), FIELD_NUMBER, FIELD_ABOVE_0, DIFF, .csv = "margin_pct"},
    {S(p), FIELD_NUMBER, FROM_0, DIFF, .csv = "p"},
    {S(p_holm), FIELD_NUMBER, FROM_0, DIFF, .csv = "p_holm"},
    {S(verdict), FIELD_TEXT, NUL, DIFF, .words = kVerdicts, .csv = "verdict",
     .about = "null: the metric is not judged"},
    {S(reason), FIELD_TEXT, NUL | FIELD_OPTIONAL, DIFF | RATIO, .csv = "reason",
     .about = "the flag that prevents another verdict than inconclusive"},
    {S(block), FIELD_COUNT, 0, SERIES, .csv = "block"},
    {S(step_s), FIELD_NUMBER, FIELD_ABOVE_0, SERIES, .csv = "step_s"},
    {S(window), FIELD_INTERVAL, NUL, SERIES, .csv = "window",
     .about = "the steady part, seconds since the start of the block"},
    {S(steady_block), FIELD_BOOL, 0, SERIES},
    {S(in_flight), FIELD_NUMBERS, FIELD_FROM_0, SERIES},
    {S(course_tok_s), FIELD_NUMBERS, FIELD_FROM_0, SERIES},
    {S(course_requests_s), FIELD_NUMBERS, FIELD_FROM_0, SERIES},
    {S(knee_lo), FIELD_NUMBER, FROM_0, KNEE, .csv = "knee_lo",
     .about = "highest load that meets every target; null: none was found"},
    {S(knee_hi), FIELD_NUMBER, FROM_0, KNEE, .csv = "knee_hi",
     .about = "lowest load that fails; null: none was found"},
    {S(ratio_lo), FIELD_NUMBER, FROM_0, RATIO, .csv = "ratio_lo"},
    {S(ratio_hi), FIELD_NUMBER, FROM_0, RATIO, .csv = "ratio_hi"},
    {S(quality), FIELD_TEXT, NUL, RATIO, .words = kQualities, .csv = "quality",
     .about = "of the answers given under the load; null: not measured"},
    {S(headline), FIELD_TEXT, FIELD_NAME, RATIO, .csv = "headline"},
};
#undef TIME
#undef RATE
#undef S
const record_type serving_type = {
    .name = "serving",
    .about = "servers under load; the kind of a row decides which keys it has",
    .size = sizeof(serving_record), RECORD_FIELDS(fields),
    .parts = RECORD_MEMBER(serving_record, parts),
    .kinds = kinds, .n_kinds = sizeof kinds / sizeof *kinds};
/* clang-format on */

serving_record serving_record_new(const char *kind) {
    serving_record row;
    record_init(&serving_type, &row);
    row.kind = kind;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].word, kind) == 0)
            row.parts = kinds[i].parts;
    return row;
}

bool serving_has_flag(const serving_record *r, const char *flag) {
    for (size_t i = 0; i < r->flags.n; i++)
        if (strcmp(r->flags.at[i], flag) == 0)
            return true;
    return false;
}
