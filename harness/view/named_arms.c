#include "harness/view/named_arms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The rows of one file lie in one array, in the order of the file. */
static int by_place(const void *x, const void *y) {
    const report_cell *a = *(const report_cell *const *)x, *b = *(const report_cell *const *)y;
    return (a->row > b->row) - (a->row < b->row);
}

static bool is_named(const report_cell *c) {
    return c->row->name[0] && strcmp(c->row->origin, "measured") == 0;
}

static bool same_cell(const cell_record *a, const cell_record *b) {
    return strcmp(a->scope, b->scope) == 0 && strcmp(a->mode, b->mode) == 0 &&
           strcmp(a->distribution, b->distribution) == 0 && cell_same_shape(a, b);
}

static int place_arm(named_arms *g, const char *name) {
    for (int i = 0; i < g->n_arms; i++)
        if (strcmp(g->arm[i], name) == 0)
            return i;
    if (g->n_arms == NAMED_ARMS_MAX)
        return -1;
    g->arm[g->n_arms] = name;
    return g->n_arms++;
}

/* Rows of one cell lie next to each other in a file, so only the last cell is compared. */
static bool fill(named_arms *g, const report_cell **rows, size_t n) {
    const cell_record *last = NULL;
    for (size_t i = 0; i < n; i++)
        (void)place_arm(g, rows[i]->row->name);
    for (size_t i = 0; i < n; i++) {
        int arm = place_arm(g, rows[i]->row->name);
        if (!last || !same_cell(last, rows[i]->row))
            g->n_cells++;
        last = rows[i]->row;
        if (arm >= 0)
            g->at[(g->n_cells - 1) * (size_t)g->n_arms + (size_t)arm] = rows[i];
    }
    return g->n_cells > 0;
}

/* ---- pairs ---- */

static bool has_time(const report_cell *c) {
    return c && c->perf->exists;
}

/* The row of the later arm may have the comparison already. Otherwise it is computed from the
 * samples, as verify-run does. In mode "sustained" the samples are no pairs. */
static bool compare(const report_cell *base, const report_cell *arm, paired_ratio *out) {
    const cell_against *a = &arm->row->against;
    record_numbers x = base->perf->samples_ns, y = arm->perf->samples_ns;
    if (a->exists && strcmp(a->baseline, base->row->name) == 0) {
        *out = (paired_ratio){a->ratio, a->interval[0], a->interval[1]};
        return true;
    }
    if (strcmp(arm->row->mode, "sustained") == 0) {
        *out =
            (paired_ratio){base->perf->median_ns / arm->perf->median_ns, (double)NAN, (double)NAN};
        return true;
    }
    return paired_ratio_of(x.at, x.n, y.at, y.n, out, NULL) == SNAP_OK;
}

/* Adds the pairs of a cell. */
static bool add_pairs(named_arms *g, size_t cell) {
    for (int base = 0; base < g->n_arms; base++)
        for (int arm = base + 1; arm < g->n_arms; arm++) {
            const report_cell *x = named_arms_at(g, cell, base), *y = named_arms_at(g, cell, arm);
            named_pair *p = &g->pairs[g->n_pairs];
            if (!has_time(x) || !has_time(y))
                continue;
            *p = (named_pair){.cell = cell, .base = base, .arm = arm};
            if (!compare(x, y, &p->gain))
                return false;
            g->n_pairs++;
        }
    return true;
}

static bool find_pairs(named_arms *g, arena *mem) {
    size_t most = 0;
    for (size_t cell = 0; cell < g->n_cells; cell++) {
        size_t times = 0;
        for (int arm = 0; arm < g->n_arms; arm++)
            times += has_time(named_arms_at(g, cell, arm));
        most += times * times / 2; /* not less than the number of pairs, times * (times - 1) / 2 */
    }
    g->pairs = arena_alloc(mem, most + 1, sizeof *g->pairs);
    for (size_t cell = 0; g->pairs && cell < g->n_cells; cell++)
        if (!add_pairs(g, cell))
            return false;
    return g->pairs != NULL;
}

static int by_pair(const void *x, const void *y) {
    const named_pair *a = x, *b = y;
    int d = (a->cell > b->cell) - (a->cell < b->cell);
    d = d ? d : a->base - b->base;
    return d ? d : a->arm - b->arm;
}

const named_pair *named_arms_pair(const named_arms *g, size_t cell, int base, int arm) {
    named_pair key = {.cell = cell, .base = base, .arm = arm};
    return bsearch(&key, g->pairs, g->n_pairs, sizeof *g->pairs, by_pair);
}

/* ---- all files ---- */

bool named_arms_find(report_model *m) {
    m->named = arena_alloc(&m->mem, (size_t)m->n_files + 1, sizeof *m->named);
    const report_cell **rows = arena_alloc(&m->mem, m->n_cells + 1, sizeof(const report_cell *));
    bool ok = m->named && rows;
    for (int file = 0; file < m->n_files && ok; file++) {
        named_arms *g = &m->named[m->n_named];
        size_t n = 0;
        for (size_t i = 0; i < m->n_cells; i++)
            if (m->cells[i].file == file && is_named(&m->cells[i]))
                rows[n++] = &m->cells[i];
        if (!n)
            continue;
        qsort(rows, n, sizeof(const report_cell *), by_place);
        *g = (named_arms){.file = file};
        g->at = arena_alloc(&m->mem, n * NAMED_ARMS_MAX, sizeof(const report_cell *));
        ok = g->at != NULL;
        if (ok && fill(g, rows, n)) {
            m->n_named++;
            ok = find_pairs(g, &m->mem);
        }
    }
    return ok;
}

const report_cell *named_arms_at(const named_arms *g, size_t cell, int arm) {
    return g->at[cell * (size_t)g->n_arms + (size_t)arm];
}

const report_cell *named_arms_any(const named_arms *g, size_t cell) {
    const report_cell *any = NULL;
    for (int i = 0; i < g->n_arms && !any; i++)
        any = named_arms_at(g, cell, i);
    return any;
}

int named_arms_index(const report_model *m, const report_cell *c) {
    for (size_t k = 0; k < m->n_named; k++)
        for (int i = 0; i < m->named[k].n_arms && m->named[k].file == c->file; i++)
            if (strcmp(m->named[k].arm[i], c->row->name) == 0)
                return i;
    return -1;
}

static named_outcome outcome(double ratio, double lo, double hi) {
    if (isnan(ratio))
        return NAMED_NONE;
    if (isnan(lo) || isnan(hi))
        return NAMED_UNKNOWN;
    return lo > 1 ? NAMED_WIN : hi < 1 ? NAMED_LOSS : NAMED_TIE;
}

named_outcome named_arms_outcome(const report_cell *c) {
    const cell_against *a = c ? &c->row->against : NULL;
    return a && a->exists ? outcome(a->ratio, a->interval[0], a->interval[1]) : NAMED_NONE;
}

named_outcome named_pair_outcome(const named_pair *p) {
    return p ? outcome(p->gain.ratio, p->gain.lo, p->gain.hi) : NAMED_NONE;
}
