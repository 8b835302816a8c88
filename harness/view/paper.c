/* paper.c - reads the other inputs of `report paper`: reported figures and decode steps of whole
 * models. */
#include "harness/view/paper.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/record/reported.h"
#include "harness/view/assets.h"
#include "harness/view/decode_speed.h"
#include "harness/view/outline.h"

enum { kRowsMax = 10000 };

static const char *const kNumbers[] = {"bf16", "fp8", "speedup", "peak_pct"};

static bool is_known(const char *about) {
    static const char *const known[] = {"speed", "kernel", "granularity", "quality"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(about, known[i]) == 0)
            return true;
    return false;
}

/* Checks a row. A key with a wrong type is an error, because its figure would be lost silently. */
static snap_status check_row(const js *row, const char *where, snap_err *err) {
    static const char *const texts[] = {"about", "what", "model", "where", "layout"};
    size_t numbers = 0;
    if (!js_is_object(row))
        return err_set(err, SNAP_E_INPUT, "%s: must be an object, got %s", where,
                       js_type_name(row));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const js *v = js_get(row, texts[i]);
        if (v ? !js_is_str(v) || !js_str(v)[0] : i < 2)
            return err_set(err, SNAP_E_INPUT, "%s.%s: must be text that is not empty", where,
                           texts[i]);
    }
    for (size_t i = 0; i < sizeof kNumbers / sizeof *kNumbers; i++) {
        const js *v = js_get(row, kNumbers[i]);
        if (v && (!js_is_num(v) || js_num(v) < 0))
            return err_set(err, SNAP_E_INPUT, "%s.%s: must be a number of at least 0", where,
                           kNumbers[i]);
        numbers += v != NULL;
    }
    if (!is_known(js_get_str(row, "about")))
        return err_set(err, SNAP_E_INPUT,
                       "%s.about: must be speed, kernel, granularity or quality, got '%s'", where,
                       js_get_str(row, "about"));
    return numbers
               ? SNAP_OK
               : err_set(err, SNAP_E_INPUT, "%s: has none of bf16, fp8, speedup, peak_pct", where);
}

static char *copy(report_model *m, const char *s) {
    return arena_strdup(&m->mem, s);
}

static char *source_of(report_model *m, const char *source, const char *where) {
    buf text = {0};
    (void)buf_printf(&text, "%s%s%s", source, where[0] ? ", " : "", where);
    char *s = text.failed ? NULL : arena_strdup(&m->mem, buf_str(&text));
    buf_release(&text);
    return s;
}

/* The record's texts belong to the document: the arena gets copies. */
static bool read_quote(report_model *m, report_quote *q, const js *row, const char *source) {
    reported_record r;
    if (!record_read(&reported_type, row, &m->mem, &r))
        return false;
    *q = (report_quote){.about = copy(m, r.about),
                        .what = copy(m, r.what),
                        .model = copy(m, r.model),
                        .source = source_of(m, source, r.where),
                        .layout = copy(m, r.layout),
                        .bf16 = r.bf16,
                        .fp8 = r.fp8,
                        .speedup = r.speedup,
                        .peak_pct = r.peak_pct};
    return q->about && q->what && q->model && q->source && q->layout;
}

/* Finds the array of rows and checks its length. */
static snap_status need_rows(const js *doc, const char *name, js **rows, snap_err *err) {
    if (!js_is_object(doc))
        return err_set(err, SNAP_E_INPUT, "%s: must be an object, got %s", name, js_type_name(doc));
    snap_status st = js_need_array(doc, "rows", rows, name, err);
    if (st == SNAP_OK && js_len(*rows) > kRowsMax)
        return err_set(err, SNAP_E_INPUT, "%s: has %zu rows, at most %d are read", name,
                       js_len(*rows), kRowsMax);
    return st;
}

/* Copies @old to the arena, with room for @more rows; NULL when out of memory. */
static void *grow(report_model *m, const void *old, size_t n, size_t more, size_t size) {
    void *all = arena_alloc(&m->mem, n + more + 1, size);
    if (all && n)
        memcpy(all, old, n * size);
    return all;
}

snap_status report_add_reported(report_model *m, const js *doc, const char *name, snap_err *err) {
    const char *source;
    char where[160];
    js *rows = NULL;
    snap_status st = SNAP_OK;
    TRY(need_rows(doc, name, &rows, err));
    TRY(js_need_str(doc, "source", &source, name, err));
    TRY(source[0] ? SNAP_OK : err_set(err, SNAP_E_INPUT, "%s.source: must not be empty", name));
    report_quote *all = grow(m, m->quotes, m->n_quotes, js_len(rows), sizeof *all);
    TRY(all ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", name));
    m->quotes = all;
    for (size_t i = 0; i < js_len(rows); i++) {
        (void)snprintf(where, sizeof where, "%.120s: rows[%zu]", name, i);
        TRY(check_row(js_at(rows, i), where, err));
        TRY(read_quote(m, &all[m->n_quotes], js_at(rows, i), source)
                ? SNAP_OK
                : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", name));
        m->n_quotes++;
    }
cleanup:
    return st;
}

/* ---- whole models ---- */

/* Whether the row is a decode step of the FP8 arm that was compared with BF16. Other rows are
 * skipped. */
static bool is_pair(const step_record *s) {
    return strcmp(s->arm, "fp8") == 0 && strcmp(s->step, "decode") == 0 && s->fp8_over_bf16 > 0 &&
           s->tokens_s > 0;
}

/* The batch of the BF16 step over which the gain of @row was computed. Of several such steps, one
 * with the same batch is taken. RECORD_NO_COUNT if there is none. */
static int64_t bf16_batch_of(const step_list *steps, const step_record *row) {
    int64_t batch = RECORD_NO_COUNT;
    for (size_t i = 0; i < steps->n && batch != row->batch; i++) {
        const step_record *o = &steps->at[i];
        if (o->context == row->context &&
            decode_speed_is_baseline(o->tokens_s, row->tokens_s, row->fp8_over_bf16) &&
            strcmp(o->arm, "bf16") == 0 && strcmp(o->step, "decode") == 0 &&
            strcmp(o->layout, row->layout) == 0 && strcmp(o->model_config, row->model_config) == 0)
            batch = o->batch;
    }
    return batch;
}

static bool read_step(report_model *m, report_step *s, const step_list *steps,
                      const step_record *row, const char *model) {
    s->model = copy(m, row->model_config[0] ? row->model_config : model);
    s->layout = copy(m, row->layout);
    s->context = row->context;
    s->batch = row->batch;
    s->bf16_batch = bf16_batch_of(steps, row);
    s->fp8 = row->tokens_s;
    s->speedup = row->fp8_over_bf16;
    s->bf16 = s->fp8 / s->speedup;
    return s->model && s->layout;
}

/* Finds rows and device of a result file; returns false if @doc is not one. Each row names its
 * model. */
static bool open_results(const js *doc, js **rows, const char **device) {
    const js *provenance = js_get(doc, "provenance"), *backend = js_get(provenance, "backend");
    *rows = js_get_array(doc, "e2e");
    *device = js_get_str(backend, "device");
    return *rows && *device;
}

static snap_status open_printed(const js *doc, const char *name, js **rows, const char **device,
                                const char **model, snap_err *err) {
    const char *what;
    snap_status st = SNAP_OK;
    TRY(need_rows(doc, name, rows, err));
    TRY(js_need_str(doc, "what", &what, name, err));
    TRY(strcmp(what, "e2e") == 0
            ? SNAP_OK
            : err_set(err, SNAP_E_INPUT, "%s: is not an output of 'bench model'", name));
    TRY(js_need_str(doc, "model_config", model, name, err));
    TRY(js_need_str(doc, "device", device, name, err));
cleanup:
    return st;
}

snap_status report_add_e2e(report_model *m, const js *doc, const char *name, snap_err *err) {
    const char *model = "", *device;
    js *rows = NULL;
    snap_status st = SNAP_OK;
    TRY(open_results(doc, &rows, &device) ? SNAP_OK
                                          : open_printed(doc, name, &rows, &device, &model, err));
    step_list steps = {0};
    bool room = record_read_all(&step_type, rows, &m->mem, &steps.at, &steps.n);
    report_step *all = grow(m, m->steps, m->n_steps, steps.n, sizeof *all);
    report_step base = {.device = copy(m, device), .name = copy(m, name)};
    room = room && all && base.device && base.name;
    for (size_t i = 0; i < steps.n && room; i++) {
        const step_record *row = &steps.at[i];
        if (!is_pair(row))
            continue;
        all[m->n_steps] = base;
        room = read_step(m, &all[m->n_steps], &steps, row, model);
        m->n_steps += room;
    }
    m->steps = all ? all : m->steps;
    TRY(room ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", name));
cleanup:
    return st;
}

/* ---- the figures that the SnapMLA paper reports ---- */

snap_status report_paper(report_model *m, snap_err *err) {
    snap_err why = {0};
    js *doc = js_parse(asset_paper_json, strlen(asset_paper_json), "paper.json", &why);
    if (!doc)
        return err_set(err, why.code, "%s", why.text);
    snap_status st = report_add_reported(m, doc, "paper.json", err);
    js_free(doc);
    m->outline = &report_outline_paper;
    return st;
}
