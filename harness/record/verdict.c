#include "harness/record/verdict.h"

/* clang-format off */
static const char *const kKinds[] = {"speed", "geomean", "quality", "fidelity", "environment",
                                     "selftest", "change", "serving", "forecast", NULL};
static const char *const kVerdicts[] = {"ok", "noise", "inconclusive", "missing", "regressed",
                                        "invalid", "wrong", NULL};
static const char *const kStatistics[] = {"lower quartile", "mean", "p99", "median", NULL};

enum {
    NUL = FIELD_NULLABLE,
    OPT = FIELD_OPTIONAL,
    FROM_0 = FIELD_NULLABLE | FIELD_FROM_0,
    ABOVE_0 = FIELD_NULLABLE | FIELD_ABOVE_0,
    COMPARED = VERDICT_COMPARED,
    TIMED = VERDICT_TIMED,
    MEAN = VERDICT_MEAN,
    ERROR = VERDICT_ERROR,
    QUALITY = VERDICT_QUALITY,
    CASE = VERDICT_CASE,
    SMALLEST = VERDICT_SMALLEST,
    CHANGE = VERDICT_CHANGE,
    FORECAST = VERDICT_FORECAST,
};

static const field noise_fields[] = {
    {FIELD_OF(noise_record, name), FIELD_TEXT, FIELD_NAME},
    {FIELD_OF(noise_record, baseline_ns), FIELD_NUMBER, ABOVE_0},
    {FIELD_OF(noise_record, mean_limit), FIELD_NUMBER, FROM_0 | OPT},
    {FIELD_OF(noise_record, log_ratios), FIELD_NUMBERS},
    {FIELD_OF(noise_record, mean_log_ratios), FIELD_NUMBERS, OPT},
    {FIELD_OF(noise_record, slow_shares), FIELD_NUMBERS, OPT},
};
static const record_type noise_type = {
    .name = "noise", .size = sizeof(noise_record), RECORD_FIELDS(noise_fields)};

#define V(member) FIELD_OF(verdict_record, member)
static const field fields[] = {
    {V(kind), FIELD_TEXT, .words = kKinds},
    {V(name), FIELD_TEXT, FIELD_NAME},
    {V(verdict), FIELD_TEXT, NUL, .words = kVerdicts,
     .about = "null: the row decides nothing, such as the geometric mean"},
    {V(reason), FIELD_TEXT, NUL},
    {V(ratio), FIELD_NUMBER, ABOVE_0, COMPARED | MEAN | ERROR | CHANGE,
     .about = "current over baseline: times, from the Hodges-Lehmann estimate of the ratio's "
              "logarithm, or errors"},
    {V(ci90), FIELD_INTERVAL, NUL, COMPARED | MEAN | QUALITY | FORECAST,
     .about = "of the ratio; of delta_pp where the kind is quality or forecast"},
    {V(threshold), FIELD_NUMBER, ABOVE_0, COMPARED | ERROR},
    {V(statistic), FIELD_TEXT, OPT, COMPARED, .words = kStatistics,
     .about = "of the times of steps; older rows: the lower quartile, or the median of two files"},
    {V(p_slower), FIELD_NUMBER, FROM_0, COMPARED},
    {V(p_holm), FIELD_NUMBER, FROM_0, COMPARED | QUALITY | FORECAST},
    {V(p_within), FIELD_NUMBER, FROM_0, COMPARED},
    {V(baseline_ns), FIELD_NUMBER, ABOVE_0, COMPARED | CHANGE},
    {V(current_ns), FIELD_NUMBER, ABOVE_0, COMPARED | CHANGE},
    {V(baseline_hash), FIELD_TEXT, NUL, COMPARED},
    {V(current_hash), FIELD_TEXT, NUL, COMPARED},
    {V(baseline), FIELD_TEXT, FIELD_NAME, TIMED},
    {V(current), FIELD_TEXT, FIELD_NAME, TIMED},
    {V(sessions), FIELD_COUNT, 0, TIMED},
    {V(visible), FIELD_NUMBER, ABOVE_0 | OPT, TIMED,
     .about = "the smallest ratio that would have been reported as a regression; null: none, or "
              "visible_pp"},
    {V(visible_pp), FIELD_NUMBER, NUL | OPT, TIMED,
     .about = "p99: the same as a share of slow steps, in percentage points"},
    {V(log_ratios), FIELD_NUMBERS, 0, TIMED},
    {V(slow_shares), FIELD_NUMBERS, OPT, TIMED,
     .about = "p99: share of slow steps of the current arm minus that of the baseline, for each "
              "session"},
    {V(baseline_samples_ns), FIELD_NUMBERS, FIELD_ABOVE_0, TIMED},
    {V(current_samples_ns), FIELD_NUMBERS, FIELD_ABOVE_0, TIMED},
    {V(flags), FIELD_TEXTS, FIELD_NAME, TIMED},
    {V(cells), FIELD_COUNT, 0, MEAN | CASE},
    {V(delta_pp), FIELD_NUMBER, NUL, QUALITY | FORECAST},
    {V(margin_pp), FIELD_NUMBER, FIELD_ABOVE_0, QUALITY | FORECAST},
    {V(p_loss), FIELD_NUMBER, FROM_0, FORECAST,
     .about = "probability that the predicted loss is above margin_pp"},
    {V(delay_pct), FIELD_NUMBER, FROM_0, CASE},
    {V(spike_ms), FIELD_NUMBER, FROM_0 | OPT, CASE, .about = "added to every spike_every-th step"},
    {V(spike_every), FIELD_COUNT, OPT, CASE, .about = "0: never"},
    {V(slow_pct), FIELD_NUMBER, FROM_0 | OPT, CASE, .about = "added to every slow_every-th turn"},
    {V(slow_every), FIELD_COUNT, OPT, CASE, .about = "0: never"},
    {V(runs), FIELD_COUNT, 0, CASE},
    {V(alarms), FIELD_COUNT, 0, CASE},
    {V(found), FIELD_COUNT, 0, CASE},
    {V(estimate_pct), FIELD_NUMBER, NUL, CASE},
    {V(simulated), FIELD_COUNT, 0, CASE},
    {V(simulated_alarms), FIELD_NUMBER, FROM_0, CASE},
    {V(simulated_sessions), FIELD_NUMBER, FROM_0, CASE},
    {V(smallest_pct), FIELD_NUMBER, FROM_0, SMALLEST},
    {V(power), FIELD_NUMBER, FROM_0, SMALLEST},
    {V(spread_pct), FIELD_NUMBER, FROM_0, SMALLEST},
    {V(seconds), FIELD_NUMBER, FROM_0, SMALLEST},
    {V(noise), FIELD_RECORDS, 0, SMALLEST, .of = &noise_type},
    {V(at), FIELD_COUNT, 0, CHANGE},
    {V(started), FIELD_TEXT, 0, CHANGE},
    {V(commit), FIELD_TEXT, 0, CHANGE},
    {V(p), FIELD_NUMBER, FROM_0, CHANGE},
};
#undef V
const record_type verdict_type = {
    .name = "verdict",
    .about = "what a gate decided about a cell or a comparison; the kind of a row decides which "
             "keys it has",
    .size = sizeof(verdict_record), RECORD_FIELDS(fields),
    .parts = RECORD_MEMBER(verdict_record, parts)};
/* clang-format on */
