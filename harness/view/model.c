#include "harness/view/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/named_arms.h"
#include "harness/view/outline.h"

/* ---- rows ---- */

static report_ceiling ceiling_of(const ceiling_record *row, int file) {
    report_ceiling c = {file, row, (double)NAN};
    for (size_t i = 0; i < row->samples.n; i++)
        c.lowest = fmin(c.lowest, row->samples.at[i]);
    return c;
}

/* The flags as "a, b", allocated in @mem; "" if there are none or if memory is exhausted. */
static const char *join_flags(arena *mem, record_texts flags) {
    buf text = {0};
    for (size_t i = 0; i < flags.n; i++)
        (void)buf_printf(&text, "%s%s", i ? ", " : "", flags.at[i]);
    const char *s = text.len ? arena_strdup(mem, text.data) : NULL;
    buf_release(&text);
    return s ? s : "";
}

static report_cell cell_of(report_model *m, const cell_record *row, int file) {
    return (report_cell){file, row, &row->shape, &row->performance,
                         join_flags(&m->mem, row->flags)};
}

static report_model_row model_row_of(const model_record *row, int file) {
    const char *name = row->config[0] ? row->config : row->precision;
    return (report_model_row){file, row, name[0] ? name : row->part};
}

/* Older files do not contain sampling parameters that were not set. */
static double or_0(double x) {
    return isnan(x) ? 0 : x;
}

/* The sampling parameters as text, without the seed, which may differ between comparable runs. NULL
 * if memory is exhausted. */
static const char *sampling_of(report_model *m, const eval_sampling *s) {
    const struct {
        const char *name;
        double value;
    } more[] = {{"min_p", s->min_p},
                {"presence_penalty", s->presence_penalty},
                {"frequency_penalty", s->frequency_penalty},
                {"repetition_penalty", s->repetition_penalty}};
    char text[320];
    int n = snprintf(text, sizeof text, "T %.10g, top_p %.10g, top_k %.10g, %.10g tokens",
                     or_0(s->temperature), or_0(s->top_p), or_0(record_count(s->top_k)),
                     or_0(record_count(s->max_tokens)));
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (!isnan(more[i].value))
            n += snprintf(text + n, sizeof text - (size_t)n, ", %s %.10g", more[i].name,
                          more[i].value);
    return arena_strdup(&m->mem, text);
}

/* ---- files ---- */

static size_t sources_of(const run_record *r) {
    return r->sources.at ? r->sources.n : 1;
}

/* Reads the rows of all files into structs in the arena. NULL if memory is exhausted. */
static run_record *read_runs(report_model *m, results *const *runs, int n) {
    run_record *all = arena_alloc(&m->mem, (size_t)n + 1, sizeof *all);
    bool ok = all != NULL;
    for (int i = 0; i < n && ok; i++)
        ok = run_read(&all[i], runs[i], &m->mem, NULL) == SNAP_OK;
    return ok ? all : NULL;
}

static bool reserve(report_model *m, const run_record *runs, int n) {
    size_t sources = 0, ceilings = 0, cells = 0, fidelity = 0, model_rows = 0, exchanges = 0,
           predicted = 0, evals = 0, pooled = 0, serving = 0;
    for (int i = 0; i < n; i++) {
        sources += sources_of(&runs[i]);
        ceilings += runs[i].ceilings.n;
        cells += runs[i].bench.n;
        fidelity += runs[i].fidelity.n;
        model_rows += runs[i].model_fidelity.n;
        exchanges += runs[i].exchange.n;
        predicted += runs[i].predicted.n;
        evals += runs[i].evals.n;
        pooled += runs[i].pooled.n;
        serving += runs[i].serving.n;
    }
    m->files = arena_alloc(&m->mem, (size_t)n + 1, sizeof *m->files);
    m->sources = arena_alloc(&m->mem, sources + 1, sizeof *m->sources);
    m->ceilings = arena_alloc(&m->mem, ceilings + 1, sizeof *m->ceilings);
    m->cells = arena_alloc(&m->mem, cells + 1, sizeof *m->cells);
    m->speeds = arena_alloc(&m->mem, cells + 1, sizeof *m->speeds);
    m->fidelity = arena_alloc(&m->mem, fidelity + 1, sizeof *m->fidelity);
    m->model_rows = arena_alloc(&m->mem, model_rows + 1, sizeof *m->model_rows);
    m->exchanges = arena_alloc(&m->mem, exchanges + 1, sizeof *m->exchanges);
    m->predicted = arena_alloc(&m->mem, predicted + 1, sizeof *m->predicted);
    m->evals = arena_alloc(&m->mem, evals + 1, sizeof *m->evals);
    m->pooled = arena_alloc(&m->mem, pooled + 1, sizeof *m->pooled);
    m->serving = arena_alloc(&m->mem, serving + 1, sizeof *m->serving);
    return m->files && m->sources && m->ceilings && m->cells && m->speeds && m->fidelity &&
           m->model_rows && m->exchanges && m->predicted && m->evals && m->pooled && m->serving;
}

static bool add_run(report_model *m, const run_record *r, int file) {
    bool ok = true;
    for (size_t i = 0; i < sources_of(r); i++)
        m->sources[m->n_sources++] =
            (report_source){file, r->sources.at ? &r->sources.at[i] : &r->provenance};
    for (size_t i = 0; i < r->ceilings.n; i++)
        m->ceilings[m->n_ceilings++] = ceiling_of(&r->ceilings.at[i], file);
    for (size_t i = 0; i < r->bench.n; i++)
        m->cells[m->n_cells++] = cell_of(m, &r->bench.at[i], file);
    for (size_t i = 0; i < r->fidelity.n; i++)
        m->fidelity[m->n_fidelity++] = (report_fidelity){file, &r->fidelity.at[i]};
    for (size_t i = 0; i < r->model_fidelity.n; i++)
        m->model_rows[m->n_model_rows++] = model_row_of(&r->model_fidelity.at[i], file);
    for (size_t i = 0; i < r->exchange.n; i++)
        m->exchanges[m->n_exchanges++] = (report_exchange){file, &r->exchange.at[i]};
    for (size_t i = 0; i < r->predicted.n; i++)
        m->predicted[m->n_predicted++] = (report_predicted){file, &r->predicted.at[i]};
    for (size_t i = 0; i < r->pooled.n; i++)
        m->pooled[m->n_pooled++] = (report_pooled){file, &r->pooled.at[i]};
    for (size_t i = 0; i < r->serving.n; i++)
        m->serving[m->n_serving++] = (report_serving){file, &r->serving.at[i]};
    for (size_t i = 0; i < r->evals.n && ok; i++) {
        const eval_record *row = &r->evals.at[i];
        report_eval *e = &m->evals[m->n_evals++];
        *e = (report_eval){file, row, sampling_of(m, &row->sampling)};
        ok = e->sampling != NULL;
    }
    return ok;
}

/* ---- order and pairs ---- */

static int by_number(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

bool report_is_loop(const report_cell *c) {
    return strcmp(c->row->mode, "sustained") == 0;
}

static bool is_named(const report_cell *c) {
    return c->row->name[0] != '\0';
}

/* Returns 0 for two rows of one file and backend with the same shape, scope and conditions (input,
 * cache, mode). Their arms may differ. */
static int by_shape(const report_cell *a, const report_cell *b) {
    int d = strcmp(a->row->origin, b->row->origin); /* "measured" before "reported" */
    d = d ? d : by_number(a->file, b->file);
    d = d ? d : strcmp(a->row->backend, b->row->backend);
    d = d ? d : strcmp(a->row->source, b->row->source);
    d = d ? d : strcmp(a->row->scope, b->row->scope);
    d = d ? d : strcmp(a->row->distribution, b->row->distribution);
    d = d ? d : strcmp(a->row->cold, b->row->cold);
    d = d ? d : report_is_loop(a) - report_is_loop(b);
    d = d ? d : is_named(a) - is_named(b);
    d = d ? d : strcmp(a->row->lengths.distribution, b->row->lengths.distribution);
    d = d ? d : by_number(a->row->lengths.tokens, b->row->lengths.tokens);
    d = d ? d : by_number(a->shape->d_c, b->shape->d_c);
    d = d ? d : by_number(a->shape->d_r, b->shape->d_r);
    d = d ? d : by_number(a->shape->s_q, b->shape->s_q);
    d = d ? d : by_number(a->shape->heads, b->shape->heads);
    d = d ? d : by_number(a->shape->batch, b->shape->batch);
    return d ? d : by_number(a->shape->context, b->shape->context);
}

static int by_cell(const void *x, const void *y) {
    const report_cell *a = x, *b = y;
    int d = by_shape(a, b);
    d = d ? d : strcmp(a->row->name, b->row->name);
    return d ? d : strcmp(a->row->arm, b->row->arm);
}

static bool has_passed(const report_cell *c) {
    return c && strcmp(c->row->status, "passed") == 0;
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
    while (m->n_measured < m->n_cells &&
           strcmp(m->cells[m->n_measured].row->origin, "measured") == 0)
        m->n_measured++;
    for (size_t i = 0; i < m->n_measured; i++) {
        const report_cell *c = &m->cells[i], *next = i + 1 < m->n_measured ? c + 1 : NULL;
        bool is_bf16 = strcmp(c->row->arm, "bf16") == 0;
        if (report_is_ablated(c) || is_named(c))
            continue;
        bool paired =
            is_bf16 && next && by_shape(c, next) == 0 && strcmp(next->row->arm, "fp8") == 0;
        report_speed *s = &m->speeds[m->n_speeds++];
        *s = (report_speed){.bf16 = is_bf16 ? c : NULL, .any = c, .speedup = (double)NAN};
        s->fp8 = is_bf16 ? (paired ? next : NULL) : c;
        s->flags = both_flags(&m->mem, s->bf16, s->fp8);
        if (has_passed(s->bf16) && has_passed(s->fp8))
            s->speedup = s->bf16->perf->median_ns / s->fp8->perf->median_ns;
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
            if (isnan(s->speedup) || strcmp(s->any->row->scope, scopes[k]) != 0)
                continue;
            if (s->flags[0]) {
                g->flagged++;
                continue;
            }
            g->n++;
            g->mean += log(s->speedup);
            g->lowest = fmin(g->lowest, s->speedup);
            g->highest = fmax(g->highest, s->speedup);
        }
        g->mean = g->n ? exp(g->mean / (double)g->n) : (double)NAN;
    }
}

void report_gain_text(const report_gain *g, buf *out) {
    const char *s = g->flagged == 1 ? "" : "s", *verb = g->flagged == 1 ? "is" : "are";
    if (!g->n) {
        (void)buf_printf(out, "no mean: every one of %zu shape%s has a flag", g->flagged, s);
        return;
    }
    (void)buf_printf(out, "geometric mean of %zu shape%s, %.2f× to %.2f×", g->n,
                     g->n == 1 ? "" : "s", g->lowest, g->highest);
    if (g->flagged)
        (void)buf_printf(out, "; %zu shape%s with flags %s left out", g->flagged, s, verb);
}

/* Copies the devices of the files. */
static bool group(report_model *m, const int *device_of, const char *const *given, int n) {
    m->device_of = arena_alloc(&m->mem, (size_t)m->n_files + 1, sizeof *m->device_of);
    m->given = arena_alloc(&m->mem, (size_t)n + 1, sizeof *m->given);
    m->n_devices = n;
    bool ok = m->device_of && m->given;
    for (int i = 0; i < m->n_files && ok; i++)
        m->device_of[i] = device_of ? device_of[i] : i;
    for (int i = 0; i < n && ok; i++)
        ok = (m->given[i] = arena_strdup(&m->mem, given[i])) != NULL;
    return ok;
}

snap_status report_group(report_model *m, const int *device_of, const char *const *given, int n,
                         snap_err *err) {
    return group(m, device_of, given, n) ? SNAP_OK
                                         : err_set(err, SNAP_E_NOMEM, "out of memory for a report");
}

snap_status report_model_new(report_model **out, results *const *runs, const char *const *names,
                             int n, snap_err *err) {
    report_model *m = calloc(1, sizeof *m);
    run_record *rows = m ? read_runs(m, runs, n) : NULL;
    bool ok = rows && reserve(m, rows, n);
    *out = NULL;
    for (int i = 0; i < n && ok; i++) {
        m->files[i] = arena_strdup(&m->mem, names[i]);
        m->n_files++;
        ok = m->files[i] && add_run(m, &rows[i], i);
    }
    if (!ok || !group(m, NULL, names, n)) {
        report_model_free(m);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a report");
    }
    qsort(m->cells, m->n_cells, sizeof *m->cells, by_cell);
    pair_cells(m);
    sum_up(m);
    if (!named_arms_find(m)) {
        report_model_free(m);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a report");
    }
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

const char *report_name_of(const report_model *m, int file) {
    return m->labels ? m->labels[m->device_of[file]] : m->files[file];
}

double report_ceiling_of(const report_model *m, int file, const char *name) {
    for (size_t i = 0; i < m->n_ceilings; i++)
        if (m->ceilings[i].file == file && strcmp(m->ceilings[i].row->name, name) == 0)
            return m->ceilings[i].row->value;
    return 0;
}

bool report_is_ablated(const report_cell *c) {
    return !is_named(c) && strncmp(c->row->arm, "fp8-", 4) == 0;
}

const report_cell *report_whole_of(const report_model *m, const report_cell *c) {
    for (const report_cell *at = c; at-- > m->cells && by_shape(at, c) == 0;)
        if (strcmp(at->row->arm, "fp8") == 0)
            return at;
    return NULL;
}

void report_cell_name(const report_cell *c, char out[96]) {
    const cell_shape *s = c->shape;
    (void)snprintf(out, 96, "%s %s H%lld s%lld b%lld c%lld", cell_arm_name(c->row), c->row->scope,
                   (long long)s->heads, (long long)s->s_q, (long long)s->batch,
                   (long long)s->context);
}
