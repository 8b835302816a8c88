/* table_paper_checked.c - predicted steps that were measured, too: both times and the error. */
#include <math.h>
#include <string.h>

#include "harness/view/layout_text.h"
#include "harness/view/paper_pen.h"

static bool was_measured(const prediction_record *r) {
    return isfinite(r->measured_ns);
}

static void put_step(pen *p, const prediction_record *r, const char *source) {
    char layout[LAYOUT_SHORT_MAX];
    paper_put_name(p, r->model_config);
    pen_text(p, layout_short(r->layout, layout));
    pen_text(p, strcmp(r->arm, "fp8") == 0 ? "FP8" : "BF16");
    pen_context(p, r->context);
    pen_fixed(p, record_count(r->batch), 0);
    pen_fixed(p, r->measured_ns * 1e-6, 1);
    pen_printf(p, "%.1f (%.1f–%.1f)", r->median_ns * 1e-6, r->interval_ns[0] * 1e-6,
               r->interval_ns[1] * 1e-6);
    pen_signed(p, r->error_pct, 1);
    paper_put_name(p, source);
}

bool report_table_paper_checked(const report_model *m, arena *mem, table *t) {
    size_t n = 0;
    *t = (table){.id = "paper-checked",
                 .caption = "Predicted steps that were measured, too",
                 .note =
                     "Times of decode steps. The prediction follows from measured parts of steps "
                     "on one GPU and from measured exchanges. Its interval is in parentheses. "
                     "Error: predicted over measured, minus 1.",
                 .columns = {{"model", "", TABLE_TEXT, true},
                             {"layout", "", TABLE_TEXT, true},
                             {"cache", "", TABLE_TEXT, true},
                             {"context", "", TABLE_NUMBER, true},
                             {"batch", "", TABLE_NUMBER, true},
                             {"measured, ms", "", TABLE_NUMBER, true},
                             {"predicted, ms", "", TABLE_NUMBER, true},
                             {"error, %", "", TABLE_NUMBER, true},
                             {"source", "", TABLE_TEXT, true}}};
    for (size_t i = 0; i < m->n_predicted; i++)
        n += was_measured(m->predicted[i].row);
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_predicted; i++)
        if (was_measured(m->predicted[i].row))
            put_step(&p, m->predicted[i].row, m->files[m->predicted[i].file]);
    return !p.failed;
}
