/* csv.c - writes the rows of the report to one CSV file, or those of one section to a file of their
 * own. A column is empty in rows that do not have its field. For a list of numbers, the column has
 * the length of the list.
 *
 * Numbers have enough digits to be read back exactly. The column `section` is the type of a row:
 * ceiling, bench, versus (two named arms in a cell), fidelity, arm, failure, pair, pooled; for a
 * model predictions, layer, values,
 * bound, depth; for servers under load load, part, latency, target, difference, series, knee,
 * ratio. 'report paper' adds quote (figures that others report) and step (speed of a whole model in
 * tokens per second). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/view/compare.h"
#include "harness/view/format.h"
#include "harness/view/named_arms.h"
#include "harness/view/pages.h"
#include "harness/view/paper.h"

/* The order of the columns in files that are already published. It must not change. Other fields of
 * the record types follow after these columns. */
static const char *const kOrder[] = {
    "section",       "file",          "origin",         "source",
    "name",          "value",         "unit",           "method",
    "arm",           "backend",       "kernel",         "kernel_hash",
    "scope",         "distribution",  "cold",           "heads",
    "s_q",           "batch",         "context",        "d_c",
    "d_r",           "status",        "reason",         "flags",
    "error",         "tolerance",     "lse_error",      "lse_tolerance",
    "rows_checked",  "min_ns",        "q1_ns",          "median_ns",
    "q3_ns",         "max_ns",        "count",          "stop_reason",
    "tflops",        "gb_s",          "tok_s",          "floor_ns",
    "roofline_pct",  "bound",         "mhz_before",     "mhz_during",
    "power_w",       "energy_j",      "speedup",        "config",
    "seed",          "rmse",          "cosine_diff",    "rel_l2",
    "max_abs",       "task",          "dataset_sha256", "grader",
    "model",         "generator",     "endpoint",       "problems",
    "samples",       "scored",        "failed",         "accuracy_pct",
    "se_pct",        "ci95_lo",       "ci95_hi",        "truncated_pct",
    "empty_pct",     "unparsed_pct",  "failed_pct",     "identical_samples",
    "tokens_mean",   "ttft_ms",       "baseline",       "delta_pp",
    "se_pp",         "ci90_lo",       "ci90_hi",        "margin_pp",
    "verdict",       "p_tost",        "p_sign_flip",    "p_mcnemar",
    "baseline_only", "arm_only",      "length_ratio",   "refused",
    "itl_ms",        "pass_at_k_pct", "maj_at_k_pct",   "p_holm",
    "paired_pct",    "lag_ms",        "control",        "sensitivity",
    "prompt_sha256", "sampling",      "layer",          "part",
    "reference",     "first",         "last",           "tokens",
    "perplexity",    "kl_mean",       "kl_max",         "flips_pct",
    "logits_rel_l2", "cache_bytes",   "peak_bytes",     "rms",
    "p50",           "p99",           "p999",           "max",
    "logit_error",   "logit_bound",   "value_error",    "value_bound",
    "mode",          "device",        "tok_j",          "tok_usd",
    "against_first", "differs",       "what",           "bf16",
    "fp8",           "peak_pct",      "task_sha256"};
enum { COLUMNS_MAX = 400, NAME_MAX_BYTES = 48 };

typedef struct {
    char name[NAME_MAX_BYTES];
    buf text;  /* cell of the row that is being written */
    bool set;  /* the row has the field, maybe without a value */
    bool used; /* a row of the section `line.only` has the field */
} column;

typedef struct {
    column columns[COLUMNS_MAX];
    size_t n;
    const char *only; /* the section of which rows are written; NULL = all */
    bool marking;     /* write no row, but set column.used */
    bool failed;
} line;

static column *find(line *l, const char *name) {
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->columns[i].name, name) == 0)
            return &l->columns[i];
    return NULL;
}

static void add_column(line *l, const char *name) {
    if (find(l, name))
        return;
    if (l->n == COLUMNS_MAX || strlen(name) >= NAME_MAX_BYTES)
        SNAP_BUG("no room for a column of the sheet");
    (void)snprintf(l->columns[l->n++].name, NAME_MAX_BYTES, "%s", name);
}

static buf *cell_of(line *l, const char *name) {
    column *c = find(l, name);
    if (!c)
        SNAP_BUG("no such column of the sheet");
    c->set = true;
    return &c->text;
}

static void text(line *l, const char *name, const char *s) {
    format_csv_text(cell_of(l, name), s);
}

static void number(line *l, const char *name, double x) {
    buf *cell = cell_of(l, name);
    if (isfinite(x))
        (void)buf_printf(cell, "%.17g", x);
}

static void add_visited(void *ctx, const char *name, const char *s, double x) {
    (void)s, (void)x;
    add_column(ctx, name);
}

static void put_visited(void *ctx, const char *name, const char *s, double x) {
    if (s)
        text(ctx, name, s);
    else
        number(ctx, name, x);
}

static void put_record(line *l, const record_type *type, const void *record) {
    l->failed |= !record_columns(type, record, put_visited, l);
}

static void add_columns(line *l) {
    static const record_type *const types[] = {
        &ceiling_type, &cell_type,    &fidelity_type, &model_type,      &eval_type, &arm_type,
        &pair_type,    &serving_type, &exchange_type, &prediction_type, NULL};
    for (size_t i = 0; i < sizeof kOrder / sizeof *kOrder; i++)
        add_column(l, kOrder[i]);
    for (const record_type *const *t = types; *t; t++)
        l->failed |= !record_columns(*t, NULL, add_visited, l);
    add_column(l, "compared_device");
    add_column(l, "bf16_batch"); /* for rows of type step, whose `batch` is that of FP8 */
}

/* Begins a row. In a comparison, `compared_device` is the name of the file's device. */
static void start(const report_model *m, line *l, const char *section, int file) {
    text(l, "section", section);
    text(l, "file", m->files[file]);
    if (m->labels)
        text(l, "compared_device", m->labels[m->device_of[file]]);
}

static void write_line(const line *l, buf *out) {
    size_t written = 0;
    for (size_t i = 0; i < l->n; i++)
        if (!l->only || l->columns[i].used)
            (void)buf_printf(out, "%s%s", written++ ? "," : "", buf_str(&l->columns[i].text));
    (void)buf_puts(out, "\r\n");
}

/* Ends a row, and empties the cells for the next one. */
static void finish(line *l, buf *out) {
    bool wanted = !l->only || strcmp(buf_str(cell_of(l, "section")), l->only) == 0;
    if (wanted && !l->marking)
        write_line(l, out);
    for (size_t i = 0; i < l->n; i++) {
        column *c = &l->columns[i];
        c->used |= l->marking && wanted && c->set;
        c->set = false;
        out->failed |= c->text.failed;
        buf_clear(&c->text);
    }
    out->failed |= l->failed;
}

static void write_heads(line *l, buf *out) {
    for (size_t i = 0; i < l->n; i++)
        (void)buf_puts(&l->columns[i].text, l->columns[i].name);
    write_line(l, out);
    for (size_t i = 0; i < l->n; i++) {
        out->failed |= l->columns[i].text.failed;
        buf_clear(&l->columns[i].text);
    }
}

static void write_ceilings(const report_model *m, line *l, buf *out) {
    for (size_t i = 0; i < m->n_ceilings; i++) {
        start(m, l, "ceiling", m->ceilings[i].file);
        put_record(l, &ceiling_type, m->ceilings[i].row);
        finish(l, out);
    }
}

static void write_comparison(const report_model *m, const report_cell *c, line *l) {
    for (size_t i = 0; i < m->n_compared; i++) {
        const compared *row = &m->compared[i];
        if (row->cell != c)
            continue;
        number(l, "tok_usd", row->tok_usd);
        number(l, "against_first", row->ratio);
        text(l, "differs", row->differs);
    }
}

/* The speed-up is written in the row of the FP8 arm. */
static void write_cells(const report_model *m, line *l, buf *out) {
    for (size_t i = 0, s = 0; i < m->n_cells; i++) {
        const report_cell *c = &m->cells[i];
        while (s < m->n_speeds && (m->speeds[s].fp8 ? m->speeds[s].fp8 : m->speeds[s].any) < c)
            s++;
        start(m, l, "bench", c->file);
        put_record(l, &cell_type, c->row);
        if (!c->row->device[0])
            text(l, "device", report_device_of(m, c->file));
        write_comparison(m, c, l);
        if (s < m->n_speeds && m->speeds[s].fp8 == c)
            number(l, "speedup", m->speeds[s].speedup);
        finish(l, out);
    }
}

/* Two named arms of a cell: the time of `baseline` / that of `name`. */
static void write_versus(const report_model *m, const named_arms *g, const named_pair *p, line *l) {
    const cell_record *row = named_arms_at(g, p->cell, p->arm)->row;
    start(m, l, "versus", g->file);
    text(l, "name", g->arm[p->arm]);
    text(l, "baseline", g->arm[p->base]);
    text(l, "scope", row->scope);
    text(l, "mode", row->mode);
    text(l, "distribution", row->distribution);
    put_record(l, &cell_shape_type, &row->shape);
    if (row->lengths.exists) {
        text(l, "lengths", row->lengths.distribution);
        number(l, "total_tokens", (double)row->lengths.tokens);
    }
    number(l, "against", p->gain.ratio);
    number(l, "against_lo", p->gain.lo);
    number(l, "against_hi", p->gain.hi);
}

static void write_pairs(const report_model *m, line *l, buf *out) {
    for (size_t k = 0; k < m->n_named; k++)
        for (size_t i = 0; i < m->named[k].n_pairs; i++) {
            write_versus(m, &m->named[k], &m->named[k].pairs[i], l);
            finish(l, out);
        }
}

static void write_fidelity(const report_model *m, line *l, buf *out) {
    for (size_t i = 0; i < m->n_fidelity; i++) {
        start(m, l, "fidelity", m->fidelity[i].file);
        put_record(l, &fidelity_type, m->fidelity[i].row);
        finish(l, out);
    }
    for (size_t i = 0; i < m->n_model_rows; i++) {
        const report_model_row *r = &m->model_rows[i];
        start(m, l, r->row->kind, r->file);
        put_record(l, &model_type, r->row);
        finish(l, out);
    }
}

static void write_exchanges(const report_model *m, line *l, buf *out) {
    for (size_t i = 0; i < m->n_exchanges; i++) {
        start(m, l, "exchange", m->exchanges[i].file);
        put_record(l, &exchange_type, m->exchanges[i].row);
        finish(l, out);
    }
}

static void write_predicted(const report_model *m, line *l, buf *out) {
    for (size_t i = 0; i < m->n_predicted; i++) {
        start(m, l, "predicted", m->predicted[i].file);
        put_record(l, &prediction_type, m->predicted[i].row);
        finish(l, out);
    }
}

static void write_serving(const report_model *m, line *l, buf *out) {
    for (size_t i = 0; i < m->n_serving; i++) {
        start(m, l, m->serving[i].row->kind, m->serving[i].file);
        put_record(l, &serving_type, m->serving[i].row);
        finish(l, out);
    }
}

static void start_task(const report_model *m, const report_eval *e, const char *section, line *l) {
    start(m, l, section, e->file);
    put_record(l, &eval_type, e->row);
    text(l, "sampling", e->sampling);
}

static void write_eval(const report_model *m, const report_eval *e, line *l, buf *out) {
    const eval_record *row = e->row;
    for (size_t i = 0; i < row->arms.n; i++) {
        const arm_record *a = &row->arms.at[i];
        start_task(m, e, "arm", l);
        put_record(l, &arm_type, a);
        number(l, "problems", (double)row->problems);
        number(l, "pass_at_k_pct", arm_pass_of_all(a));
        finish(l, out);
    }
    for (size_t i = 0; i < row->arms.n; i++)
        for (size_t k = 0; k < row->arms.at[i].failures.n; k++) {
            start(m, l, "failure", e->file);
            text(l, "task", row->task);
            text(l, "arm", row->arms.at[i].name);
            put_record(l, &failure_type, &row->arms.at[i].failures.at[k]);
            finish(l, out);
        }
    for (size_t i = 0; i < row->pairs.n; i++) {
        start_task(m, e, "pair", l);
        put_record(l, &pair_type, &row->pairs.at[i]);
        finish(l, out);
    }
}

static void write_quote(const report_quote *q, line *l) {
    text(l, "section", "quote");
    text(l, "origin", "reported");
    text(l, "source", q->source);
    text(l, "name", q->about);
    text(l, "what", q->what);
    text(l, "model", q->model);
    text(l, "layout", q->layout);
    number(l, "bf16", q->bf16);
    number(l, "fp8", q->fp8);
    number(l, "speedup", q->speedup);
    number(l, "peak_pct", q->peak_pct);
}

static void write_step(const report_step *s, line *l) {
    text(l, "section", "step");
    text(l, "file", s->name);
    text(l, "origin", "measured");
    text(l, "model", s->model);
    text(l, "device", s->device);
    number(l, "context", (double)s->context);
    text(l, "layout", s->layout);
    number(l, "batch", (double)s->batch);
    number(l, "bf16_batch", record_count(s->bf16_batch));
    number(l, "bf16", s->bf16);
    number(l, "fp8", s->fp8);
    number(l, "speedup", s->speedup);
}

static void write_paper(const report_model *m, line *l, buf *out) {
    for (size_t i = 0; i < m->n_steps; i++) {
        write_step(&m->steps[i], l);
        finish(l, out);
    }
    for (size_t i = 0; i < m->n_quotes; i++) {
        write_quote(&m->quotes[i], l);
        finish(l, out);
    }
}

static void write_rows(const report_model *m, line *l, buf *out) {
    write_ceilings(m, l, out);
    write_cells(m, l, out);
    write_pairs(m, l, out);
    write_fidelity(m, l, out);
    for (size_t i = 0; i < m->n_evals; i++)
        write_eval(m, &m->evals[i], l, out);
    for (size_t i = 0; i < m->n_pooled; i++) {
        start(m, l, "pooled", m->pooled[i].file);
        put_record(l, &pair_type, m->pooled[i].row);
        finish(l, out);
    }
    write_serving(m, l, out);
    write_exchanges(m, l, out);
    write_predicted(m, l, out);
    write_paper(m, l, out);
}

static void release(line *l) {
    for (size_t i = 0; i < l->n; i++)
        buf_release(&l->columns[i].text);
}

void write_csv(const report_model *m, buf *out) {
    line l = {0};
    add_columns(&l);
    write_heads(&l, out);
    write_rows(m, &l, out);
    release(&l);
}

const char *const csv_sections[] = {
    "ceiling", "bench",       "versus",     "fidelity", "arm",      "pair",       "failure",
    "pooled",  "predictions", "divergence", "layer",    "values",   "bound",      "depth",
    "quote",   "step",        "load",       "latency",  "target",   "difference", "series",
    "knee",    "ratio",       "part",       "forecast", "exchange", "predicted",  NULL};

void write_csv_section(const report_model *m, const char *section, buf *out) {
    line l = {.only = section, .marking = true};
    bool any = false;
    add_columns(&l);
    write_rows(m, &l, out);
    l.marking = false;
    find(&l, "section")->used = false;
    for (size_t i = 0; i < l.n; i++)
        any |= l.columns[i].used;
    if (any) {
        write_heads(&l, out);
        write_rows(m, &l, out);
    }
    release(&l);
}
