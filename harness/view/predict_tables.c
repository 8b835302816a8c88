#include "harness/view/predict_tables.h"

#include <math.h>
#include <string.h>

/* ---- rows ---- */

static void add_times(table *t, const prediction_record *r) {
    table_number(t, r->median_ns / 1e6, 3);
    table_cell(t, isfinite(r->interval_ns[0]) ? "%.3f..%.3f" : "", r->interval_ns[0] / 1e6,
               r->interval_ns[1] / 1e6);
    table_number(t, r->attention_ns / 1e6, 3);
    table_number(t, r->exchange_ns / 1e6, 3);
    table_number(t, r->experts_ns / 1e6, 3);
    table_number(t, r->rest_ns / 1e6, 3);
    table_number(t, r->waiting_ns / 1e6, 3);
    table_cell(t, "%s", r->limit ? r->limit : "");
}

static bool any_best(const predict_result *p) {
    for (int i = 0; i < p->n; i++)
        if (p->rows[i].best)
            return true;
    return false;
}

static bool any_measured(const predict_result *p) {
    return p->n > 0 && p->rows[0].parts & PREDICTION_MEASURED;
}

/* The second fastest layout, its share of the tokens/s, and the number of ties. */
static void add_runner_up(table *t, const prediction_record *r) {
    bool any = r->runner_up && r->runner_up[0];
    table_cell(t, "%s", any ? r->runner_up : "");
    table_cell(t, any ? "%.2fx" : "", r->runner_up_tokens_s / r->tokens_s);
    table_cell(t, r->best ? "%lld" : "", (long long)r->tied);
}

static void add_row(table *t, const prediction_record *r, bool best, bool measured) {
    table_cell(t, "%s", r->origin);
    table_cell(t, "%s", r->layout);
    table_cell(t, "%s", r->arm);
    table_cell(t, "%lld", (long long)r->context);
    table_cell(t, "%lld%s", (long long)r->batch, r->largest ? " (max)" : "");
    add_times(t, r);
    table_number(t, r->tokens_s, 1);
    table_cell(t, isfinite(r->fp8_over_bf16) ? "%.2fx (%.2f..%.2f)" : "", r->fp8_over_bf16,
               r->fp8_over_bf16_interval[0], r->fp8_over_bf16_interval[1]);
    if (best)
        add_runner_up(t, r);
    table_number(t, (double)r->weight_bytes / 1e9, 2);
    table_number(t, (double)r->cache_bytes / 1e9, 2);
    if (!measured)
        return;
    table_number(t, r->measured_ns / 1e6, 3);
    table_number(t, r->error_pct, 1);
}

table predict_rows_table(const predict_result *p) {
    static const char *const heads[] = {"origin",   "layout",      "arm",      "context",
                                        "batch",    "ms",          "interval", "attention",
                                        "exchange", "experts",     "rest",     "waiting",
                                        "limit",    "tokens/s",    "FP8/BF16", "weights GB",
                                        "cache GB", "measured ms", "error %"},
                             *const best_heads[] = {
                                 "origin",    "layout",   "arm",       "context",    "batch",
                                 "ms",        "interval", "attention", "exchange",   "experts",
                                 "rest",      "waiting",  "limit",     "tokens/s",   "FP8/BF16",
                                 "runner-up", "of best",  "ties",      "weights GB", "cache GB"};
    bool measured = any_measured(p), best = any_best(p);
    int n = (int)(sizeof heads / sizeof *heads);
    table t = best ? table_new(best_heads, (int)(sizeof best_heads / sizeof *best_heads))
                   : table_new(heads, measured ? n : n - 2);
    for (int i = 0; i < p->n; i++)
        add_row(&t, &p->rows[i], best, measured);
    return t;
}

/* ---- rules ---- */

static const char *const kRanges[PREDICT_RANGES] = {"1 to 8", "9 to 64", "65 and more"};

/* The units of a rule's terms, and the factor from the rule's unit (ns). */
typedef struct {
    const char *unit[PREDICT_TERMS];
    double factor[PREDICT_TERMS];
} term_units;

static const term_units kAttentionUnits = {
    {"us for each block", "ns for each query", "x the kernel's time", ""}, {1e-3, 1, 1, 0}};
static const term_units kExpertUnits = {
    {"us for each layer", "us for each MB of BF16", "us for each MB of e4m3", ""},
    {1e-3, 1e3, 1e3, 0}};
static const term_units kManyUnits = {{"us for each expert", "us for each MB of BF16",
                                       "us for each MB of e4m3", "ns for each 1000 numbers moved"},
                                      {1e-3, 1e3, 1e3, 1e3}};
static const term_units kRestUnits = {
    {"us for each launch", "us for each MB of BF16", "us for each MB of e4m3", "us for each GFLOP"},
    {1e-3, 1e3, 1e3, 1e6}};

static void add_rule(table *t, int range, const char *part, const rule *r, const term_units *u,
                     double error) {
    table_cell(t, "%s", kRanges[range]);
    table_cell(t, "%s", part);
    table_cell(t, "%d", r->n);
    for (int i = 0; i < PREDICT_TERMS; i++)
        table_cell(t, r->per.of[i] > 0 ? "%.4g %s" : "", r->per.of[i] * u->factor[i], u->unit[i]);
    table_number(t, 100 * error, 1);
}

static void add_overlap(table *t, int range, const rules *r) {
    table_cell(t, "%s", kRanges[range]);
    table_cell(t, "step");
    table_cell(t, "%s", "");
    table_cell(t, "-%.4g us for each launch", r->overlap[1] / 1e3);
    if (range > 0)
        table_cell(t, "%s", "");
    else
        table_cell(t, "one row: -%.4g us for each launch", r->overlap[0] / 1e3);
    table_cell(t, "%s", "");
    table_cell(t, "%s", "");
    table_number(t, 100 * r->step_error, 1);
}

static void add_ratio(table *t, double error) {
    table_cell(t, "1 and more");
    table_cell(t, "FP8/BF16");
    for (int i = 0; i < PREDICT_TERMS + 1; i++)
        table_cell(t, "%s", "");
    table_number(t, 100 * error, 1);
}

table predict_rules_table(const predict_result *p) {
    static const char *const heads[] = {"rows",        "part",       "steps",       "first term",
                                        "second term", "third term", "fourth term", "error %"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (int i = 0; i < PREDICT_RANGES; i++) {
        const rules *r = &p->in.book.range[i];
        const double *e = r->error;
        add_rule(&t, i, "attention bf16", &r->attention[0], &kAttentionUnits, e[STEP_ATTENTION]);
        add_rule(&t, i, "attention fp8", &r->attention[1], &kAttentionUnits, e[STEP_ATTENTION]);
        add_rule(&t, i, "experts", &r->experts, i == 2 ? &kManyUnits : &kExpertUnits,
                 e[STEP_EXPERTS]);
        add_rule(&t, i, "rest", &r->rest, &kRestUnits, e[STEP_REST]);
        add_overlap(&t, i, r);
    }
    add_ratio(&t, p->in.book.ratio_error);
    return t;
}

/* ---- agreement ---- */

static bool is_first(const predict_result *p, int at) {
    for (int i = 0; i < at; i++)
        if (strcmp(p->rows[i].layout, p->rows[at].layout) == 0)
            return false;
    return p->rows[at].parts & PREDICTION_MEASURED;
}

table predict_agreement_table(const predict_result *p) {
    static const char *const heads[] = {"layout",    "steps",    "median %", "most %",
                                        "attention", "exchange", "experts",  "rest"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (int i = 0; i < p->n; i++) {
        if (!is_first(p, i))
            continue;
        predict_agreement a = predict_agreement_of(p, p->rows[i].layout);
        table_cell(&t, "%s", p->rows[i].layout);
        table_cell(&t, "%d", a.n);
        table_number(&t, a.median_pct, 2);
        table_number(&t, a.most_pct, 2);
        for (int k = 0; k < STEP_PARTS; k++)
            table_number(&t, a.part_pct[k], 2);
    }
    return t;
}
