/* csv.c - every row of the result files in one sheet: a column a field, empty where a row has none.
 *
 * Numbers have the digits to come back exactly. The section column tells the kinds of rows apart:
 * ceiling, bench, fidelity, arm, pair, and what a model was found to do: predictions, layer, values, bound,
 * depth. With 'report paper' also quote, which others report, and step, of whole models (tokens/s). */
#include <math.h>
#include <string.h>

#include "harness/view/compare.h"
#include "harness/view/format.h"
#include "harness/view/pages.h"
#include "harness/view/paper.h"

static const char *const kColumns[] = {
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
    "fp8",           "peak_pct"};
enum { COLUMNS = sizeof kColumns / sizeof *kColumns };

/* The fields of the line in the making; each owns its text. */
typedef struct {
    buf fields[COLUMNS];
} line;

static buf *field(line *l, const char *column) {
    for (size_t i = 0; i < COLUMNS; i++)
        if (strcmp(kColumns[i], column) == 0)
            return &l->fields[i];
    SNAP_BUG("no such column of the sheet");
}

static void text(line *l, const char *column, const char *s) {
    format_csv_text(field(l, column), s);
}

static void number(line *l, const char *column, double x) {
    if (isfinite(x))
        (void)buf_printf(field(l, column), "%.17g", x);
}

static void finish(line *l, buf *out) {
    for (size_t i = 0; i < COLUMNS; i++) {
        (void)buf_printf(out, "%s%s", i ? "," : "", buf_str(&l->fields[i]));
        out->failed |= l->fields[i].failed;
        buf_clear(&l->fields[i]);
    }
    (void)buf_puts(out, "\r\n");
}

static void write_ceiling(const report_model *m, const report_ceiling *c, line *l) {
    text(l, "section", "ceiling");
    text(l, "file", m->files[c->file]);
    text(l, "origin", c->origin);
    text(l, "name", c->name);
    number(l, "value", c->value);
    text(l, "unit", c->unit);
    text(l, "method", c->method);
    number(l, "samples", (double)c->samples);
}

static void write_identity(const report_model *m, const report_cell *c, line *l) {
    text(l, "section", "bench");
    text(l, "file", m->files[c->file]);
    text(l, "origin", c->origin);
    text(l, "source", c->source);
    text(l, "arm", c->arm);
    text(l, "backend", c->backend);
    text(l, "kernel", c->kernel);
    text(l, "kernel_hash", c->kernel_hash);
    text(l, "scope", c->scope);
    text(l, "distribution", c->distribution);
    text(l, "cold", c->cold);
    number(l, "heads", (double)c->heads);
    number(l, "s_q", (double)c->s_q);
    number(l, "batch", (double)c->batch);
    number(l, "context", (double)c->context);
    number(l, "d_c", (double)c->d_c);
    number(l, "d_r", (double)c->d_r);
    text(l, "status", c->status);
    text(l, "reason", c->reason);
    text(l, "flags", c->flags);
    text(l, "mode", c->mode);
    text(l, "device", report_device_of(m, c->file));
}

static void write_measures(const report_cell *c, line *l) {
    number(l, "error", c->error);
    number(l, "tolerance", c->tolerance);
    number(l, "lse_error", c->lse_error);
    number(l, "lse_tolerance", c->lse_tolerance);
    number(l, "rows_checked", c->rows_checked);
    number(l, "min_ns", c->min_ns);
    number(l, "q1_ns", c->q1_ns);
    number(l, "median_ns", c->median_ns);
    number(l, "q3_ns", c->q3_ns);
    number(l, "max_ns", c->max_ns);
    number(l, "count", c->count);
    text(l, "stop_reason", c->stop_reason ? c->stop_reason : "");
    number(l, "tflops", c->tflops);
    number(l, "gb_s", c->gb_s);
    number(l, "tok_s", c->tok_s);
    number(l, "floor_ns", c->floor_ns);
    number(l, "roofline_pct", c->roofline_pct);
    number(l, "paired_pct", c->paired_pct);
    text(l, "bound", c->bound ? c->bound : "");
    number(l, "mhz_before", c->mhz_before);
    number(l, "mhz_during", c->mhz_during);
    number(l, "power_w", c->power_w);
    number(l, "energy_j", c->energy_j);
    number(l, "tok_j", c->tok_j);
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

/* The speed-up stands in the FP8 row. */
static void write_cells(const report_model *m, line *l, buf *out) {
    for (size_t i = 0, s = 0; i < m->n_cells; i++) {
        const report_cell *c = &m->cells[i];
        while (s < m->n_speeds && (m->speeds[s].fp8 ? m->speeds[s].fp8 : m->speeds[s].any) < c)
            s++;
        write_identity(m, c, l);
        write_measures(c, l);
        write_comparison(m, c, l);
        if (s < m->n_speeds && m->speeds[s].fp8 == c)
            number(l, "speedup", m->speeds[s].speedup);
        finish(l, out);
    }
}

static void write_fidelity(const report_model *m, const report_fidelity *f, line *l) {
    text(l, "section", "fidelity");
    text(l, "file", m->files[f->file]);
    text(l, "origin", f->origin);
    text(l, "name", f->kind);
    text(l, "config", f->config);
    text(l, "kernel", f->source);
    text(l, "distribution", f->distribution);
    number(l, "context", (double)f->context);
    number(l, "heads", (double)f->heads);
    number(l, "seed", f->seed);
    number(l, "rows_checked", (double)f->rows);
    number(l, "rmse", f->rmse);
    number(l, "cosine_diff", f->cosine_diff);
    number(l, "rel_l2", f->rel_l2);
    number(l, "lse_error", f->lse_error);
    number(l, "max_abs", f->max_abs);
}

static void write_model_row(const report_model *m, const report_model_row *r, line *l) {
    static const char *const numbers[] = {
        "rmse",        "cosine_diff", "rel_l2",      "lse_error",  "max_abs", "first",
        "last",        "tokens",      "perplexity",  "kl_mean",    "kl_max",  "flips_pct",
        "rms",         "p50",         "p99",         "p999",       "max",     "logits_rel_l2",
        "logit_error", "logit_bound", "value_error", "value_bound"};
    bool predictions = strcmp(r->kind, "predictions") == 0;
    text(l, "section", r->kind);
    text(l, "file", m->files[r->file]);
    text(l, "origin", js_get_str(r->row, "origin"));
    text(l, "model", r->model);
    text(l, "config", strcmp(r->kind, "values") == 0 ? "" : r->name);
    text(l, "part", strcmp(r->kind, "values") == 0 ? r->name : "");
    const char *reference = js_get_str(r->row, "reference");
    text(l, "reference", reference ? reference : "");
    if (!predictions) {
        number(l, "context", (double)r->context);
        number(l, "layer", (double)r->layer);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        number(l, numbers[i], js_get_num(r->row, numbers[i], (double)NAN));
    number(l, "cache_bytes", js_get_num(r->row, "cache_bytes_a_token", (double)NAN));
    number(l, "peak_bytes", js_get_num(r->row, "peak_rss_bytes", (double)NAN));
}

static void write_task(const report_model *m, const report_eval *e, const char *section, line *l) {
    text(l, "section", section);
    text(l, "file", m->files[e->file]);
    text(l, "task", e->task);
    text(l, "dataset_sha256", e->dataset_sha256);
    text(l, "grader", e->grader);
    text(l, "prompt_sha256", e->prompt_sha256);
    text(l, "sampling", e->sampling);
}

static void write_arm(const report_model *m, const report_eval *e, const report_arm *a, line *l) {
    write_task(m, e, "arm", l);
    text(l, "origin", a->origin);
    text(l, "arm", a->name);
    text(l, "generator", a->generator);
    text(l, "endpoint", a->endpoint);
    text(l, "model", a->model);
    number(l, "problems", e->problems);
    number(l, "samples", a->samples);
    number(l, "scored", a->scored);
    number(l, "failed", a->failed);
    number(l, "accuracy_pct", a->accuracy);
    number(l, "se_pct", a->se);
    number(l, "ci95_lo", a->ci95[0]);
    number(l, "ci95_hi", a->ci95[1]);
    number(l, "truncated_pct", a->truncated);
    number(l, "empty_pct", a->empty);
    number(l, "unparsed_pct", a->unparsed);
    number(l, "failed_pct", a->failed_pct);
    number(l, "identical_samples", a->identical_samples);
    number(l, "tokens_mean", a->tokens_mean);
    number(l, "ttft_ms", a->ttft_ms);
    number(l, "itl_ms", a->itl_ms);
    number(l, "pass_at_k_pct", a->pass_k);
    number(l, "maj_at_k_pct", a->maj_k);
    number(l, "tok_s", a->tok_s);
    number(l, "lag_ms", a->lag_ms);
}

static void write_pair(const report_model *m, const report_eval *e, const report_pair *p, line *l) {
    write_task(m, e, "pair", l);
    text(l, "baseline", p->baseline);
    text(l, "arm", p->arm);
    number(l, "problems", p->problems);
    number(l, "delta_pp", p->delta);
    number(l, "se_pp", p->se);
    number(l, "ci90_lo", p->ci90[0]);
    number(l, "ci90_hi", p->ci90[1]);
    number(l, "ci95_lo", p->ci95[0]);
    number(l, "ci95_hi", p->ci95[1]);
    number(l, "margin_pp", p->margin);
    text(l, "verdict", p->verdict);
    number(l, "p_tost", p->p_tost);
    number(l, "p_holm", p->p_holm);
    number(l, "p_sign_flip", p->p_sign_flip);
    number(l, "p_mcnemar", p->p_mcnemar);
    number(l, "baseline_only", p->baseline_only);
    number(l, "arm_only", p->arm_only);
    number(l, "length_ratio", p->length_ratio);
    text(l, "refused", p->refused);
    text(l, "control", p->control);
    text(l, "sensitivity", p->sensitivity);
}

static void write_eval(const report_model *m, const report_eval *e, line *l, buf *out) {
    for (size_t i = 0; i < e->n_arms; i++) {
        write_arm(m, e, &e->arms[i], l);
        finish(l, out);
    }
    for (size_t i = 0; i < e->n_pairs; i++) {
        write_pair(m, e, &e->pairs[i], l);
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
    number(l, "batch", (double)s->batch);
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

void write_csv(const report_model *m, buf *out) {
    line l = {0};
    for (size_t i = 0; i < COLUMNS; i++)
        (void)buf_puts(&l.fields[i], kColumns[i]);
    finish(&l, out);
    for (size_t i = 0; i < m->n_ceilings; i++) {
        write_ceiling(m, &m->ceilings[i], &l);
        finish(&l, out);
    }
    write_cells(m, &l, out);
    for (size_t i = 0; i < m->n_fidelity; i++) {
        write_fidelity(m, &m->fidelity[i], &l);
        finish(&l, out);
    }
    for (size_t i = 0; i < m->n_model_rows; i++) {
        write_model_row(m, &m->model_rows[i], &l);
        finish(&l, out);
    }
    for (size_t i = 0; i < m->n_evals; i++)
        write_eval(m, &m->evals[i], &l, out);
    write_paper(m, &l, out);
    for (size_t i = 0; i < COLUMNS; i++)
        buf_release(&l.fields[i]);
}
