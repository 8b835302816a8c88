/* table_paper.c - the paper's tables of the kernel, of granularity and of quality. They contain
 * measured rows, and rows that are marked as reported. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/outline.h"
#include "harness/view/paper_pen.h"

/* ---- the kernel over each axis ---- */

static void put_point(pen *p, const report_model *m, int axis, const report_speed *s) {
    const report_cell *c = s->any;
    pen_put(p, PAPER_MEASURED);
    pen_put(p, report_axis_names[axis]);
    for (int k = 0; k < AXES; k++)
        if (k == AXIS_CONTEXT)
            pen_context(p, c->shape->context);
        else
            pen_fixed(p, (double)report_axis_value(c, k), 0);
    pen_fixed(p, s->bf16->perf->tflops, s->bf16->perf->tflops < 10 ? 3 : 1);
    pen_fixed(p, s->fp8->perf->tflops, s->fp8->perf->tflops < 10 ? 3 : 1);
    pen_times(p, s->speedup);
    pen_fixed(p, report_peak_pct(m, s->fp8), 1);
    paper_put_run(p, m, c->file);
}

static void put_kernel_quote(pen *p, const report_quote *q) {
    pen_put(p, PAPER_REPORTED);
    pen_text(p, q->what);
    paper_blank(p, AXES);
    pen_fixed(p, q->bf16, 1);
    pen_fixed(p, q->fp8, 1);
    pen_times(p, q->speedup);
    pen_fixed(p, q->peak_pct, 1);
    pen_text(p, q->source);
}

static size_t count_points(const report_model *m) {
    report_axis row;
    size_t n = 0;
    for (int file = 0; file < m->n_files; file++)
        for (int axis = 0; axis < AXES; axis++)
            n += report_axis_find(m, file, axis, &row) ? row.n : 0;
    return n;
}

bool report_table_paper_kernel(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "paper-kernel",
        .caption = "TFLOPS of the kernel when one dimension of the shape varies",
        .note =
            "For each dimension, the longest series of cells with scope kernel that a run has. "
            "The peak is computed from the device's own measured ceilings for the FP8 arm's mix "
            "of products: at widths 512 + 64, 16 of 17 tiles are in FP8." PAPER_REPORTED_NOTE,
        .columns = {{"origin", "", TABLE_TEXT, true},
                    {"varies", "", TABLE_TEXT, true},
                    {"heads", "", TABLE_NUMBER, true},
                    {"batch", "", TABLE_NUMBER, true},
                    {"context", "", TABLE_NUMBER, true},
                    {"s_q", "", TABLE_NUMBER, true},
                    {"BF16", "TFLOPS", TABLE_NUMBER, true},
                    {"FP8", "TFLOPS", TABLE_NUMBER, true},
                    {"speed-up", "", TABLE_NUMBER, true},
                    {"FP8, % of peak", "", TABLE_NUMBER, true},
                    {"source", "", TABLE_TEXT, true}}};
    if (!pen_start(t, mem, count_points(m) + paper_count_quotes(m, "kernel")))
        return false;
    pen p = {t, mem, false};
    report_axis row;
    for (int file = 0; file < m->n_files; file++)
        for (int axis = 0; axis < AXES; axis++)
            if (report_axis_find(m, file, axis, &row))
                for (size_t i = 0; i < row.n; i++)
                    put_point(&p, m, axis, row.at[i]);
    for (size_t i = 0; i < m->n_quotes; i++)
        if (strcmp(m->quotes[i].about, "kernel") == 0)
            put_kernel_quote(&p, &m->quotes[i]);
    return !p.failed;
}

/* ---- the paper's table of granularity ---- */

static const char *meaning_of(const char *config) {
    static const char *const meanings[][2] = {
        {"bf16", "none (BF16 cache)"},
        {"snapmla", "one per token, RoPE in BF16"},
        {"A", "one per token, also for RoPE"},
        {"B", "one per tensor, always 1"},
        {"C", "one per tensor, dynamic"},
        {"D", "one per 64 tokens x 128 columns, RoPE in BF16"},
        {"E", "4 per token, RoPE in BF16"},
        {"F", "one per token, powers of two, RoPE in BF16"},
        {"noPV", "one per token, product of P and V in BF16"},
    };
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(config, meanings[i][0]) == 0)
            return meanings[i][1];
    return "";
}

static bool same_input(const report_fidelity *a, const report_fidelity *b) {
    return a->file == b->file && a->row->heads == b->row->heads &&
           strcmp(a->row->kind, b->row->kind) == 0 &&
           strcmp(a->row->distribution, b->row->distribution) == 0 &&
           strcmp(a->row->source, b->row->source) == 0;
}

enum { kPaperContext = 32768 }; /* the context of the paper's comparison of granularities */

/* Whether context @a is preferred to @b: the paper's context is best, then the longest one. */
static bool is_nearer(int64_t a, int64_t b) {
    return b != kPaperContext && (a == kPaperContext || a > b);
}

/* Whether a row is shown: it has the preferred context for its input, and no earlier row has the
 * same context and configuration (with another seed). */
static bool is_shown(const report_model *m, const report_fidelity *f) {
    for (size_t i = 0; i < m->n_fidelity; i++) {
        const report_fidelity *o = &m->fidelity[i];
        if (!same_input(o, f))
            continue;
        if (is_nearer(o->row->context, f->row->context))
            return false;
        if (o < f && o->row->context == f->row->context &&
            strcmp(o->row->config, f->row->config) == 0)
            return false;
    }
    return true;
}

static double error_of_snapmla(const report_model *m, const report_fidelity *f) {
    for (size_t i = 0; i < m->n_fidelity; i++) {
        const report_fidelity *o = &m->fidelity[i];
        if (same_input(o, f) && o->row->context == f->row->context &&
            strcmp(o->row->config, "snapmla") == 0)
            return o->row->rel_l2;
    }
    return (double)NAN;
}

static void put_granularity(pen *p, const report_model *m, const report_fidelity *f) {
    pen_put(p, PAPER_MEASURED);
    pen_text(p, f->row->config);
    pen_text(p, meaning_of(f->row->config));
    pen_text(p, f->row->distribution);
    pen_context(p, f->row->context);
    pen_science(p, f->row->rel_l2);
    pen_times(p, f->row->rel_l2 / error_of_snapmla(m, f));
    pen_science(p, f->row->rmse);
    pen_science(p, f->row->cosine_diff);
    paper_put_run(p, m, f->file);
}

static void put_granularity_quote(pen *p, const report_quote *q) {
    pen_put(p, PAPER_REPORTED);
    pen_text(p, q->what);
    pen_text(p, meaning_of(q->what));
    paper_blank(p, 2);
    pen_science(p, q->fp8);
    paper_blank(p, 3);
    pen_text(p, q->source);
}

bool report_table_paper_granularity(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "paper-granularity",
                 .caption = "Granularity of quantisation: error against FP64",
                 .note = "Errors at 32k tokens, or at the longest context of a run without "
                         "32k." PAPER_REPORTED_NOTE,
                 .columns = {{"origin", "", TABLE_TEXT, true},
                             {"configuration", "", TABLE_TEXT, true},
                             {"scales", "", TABLE_TEXT, true},
                             {"input", "", TABLE_TEXT, true},
                             {"context", "", TABLE_NUMBER, true},
                             {"relative L2", "", TABLE_NUMBER, true},
                             {"relative to snapmla", "", TABLE_NUMBER, true},
                             {"RMSE", "", TABLE_NUMBER, true},
                             {"1 − cosine", "", TABLE_NUMBER, true},
                             {"source", "", TABLE_TEXT, true}}};
    size_t n = paper_count_quotes(m, "granularity");
    for (size_t i = 0; i < m->n_fidelity; i++)
        n += is_shown(m, &m->fidelity[i]);
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_fidelity; i++)
        if (is_shown(m, &m->fidelity[i]))
            put_granularity(&p, m, &m->fidelity[i]);
    for (size_t i = 0; i < m->n_quotes; i++)
        if (strcmp(m->quotes[i].about, "granularity") == 0)
            put_granularity_quote(&p, &m->quotes[i]);
    return !p.failed;
}

/* ---- quality ---- */

/* A measured comparison, or a reported one if @quote is set. */
typedef struct {
    const char *task;
    const report_eval *eval; /* the evaluation that contains the pair */
    const pair_record *pair;
    const report_quote *quote;
    size_t at; /* index before sorting, which makes the order stable */
} quality;

/* Sorts by task. Within a task, measured comparisons are before reported ones. */
static int by_task(const void *x, const void *y) {
    const quality *a = x, *b = y;
    int d = strcmp(a->task, b->task);
    return d ? d : (a->at > b->at) - (a->at < b->at);
}

/* Collects the comparisons in single tasks, measured and reported ones. Controls are left out,
 * because the paper has none. Returns their number. @out may be NULL to count only. */
static size_t collect(const report_model *m, quality *out) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->pairs.n; k++) {
            const pair_record *pair = &m->evals[i].row->pairs.at[k];
            if (pair->control[0])
                continue;
            if (out)
                out[n] = (quality){m->evals[i].row->task, &m->evals[i], pair, NULL, n};
            n++;
        }
    for (size_t i = 0; i < m->n_quotes; i++)
        if (strcmp(m->quotes[i].about, "quality") == 0) {
            if (out)
                out[n] = (quality){m->quotes[i].what, NULL, NULL, &m->quotes[i], n};
            n++;
        }
    return n;
}

static void put_quality(pen *p, const report_model *m, const quality *q) {
    const eval_record *e = q->eval->row;
    const arm_record *a = eval_arm_of(e, q->pair->baseline), *b = eval_arm_of(e, q->pair->arm);
    pen_task(p, e);
    pen_put(p, PAPER_MEASURED);
    pen_text(p, a ? a->model : "");
    pen_printf(p, "%s, %s", q->pair->baseline, q->pair->arm);
    pen_fixed(p, (double)e->samples_per_problem, 0);
    pen_fixed(p, a ? a->accuracy_pct : (double)NAN, 2);
    pen_fixed(p, b ? b->accuracy_pct : (double)NAN, 2);
    pen_signed(p, q->pair->delta_pp, 2);
    pen_text(p, q->pair->refused[0] ? q->pair->refused : q->pair->verdict);
    paper_put_run(p, m, q->eval->file);
}

static void put_quality_quote(pen *p, const report_quote *q) {
    pen_text(p, q->what);
    pen_put(p, PAPER_REPORTED);
    pen_text(p, q->model);
    pen_put(p, "bf16, fp8");
    pen_text(p, "");
    pen_fixed(p, q->bf16, 2);
    pen_fixed(p, q->fp8, 2);
    pen_signed(p, q->fp8 - q->bf16, 2);
    pen_text(p, "");
    pen_text(p, q->source);
}

bool report_table_paper_quality(const report_model *m, arena *mem, table *t) {
    *t =
        (table){.id = "paper-quality",
                .caption = "Accuracy of each arm and of its baseline",
                .note = "Measured differences are paired by problem and have a verdict. A reported "
                        "difference is one reported accuracy minus the other." PAPER_REPORTED_NOTE,
                .columns = {{"task", "", TABLE_TEXT, true},
                            {"origin", "", TABLE_TEXT, true},
                            {"model", "", TABLE_TEXT, true},
                            {"baseline, arm", "", TABLE_TEXT, true},
                            {"K", "", TABLE_NUMBER, true},
                            {"baseline", "accuracy, %", TABLE_NUMBER, true},
                            {"arm", "accuracy, %", TABLE_NUMBER, true},
                            {"Δ", "", TABLE_NUMBER, true},
                            {"verdict", "", TABLE_VERDICT, true},
                            {"source", "", TABLE_TEXT, true}}};
    size_t n = collect(m, NULL);
    quality *all = arena_alloc(mem, n + 1, sizeof *all);
    if (!all || !pen_start(t, mem, n))
        return false;
    (void)collect(m, all);
    qsort(all, n, sizeof *all, by_task);
    pen p = {t, mem, false};
    for (size_t i = 0; i < n; i++)
        if (all[i].quote)
            put_quality_quote(&p, all[i].quote);
        else
            put_quality(&p, m, &all[i]);
    return !p.failed;
}
