/* table_predicted.c - the tables of the section predicted: decode steps on several GPUs that were
 * predicted from measured parts. */
#include <math.h>

#include "harness/view/layout_map.h"
#include "harness/view/paper_pen.h"
#include "harness/view/tables.h"

static void put_interval(pen *p, const double ends[2]) {
    if (isfinite(ends[0]) && isfinite(ends[1]))
        pen_printf(p, "%.2f–%.2f", ends[0] / 1e6, ends[1] / 1e6);
    else
        pen_text(p, "");
}

/* The second fastest layout of a row of the map, its share of the row's tokens/s, and "=" if its
 * interval overlaps that of the row. */
static void put_runner_up(pen *p, const prediction_record *row) {
    if (!row->runner_up || !row->runner_up[0])
        pen_text(p, "");
    else
        pen_printf(p, "%s%s %.2f×", layout_map_is_tied(row) ? "= " : "", row->runner_up,
                   row->runner_up_tokens_s / row->tokens_s);
}

static void put_row(pen *p, const report_model *m, const report_predicted *x) {
    const prediction_record *row = x->row;
    pen_text(p, row->origin);
    pen_text(p, row->model_config);
    pen_text(p, row->layout);
    pen_text(p, row->weights);
    pen_text(p, row->arm);
    pen_context(p, row->context);
    pen_fixed(p, record_count(row->batch), 0);
    pen_fixed(p, row->median_ns / 1e6, 2);
    put_interval(p, row->interval_ns);
    pen_fixed(p, row->attention_ns / 1e6, 2);
    pen_fixed(p, row->exchange_ns / 1e6, 2);
    pen_fixed(p, row->experts_ns / 1e6, 2);
    pen_fixed(p, row->rest_ns / 1e6, 2);
    pen_fixed(p, row->waiting_ns / 1e6, 2);
    pen_fixed(p, row->tokens_s, 0);
    paper_put_ratio(p, row->fp8_over_bf16, row->fp8_over_bf16_interval[0],
                    row->fp8_over_bf16_interval[1]);
    put_runner_up(p, row);
    pen_fixed(p, row->measured_ns / 1e6, 2);
    pen_signed(p, row->error_pct, 1);
    if (m->n_files > 1)
        pen_file(p, m, x->file);
}

/* All predicted rows, or those of maps only. */
static bool build(const report_model *m, bool maps_only, arena *mem, table *t) {
    *t = (table){
        .id = "predicted",
        .caption = "Predicted decode steps on several GPUs. Times in ms",
        .note = "No row was measured. The times follow from measured parts of a step on one GPU, "
                "cells of the attention kernel and exchange curves. The interval covers the errors "
                "of the rules for measured steps that were left out, and the range of the "
                "exchange. The interval of a ratio FP8 / BF16 follows from the errors of such "
                "ratios, or, if the layouts differ, from both intervals. Runner-up: the second "
                "fastest layout of as many GPUs, with its share of the tokens/s; '=' marks a tie, "
                "which means that the intervals overlap. A row without times does not fit into the "
                "memory. Measured: the same "
                "step, which was measured and not used to predict it. Predicted rows are not "
                "ranked with measured rows.",
        .columns = {{"origin", "", TABLE_TEXT, true},      {"model", "", TABLE_TEXT, true},
                    {"layout", "", TABLE_TEXT, true},      {"weights", "", TABLE_TEXT, false},
                    {"cache", "", TABLE_TEXT, true},       {"context", "", TABLE_NUMBER, true},
                    {"batch", "", TABLE_NUMBER, true},     {"step", "", TABLE_NUMBER, true},
                    {"interval", "", TABLE_TEXT, true},    {"attention", "", TABLE_NUMBER, false},
                    {"exchange", "", TABLE_NUMBER, false}, {"experts", "", TABLE_NUMBER, false},
                    {"rest", "", TABLE_NUMBER, false},     {"waiting", "", TABLE_NUMBER, false},
                    {"tokens/s", "", TABLE_NUMBER, true},  {"FP8 / BF16", "", TABLE_NUMBER, true},
                    {"runner-up", "", TABLE_TEXT, false},  {"measured", "", TABLE_NUMBER, false},
                    {"error, %", "", TABLE_NUMBER, false}, {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, m->n_predicted))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_predicted; i++)
        if (!maps_only || m->predicted[i].row->best)
            put_row(&p, m, &m->predicted[i]);
    return !p.failed;
}

bool report_table_predicted(const report_model *m, arena *mem, table *t) {
    return build(m, false, mem, t);
}

bool report_table_paper_map(const report_model *m, arena *mem, table *t) {
    bool ok = build(m, true, mem, t);
    t->id = "paper-map";
    t->caption = "Predicted steps of the fastest layout. Times in ms";
    return ok;
}
