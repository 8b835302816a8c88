#include "harness/gate/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "harness/gate/change.h"
#include "harness/gate/verdicts.h"

enum { kFewestRuns = 5, kSeed = 1 };
static const size_t kLimit = (size_t)256 << 20;
static const double kAlpha = 0.01; /* low, because every cell is a series that is tested */

struct gate_history {
    js *runs; /* the lines of one machine */
    char machine[200];
};

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for a history");
}

/* ---- writing ---- */

void history_machine_of(const origin_record *o, char out[200]) {
    (void)snprintf(out, 200, "%.16s %s", o->host.name_sha256, o->backend.device);
}

void history_machine(const results *r, char out[200]) {
    arena mem = {0};
    run_record run;
    out[0] = '\0';
    if (run_read(&run, r, &mem, NULL) == SNAP_OK)
        history_machine_of(&run.provenance, out);
    arena_release(&mem);
}

void history_cell_name(const cell_record *c, char out[160]) {
    const cell_shape *s = &c->shape;
    (void)snprintf(out, 160, "%s%s%s %s H%lld s%lld b%lld c%lld%s%.24s d%lld+%lld, %.24s, %s%s",
                   c->name, c->name[0] ? ": " : "", c->arm, c->scope, (long long)s->heads,
                   (long long)s->s_q, (long long)s->batch, (long long)s->context,
                   c->lengths.exists ? " " : "", c->lengths.distribution, (long long)s->d_c,
                   (long long)s->d_r, c->distribution, c->cold,
                   strcmp(c->mode, "sustained") == 0 ? ", sustained" : "");
}

static js *cells_of(const cell_list *rows) {
    js *cells = js_new_object();
    bool ok = cells != NULL;
    for (size_t i = 0; i < rows->n && ok; i++) {
        const cell_record *c = &rows->at[i];
        char name[160];
        history_cell_name(c, name);
        if (c->performance.median_ns > 0 && strcmp(c->origin, "measured") == 0)
            ok = js_set_num(cells, name, c->performance.median_ns);
    }
    if (ok)
        return cells;
    js_free(cells);
    return NULL;
}

snap_status history_append(const char *path, const results *r, snap_err *err) {
    char machine[200];
    arena mem = {0};
    run_record run;
    buf line = {0};
    fs_log log = FS_LOG_CLOSED;
    js *o = js_new_object();
    snap_status st = SNAP_OK;
    TRY(run_read(&run, r, &mem, err));
    history_machine_of(&run.provenance, machine);
    bool ok = o && js_set_str(o, "started", run.provenance.started) &&
              js_set_str(o, "commit", run.provenance.program.commit) &&
              js_set_str(o, "machine", machine) && js_set_new(o, "cells", cells_of(&run.bench));
    TRY(ok ? js_write(o, JS_COMPACT, &line, err) : no_memory(err));
    (void)buf_puts(&line, "\n");
    TRY(buf_check(&line, "a run", err));
    TRY(fs_log_open(&log, path, err));
    TRY(fs_log_append(&log, line.data, line.len, err));
    TRY(fs_log_sync(&log, err));
cleanup:
    fs_log_close(&log);
    buf_release(&line);
    js_free(o);
    arena_release(&mem);
    return st;
}

/* ---- reading a history ---- */

typedef struct {
    const char *path;
    js *all;
} reader;

static snap_status read_line(void *ctx, js *line, long number, snap_err *err) {
    reader *rd = ctx;
    js *cells = js_get_object(line, "cells");
    if (!js_get_str(line, "machine") || !js_get_str(line, "commit") ||
        !js_get_str(line, "started") || !cells)
        return err_set(err, SNAP_E_INPUT,
                       "%s:%ld: a run must have 'started', 'commit', 'machine' and 'cells'",
                       rd->path, number);
    for (void *it = js_first(cells); it; it = js_next(cells, it))
        if (!(js_num(js_value(it)) > 0))
            return err_set(err, SNAP_E_INPUT, "%s:%ld: a time must be a positive number", rd->path,
                           number);
    return js_push_new(rd->all, js_copy(line)) ? SNAP_OK : no_memory(err);
}

static snap_status keep_machine(gate_history *h, const js *all, const char *machine,
                                snap_err *err) {
    size_t n = js_len(all);
    if (!machine && n)
        machine = js_get_str(js_at(all, n - 1), "machine");
    (void)snprintf(h->machine, sizeof h->machine, "%s", machine ? machine : "");
    for (size_t i = 0; i < n; i++)
        if (text_equal(js_get_str(js_at(all, i), "machine"), machine) &&
            !js_push_new(h->runs, js_copy(js_at(all, i))))
            return no_memory(err);
    return SNAP_OK;
}

snap_status history_load(gate_history **out, const char *path, const char *machine, bool may_lack,
                         snap_err *err) {
    gate_history *h = calloc(1, sizeof *h);
    buf text = {.limit = kLimit};
    reader rd = {path, js_new_array()};
    snap_status st = SNAP_OK;
    *out = NULL;
    if (!h) {
        js_free(rd.all);
        return no_memory(err);
    }
    h->runs = js_new_array();
    TRY(h->runs && rd.all ? SNAP_OK : no_memory(err));
    if (!may_lack || fs_exists(path))
        TRY(fs_read_regular(path, &text, err));
    TRY(js_each_line(buf_str(&text), text.len, path, read_line, &rd, err));
    TRY(keep_machine(h, rd.all, machine, err));
    *out = h;
    h = NULL;
cleanup:
    history_free(h);
    buf_release(&text);
    js_free(rd.all);
    return st;
}

void history_free(gate_history *h) {
    if (h)
        js_free(h->runs);
    free(h);
}

size_t history_runs(const gate_history *h) {
    return js_len(h->runs);
}

/* ---- the times of a cell over the runs ---- */

/* Writes the logarithms of a cell's times to @x and the indices of their runs to @run, and returns
 * how many there are. Runs without a time of the cell are left out. Both arrays have room for all
 * runs. */
static size_t series_of(const gate_history *h, const char *cell, double *x, size_t *run) {
    size_t n = 0;
    for (size_t i = 0; i < js_len(h->runs); i++) {
        double ns = js_get_num(js_get_object(js_at(h->runs, i), "cells"), cell, 0);
        if (!(ns > 0))
            continue;
        x[n] = log(ns);
        run[n++] = i;
    }
    return n;
}

static double spread_of(const double *x, size_t n) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return n > 1 ? sqrt(squares / (double)(n - 1)) : (double)NAN;
}

double history_spread(const gate_history *h, const char *cell) {
    size_t runs = js_len(h->runs), found = 0;
    double *x = calloc(runs + 1, sizeof *x), spread = (double)NAN;
    size_t *run = calloc(runs + 1, sizeof *run);
    change_point points[CHANGE_MAX];
    size_t n = x && run ? series_of(h, cell, x, run) : 0;
    if (n >= kFewestRuns && change_find(x, n, kAlpha, kSeed, points, &found, NULL) == SNAP_OK) {
        size_t from = found ? points[found - 1].at : 0;
        if (n - from >= kFewestRuns)
            spread = spread_of(x + from, n - from);
    }
    free(x);
    free(run);
    return spread;
}

static double mean_of(const double *x, size_t from, size_t to) {
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += x[i];
    return sum / (double)(to - from);
}

/* The row of the change at points[k]: the ratio of the geometric means after and before it. */
static js *change_row(const gate_history *h, const char *cell, const double *x, const size_t *run,
                      size_t n, const change_point *points, size_t k, size_t found) {
    size_t from = k ? points[k - 1].at : 0, at = points[k].at;
    size_t to = k + 1 < found ? points[k + 1].at : n;
    double before = mean_of(x, from, at), after = mean_of(x, at, to);
    const js *first = js_at(h->runs, run[at]);
    verdict_record v = verdict_start("change", cell, NULL, NULL, VERDICT_CHANGE);
    v.at = (int64_t)run[at] + 1;
    v.started = js_get_str(first, "started");
    v.commit = js_get_str(first, "commit");
    v.ratio = exp(after - before);
    v.baseline_ns = exp(before);
    v.current_ns = exp(after);
    v.p = points[k].p;
    return record_write(&verdict_type, &v);
}

static snap_status cell_changes(const gate_history *h, const char *cell, double *x, size_t *run,
                                js *rows, snap_err *err) {
    change_point points[CHANGE_MAX];
    size_t found, n = series_of(h, cell, x, run);
    snap_status st = change_find(x, n, kAlpha, kSeed, points, &found, err);
    for (size_t k = 0; k < found && st == SNAP_OK; k++)
        if (!js_push_new(rows, change_row(h, cell, x, run, n, points, k, found)))
            st = no_memory(err);
    return st;
}

/* An object with the names of all cells of all runs as keys. */
static js *names_of(const gate_history *h) {
    js *names = js_new_object();
    bool ok = names != NULL;
    for (size_t i = 0; i < js_len(h->runs) && ok; i++) {
        js *cells = js_get_object(js_at(h->runs, i), "cells");
        for (void *it = js_first(cells); it && ok; it = js_next(cells, it))
            ok = js_set_bool(names, js_key(it), true);
    }
    if (ok)
        return names;
    js_free(names);
    return NULL;
}

static snap_status all_changes(const gate_history *h, js *names, double *x, size_t *run, js *rows,
                               snap_err *err) {
    snap_status st = SNAP_OK;
    for (void *it = js_first(names); it && st == SNAP_OK; it = js_next(names, it))
        st = cell_changes(h, js_key(it), x, run, rows, err);
    return st;
}

snap_status history_changes(const gate_history *h, js **out, snap_err *err) {
    size_t runs = js_len(h->runs);
    double *x = calloc(runs + 1, sizeof *x);
    size_t *run = calloc(runs + 1, sizeof *run);
    js *names = names_of(h), *rows = js_new_array();
    snap_status st = SNAP_E_NOMEM;
    if (x && run && names && rows)
        st = all_changes(h, names, x, run, rows, err);
    else
        (void)no_memory(err);
    free(x);
    free(run);
    js_free(names);
    if (st != SNAP_OK) {
        js_free(rows);
        rows = NULL;
    }
    *out = rows;
    return st;
}
