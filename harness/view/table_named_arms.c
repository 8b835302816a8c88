#include <math.h>
#include <string.h>

#include "harness/view/named_arms.h"
#include "harness/view/pen.h"

/* ---- one row for each arm ---- */

typedef struct {
    size_t passed, not_passed, outcomes[NAMED_LOSS + 1];
    double log_sum; /* sum of the logarithms of the cells' ratios */
    size_t ratios;
    const report_cell *any;
} standing;

static standing standing_of(const named_arms *g, int arm) {
    standing s = {0};
    for (size_t i = 0; i < g->n_cells; i++) {
        const report_cell *c = named_arms_at(g, i, arm);
        if (!c)
            continue;
        bool ok = strcmp(c->row->status, "passed") == 0;
        s.any = s.any ? s.any : c;
        s.passed += ok;
        s.not_passed += !ok;
        s.outcomes[named_arms_outcome(c)]++;
        if (named_arms_outcome(c) != NAMED_NONE) {
            s.log_sum += log(c->row->against.ratio);
            s.ratios++;
        }
    }
    return s;
}

static void put_standing(pen *p, const report_model *m, const named_arms *g, int arm) {
    standing s = standing_of(g, arm);
    bool base = arm == 0;
    if (!s.any)
        SNAP_BUG("a named arm without a row");
    const cell_record *row = s.any->row;
    pen_text(p, g->arm[arm]);
    pen_text(p, row->arm);
    pen_text(p, row->backend);
    pen_text(p, row->kernel);
    pen_text(p, row->device);
    pen_text(p, row->options);
    pen_fixed(p, (double)s.passed, 0);
    pen_fixed(p, (double)s.not_passed, 0);
    pen_fixed(p, base ? (double)NAN : (double)s.outcomes[NAMED_WIN], 0);
    pen_fixed(p, base ? (double)NAN : (double)s.outcomes[NAMED_TIE], 0);
    pen_fixed(p, base ? (double)NAN : (double)s.outcomes[NAMED_LOSS], 0);
    pen_fixed(p, base ? (double)NAN : (double)s.outcomes[NAMED_UNKNOWN], 0);
    pen_times(p, s.ratios ? exp(s.log_sum / (double)s.ratios) : (double)NAN);
    if (m->n_files > 1)
        pen_file(p, m, g->file);
}

bool report_table_named_arms(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "named-arms",
        .caption = "Named arms against the first",
        .note = "The first arm of a run is its baseline. A win is a cell in which the whole 95 % "
                "interval of the speed-up lies above 1, a loss one in which it lies below 1, and a "
                "tie one in which it contains 1. The speed-up is the geometric mean over the cells "
                "in which both arms passed.",
        .columns = {{"arm", "", TABLE_TEXT, true},
                    {"precision", "", TABLE_TEXT, true},
                    {"backend", "", TABLE_TEXT, true},
                    {"kernel", "", TABLE_TEXT, true},
                    {"device", "", TABLE_TEXT, false},
                    {"options", "", TABLE_TEXT, false},
                    {"passed", "", TABLE_NUMBER, true},
                    {"not passed", "", TABLE_NUMBER, true},
                    {"wins", "", TABLE_NUMBER, true},
                    {"ties", "", TABLE_NUMBER, true},
                    {"losses", "", TABLE_NUMBER, true},
                    {"no interval", "", TABLE_NUMBER, false},
                    {"speed-up", "", TABLE_NUMBER, true},
                    {"file", "", TABLE_TEXT, false}}};
    size_t rows = 0;
    for (size_t k = 0; k < m->n_named; k++)
        rows += (size_t)m->named[k].n_arms;
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, rows))
        return false;
    pen p = {t, mem, false};
    for (size_t k = 0; k < m->n_named; k++)
        for (int i = 0; i < m->named[k].n_arms; i++)
            put_standing(&p, m, &m->named[k], i);
    return !p.failed;
}

/* ---- one row for each cell and arm ---- */

static void put_row(pen *p, const report_model *m, const report_cell *c) {
    const cell_against *a = &c->row->against;
    pen_text(p, c->row->scope);
    pen_shape(p, c);
    pen_text(p, c->row->name);
    pen_fixed(p, c->perf->median_ns * 1e-3, 1);
    pen_fixed(p, c->perf->tflops, 3);
    pen_fixed(p, c->perf->gb_s, 1);
    pen_fixed(p, c->perf->roofline_pct, 1);
    pen_science(p, c->row->correctness.error);
    pen_times(p, a->exists ? a->ratio : (double)NAN);
    if (named_arms_outcome(c) > NAMED_UNKNOWN)
        pen_printf(p, "%.3f..%.3f", a->interval[0], a->interval[1]);
    else
        pen_put(p, "");
    if (strcmp(c->row->status, "passed") == 0)
        pen_put(p, c->flags);
    else
        pen_printf(p, "%s: %s", c->row->status, c->row->reason);
    if (m->n_files > 1)
        pen_file(p, m, c->file);
}

static size_t count_rows(const named_arms *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_cells * (size_t)g->n_arms; i++)
        n += g->at[i] != NULL;
    return n;
}

bool report_table_named_cells(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "named-cells",
        .caption = "Time of one decode step of each named arm",
        .note = "µs is the median time. The speed-up is the time of the run's first arm divided by "
                "that of the arm, from samples that were taken in turns, with its 95 % interval. "
                "The percentage of the roofline is relative to the ceilings of the arm's own "
                "backend. The error is the relative norm against FP64.",
        .columns = {{"scope", "", TABLE_TEXT, true},
                    PEN_SHAPE_COLUMNS,
                    {"arm", "", TABLE_TEXT, true},
                    {"µs", "", TABLE_NUMBER, true},
                    {"TFLOPS", "", TABLE_NUMBER, true},
                    {"GB/s", "", TABLE_NUMBER, false},
                    {"% roofline", "", TABLE_NUMBER, true},
                    {"error", "", TABLE_NUMBER, true},
                    {"speed-up", "", TABLE_NUMBER, true},
                    {"95 %", "", TABLE_TEXT, true},
                    {"flags", "", TABLE_FLAGS, false},
                    {"file", "", TABLE_TEXT, false}}};
    size_t rows = 0;
    for (size_t k = 0; k < m->n_named; k++)
        rows += count_rows(&m->named[k]);
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_note_units(t, m, mem) || !pen_start(t, mem, rows))
        return false;
    pen p = {t, mem, false};
    for (size_t k = 0; k < m->n_named; k++) {
        const named_arms *g = &m->named[k];
        for (size_t i = 0; i < g->n_cells * (size_t)g->n_arms; i++)
            if (g->at[i])
                put_row(&p, m, g->at[i]);
    }
    return !p.failed;
}
