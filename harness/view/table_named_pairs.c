/* table_named_pairs.c - named arms compared with each other: one row for each pair, and one for
 * each cell of the pairs without the baseline. */
#include <math.h>

#include "harness/view/named_arms.h"
#include "harness/view/pen.h"

/* ---- one row for each pair ---- */

typedef struct {
    size_t outcomes[NAMED_LOSS + 1], cells;
    double log_sum; /* sum of the logarithms of the cells' ratios */
} tally;

static tally tally_of(const named_arms *g, int base, int arm) {
    tally t = {0};
    for (size_t cell = 0; cell < g->n_cells; cell++) {
        const named_pair *p = named_arms_pair(g, cell, base, arm);
        named_outcome o = named_pair_outcome(p);
        if (o == NAMED_NONE)
            continue;
        t.cells++;
        t.outcomes[o]++;
        t.log_sum += log(p->gain.ratio);
    }
    return t;
}

static void put_pair(pen *p, const report_model *m, const named_arms *g, int base, int arm) {
    tally t = tally_of(g, base, arm);
    pen_text(p, g->arm[base]);
    pen_text(p, g->arm[arm]);
    pen_fixed(p, (double)t.cells, 0);
    pen_fixed(p, (double)t.outcomes[NAMED_LOSS], 0);
    pen_fixed(p, (double)t.outcomes[NAMED_WIN], 0);
    pen_fixed(p, (double)t.outcomes[NAMED_TIE], 0);
    pen_fixed(p, (double)t.outcomes[NAMED_UNKNOWN], 0);
    pen_times(p, t.cells ? exp(t.log_sum / (double)t.cells) : (double)NAN);
    if (m->n_files > 1)
        pen_file(p, m, g->file);
}

bool report_table_named_pairs(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "named-pairs",
        .caption = "Pairs of named arms",
        .note = "cells counts those in which both arms have a time. An arm is faster in a cell if "
                "the whole 95 % interval of the ratio of their times lies on its side of 1, and "
                "the cell is undecided if the interval contains 1. The speed-up is the geometric "
                "mean over the cells of the time of A divided by that of B.",
        .columns = {{"A", "", TABLE_TEXT, true},
                    {"B", "", TABLE_TEXT, true},
                    {"cells", "", TABLE_NUMBER, true},
                    {"A faster", "", TABLE_NUMBER, true},
                    {"B faster", "", TABLE_NUMBER, true},
                    {"undecided", "", TABLE_NUMBER, true},
                    {"no interval", "", TABLE_NUMBER, false},
                    {"speed-up of B over A", "", TABLE_NUMBER, true},
                    {"file", "", TABLE_TEXT, false}}};
    size_t rows = 0;
    for (size_t k = 0; k < m->n_named; k++)
        rows += (size_t)m->named[k].n_arms * (size_t)(m->named[k].n_arms - 1) / 2;
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, rows))
        return false;
    pen p = {t, mem, false};
    for (size_t k = 0; k < m->n_named; k++)
        for (int base = 0; base < m->named[k].n_arms; base++)
            for (int arm = base + 1; arm < m->named[k].n_arms; arm++)
                put_pair(&p, m, &m->named[k], base, arm);
    return !p.failed;
}

/* ---- one row for each cell and pair ---- */

static bool is_shown(const named_pair *pair) {
    return pair->base > 0 && named_pair_outcome(pair) != NAMED_NONE;
}

static void put_cell(pen *p, const report_model *m, const named_arms *g, const named_pair *pair) {
    static const char *const words[] = {"", "", "B faster", "undecided", "A faster"};
    const report_cell *c = named_arms_at(g, pair->cell, pair->arm);
    named_outcome o = named_pair_outcome(pair);
    pen_text(p, c->row->scope);
    pen_shape(p, c);
    pen_text(p, g->arm[pair->base]);
    pen_text(p, g->arm[pair->arm]);
    pen_times(p, pair->gain.ratio);
    if (o > NAMED_UNKNOWN)
        pen_printf(p, "%.3f..%.3f", pair->gain.lo, pair->gain.hi);
    else
        pen_put(p, "");
    pen_text(p, words[o]);
    if (m->n_files > 1)
        pen_file(p, m, g->file);
}

bool report_table_named_pair_cells(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "named-pair-cells",
        .caption = "Pairs of named arms without the first arm, cell by cell",
        .note = "The speed-up is the time of A divided by that of B, computed from their samples "
                "as for the first arm, with its 95 % interval.",
        .columns = {{"scope", "", TABLE_TEXT, true},
                    PEN_SHAPE_COLUMNS,
                    {"A", "", TABLE_TEXT, true},
                    {"B", "", TABLE_TEXT, true},
                    {"speed-up of B over A", "", TABLE_NUMBER, true},
                    {"95 %", "", TABLE_TEXT, true},
                    {"result", "", TABLE_TEXT, true},
                    {"file", "", TABLE_TEXT, false}}};
    size_t rows = 0;
    for (size_t k = 0; k < m->n_named; k++)
        for (size_t i = 0; i < m->named[k].n_pairs; i++)
            rows += is_shown(&m->named[k].pairs[i]);
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, rows))
        return false;
    pen p = {t, mem, false};
    for (size_t k = 0; k < m->n_named; k++)
        for (size_t i = 0; i < m->named[k].n_pairs; i++)
            if (is_shown(&m->named[k].pairs[i]))
                put_cell(&p, m, &m->named[k], &m->named[k].pairs[i]);
    return !p.failed;
}
