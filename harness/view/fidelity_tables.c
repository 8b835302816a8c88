#include "harness/view/fidelity_tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- errors of the cache formats ---- */

table fidelity_table(void) {
    static const char *const heads[] = {"distribution", "context",  "format",  "bytes/token",
                                        "source",       "RMSE",     "rel. L2", "1-cosine",
                                        "LSE error",    "max. abs."};
    return table_new(heads, sizeof heads / sizeof *heads);
}

void fidelity_table_add(table *t, const js *row) {
    static const char *const figures[] = {"rmse", "rel_l2", "cosine_diff", "lse_error", "max_abs"};
    table_cell(t, "%s", js_get_str(row, "distribution"));
    table_cell(t, "%lld", (long long)js_get_int(row, "context", 0));
    table_cell(t, "%s", js_get_str(row, "config"));
    table_cell(t, "%.7g", js_get_num(row, "bytes_per_token", (double)NAN));
    table_cell(t, "%s", js_get_str(row, "source"));
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        table_science(t, js_get_num(row, figures[i], (double)NAN));
}

/* ---- a model ---- */

static void fixed(table *t, const js *row, const char *key, int decimals) {
    table_number(t, js_get_num(row, key, (double)NAN), decimals);
}

static void science(table *t, const js *row, const char *key) {
    table_science(t, js_get_num(row, key, (double)NAN));
}

static void general(table *t, const js *row, const char *key) {
    table_cell(t, "%.3g", js_get_num(row, key, 0));
}

static bool is_kind(const js *row, const char *kind) {
    return strcmp(js_get_str(row, "kind"), kind) == 0;
}

static void predictions(table *t, const js *row) {
    char where[64] = "all";
    int64_t last = js_get_int(row, "last", -1);
    if (last >= 0)
        (void)snprintf(where, sizeof where, "%lld..%lld", (long long)js_get_int(row, "first", 0),
                       (long long)last);
    table_cell(t, "%s", js_get_str(row, "precision"));
    table_cell(t, "%s", where);
    table_cell(t, "%lld", (long long)js_get_int(row, "tokens", 0));
    fixed(t, row, "perplexity", 4);
    science(t, row, "kl_mean");
    science(t, row, "kl_max");
    fixed(t, row, "flips_pct", 2);
    science(t, row, "logits_rel_l2");
}

static void layer(table *t, const js *row) {
    table_cell(t, "%lld", (long long)js_get_int(row, "context", 0));
    table_cell(t, "%lld", (long long)js_get_int(row, "layer", 0));
    table_cell(t, "%s", js_get_str(row, "config"));
    science(t, row, "rmse");
    science(t, row, "rel_l2");
    science(t, row, "cosine_diff");
    science(t, row, "lse_error");
}

static void values(table *t, const js *row) {
    table_cell(t, "%lld", (long long)js_get_int(row, "context", 0));
    table_cell(t, "%lld", (long long)js_get_int(row, "layer", 0));
    table_cell(t, "%s", js_get_str(row, "part"));
    general(t, row, "rms");
    general(t, row, "p50");
    general(t, row, "p99");
    general(t, row, "p999");
    general(t, row, "max");
}

static void bound(table *t, const js *row) {
    table_cell(t, "%lld", (long long)js_get_int(row, "context", 0));
    table_cell(t, "%lld", (long long)js_get_int(row, "layer", 0));
    science(t, row, "logit_error");
    science(t, row, "logit_bound");
    science(t, row, "value_error");
    science(t, row, "value_bound");
}

static void depth(table *t, const js *row) {
    table_cell(t, "%lld", (long long)js_get_int(row, "context", 0));
    table_cell(t, "%lld", (long long)js_get_int(row, "layer", 0));
    table_cell(t, "%s", js_get_str(row, "precision"));
    science(t, row, "rel_l2");
}

static void divergence(table *t, const js *row) {
    table_cell(t, "%s", js_get_str(row, "precision"));
    table_cell(t, "%s", js_get_str(row, "continuation"));
    table_cell(t, "%lld", (long long)js_get_int(row, "places", 0));
    table_cell(t, "%lld", (long long)js_get_int(row, "steps", 0));
    fixed(t, row, "changed_pct", 1);
    fixed(t, row, "first_change", 0);
    fixed(t, row, "equal_tokens", 1);
}

static void forecast(table *t, const js *row) {
    const js *ci = js_get(row, "ci95_pp");
    double lo = js_len(ci) == 2 ? js_num(js_at(ci, 0)) : (double)NAN;
    double hi = js_len(ci) == 2 ? js_num(js_at(ci, 1)) : (double)NAN;
    table_cell(t, "%s", js_get_str(row, "task"));
    table_cell(t, "%s", js_get_str(row, "precision"));
    table_cell(t, "%lld", (long long)js_get_int(row, "answers", 0));
    fixed(t, row, "accuracy_pct", 1);
    science(t, row, "kl_answer");
    fixed(t, row, "diverged_pct", 2);
    fixed(t, row, "unseen_pct", 2);
    fixed(t, row, "delta_pp", 2);
    if (isnan(lo))
        table_cell(t, "-");
    else
        table_cell(t, "[%+.2f, %+.2f]", lo, hi);
}

enum { kColumns = 9, kKinds = MODEL_FIDELITY_FORECASTS + 1 };

static const struct {
    const char *kind, *title;
    const char *heads[kColumns];
    int columns;
    void (*add)(table *t, const js *row);
} kinds[kKinds] = {
    {"layer",
     "Error of each config in each layer, against FP64 attention over the same values",
     {"context", "layer", "config", "RMSE", "rel. L2", "1-cosine", "LSE error"},
     7,
     layer},
    {"values",
     "Magnitudes of the cached values",
     {"context", "layer", "part", "rms", "p50", "p99", "p99.9", "max"},
     8,
     values},
    {"bound",
     "Effect of rounding the cached rows as snapmla does, and its bound from the norms of the "
     "weights",
     {"context", "layer", "logit", "logit bound", "output", "output bound"},
     6,
     bound},
    {"depth",
     "Residual stream after each layer: difference from that of the first precision",
     {"context", "layer", "precision", "rel. L2"},
     4,
     depth},
    {"divergence",
     "Free continuations of the text, compared with those of the first precision",
     {"precision", "continuation", "places", "at most", "changed %", "first change",
      "equal tokens"},
     7,
     divergence},
    {"predictions",
     "", /* it needs no title, because it is usually the only table */
     {"precision", "positions", "tokens", "perplexity", "KL mean", "KL max", "flips %",
      "logits L2"},
     8,
     predictions},
    {"forecast",
     "", /* it needs no title, because it is the only table */
     {"task", "precision", "answers", "accuracy %", "KL per answer", "diverged %", "unseen %",
      "predicted pp", "95 % CI"},
     9,
     forecast},
};

const char *model_fidelity_title(model_fidelity_kind kind) {
    return kinds[kind].title;
}

table model_fidelity_table(const js *rows, model_fidelity_kind kind) {
    table t = table_new(kinds[kind].heads, kinds[kind].columns);
    for (size_t i = 0; i < js_len(rows); i++)
        if (is_kind(js_at(rows, i), kinds[kind].kind))
            kinds[kind].add(&t, js_at(rows, i));
    return t;
}
