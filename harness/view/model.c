#include "harness/view/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/outline.h"

static const char *text_of(const js *o, const char *key) {
    const char *s = o ? js_get_str(o, key) : NULL;
    return s ? s : "";
}

static double number_of(const js *o, const char *key) {
    return o ? js_get_num(o, key, (double)NAN) : (double)NAN;
}

/* The schema admits 8.0 where it says integer, and bounds what is read so. */
static int64_t count_of(const js *o, const char *key) {
    return (int64_t)js_get_num(o, key, 0);
}

static void interval_of(const js *o, const char *key, double out[2]) {
    const js *pair = o ? js_get_array(o, key) : NULL;
    out[0] = pair ? js_num(js_at(pair, 0)) : (double)NAN;
    out[1] = pair ? js_num(js_at(pair, 1)) : (double)NAN;
}

/* ---- rows ---- */

static void read_ceiling(report_ceiling *c, const js *row, int file) {
    const js *samples = js_get_array(row, "samples");
    *c = (report_ceiling){.name = text_of(row, "name"),
                          .method = text_of(row, "method"),
                          .unit = text_of(row, "unit"),
                          .origin = text_of(row, "origin"),
                          .value = number_of(row, "value"),
                          .lowest = (double)NAN,
                          .samples = js_len(samples),
                          .file = file};
    for (size_t i = 0; i < c->samples; i++)
        c->lowest = fmin(c->lowest, js_num(js_at(samples, i)));
}

static void read_performance(report_cell *c, const js *p) {
    c->bound = text_of(p, "bound");
    c->stop_reason = text_of(p, "stop_reason");
    c->min_ns = number_of(p, "min_ns");
    c->q1_ns = number_of(p, "q1_ns");
    c->median_ns = number_of(p, "median_ns");
    c->q3_ns = number_of(p, "q3_ns");
    c->max_ns = number_of(p, "max_ns");
    c->count = number_of(p, "count");
    c->tflops = number_of(p, "tflops");
    c->gb_s = number_of(p, "gb_s");
    c->tok_s = number_of(p, "tok_s");
    c->tok_j = number_of(p, "tok_j");
    c->floor_ns = number_of(p, "floor_ns");
    c->roofline_pct = number_of(p, "roofline_pct");
    c->paired_pct = number_of(js_get_object(p, "paired"), "roofline_pct");
    c->mhz_before = number_of(p, "clock_mhz_before");
    c->mhz_during = number_of(p, "clock_mhz_during");
    c->power_w = number_of(p, "power_w");
    c->energy_j = number_of(p, "energy_j");
}

static void read_correctness(report_cell *c, const js *o) {
    c->error = number_of(o, "error");
    c->tolerance = number_of(o, "tolerance");
    c->lse_error = number_of(o, "lse_error");
    c->lse_tolerance = number_of(o, "lse_tolerance");
    c->rows_checked = number_of(o, "rows_checked");
}

static void read_shape(report_cell *c, const js *shape) {
    c->heads = count_of(shape, "heads");
    c->s_q = count_of(shape, "s_q");
    c->batch = count_of(shape, "batch");
    c->context = count_of(shape, "context");
    c->d_c = count_of(shape, "d_c");
    c->d_r = count_of(shape, "d_r");
}

/* "a, b" in the arena; "" when there is none or no memory. */
static const char *join_flags(arena *mem, const js *flags) {
    buf text = {0};
    for (size_t i = 0; i < js_len(flags); i++)
        (void)buf_printf(&text, "%s%s", i ? ", " : "", js_str(js_at(flags, i)));
    const char *s = text.len ? arena_strdup(mem, text.data) : NULL;
    buf_release(&text);
    return s ? s : "";
}

static void read_cell(report_model *m, report_cell *c, const js *row, int file) {
    *c = (report_cell){.file = file,
                       .arm = text_of(row, "arm"),
                       .backend = text_of(row, "backend"),
                       .kernel = text_of(row, "kernel"),
                       .kernel_hash = text_of(row, "kernel_hash"),
                       .scope = text_of(row, "scope"),
                       .distribution = text_of(row, "distribution"),
                       .cold = text_of(row, "cold"),
                       .origin = text_of(row, "origin"),
                       .source = text_of(row, "source"),
                       .status = text_of(row, "status"),
                       .reason = text_of(row, "reason"),
                       .mode = text_of(row, "mode")};
    read_shape(c, js_get_object(row, "shape"));
    read_correctness(c, js_get_object(row, "correctness"));
    read_performance(c, js_get_object(row, "performance"));
    c->flags = join_flags(&m->mem, js_get_array(row, "flags"));
}

static void read_fidelity(report_fidelity *f, const js *row, int file) {
    *f = (report_fidelity){.file = file,
                           .kind = text_of(row, "kind"),
                           .config = text_of(row, "config"),
                           .source = text_of(row, "source"),
                           .distribution = text_of(row, "distribution"),
                           .origin = text_of(row, "origin"),
                           .context = count_of(row, "context"),
                           .heads = count_of(row, "heads"),
                           .seed = number_of(row, "seed"),
                           .rows = count_of(row, "rows"),
                           .rmse = number_of(row, "rmse"),
                           .cosine_diff = number_of(row, "cosine_diff"),
                           .rel_l2 = number_of(row, "rel_l2"),
                           .lse_error = number_of(row, "lse_error"),
                           .max_abs = number_of(row, "max_abs")};
}

/* pass@K of all samples of a problem; NAN where there is one only. */
static double last_pass(const js *row) {
    const js *pass = js_get_array(row, "pass_at");
    size_t n = js_len(pass);
    return n > 1 ? number_of(js_at(pass, n - 1), "pct") : (double)NAN;
}

static void read_arm(report_arm *a, const js *row) {
    *a = (report_arm){.name = text_of(row, "name"),
                      .generator = text_of(row, "generator"),
                      .endpoint = text_of(row, "endpoint"),
                      .model = text_of(row, "model"),
                      .origin = text_of(row, "origin"),
                      .samples = number_of(row, "samples"),
                      .scored = number_of(row, "scored"),
                      .failed = number_of(row, "failed"),
                      .accuracy = number_of(row, "accuracy_pct"),
                      .se = number_of(row, "se_pct"),
                      .truncated = number_of(row, "truncated_pct"),
                      .empty = number_of(row, "empty_pct"),
                      .unparsed = number_of(row, "unparsed_pct"),
                      .failed_pct = number_of(row, "failed_pct"),
                      .identical_samples = number_of(row, "identical_samples"),
                      .tokens_mean = number_of(row, "completion_tokens_mean"),
                      .ttft_ms = number_of(row, "ttft_ms_median"),
                      .itl_ms = number_of(row, "itl_ms_median"),
                      .tok_s = number_of(row, "tok_s"),
                      .lag_ms = number_of(js_get_object(row, "client"), "lag_ms_p99"),
                      .pass_k = last_pass(row),
                      .maj_k = number_of(row, "maj_at_k_pct")};
    interval_of(row, "ci95_pct", a->ci95);
}

static void read_pair(report_pair *p, const js *row) {
    const js *discordant = js_get_object(row, "discordant"), *length = js_get_object(row, "length");
    *p = (report_pair){.baseline = text_of(row, "baseline"),
                       .arm = text_of(row, "arm"),
                       .verdict = text_of(row, "verdict"),
                       .refused = text_of(row, "refused"),
                       .control =
                           js_get_bool(row, "control", false) ? "seeds" : text_of(row, "control"),
                       .sensitivity = text_of(row, "sensitivity"),
                       .problems = number_of(row, "problems"),
                       .delta = number_of(row, "delta_pp"),
                       .se = number_of(row, "se_pp"),
                       .margin = number_of(row, "margin_pp"),
                       .p_tost = number_of(row, "p_tost"),
                       .p_holm = number_of(row, "p_holm"),
                       .p_sign_flip = number_of(row, "p_sign_flip"),
                       .p_mcnemar = number_of(row, "p_mcnemar"),
                       .baseline_only = number_of(discordant, "baseline_only"),
                       .arm_only = number_of(discordant, "arm_only"),
                       .length_ratio = number_of(length, "ratio"),
                       .length_delta = number_of(length, "delta_tokens")};
    interval_of(row, "ci90_pp", p->ci90);
    interval_of(row, "ci95_pp", p->ci95);
    interval_of(length, "ci95_tokens", p->length_ci95);
}

/* Without the seed, in which two runs may differ; NULL when out of memory. */
static const char *sampling_of(report_model *m, const js *row) {
    const js *s = js_get_object(row, "sampling");
    char text[160];
    (void)snprintf(text, sizeof text, "T %.10g, top_p %.10g, top_k %.10g, %.10g tokens",
                   js_get_num(s, "temperature", 0), js_get_num(s, "top_p", 0),
                   js_get_num(s, "top_k", 0), js_get_num(s, "max_tokens", 0));
    return arena_strdup(&m->mem, text);
}

static bool read_eval(report_model *m, report_eval *e, const js *row, int file) {
    const js *dataset = js_get_object(row, "dataset");
    const js *arms = js_get_array(row, "arms"), *pairs = js_get_array(row, "pairs");
    *e = (report_eval){.file = file,
                       .task = text_of(row, "task"),
                       .dataset = text_of(dataset, "file"),
                       .dataset_sha256 = text_of(dataset, "sha256"),
                       .manifest = text_of(dataset, "manifest"),
                       .grader = text_of(row, "grader"),
                       .prompt_sha256 = text_of(row, "prompt_sha256"),
                       .sampling = sampling_of(m, row),
                       .problems = number_of(row, "problems"),
                       .samples_per_problem = number_of(row, "samples_per_problem"),
                       .n_arms = js_len(arms),
                       .n_pairs = js_len(pairs)};
    report_arm *a = arena_alloc(&m->mem, e->n_arms + 1, sizeof *a);
    report_pair *p = arena_alloc(&m->mem, e->n_pairs + 1, sizeof *p);
    e->arms = a;
    e->pairs = p;
    if (!a || !p || !e->sampling)
        return false;
    for (size_t i = 0; i < e->n_arms; i++)
        read_arm(&a[i], js_at(arms, i));
    for (size_t i = 0; i < e->n_pairs; i++)
        read_pair(&p[i], js_at(pairs, i));
    return true;
}

/* ---- files ---- */

static size_t total(results *const *runs, int n, const char *section) {
    size_t rows = 0;
    for (int i = 0; i < n; i++)
        rows += js_len(results_section(runs[i], section));
    return rows;
}

static size_t sources_of(const results *r) {
    const js *sources = js_get_array(results_document(r), "sources");
    return sources ? js_len(sources) : 1;
}

static void read_model_row(report_model_row *r, const js *row, int file) {
    const char *config = text_of(row, "config"), *precision = text_of(row, "precision");
    *r = (report_model_row){.file = file,
                            .kind = text_of(row, "kind"),
                            .model = text_of(row, "model"),
                            .name = *config      ? config
                                    : *precision ? precision
                                                 : text_of(row, "part"),
                            .context = count_of(row, "context"),
                            .layer = count_of(row, "layer"),
                            .row = row};
}

static bool reserve(report_model *m, results *const *runs, int n) {
    size_t sources = 0;
    for (int i = 0; i < n; i++)
        sources += sources_of(runs[i]);
    size_t cells = total(runs, n, "bench");
    m->files = arena_alloc(&m->mem, (size_t)n + 1, sizeof *m->files);
    m->sources = arena_alloc(&m->mem, sources + 1, sizeof *m->sources);
    m->ceilings = arena_alloc(&m->mem, total(runs, n, "ceilings") + 1, sizeof *m->ceilings);
    m->cells = arena_alloc(&m->mem, cells + 1, sizeof *m->cells);
    m->speeds = arena_alloc(&m->mem, cells + 1, sizeof *m->speeds);
    m->fidelity = arena_alloc(&m->mem, total(runs, n, "fidelity") + 1, sizeof *m->fidelity);
    m->model_rows =
        arena_alloc(&m->mem, total(runs, n, "model_fidelity") + 1, sizeof *m->model_rows);
    m->evals = arena_alloc(&m->mem, total(runs, n, "evals") + 1, sizeof *m->evals);
    return m->files && m->sources && m->ceilings && m->cells && m->speeds && m->fidelity &&
           m->model_rows && m->evals;
}

static void read_sources(report_model *m, const results *r, int file) {
    const js *document = results_document(r), *sources = js_get_array(document, "sources");
    for (size_t i = 0; i < sources_of(r); i++)
        m->sources[m->n_sources++] = (report_source){
            file, sources ? js_at(sources, i) : js_get_object(document, "provenance")};
}

static bool read_run(report_model *m, const results *r, int file) {
    bool ok = true;
    const js *rows = results_section(r, "ceilings");
    read_sources(m, r, file);
    for (size_t i = 0; i < js_len(rows); i++)
        read_ceiling(&m->ceilings[m->n_ceilings++], js_at(rows, i), file);
    rows = results_section(r, "bench");
    for (size_t i = 0; i < js_len(rows); i++)
        read_cell(m, &m->cells[m->n_cells++], js_at(rows, i), file);
    rows = results_section(r, "fidelity");
    for (size_t i = 0; i < js_len(rows); i++)
        read_fidelity(&m->fidelity[m->n_fidelity++], js_at(rows, i), file);
    rows = results_section(r, "model_fidelity");
    for (size_t i = 0; i < js_len(rows); i++)
        read_model_row(&m->model_rows[m->n_model_rows++], js_at(rows, i), file);
    rows = results_section(r, "evals");
    for (size_t i = 0; i < js_len(rows) && ok; i++)
        ok = read_eval(m, &m->evals[m->n_evals++], js_at(rows, i), file);
    return ok;
}

/* ---- order and pairs ---- */

static int by_number(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

/* 0 for the two arms of one shape. */
static int by_shape(const report_cell *a, const report_cell *b) {
    int d = strcmp(a->origin, b->origin); /* "measured" before "reported" */
    d = d ? d : by_number(a->file, b->file);
    d = d ? d : strcmp(a->backend, b->backend);
    d = d ? d : strcmp(a->source, b->source);
    d = d ? d : strcmp(a->scope, b->scope);
    d = d ? d : strcmp(a->distribution, b->distribution);
    d = d ? d : strcmp(a->cold, b->cold);
    d = d ? d : by_number(a->d_c, b->d_c);
    d = d ? d : by_number(a->d_r, b->d_r);
    d = d ? d : by_number(a->s_q, b->s_q);
    d = d ? d : by_number(a->heads, b->heads);
    d = d ? d : by_number(a->batch, b->batch);
    return d ? d : by_number(a->context, b->context);
}

static int by_cell(const void *x, const void *y) {
    const report_cell *a = x, *b = y;
    int d = by_shape(a, b);
    return d ? d : strcmp(a->arm, b->arm);
}

static bool has_passed(const report_cell *c) {
    return c && strcmp(c->status, "passed") == 0;
}

static const char *both_flags(arena *mem, const report_cell *a, const report_cell *b) {
    if (!a || !b || !a->flags[0] || !b->flags[0] || strcmp(a->flags, b->flags) == 0)
        return a && a->flags[0] ? a->flags : b ? b->flags : "";
    buf text = {0};
    (void)buf_printf(&text, "BF16 %s; FP8 %s", a->flags, b->flags);
    const char *s = arena_strdup(mem, buf_str(&text));
    buf_release(&text);
    return s ? s : "";
}

static void pair_cells(report_model *m) {
    while (m->n_measured < m->n_cells && strcmp(m->cells[m->n_measured].origin, "measured") == 0)
        m->n_measured++;
    for (size_t i = 0; i < m->n_measured; i++) {
        const report_cell *c = &m->cells[i], *next = i + 1 < m->n_measured ? c + 1 : NULL;
        bool is_bf16 = strcmp(c->arm, "bf16") == 0;
        if (report_is_ablated(c))
            continue;
        bool paired = is_bf16 && next && by_shape(c, next) == 0 && strcmp(next->arm, "fp8") == 0;
        report_speed *s = &m->speeds[m->n_speeds++];
        *s = (report_speed){.bf16 = is_bf16 ? c : NULL, .any = c, .speedup = (double)NAN};
        s->fp8 = is_bf16 ? (paired ? next : NULL) : c;
        s->flags = both_flags(&m->mem, s->bf16, s->fp8);
        if (has_passed(s->bf16) && has_passed(s->fp8))
            s->speedup = s->bf16->median_ns / s->fp8->median_ns;
        i += paired;
    }
}

static void sum_up(report_model *m) {
    static const char *const scopes[REPORT_SCOPES] = {"kernel", "served"};
    for (int k = 0; k < REPORT_SCOPES; k++) {
        report_gain *g = &m->gains[k];
        *g = (report_gain){.scope = scopes[k], .lowest = (double)NAN, .highest = (double)NAN};
        for (size_t i = 0; i < m->n_speeds; i++) {
            const report_speed *s = &m->speeds[i];
            if (isnan(s->speedup) || strcmp(s->any->scope, scopes[k]) != 0)
                continue;
            g->n++;
            g->mean += log(s->speedup);
            g->lowest = fmin(g->lowest, s->speedup);
            g->highest = fmax(g->highest, s->speedup);
        }
        g->mean = g->n ? exp(g->mean / (double)g->n) : (double)NAN;
    }
}

snap_status report_model_new(report_model **out, results *const *runs, const char *const *names,
                             int n, snap_err *err) {
    report_model *m = calloc(1, sizeof *m);
    bool ok = m && reserve(m, runs, n);
    *out = NULL;
    for (int i = 0; i < n && ok; i++) {
        m->files[i] = arena_strdup(&m->mem, names[i]);
        m->n_files++;
        ok = m->files[i] && read_run(m, runs[i], i);
    }
    if (!ok) {
        report_model_free(m);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a report");
    }
    qsort(m->cells, m->n_cells, sizeof *m->cells, by_cell);
    pair_cells(m);
    sum_up(m);
    m->outline = &report_outline_whole;
    *out = m;
    return SNAP_OK;
}

snap_status report_model_add_samples(report_model *m, const char *name, const char *path,
                                     bool confidential, snap_err *err) {
    report_samples *s = arena_alloc(&m->mem, 1, sizeof *s), **end = &m->samples;
    if (!s || !(s->name = arena_strdup(&m->mem, name)))
        return err_set(err, SNAP_E_NOMEM, "out of memory for a report");
    s->confidential = confidential;
    while (*end)
        end = &(*end)->next;
    *end = s;
    return sample_index_open(&s->index, path, err);
}

void report_model_free(report_model *m) {
    for (report_samples *s = m ? m->samples : NULL; s; s = s->next)
        sample_index_close(&s->index);
    if (m)
        arena_release(&m->mem);
    free(m);
}

double report_ceiling_of(const report_model *m, int file, const char *name) {
    for (size_t i = 0; i < m->n_ceilings; i++)
        if (m->ceilings[i].file == file && strcmp(m->ceilings[i].name, name) == 0)
            return m->ceilings[i].value;
    return 0;
}

bool report_is_ablated(const report_cell *c) {
    return strncmp(c->arm, "fp8-", 4) == 0;
}

const report_cell *report_whole_of(const report_model *m, const report_cell *c) {
    for (const report_cell *at = c; at-- > m->cells && by_shape(at, c) == 0;)
        if (strcmp(at->arm, "fp8") == 0)
            return at;
    return NULL;
}

void report_cell_name(const report_cell *c, char out[96]) {
    (void)snprintf(out, 96, "%s %s H%lld s%lld b%lld c%lld", c->arm, c->scope, (long long)c->heads,
                   (long long)c->s_q, (long long)c->batch, (long long)c->context);
}
