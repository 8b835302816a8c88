/* table_lacking.c - the cells that one file of a comparison lacks and another one has, with the
 * command that measures them. */
#include <string.h>

#include "harness/view/compare.h"
#include "harness/view/conditions.h"
#include "harness/view/gaps.h"
#include "harness/view/pen.h"

/* Whether the device of a file refuses a cell: its file has the cell as a skipped row. */
static bool refuses(const report_model *m, int file, const report_cell *c) {
    for (size_t i = 0; i < m->n_cells; i++) {
        const report_cell *own = &m->cells[i];
        if (own->file == file && strcmp(own->row->status, "skipped") == 0 &&
            compare_same_cell(own, c))
            return true;
    }
    return false;
}

static bool lacks(const report_model *m, int file, const report_cell *c) {
    if (!compare_usable(c) || c->file == file)
        return false;
    for (size_t i = 0; i < m->n_cells; i++) {
        const report_cell *own = &m->cells[i];
        if (own->file == file && compare_usable(own) && compare_same_cell(own, c) &&
            compare_same_conditions(own, c))
            return false;
    }
    return !refuses(m, file, c);
}

/* Whether an earlier row of the model is the same cell, so that this one need not be counted. */
static bool is_repeated(const report_model *m, int file, size_t at) {
    const report_cell *c = &m->cells[at];
    for (size_t i = 0; i < at; i++) {
        const report_cell *other = &m->cells[i];
        if (other->file != file && compare_usable(other) && compare_same_cell(other, c) &&
            compare_same_conditions(other, c))
            return true;
    }
    return false;
}

/* ---- what one command can measure ----------------------------------------------------------- */

static bool same_lengths(const report_cell *a, const report_cell *b) {
    const cell_lengths *x = &a->row->lengths, *y = &b->row->lengths;
    if (x->exists != y->exists)
        return false;
    return !x->exists || (strcmp(x->distribution, y->distribution) == 0 && a->file == b->file &&
                          a->shape->s_q == b->shape->s_q && a->shape->batch == b->shape->batch);
}

static bool same_challenge(const report_cell *a, const report_cell *b) {
    const cell_challenge *x = &a->row->challenge, *y = &b->row->challenge;
    if (x->exists != y->exists)
        return false;
    return !x->exists || (strcmp(x->seed, y->seed) == 0 && x->tokens == y->tokens);
}

/* The arms of a run: both precisions, these and the ablation, or named ones of one file. Named arms
 * that not every backend has are apart. */
static bool same_arms(const report_cell *a, const report_cell *b) {
    if (a->row->name[0] || b->row->name[0])
        return a->row->name[0] && b->row->name[0] && a->file == b->file &&
               gap_needs_file(a) == gap_needs_file(b) && gap_needs_cuda(a) == gap_needs_cuda(b);
    return report_is_ablated(a) == report_is_ablated(b);
}

static bool same_timing(const report_cell *a, const report_cell *b) {
    static const condition kTiming[] = {CONDITION_INPUT, CONDITION_COLD, CONDITION_MODE};
    for (size_t i = 0; i < sizeof kTiming / sizeof *kTiming; i++)
        if (condition_differs(a->row, b->row, kTiming[i]))
            return false;
    return true;
}

static bool same_gap(const report_cell *a, const report_cell *b) {
    return strcmp(a->row->scope, b->row->scope) == 0 && same_timing(a, b) && same_arms(a, b) &&
           (same_challenge(a, b) && (a->row->challenge.exists || same_lengths(a, b))) &&
           a->shape->d_c == b->shape->d_c && a->shape->d_r == b->shape->d_r;
}

/* Returns the gaps of all files, one for each command; cells without a command have gaps of their
 * own. NULL: out of memory. */
static gap *find_gaps(const report_model *m, arena *mem, size_t *n) {
    gap *gaps = arena_alloc(mem, m->n_cells * (size_t)m->n_files + 1, sizeof *gaps);
    *n = 0;
    for (int f = 0; gaps && f < m->n_files; f++) {
        size_t from = *n, g;
        for (size_t i = 0; i < m->n_cells; i++) {
            const report_cell *c = &m->cells[i];
            if (!lacks(m, f, c) || is_repeated(m, f, i))
                continue;
            for (g = from; g < *n && !same_gap(gaps[g].first, c);)
                g++;
            if (g == *n)
                gaps[(*n)++] = (gap){.file = f, .first = c};
            gaps[g].cells++;
        }
    }
    return gaps;
}

bool gap_has(const report_model *m, const gap *g, const report_cell *c) {
    return lacks(m, g->file, c) && same_gap(g->first, c);
}

bool report_table_lacking(const report_model *m, arena *mem, table *t) {
    size_t n = 0;
    gap *gaps = find_gaps(m, mem, &n);
    *t =
        (table){.id = "lacking",
                .caption = "What each file lacks",
                .note = "Cells that another file has, without those that this file has as skipped. "
                        "The command measures them on the file's "
                        "device. Named arms keep their names, and run on this device's backend.",
                .columns = {{"#", "", TABLE_NUMBER, true},
                            {"device", "", TABLE_TEXT, true},
                            {"cells", "", TABLE_NUMBER, true},
                            {"command", "", TABLE_TEXT, true}}};
    if (!gaps || !pen_start(t, mem, m->n_compared ? n : 0))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; m->n_compared && i < n; i++) {
        pen_fixed(&p, gaps[i].file + 1, 0);
        pen_text(&p, report_device_of(m, gaps[i].file));
        pen_fixed(&p, (double)gaps[i].cells, 0);
        buf command = {0};
        gap_command(m, &gaps[i], &command);
        p.failed |= command.failed;
        pen_put(&p, buf_str(&command));
        buf_release(&command);
    }
    return !p.failed;
}
