/* table_compare.c - the tables that have all cells which at least two devices of a comparison
 * share: one of single steps and one of loops. */
#include <math.h>
#include <string.h>

#include "harness/view/compare.h"
#include "harness/view/pen.h"

const char *report_device_of(const report_model *m, int file) {
    for (size_t i = 0; i < m->n_sources; i++) {
        const origin_backend *backend = &m->sources[i].row->backend;
        if (m->sources[i].file == file && backend->exists)
            return backend->device;
    }
    return "";
}

bool report_table_refused(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "refused",
                 .caption = "Refused files",
                 .note = "These files were given, and are in no table.",
                 .columns = {{"file", "", TABLE_TEXT, true}, {"reason", "", TABLE_TEXT, true}}};
    if (!pen_start(t, mem, m->n_refused))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_refused; i++) {
        pen_text(&p, m->refused[i].file);
        pen_text(&p, m->refused[i].why);
    }
    return !p.failed;
}

static bool any_price(const report_model *m) {
    for (int i = 0; i < m->n_devices; i++)
        if (m->usd_per_hour && !isnan(m->usd_per_hour[i]))
            return true;
    return false;
}

/* The conditions that differ from the first device's, the cache of a loop, and the flags. */
static void put_marks(pen *p, const compared *c) {
    const report_cell *own = c->cell;
    buf text = {0};
    if (c->differs[0])
        (void)buf_printf(&text, "; other %s", c->differs);
    if (compare_is_warm(own))
        (void)buf_printf(&text, "; warm cache%s",
                         own->perf->roofline_pct > 100 ? ", so above the roofline" : "");
    if (own->flags[0])
        (void)buf_printf(&text, "; %s", own->flags);
    p->failed |= text.failed;
    pen_put(p, text.len ? buf_str(&text) + 2 : "");
    buf_release(&text);
}

static void put_row(pen *p, const report_model *m, const compared *c, bool priced) {
    const cell_performance *perf = c->cell->perf;
    const int device = m->device_of[c->cell->file];
    pen_text(p, cell_arm_name(c->cell->row));
    pen_text(p, c->cell->row->scope);
    pen_shape(p, c->cell);
    pen_fixed(p, device + 1, 0);
    pen_text(p, m->labels[device]);
    pen_fixed(p, perf->median_ns * 1e-3, 1);
    pen_times(p, c->ratio);
    pen_fixed(p, perf->roofline_pct, 1);
    pen_digits(p, perf->tflops);
    pen_digits(p, perf->gb_s);
    pen_digits(p, perf->tok_s);
    put_marks(p, c);
    if (report_is_loop(c->cell) && isnan(perf->tok_j))
        pen_put(p, "not measured");
    else if (report_is_loop(c->cell))
        pen_digits(p, perf->tok_j);
    if (priced)
        pen_digits(p, c->tok_usd * 1e-6);
}

static size_t rows_of(const report_model *m, bool loops) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_compared; i++)
        n += report_is_loop(m->compared[i].cell) == loops;
    return n;
}

/* @t: the table without its columns and rows */
static bool fill(const report_model *m, arena *mem, table *t, bool loops) {
    static const table_column columns[] = {
        {"arm", "", TABLE_TEXT, true},
        {"scope", "", TABLE_TEXT, true},
        PEN_SHAPE_COLUMNS,
        {"#", "", TABLE_NUMBER, false},
        {"device", "", TABLE_TEXT, true},
        {"µs", "", TABLE_NUMBER, true},
        {"speed vs first device", "", TABLE_NUMBER, true},
        {"% of own roofline", "", TABLE_NUMBER, true},
        {"TFLOPS", "", TABLE_NUMBER, false},
        {"GB/s", "", TABLE_NUMBER, false},
        {"tok/s", "", TABLE_NUMBER, true},
        {"marks", "", TABLE_FLAGS, true},
    };
    static const table_column energy = {"tok/J", "", TABLE_NUMBER, true};
    static const table_column price = {"M tok/$", "", TABLE_NUMBER, true};
    const bool priced = any_price(m);
    size_t n = sizeof columns / sizeof *columns;
    memcpy(t->columns, columns, sizeof columns);
    if (loops)
        t->columns[n++] = energy;
    if (priced)
        t->columns[n++] = price;
    if (!pen_start(t, mem, rows_of(m, loops)))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_compared; i++)
        if (report_is_loop(m->compared[i].cell) == loops)
            put_row(&p, m, &m->compared[i], priced);
    return !p.failed;
}

bool report_table_compare(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "compare",
                 .caption = "Every single step on every device",
                 .note = "Only cells that at least two devices have. A row marked 'other ...' was "
                         "measured under other conditions than the first device's row and has no "
                         "relative speed."};
    return fill(m, mem, t, false);
}

bool report_table_compare_loops(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "compare-loops",
                 .caption = "Every loop on every device",
                 .note = "Only cells that at least two devices have. If the data of a shape fit "
                         "into the device's cache, the loop is marked 'warm cache': its % of the "
                         "roofline, which is that of the memory, can exceed 100, and no mean "
                         "includes it. tok/J is computed from the energy that the device's sensors "
                         "report during the loop."};
    return fill(m, mem, t, true);
}
