#include "harness/record/cell.h"

#include <string.h>

#include "harness/record/words.h"

/* clang-format off */
static const char *const kArms[] = {"bf16", "fp8", "fp8-widened", "fp8-in-place", "fp8-shallow",
                                    "fp8-page-units", "fp8-page-order", "fp8-unfused",
                                    "fp8-copied", NULL};
static const char *const kScopes[] = {"kernel", "served", NULL};
static const char *const kModes[] = {"burst", "sustained", NULL};
static const char *const kCold[] = {"rotate", "flush", "none", NULL};
static const char *const kStatus[] = {"passed", "failed", "skipped", "error", NULL};
static const char *const kBounds[] = {"bytes", "flops", NULL};

enum {
    NUL = FIELD_NULLABLE,
    OPT = FIELD_OPTIONAL,
    FROM_0 = FIELD_NULLABLE | FIELD_FROM_0,
    ABOVE_0 = FIELD_NULLABLE | FIELD_ABOVE_0,
};

static const field shape_fields[] = {
    {FIELD_OF(cell_shape, heads), FIELD_COUNT, .low = 1, .high = 65536, .csv = "heads"},
    {FIELD_OF(cell_shape, s_q), FIELD_COUNT, .low = 1, .high = 65536, .csv = "s_q"},
    {FIELD_OF(cell_shape, batch), FIELD_COUNT, .low = 1, .high = 1048576, .csv = "batch"},
    {FIELD_OF(cell_shape, context), FIELD_COUNT, .high = 1073741824, .csv = "context"},
    {FIELD_OF(cell_shape, d_c), FIELD_COUNT, .low = 1, .high = 65536, .csv = "d_c"},
    {FIELD_OF(cell_shape, d_r), FIELD_COUNT, .high = 65536, .csv = "d_r"},
};
const record_type cell_shape_type = {
    .name = "shape", .size = sizeof(cell_shape), RECORD_FIELDS(shape_fields)};

static const field lengths_fields[] = {
    {FIELD_OF(cell_lengths, distribution), FIELD_TEXT, FIELD_NAME, .csv = "lengths"},
    {FIELD_OF(cell_lengths, tokens), FIELD_COUNT, .csv = "total_tokens",
     .about = "of all sequences together"},
    {FIELD_OF(cell_lengths, each), FIELD_NUMBERS, FIELD_ABOVE_0,
     .about = "tokens of each sequence"},
};
static const record_type lengths_type = {
    .name = "lengths", .about = "sequences of different lengths",
    .size = sizeof(cell_lengths), RECORD_FIELDS(lengths_fields),
    .exists = RECORD_MEMBER(cell_lengths, exists)};

static const field challenge_fields[] = {
    {FIELD_OF(cell_challenge, seed), FIELD_TEXT, FIELD_NAME, .csv = "challenge"},
    {FIELD_OF(cell_challenge, tokens), FIELD_COUNT, .about = "the option --challenge-tokens"},
    {FIELD_OF(cell_challenge, cell), FIELD_COUNT, .csv = "challenge_cell"},
    {FIELD_OF(cell_challenge, sha256), FIELD_TEXT, FIELD_NAME, .about = "of the random data"},
};
static const record_type challenge_type = {
    .name = "challenge", .about = "the challenge that the cell belongs to",
    .size = sizeof(cell_challenge), RECORD_FIELDS(challenge_fields),
    .exists = RECORD_MEMBER(cell_challenge, exists)};

static const field format_fields[] = {
    {FIELD_OF(cell_format, name), FIELD_TEXT, FIELD_NAME, .csv = "format"},
    {FIELD_OF(cell_format, sha256), FIELD_TEXT, FIELD_SHA256, .csv = "format_sha256",
     .about = "of the descriptor"},
    {FIELD_OF(cell_format, bytes_per_token), FIELD_NUMBER, FIELD_ABOVE_0,
     .csv = "bytes_per_token"},
    {FIELD_OF(cell_format, page_tokens), FIELD_COUNT, .low = 1, .high = 4096},
    {FIELD_OF(cell_format, descriptor), FIELD_TEXT, FIELD_NAME,
     .about = "compact JSON: which numbers a token consists of, and where they lie"},
};
static const record_type format_type = {
    .name = "format", .about = "the cache format of a named arm",
    .size = sizeof(cell_format), RECORD_FIELDS(format_fields),
    .exists = RECORD_MEMBER(cell_format, exists)};

static const field correctness_fields[] = {
    {FIELD_OF(cell_correctness, error), FIELD_NUMBER, FROM_0, .csv = "error"},
    {FIELD_OF(cell_correctness, tolerance), FIELD_NUMBER, FIELD_ABOVE_0, .csv = "tolerance"},
    {FIELD_OF(cell_correctness, lse_error), FIELD_NUMBER, FROM_0, .csv = "lse_error"},
    {FIELD_OF(cell_correctness, lse_error_exact), FIELD_NUMBER, FROM_0 | OPT | FIELD_OMITTED},
    {FIELD_OF(cell_correctness, lse_tolerance), FIELD_NUMBER, ABOVE_0, .csv = "lse_tolerance"},
    {FIELD_OF(cell_correctness, rows_checked), FIELD_COUNT, .csv = "rows_checked"},
};
static const record_type correctness_type = {
    .name = "correctness", .size = sizeof(cell_correctness), RECORD_FIELDS(correctness_fields),
    .exists = RECORD_MEMBER(cell_correctness, exists)};

static const field rates_fields[] = {
    {FIELD_OF(cell_rates, read_bandwidth), FIELD_NUMBER, FIELD_ABOVE_0, .about = "B/s"},
    {FIELD_OF(cell_rates, bf16_mma), FIELD_NUMBER, FIELD_ABOVE_0, .about = "FLOP/s"},
    {FIELD_OF(cell_rates, fp8_mma), FIELD_NUMBER, FIELD_ABOVE_0, .about = "FLOP/s"},
};
static const record_type rates_type = {
    .name = "rates", .size = sizeof(cell_rates), RECORD_FIELDS(rates_fields)};

static const field paired_fields[] = {
    {FIELD_OF(cell_paired, looks), FIELD_COUNT, .about = "how often the rates were probed"},
    {FIELD_OF(cell_paired, median), FIELD_RECORD, .of = &rates_type},
    {FIELD_OF(cell_paired, best), FIELD_RECORD, .of = &rates_type},
    {FIELD_OF(cell_paired, roofline_pct), FIELD_NUMBER, FROM_0, .parts = CELL_DERIVED,
     .csv = "paired_pct"},
};
static const record_type paired_type = {
    .name = "paired", .about = "the device's rates between the samples",
    .size = sizeof(cell_paired), RECORD_FIELDS(paired_fields),
    .parts = RECORD_MEMBER(cell_paired, parts), .always = CELL_DERIVED,
    .exists = RECORD_MEMBER(cell_paired, exists)};

#define P(member) FIELD_OF(cell_performance, member)
static const field performance_fields[] = {
    {P(samples_ns), FIELD_NUMBERS, FIELD_ABOVE_0, .about = "time of each step"},
    {P(min_ns), FIELD_NUMBER, ABOVE_0, .csv = "min_ns"},
    {P(q1_ns), FIELD_NUMBER, ABOVE_0, .csv = "q1_ns"},
    {P(median_ns), FIELD_NUMBER, FIELD_ABOVE_0, .csv = "median_ns"},
    {P(q3_ns), FIELD_NUMBER, ABOVE_0, .csv = "q3_ns"},
    {P(max_ns), FIELD_NUMBER, ABOVE_0, .csv = "max_ns"},
    {P(mean_ns), FIELD_NUMBER, ABOVE_0 | OPT, .csv = "mean_ns"},
    {P(p99_ns), FIELD_NUMBER, ABOVE_0 | OPT, .csv = "p99_ns",
     .about = "99th percentile; null for fewer than 100 samples"},
    {P(count), FIELD_COUNT, .csv = "count", .about = "samples"},
    {P(stop_reason), FIELD_TEXT, NUL, .csv = "stop_reason"},
    {P(clock_mhz_before), FIELD_NUMBER, ABOVE_0, .csv = "mhz_before"},
    {P(clock_mhz_during), FIELD_NUMBER, ABOVE_0, .csv = "mhz_during"},
    {P(power_w), FIELD_NUMBER, FROM_0, .csv = "power_w"},
    {P(energy_j), FIELD_NUMBER, FROM_0, .csv = "energy_j", .about = "energy of one step"},
    {P(energy_source), FIELD_TEXT, NUL | OPT, .csv = "energy_source",
     .about = "sensors that measured the energy"},
    {P(energy_missing), FIELD_TEXT, NUL | OPT, .csv = "energy_missing",
     .about = "why the energy was not measured"},
    {P(paired), FIELD_RECORD, NUL | OPT, .of = &paired_type},
    {P(tflops), FIELD_NUMBER, FROM_0, .parts = CELL_DERIVED, .csv = "tflops"},
    {P(gb_s), FIELD_NUMBER, FROM_0, .parts = CELL_DERIVED, .csv = "gb_s"},
    {P(tok_s), FIELD_NUMBER, FROM_0, .parts = CELL_DERIVED, .csv = "tok_s"},
    {P(tok_j), FIELD_NUMBER, FROM_0 | OPT, .parts = CELL_DERIVED, .csv = "tok_j",
     .about = "tokens per joule"},
    {P(floor_ns), FIELD_NUMBER, ABOVE_0, .parts = CELL_DERIVED, .csv = "floor_ns",
     .about = "the shortest time that the ceilings admit"},
    {P(roofline_pct), FIELD_NUMBER, FROM_0, .parts = CELL_DERIVED, .csv = "roofline_pct"},
    {P(bound), FIELD_TEXT, NUL, .parts = CELL_DERIVED, .words = kBounds, .csv = "bound"},
};
#undef P
const record_type cell_performance_type = {
    .name = "performance", .size = sizeof(cell_performance), RECORD_FIELDS(performance_fields),
    .parts = RECORD_MEMBER(cell_performance, parts), .always = CELL_DERIVED,
    .exists = RECORD_MEMBER(cell_performance, exists)};

static const field against_fields[] = {
    {FIELD_OF(cell_against, baseline), FIELD_TEXT, FIELD_NAME, .csv = "baseline"},
    {FIELD_OF(cell_against, ratio), FIELD_NUMBER, FIELD_ABOVE_0, .csv = "against",
     .about = "time of the baseline / time of the arm"},
    {FIELD_OF(cell_against, interval), FIELD_INTERVAL, NUL, .csv = "against"},
};
static const record_type against_type = {
    .name = "against", .about = "a named arm compared with the first arm of its run",
    .size = sizeof(cell_against), RECORD_FIELDS(against_fields),
    .exists = RECORD_MEMBER(cell_against, exists)};

#define C(member) FIELD_OF(cell_record, member)
static const field cell_fields[] = {
    {C(name), FIELD_TEXT, OPT | FIELD_NAME, .csv = "name", .about = "name of an arm of --arm"},
    {C(options), FIELD_TEXT, OPT, .csv = "options", .about = "backend and keys of an arm of --arm"},
    {C(device), FIELD_TEXT, OPT, .csv = "device", .about = "device of an arm of --arm"},
    {C(ceilings), FIELD_TEXT, OPT, .about = "the arm whose ceilings give the floor"},
    {C(format), FIELD_RECORD, OPT | FIELD_OMITTED, .of = &format_type},
    {C(arm), FIELD_TEXT, .words = kArms, .csv = "arm",
     .about = "fp8-...: an arm of the ablation, the fp8 arm with one technique left out or "
              "replaced"},
    {C(backend), FIELD_TEXT, FIELD_NAME, .csv = "backend"},
    {C(kernel), FIELD_TEXT, .csv = "kernel"},
    {C(kernel_hash), FIELD_TEXT, NUL, .csv = "kernel_hash", .about = "SHA-256 of its machine code"},
    {C(scope), FIELD_TEXT, .words = kScopes, .csv = "scope"},
    {C(mode), FIELD_TEXT, OPT, .words = kModes, .csv = "mode",
     .about = "burst: single steps on a cold cache; sustained: steps without a pause for seconds"},
    {C(shape), FIELD_RECORD, .of = &cell_shape_type},
    {C(lengths), FIELD_RECORD, OPT | FIELD_OMITTED, .of = &lengths_type},
    {C(challenge), FIELD_RECORD, OPT | FIELD_OMITTED, .of = &challenge_type},
    {C(distribution), FIELD_TEXT, NUL, .csv = "distribution"},
    {C(cold), FIELD_TEXT, NUL, .words = kCold, .csv = "cold"},
    {C(origin), FIELD_TEXT, .words = record_origins, .csv = "origin"},
    {C(source), FIELD_TEXT, NUL | FIELD_NAME, .csv = "source"},
    {C(status), FIELD_TEXT, .words = kStatus, .csv = "status"},
    {C(reason), FIELD_TEXT, NUL, .csv = "reason"},
    {C(correctness), FIELD_RECORD, NUL, .of = &correctness_type},
    {C(performance), FIELD_RECORD, NUL, .of = &cell_performance_type},
    {C(against), FIELD_RECORD, OPT | FIELD_OMITTED, .of = &against_type},
    {C(flags), FIELD_TEXTS, FIELD_NAME, .csv = "flags"},
};
#undef C
static const record_rule cell_rules[] = {
    {"performance", "status", "passed"}, /* a row has times only if it passed */
    {"source", "origin", "reported"},    /* a reported figure must name its source; a measured one
                                            must not */
};
const record_type cell_type = {
    .name = "cell", .size = sizeof(cell_record), RECORD_FIELDS(cell_fields),
    .rules = cell_rules, .n_rules = sizeof cell_rules / sizeof *cell_rules};
/* clang-format on */

bool cell_is_left_out(const cell_record *c) {
    return strcmp(c->status, "skipped") == 0 &&
           strncmp(c->reason, CELL_LEFT_OUT, sizeof CELL_LEFT_OUT - 1) == 0;
}

const char *cell_arm_name(const cell_record *c) {
    return c->name[0] ? c->name : c->arm;
}

bool cell_same_shape(const cell_record *a, const cell_record *b) {
    const cell_lengths *x = &a->lengths, *y = &b->lengths;
    if (!record_equal(&cell_shape_type, &a->shape, &b->shape) || x->exists != y->exists)
        return false;
    if (!x->exists)
        return true;
    return strcmp(x->distribution, y->distribution) == 0 && x->tokens == y->tokens &&
           x->each.n == y->each.n &&
           memcmp(x->each.at, y->each.at, x->each.n * sizeof *x->each.at) == 0;
}

bool cell_has_flag(const cell_record *c, const char *flag) {
    for (size_t i = 0; i < c->flags.n; i++)
        if (strcmp(c->flags.at[i], flag) == 0)
            return true;
    return false;
}
