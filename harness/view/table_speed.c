#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/stats.h"
#include "harness/view/compare.h"
#include "harness/view/pen.h"

static const char *ceiling_name(const char *name) {
    static const char *const names[][2] = {{"read_bandwidth", "memory reads"},
                                           {"bf16_mma", "BF16 multiply-add"},
                                           {"fp8_mma", "FP8 multiply-add"},
                                           {"bf16_mma_sustained", "BF16 multiply-add, sustained"},
                                           {"fp8_mma_sustained", "FP8 multiply-add, sustained"},
                                           {"timer", "empty timed interval"},
                                           {"launch", "empty launch"},
                                           {"cold_read", "cold read"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    return name;
}

/* The unit to print, and the factor to it: GB/s for B/s; TFLOPS for FLOP/s, or GFLOPS below 10
 * TFLOPS; ns for times. */
static const char *readable_unit(const ceiling_record *c, double *factor) {
    *factor = 1;
    if (strcmp(c->unit, "ns") == 0)
        return "ns";
    bool bytes = strcmp(c->unit, "B/s") == 0, small = c->value < 1e13;
    *factor = bytes || small ? 1e-9 : 1e-12;
    return bytes ? "GB/s" : small ? "GFLOPS" : "TFLOPS";
}

bool report_table_ceilings(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "ceilings",
        .caption = "Ceilings of the device, as measured",
        .note = "Every percentage of the roofline is relative to these measured rates, not to a "
                "data sheet. The value is the best repetition. The lowest repetition shows how "
                "steady the measurement was.",
        .columns = {{"ceiling", "", TABLE_TEXT, true},
                    {"value", "", TABLE_NUMBER, true},
                    {"unit", "", TABLE_TEXT, true},
                    {"lowest", "", TABLE_NUMBER, true},
                    {"samples", "", TABLE_NUMBER, true},
                    {"method", "", TABLE_TEXT, false},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, m->n_ceilings))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_ceilings; i++) {
        const report_ceiling *c = &m->ceilings[i];
        double factor;
        const char *unit = readable_unit(c->row, &factor);
        if (c->row->arm[0])
            pen_printf(&p, "%s, %s", ceiling_name(c->row->name), c->row->arm);
        else
            pen_text(&p, ceiling_name(c->row->name));
        pen_fixed(&p, c->row->value * factor, 1);
        pen_put(&p, unit);
        pen_fixed(&p, c->lowest * factor, 1);
        pen_fixed(&p, (double)c->row->samples.n, 0);
        pen_text(&p, c->row->method);
        if (m->n_files > 1)
            pen_file(&p, m, c->file);
    }
    return !p.failed;
}

typedef struct {
    int us, tflops, gb_s;
} decimals;

static decimals speed_decimals(const report_model *m) {
    format_scale us = {0}, tflops = {0}, gb_s = {0};
    for (size_t i = 0; i < m->n_measured; i++) {
        format_scale_add(&us, m->cells[i].perf->median_ns * 1e-3);
        format_scale_add(&tflops, m->cells[i].perf->tflops);
        format_scale_add(&gb_s, m->cells[i].perf->gb_s);
    }
    return (decimals){format_scale_decimals(&us), format_scale_decimals(&tflops),
                      format_scale_decimals(&gb_s)};
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean and the p99 of a row's samples. Older rows do not store them. NAN without samples. */
static stats_summary summary_of(pen *p, const cell_performance *perf) {
    size_t n = perf->samples_ns.n;
    double *sorted = arena_alloc(p->mem, n + 1, sizeof *sorted);
    p->failed |= !sorted;
    if (!sorted || !n)
        return (stats_summary){.mean = (double)NAN, .p99 = (double)NAN};
    memcpy(sorted, perf->samples_ns.at, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return stats_summarise(sorted, n);
}

static void put_arm(pen *p, const report_cell *c, decimals d) {
    cell_performance none;
    record_init(&cell_performance_type, &none);
    const cell_performance *perf = c ? c->perf : &none;
    pen_fixed(p, perf->median_ns * 1e-3, d.us);
    stats_summary s = summary_of(p, perf);
    pen_fixed(p, s.mean * 1e-3, d.us);
    pen_fixed(p, s.p99 * 1e-3, d.us);
    pen_fixed(p, perf->tflops, d.tflops);
    pen_fixed(p, perf->gb_s, d.gb_s);
    pen_fixed(p, perf->roofline_pct, 1);
}

static void put_input(pen *p, const report_cell *c) {
    const char *cold = strcmp(c->row->cold, "none") == 0 ? "warm" : c->row->cold;
    const char *sustained = strcmp(c->row->mode, "sustained") == 0 ? ", sustained" : "";
    if (c->row->distribution[0] && cold[0])
        pen_printf(p, "%s, %s%s", c->row->distribution, cold, sustained);
    else
        pen_printf(p, "%s%s", c->row->distribution[0] ? c->row->distribution : cold, sustained);
}

/* A comparison shows the shapes that it compares. */
static bool is_shown(const report_model *m, const report_speed *s) {
    bool shown = m->n_compared == 0;
    for (size_t i = 0; i < m->n_compared && !shown; i++)
        shown = m->compared[i].cell == s->bf16 || m->compared[i].cell == s->fp8;
    return shown;
}

#define SPEED_NOTE                                                                                 \
    "µs is the median time, beside the mean and the 99th percentile of at least 100 samples. A "  \
    "speed is shown only if the output passed its check against FP64. Scope kernel is attention "  \
    "and combine. Scope served adds quantising the query, appending to the cache and the "         \
    "schedule. TFLOPS counts 2 (2 d_c + d_r) operations per row and token for both arms."

bool report_table_speed(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "speed",
                 .caption = "Time of one decode step, FP8 against BF16",
                 .note = SPEED_NOTE,
                 .columns = {{"scope", "", TABLE_TEXT, true},
                             PEN_SHAPE_COLUMNS,
                             {"speed-up", "", TABLE_NUMBER, true},
                             {"flags", "", TABLE_FLAGS, false},
                             {"µs", "BF16", TABLE_NUMBER, true},
                             {"mean", "BF16", TABLE_NUMBER, false},
                             {"p99", "BF16", TABLE_NUMBER, false},
                             {"TFLOPS", "BF16", TABLE_NUMBER, true},
                             {"GB/s", "BF16", TABLE_NUMBER, false},
                             {"% roofline", "BF16", TABLE_NUMBER, true},
                             {"µs", "FP8", TABLE_NUMBER, true},
                             {"mean", "FP8", TABLE_NUMBER, false},
                             {"p99", "FP8", TABLE_NUMBER, false},
                             {"TFLOPS", "FP8", TABLE_NUMBER, true},
                             {"GB/s", "FP8", TABLE_NUMBER, false},
                             {"% roofline", "FP8", TABLE_NUMBER, true},
                             {"input", "", TABLE_TEXT, false},
                             {"file", "", TABLE_TEXT, true}}};
    pen_drop_last_unless(t, m->n_files > 1);
    size_t rows = 0;
    for (size_t i = 0; i < m->n_speeds; i++)
        rows += is_shown(m, &m->speeds[i]);
    if (!pen_note_units(t, m, mem) || !pen_start(t, mem, rows))
        return false;
    pen p = {t, mem, false};
    decimals d = speed_decimals(m);
    for (size_t i = 0; i < m->n_speeds; i++) {
        const report_speed *s = &m->speeds[i];
        if (!is_shown(m, s))
            continue;
        pen_text(&p, s->any->row->scope);
        pen_shape(&p, s->any);
        pen_times(&p, s->speedup);
        pen_put(&p, s->flags);
        put_arm(&p, s->bf16, d);
        put_arm(&p, s->fp8, d);
        put_input(&p, s->any);
        if (m->n_files > 1)
            pen_file(&p, m, s->any->file);
    }
    return !p.failed;
}

static bool is_missing(const report_cell *c) {
    return strcmp(c->row->status, "passed") != 0;
}

bool report_table_not_measured(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "not-measured",
                 .caption = "Cells without a speed",
                 .note = "A cell with a wrong output has no speed.",
                 .columns = {{"cell", "", TABLE_TEXT, true},
                             {"status", "", TABLE_TEXT, true},
                             {"reason", "", TABLE_TEXT, true},
                             {"error", "", TABLE_NUMBER, true},
                             {"tolerance", "", TABLE_NUMBER, true},
                             {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    size_t n = 0;
    for (size_t i = 0; i < m->n_measured; i++)
        n += is_missing(&m->cells[i]);
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_measured; i++) {
        const report_cell *c = &m->cells[i];
        if (!is_missing(c))
            continue;
        char name[96];
        report_cell_name(c, name);
        pen_put(&p, name);
        pen_text(&p, c->row->status);
        pen_text(&p, c->row->reason);
        pen_science(&p, c->row->correctness.error);
        pen_science(&p, c->row->correctness.tolerance);
        if (m->n_files > 1)
            pen_file(&p, m, c->file);
    }
    return !p.failed;
}

bool report_table_reported(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "reported",
        .caption = "Figures reported by others",
        .note =
            "These figures are from the named source and were not measured here. They are shown "
            "for orientation and are not ranked with measured figures.",
        .columns = {{"arm", "", TABLE_TEXT, true},
                    {"scope", "", TABLE_TEXT, true},
                    PEN_SHAPE_COLUMNS,
                    {"µs", "", TABLE_NUMBER, true},
                    {"TFLOPS", "", TABLE_NUMBER, true},
                    {"source", "", TABLE_TEXT, true}}};
    if (!pen_start(t, mem, m->n_cells - m->n_measured))
        return false;
    pen p = {t, mem, false};
    for (size_t i = m->n_measured; i < m->n_cells; i++) {
        const report_cell *c = &m->cells[i];
        pen_text(&p, c->row->arm);
        pen_text(&p, c->row->scope);
        pen_shape(&p, c);
        pen_fixed(&p, c->perf->median_ns * 1e-3, 1);
        pen_fixed(&p, c->perf->tflops, 1);
        pen_text(&p, c->row->source);
    }
    return !p.failed;
}
