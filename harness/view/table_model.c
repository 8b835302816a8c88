/* table_model.c - the tables of the section model_fidelity: a model's predictions, forecasts,
 * layers, cached values, bounds and residual stream. Those about layers have one row for each group
 * of layers. The CSV file has every layer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/pen.h"

/* ---- groups of layers ---- */

static bool same_group(const report_model_row *a, const report_model_row *b) {
    return a->file == b->file && a->row->context == b->row->context &&
           strcmp(a->row->kind, b->row->kind) == 0 && strcmp(a->name, b->name) == 0 &&
           strcmp(a->row->model, b->row->model) == 0;
}

/* Whether row @i has this kind and is the first row of its group. */
static bool leads(const report_model *m, size_t i, const char *kind) {
    if (strcmp(m->model_rows[i].row->kind, kind) != 0)
        return false;
    for (size_t k = 0; k < i; k++)
        if (same_group(&m->model_rows[k], &m->model_rows[i]))
            return false;
    return true;
}

static size_t count_groups(const report_model *m, const char *kind) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_model_rows; i++)
        n += leads(m, i, kind);
    return n;
}

/* A number of a layer's row. NaN is returned as infinity, because it is the worst error. */
static double number_of(const report_model_row *r, const char *key) {
    double x = record_number(&model_type, r->row, key);
    return isnan(x) ? (double)INFINITY : x;
}

/* The row of a group with the largest number @key. */
static const report_model_row *worst_of(const report_model *m, const report_model_row *group,
                                        const char *key) {
    const report_model_row *worst = group;
    double most = number_of(group, key);
    for (size_t i = 0; i < m->n_model_rows; i++) {
        const report_model_row *r = &m->model_rows[i];
        if (!same_group(r, group))
            continue;
        double x = number_of(r, key);
        if (x > most) {
            worst = r;
            most = x;
        }
    }
    return worst;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the numbers @key in a group; of an even count, the upper of the two middle ones. */
static double median_of(const report_model *m, const report_model_row *group, const char *key,
                        arena *mem) {
    double *all = arena_alloc(mem, m->n_model_rows + 1, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; all && i < m->n_model_rows; i++)
        if (same_group(&m->model_rows[i], group))
            all[n++] = number_of(&m->model_rows[i], key);
    if (!n)
        return (double)NAN;
    qsort(all, n, sizeof *all, by_size);
    return all[n / 2];
}

/* ---- contents of cells ---- */

static void science(pen *p, const report_model_row *r, const char *key) {
    pen_science(p, record_number(&model_type, r->row, key));
}

static void general(pen *p, double x) {
    if (isfinite(x))
        pen_printf(p, "%.3g", x);
    else
        pen_text(p, "");
}

static void layer_of(pen *p, const report_model_row *r) {
    pen_fixed(p, (double)r->row->layer, 0);
}

/* ---- predictions ---- */

static void put_predictions(pen *p, const report_model *m, const report_model_row *r) {
    const model_record *row = r->row;
    pen_text(p, row->model);
    pen_text(p, r->name);
    if (row->first >= 0)
        pen_printf(p, "%lld–%lld", (long long)row->first, (long long)row->last);
    else
        pen_text(p, "all");
    pen_fixed(p, record_count(row->tokens), 0);
    pen_fixed(p, row->perplexity, 4);
    pen_science(p, row->kl_mean);
    pen_science(p, row->kl_max);
    pen_fixed(p, row->flips_pct, 2);
    pen_science(p, row->logits_rel_l2);
    pen_fixed(p, record_count(row->cache_bytes_a_token), 0);
    pen_fixed(p, record_count(row->peak_rss_bytes) / (1 << 20), 0);
    if (m->n_files > 1)
        pen_file(p, m, r->file);
}

bool report_table_predictions(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "predictions",
        .caption = "A model's predictions of a text in each cache format",
        .note =
            "Each format is compared with the first one at the same positions of the same text. "
            "KL divergence is in nats. Changed tokens are positions where another token is the "
            "likeliest. Logits L2 is the relative L2 error of the logits. Peak memory is that "
            "of the whole process, which holds all formats at once.",
        .columns = {{"model", "", TABLE_TEXT, true},
                    {"cache", "", TABLE_TEXT, true},
                    {"positions", "", TABLE_NUMBER, true},
                    {"tokens", "", TABLE_NUMBER, false},
                    {"perplexity", "", TABLE_NUMBER, true},
                    {"mean KL", "", TABLE_NUMBER, true},
                    {"max KL", "", TABLE_NUMBER, false},
                    {"changed tokens, %", "", TABLE_NUMBER, true},
                    {"logits L2", "", TABLE_NUMBER, true},
                    {"cache bytes per token", "", TABLE_NUMBER, false},
                    {"peak memory, MiB", "", TABLE_NUMBER, false},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    size_t n = 0;
    for (size_t i = 0; i < m->n_model_rows; i++)
        n += strcmp(m->model_rows[i].row->kind, "predictions") == 0;
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_model_rows; i++)
        if (strcmp(m->model_rows[i].row->kind, "predictions") == 0)
            put_predictions(&p, m, &m->model_rows[i]);
    return !p.failed;
}

/* ---- free continuations ---- */

/* The shares of continuations whose first 1, 4, 16, ... tokens are equal: "100 · 97 · 81". */
static void put_survival(pen *p, const record_bins *bins) {
    char text[96] = "";
    size_t at = 0;
    for (size_t i = 0; i < bins->n && at < sizeof text; i += 2)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.0f", i ? " · " : "",
                               100 * bins->at[i].share);
    pen_text(p, text);
}

static void put_divergence(pen *p, const report_model *m, const report_model_row *r) {
    const model_record *row = r->row;
    pen_text(p, row->model);
    pen_text(p, r->name);
    pen_text(p, row->continuation);
    pen_fixed(p, record_count(row->places), 0);
    pen_fixed(p, record_count(row->steps), 0);
    pen_fixed(p, row->changed_pct, 1);
    pen_fixed(p, row->first_change, 0);
    pen_fixed(p, row->equal_tokens, 1);
    put_survival(p, &row->survival);
    if (m->n_files > 1)
        pen_file(p, m, r->file);
}

bool report_table_divergence(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "divergence",
        .caption = "Free continuations in each cache format, compared with those of the first one",
        .note =
            "At places spread over the text, each format continues with the tokens that it chooses "
            "itself: the likeliest ones (greedy), or draws at temperature 1 with the same Gumbel "
            "noise in all formats (sampled). First change: the median number of the first token "
            "that differs; empty if at most half of the continuations change. Still equal: the "
            "share of continuations whose first 1, 4, 16, ... tokens are equal.",
        .columns = {{"model", "", TABLE_TEXT, true},
                    {"cache", "", TABLE_TEXT, true},
                    {"continuation", "", TABLE_TEXT, true},
                    {"places", "", TABLE_NUMBER, false},
                    {"at most", "tokens", TABLE_NUMBER, false},
                    {"changed, %", "", TABLE_NUMBER, true},
                    {"first change", "", TABLE_NUMBER, true},
                    {"equal tokens, mean", "", TABLE_NUMBER, true},
                    {"still equal, %", "", TABLE_TEXT, true},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    size_t n = 0;
    for (size_t i = 0; i < m->n_model_rows; i++)
        n += strcmp(m->model_rows[i].row->kind, "divergence") == 0;
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_model_rows; i++)
        if (strcmp(m->model_rows[i].row->kind, "divergence") == 0)
            put_divergence(&p, m, &m->model_rows[i]);
    return !p.failed;
}

/* ---- forecasts ---- */

static void put_forecast(pen *p, const report_model *m, const report_model_row *r) {
    const model_record *row = r->row;
    pen_text(p, row->model);
    pen_text(p, row->task);
    pen_text(p, r->name);
    pen_fixed(p, record_count(row->answers), 0);
    pen_fixed(p, row->accuracy_pct, 1);
    pen_science(p, row->kl_answer);
    pen_fixed(p, row->diverged_pct, 2);
    pen_fixed(p, row->unseen_pct, 2);
    pen_signed(p, row->delta_pp, 2);
    pen_interval(p, row->ci95_pp, 2);
    if (m->n_files > 1)
        pen_file(p, m, r->file);
}

bool report_table_forecast(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "forecast",
        .caption = "Predicted difference in accuracy of each cache format",
        .note =
            "The first format answered, and the others read its answers. Accuracy is that of the "
            "answers. Diverged: the share of answers that differ, if the draws agree as often as "
            "they can. Unseen: the share of the format's answers about which the answers of the "
            "first format say nothing; for these, the prediction rests on a fitted factor "
            "(docs/evals.md). No prediction: more than half of the greedy answers change.",
        .columns = {{"model", "", TABLE_TEXT, true},
                    {"task", "", TABLE_TEXT, true},
                    {"cache", "", TABLE_TEXT, true},
                    {"answers", "", TABLE_NUMBER, false},
                    {"accuracy, %", "", TABLE_NUMBER, true},
                    {"KL of an answer", "", TABLE_NUMBER, true},
                    {"diverged, %", "", TABLE_NUMBER, true},
                    {"unseen, %", "", TABLE_NUMBER, true},
                    {"predicted, pp", "", TABLE_NUMBER, true},
                    {"95 % CI", "", TABLE_TEXT, true},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    size_t n = 0;
    for (size_t i = 0; i < m->n_model_rows; i++)
        n += strcmp(m->model_rows[i].row->kind, "forecast") == 0;
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_model_rows; i++)
        if (strcmp(m->model_rows[i].row->kind, "forecast") == 0)
            put_forecast(&p, m, &m->model_rows[i]);
    return !p.failed;
}

/* ---- layers ---- */

static void put_layers(pen *p, const report_model *m, const report_model_row *r) {
    const report_model_row *l2 = worst_of(m, r, "rel_l2");
    pen_text(p, r->row->model);
    pen_context(p, r->row->context);
    pen_text(p, r->name);
    pen_science(p, median_of(m, r, "rel_l2", p->mem));
    science(p, l2, "rel_l2");
    layer_of(p, l2);
    science(p, worst_of(m, r, "rmse"), "rmse");
    science(p, worst_of(m, r, "cosine_diff"), "cosine_diff");
    if (m->n_files > 1)
        pen_file(p, m, r->file);
}

bool report_table_layers(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "layers",
        .caption = "Error of each configuration in the layers of a model, against FP64 attention",
        .note = "The input is the queries of one token and the cached rows before it, as the model "
                "computed them. The errors are those of the FP64 oracle of each configuration's "
                "arithmetic.",
        .columns = {{"model", "", TABLE_TEXT, true},
                    {"context", "", TABLE_NUMBER, true},
                    {"configuration", "", TABLE_TEXT, true},
                    {"median layer", "relative L2", TABLE_NUMBER, true},
                    {"worst layer", "relative L2", TABLE_NUMBER, true},
                    {"in layer", "relative L2", TABLE_NUMBER, true},
                    {"worst RMSE", "", TABLE_NUMBER, true},
                    {"worst 1 − cosine", "", TABLE_NUMBER, true},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, count_groups(m, "layer")))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_model_rows; i++)
        if (leads(m, i, "layer"))
            put_layers(&p, m, &m->model_rows[i]);
    return !p.failed;
}

/* ---- magnitudes ---- */

static void put_values(pen *p, const report_model *m, const report_model_row *r) {
    const report_model_row *most = worst_of(m, r, "max");
    pen_text(p, r->row->model);
    pen_context(p, r->row->context);
    pen_text(p, r->name);
    general(p, median_of(m, r, "rms", p->mem));
    general(p, median_of(m, r, "p50", p->mem));
    general(p, worst_of(m, r, "p99")->row->p99);
    general(p, worst_of(m, r, "p999")->row->p999);
    general(p, most->row->max);
    layer_of(p, most);
    if (m->n_files > 1)
        pen_file(p, m, r->file);
}

bool report_table_values(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "values",
        .caption = "Magnitudes of the values that a model caches",
        .note = "Each figure is over all cached tokens of a layer. Quantiles are exact. The result "
                "file also has histograms by powers of two.",
        .columns = {{"model", "", TABLE_TEXT, true},
                    {"context", "", TABLE_NUMBER, true},
                    {"part", "", TABLE_TEXT, true},
                    {"rms", "median layer", TABLE_NUMBER, true},
                    {"p50", "median layer", TABLE_NUMBER, true},
                    {"p99", "largest layer", TABLE_NUMBER, true},
                    {"p99.9", "largest layer", TABLE_NUMBER, true},
                    {"max", "largest layer", TABLE_NUMBER, true},
                    {"in layer", "largest layer", TABLE_NUMBER, true},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, count_groups(m, "values")))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_model_rows; i++)
        if (leads(m, i, "values"))
            put_values(&p, m, &m->model_rows[i]);
    return !p.failed;
}

/* ---- bounds and drift ---- */

static void put_bounds(pen *p, const report_model *m, const report_model_row *r) {
    const report_model_row *logit = worst_of(m, r, "logit_error"),
                           *value = worst_of(m, r, "value_error");
    pen_text(p, r->row->model);
    pen_context(p, r->row->context);
    science(p, logit, "logit_error");
    science(p, logit, "logit_bound");
    layer_of(p, logit);
    science(p, value, "value_error");
    science(p, value, "value_bound");
    layer_of(p, value);
    if (m->n_files > 1)
        pen_file(p, m, r->file);
}

bool report_table_bounds(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "bounds",
        .caption =
            "Effect of rounding the cached rows, and its bound from the norms of the weights",
        .note = "Each row shows the layer with the largest measured effect. The bounds follow from "
                "the norms of a head's query, W_UK and W_UV, and from the largest rounding errors "
                "that e4m3 and bf16 can have on the layer's rows. They assume the worst direction "
                "of each error, so they are far above the measured effects.",
        .columns = {{"model", "", TABLE_TEXT, true},
                    {"context", "", TABLE_NUMBER, true},
                    {"measured", "change of a logit", TABLE_NUMBER, true},
                    {"bound", "change of a logit", TABLE_NUMBER, true},
                    {"layer", "change of a logit", TABLE_NUMBER, true},
                    {"measured", "change of an output after W_UV", TABLE_NUMBER, true},
                    {"bound", "change of an output after W_UV", TABLE_NUMBER, true},
                    {"layer", "change of an output after W_UV", TABLE_NUMBER, true},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, count_groups(m, "bound")))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_model_rows; i++)
        if (leads(m, i, "bound"))
            put_bounds(&p, m, &m->model_rows[i]);
    return !p.failed;
}

static const report_model_row *last_layer(const report_model *m, const report_model_row *group) {
    const report_model_row *last = group;
    for (size_t i = 0; i < m->n_model_rows; i++)
        if (same_group(&m->model_rows[i], group) && m->model_rows[i].row->layer > last->row->layer)
            last = &m->model_rows[i];
    return last;
}

static void put_depth(pen *p, const report_model *m, const report_model_row *r) {
    const report_model_row *last = last_layer(m, r), *worst = worst_of(m, r, "rel_l2");
    pen_text(p, r->row->model);
    pen_context(p, r->row->context);
    pen_text(p, r->name);
    science(p, r, "rel_l2");
    pen_science(p, median_of(m, r, "rel_l2", p->mem));
    science(p, last, "rel_l2");
    science(p, worst, "rel_l2");
    layer_of(p, worst);
    if (m->n_files > 1)
        pen_file(p, m, r->file);
}

bool report_table_depth(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "depth",
        .caption = "Error of the residual stream across the layers",
        .note = "Relative L2 difference of one token's residual stream after each layer from a run "
                "of the same text with the first format. It jumps where another expert is chosen.",
        .columns = {{"model", "", TABLE_TEXT, true},
                    {"context", "", TABLE_NUMBER, true},
                    {"cache", "", TABLE_TEXT, true},
                    {"first layer", "", TABLE_NUMBER, true},
                    {"median layer", "", TABLE_NUMBER, true},
                    {"last layer", "", TABLE_NUMBER, true},
                    {"worst layer", "", TABLE_NUMBER, true},
                    {"in layer", "", TABLE_NUMBER, true},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, count_groups(m, "depth")))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_model_rows; i++)
        if (leads(m, i, "depth"))
            put_depth(&p, m, &m->model_rows[i]);
    return !p.failed;
}
