#include <math.h>
#include <string.h>

#include "harness/view/pen.h"

static const char *left_out(const char *arm) {
    static const char *const names[][2] = {
        {"fp8-widened", "FP8 arithmetic (dequantised on chip, products in BF16)"},
        {"fp8-in-place", "FP32 accumulation (sums stay in the tensor cores)"},
        {"fp8-shallow", "deep pipeline (three pages on chip)"},
        {"fp8-page-units", "unit of P kept over pages (each page has its own, as in the paper)"},
        {"fp8-page-order", "order of pages (units of pages, the second page of a pair first)"},
        {"fp8-unfused", "fused dataflow (separate launches)"},
        {"fp8-copied", "FP8 in memory (reads a BF16 copy of the cache)"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(arm, names[i][0]) == 0)
            return names[i][1];
    return arm;
}

static void put_row(pen *p, const report_cell *c, const report_cell *whole) {
    pen_text(p, left_out(c->row->arm));
    pen_text(p, c->row->scope);
    pen_shape(p, c);
    pen_fixed(p, c->perf->median_ns * 1e-3, 1);
    pen_times(p, whole ? c->perf->median_ns / whole->perf->median_ns : (double)NAN);
    pen_fixed(p, whole ? whole->perf->median_ns * 1e-3 : (double)NAN, 1);
    pen_science(p, c->row->correctness.error);
    pen_science(p, whole ? whole->row->correctness.error : (double)NAN);
    pen_science(p, c->row->correctness.tolerance);
    pen_text(p, c->row->status);
}

bool report_table_ablation(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "ablation",
        .caption = "The FP8 arm with one technique left out or replaced",
        .note = "The relative time is the time divided by that of the complete FP8 arm, which took "
                "turns with it in one run. The error is the relative norm against FP64 with exact "
                "probabilities on the same cache. The row without FP32 accumulation may have four "
                "times the tolerance, because the row is there to show its error.",
        .columns = {{"without", "", TABLE_TEXT, true},
                    {"scope", "", TABLE_TEXT, true},
                    PEN_SHAPE_COLUMNS,
                    {"µs", "", TABLE_NUMBER, true},
                    {"relative time", "", TABLE_NUMBER, true},
                    {"complete µs", "", TABLE_NUMBER, false},
                    {"error", "", TABLE_NUMBER, true},
                    {"complete error", "", TABLE_NUMBER, true},
                    {"tolerance", "", TABLE_NUMBER, false},
                    {"status", "", TABLE_TEXT, false}}};
    size_t n = 0;
    for (size_t i = 0; i < m->n_measured; i++)
        n += report_is_ablated(&m->cells[i]);
    if (!pen_note_units(t, m, mem) || !pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_measured; i++)
        if (report_is_ablated(&m->cells[i]))
            put_row(&p, &m->cells[i], report_whole_of(m, &m->cells[i]));
    return !p.failed;
}
