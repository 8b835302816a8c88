/* bench_results.c - what follows from the samples of a benchmark, and its result file. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "harness/bench/bench_run_inside.h"
#include "harness/record/device_results.h"

/* Derives the rows of each arm whose ceilings are those of device @i. */
static snap_status derive_arms(bench *b, int i, snap_err *err) {
    const mla_ceilings *best = &b->devices[i].ceilings.best;
    if (!b->o->arms.n)
        return sweep_derive(b->rows, NULL, best, err);
    snap_status st = SNAP_OK;
    for (int k = 0; k < b->o->arms.n && st == SNAP_OK; k++)
        if (b->arms[k].rates == i)
            st = sweep_derive(b->rows, b->arms[k].name, best, err);
    return st;
}

static snap_status raise_arms(const bench *b, int i, mla_ceilings *to, snap_err *err) {
    if (!b->o->arms.n)
        return sweep_raise(b->rows, NULL, to, err);
    snap_status st = SNAP_OK;
    for (int k = 0; k < b->o->arms.n && st == SNAP_OK; k++)
        if (b->arms[k].rates == i)
            st = sweep_raise(b->rows, b->arms[k].name, to, err);
    return st;
}

static size_t count_below(const bench *b, int i) {
    if (!b->o->arms.n)
        return sweep_count_flag(b->rows, NULL, "below_floor");
    size_t n = 0;
    for (int k = 0; k < b->o->arms.n; k++)
        if (b->arms[k].rates == i)
            n += sweep_count_flag(b->rows, b->arms[k].name, "below_floor");
    return n;
}

/* A ceiling is the best rate known, also from probes between samples. If a row is below its floor,
 * either the probes ran at a busy moment and reach more when repeated, or the row is wrong.
 * The probes are therefore repeated up to kRetries times. */
static snap_status derive_device(bench *b, int i, snap_err *err) {
    enum { kRetries = 3 };
    bench_device *d = &b->devices[i];
    mla_ceilings probed = {0};
    snap_status st = SNAP_OK;
    TRY(raise_arms(b, i, &probed, err));
    ceilings_add(&d->ceilings,
                 (mla_probe_rates){probed.read.rate, probed.bf16.rate, probed.fp8.rate});
    TRY(derive_arms(b, i, err));
    for (int k = 0; k < kRetries && count_below(b, i) && !b->interrupted; k++) {
        TRY(bench_probe(d, err));
        TRY(derive_arms(b, i, err));
    }
cleanup:
    return st;
}

snap_status bench_derive(bench *b, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < b->n && st == SNAP_OK; i++)
        if (bench_has_ceilings(b, i))
            st = derive_device(b, i, err);
    return st;
}

/* ---- the result file ---- */

/* Adds the ceilings of each device; those of a named arm have its name. */
static snap_status save_ceilings(bench *b, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < b->n && st == SNAP_OK; i++) {
        if (!bench_has_ceilings(b, i))
            continue;
        js *rows = ceilings_json(&b->devices[i].ceilings);
        bool ok = rows != NULL;
        for (size_t k = 0; ok && b->o->arms.n && k < js_len(rows); k++)
            ok = js_set_str(js_at(rows, k), "arm", b->arms[i].name);
        if (ok) {
            st = results_add_all(b->results, "ceilings", rows, err);
        } else {
            js_free(rows);
            st = err_set(err, SNAP_E_NOMEM, "out of memory for ceilings");
        }
    }
    return st;
}

static snap_status add_sections(bench *b, snap_err *err) {
    snap_status st = save_ceilings(b, err);
    return st == SNAP_OK ? results_add_all(b->results, "bench", js_copy(b->rows), err) : st;
}

snap_status bench_save(bench *b, snap_err *err) {
    snap_status st = add_sections(b, err);
    if (st == SNAP_OK && b->o->out)
        st = results_save_run(b->results, b->o->out, err);
    if (st == SNAP_OK && b->journal) {
        st = results_journal_remove(b->journal, err);
        b->journal = NULL;
    }
    return st;
}

/* Whether the result file exists, unless it is known to be that of an interrupted run. A file that
 * cannot be read may be complete, too. */
static bool has_complete_file(const bench *b) {
    char *path = results_file_of(b->o->out);
    results *r = NULL;
    bool interrupted =
        path && results_load(&r, path, NULL) == SNAP_OK && results_interrupted(r) != NULL;
    bool complete = !path || (fs_exists(path) && !interrupted);
    results_free(r);
    free(path);
    return complete;
}

snap_status bench_keep_interrupted(bench *b, snap_err *err) {
    char has[64];
    bool keeps = b->o->out && js_len(b->rows), complete = keeps && has_complete_file(b);
    snap_status st = SNAP_OK;
    (void)snprintf(has, sizeof has, "%d of %d shapes", b->shapes_done, bench_grid_shapes(&b->grid));
    TRY(bench_derive(b, err));
    TRY(add_sections(b, err));
    if (keeps && !complete)
        TRY(results_save_run_unfinished(b->results, has, b->o->out, err));
    if (complete)
        st = err_set(err, SNAP_E_CANCELLED,
                     "interrupted: %s are kept in the journal, because '%s' is the complete result "
                     "of an earlier run; the same command continues",
                     has, b->o->out);
    else if (keeps)
        st =
            err_set(err, SNAP_E_CANCELLED,
                    "interrupted: %s are kept in '%s'; the same command continues", has, b->o->out);
    else
        st = err_set(err, SNAP_E_CANCELLED, "interrupted: %s", has);
cleanup:
    return st;
}
