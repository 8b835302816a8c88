/* table_compare.c - the tables that compare machines: one summary per file and arm, and all cells
 * that at least two files have. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/compare.h"
#include "harness/view/pen.h"

static double price_of(const report_model *m, int file) {
    return m->usd_per_hour ? m->usd_per_hour[file] : (double)NAN;
}

static bool any_price(const report_model *m) {
    for (int i = 0; i < m->n_files; i++)
        if (!isnan(price_of(m, i)))
            return true;
    return false;
}

const char *report_device_of(const report_model *m, int file) {
    for (size_t i = 0; i < m->n_sources; i++) {
        const origin_backend *backend = &m->sources[i].row->backend;
        if (m->sources[i].file == file && backend->exists)
            return backend->device;
    }
    return "";
}

/* A summary of the rows of one file and arm. */
typedef struct {
    size_t rows, differ; /* number of all rows, and of rows under other conditions */
    size_t flagged;      /* doubtful rows, and rows that are compared with a doubtful one */
    size_t ratios;       /* rows with a ratio */
    size_t n;            /* rows with a ratio that are not counted in `flagged` */
    double sum;          /* sum of the logarithms of their ratios */
} gain;

static gain gain_of(const report_model *m, int file, const char *arm) {
    gain g = {0};
    for (size_t i = 0; i < m->n_compared; i++) {
        const compared *c = &m->compared[i];
        if (c->cell->file != file || strcmp(c->cell->row->arm, arm) != 0)
            continue;
        g.rows++;
        g.differ += c->differs[0] != '\0';
        bool flagged = compare_doubtful(c->cell) || compare_doubtful(c->first);
        g.flagged += flagged;
        g.ratios += isnan(c->ratio) ? 0 : 1;
        if (!isnan(c->ratio) && !flagged) {
            g.n++;
            g.sum += log(c->ratio);
        }
    }
    return g;
}

/* The geometric mean of the ratios, or why there is none. The rows of the first file have none. */
static void put_speed(pen *p, const gain *g) {
    if (g->n == 0 && g->ratios > 0)
        pen_put(p, "none: flags");
    else if (g->n == 0 && g->differ > 0)
        pen_put(p, "none: not comparable");
    else
        pen_times(p, g->n ? exp(g->sum / (double)g->n) : (double)NAN);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median percentage of the roofline over the rows of a file and arm that are not doubtful. */
static double roofline_of(const report_model *m, int file, const char *arm) {
    double *x = malloc((m->n_compared + 1) * sizeof *x);
    size_t n = 0;
    for (size_t i = 0; x && i < m->n_compared; i++) {
        const report_cell *c = m->compared[i].cell;
        if (c->file == file && strcmp(c->row->arm, arm) == 0 && !compare_doubtful(c) &&
            !isnan(c->perf->roofline_pct))
            x[n++] = c->perf->roofline_pct;
    }
    if (x)
        qsort(x, n, sizeof *x, by_value);
    double median = n ? (x[(n - 1) / 2] + x[n / 2]) / 2 : (double)NAN;
    free(x);
    return median;
}

/* The note of the table of machines, with the prices that it uses. NULL: out of memory. */
static const char *machines_note(const report_model *m, arena *mem) {
    buf text = {0};
    (void)buf_puts(&text,
                   "Only cells that at least two files have are counted. The relative speed is the "
                   "geometric mean of the speed relative to the first file that has the cell under "
                   "the same conditions. The percentage of the roofline is a median, relative to "
                   "the device's own measured roofline. Both leave out cells with flags. The "
                   "relative speed also leaves out a cell if the first file's cell has a flag. The "
                   "flag weak_baseline excludes no cell, because it compares FP8 with BF16 on one "
                   "device.");
    (void)buf_puts(&text, m->price_note ? m->price_note : "");
    const char *note = text.failed ? NULL : arena_strdup(mem, buf_str(&text));
    buf_release(&text);
    return note;
}

/* The sensors that gave the energy of a file's cells, or why it is missing. */
static void put_energy(pen *p, const report_model *m, int file) {
    const char *source = "", *missing = "";
    bool measured = false;
    for (size_t i = 0; i < m->n_compared; i++) {
        const report_cell *c = m->compared[i].cell;
        if (c->file != file)
            continue;
        if (isnan(c->perf->tok_j)) {
            missing = c->perf->energy_missing[0] ? c->perf->energy_missing : missing;
        } else {
            measured = true;
            source = c->perf->energy_source;
        }
    }
    if (!measured)
        pen_printf(p, "not measured: %s", missing[0] ? missing : "no loops (bench --sustained)");
    else if (missing[0])
        pen_printf(p, "%s; not measured in some cells: %s", source, missing);
    else
        pen_text(p, source);
}

/* Whether a file of a comparison has cells, but none of another file. A file of errors or
 * accuracies has no cells. */
static bool is_apart(const report_model *m, int file) {
    bool measured = false;
    for (size_t i = 0; i < m->n_compared; i++)
        if (m->compared[i].cell->file == file)
            return false;
    for (size_t i = 0; i < m->n_measured; i++)
        measured |= m->cells[i].file == file;
    return measured && m->n_compared > 0;
}

static void put_machine(pen *p, const report_model *m, int file, const char *arm) {
    gain g = gain_of(m, file, arm);
    pen_fixed(p, file + 1, 0);
    pen_device(p, m, file);
    pen_file(p, m, file);
    pen_text(p, arm);
    pen_fixed(p, (double)g.rows, 0);
    pen_fixed(p, (double)g.differ, 0);
    pen_fixed(p, (double)g.flagged, 0);
    put_speed(p, &g);
    pen_fixed(p, roofline_of(m, file, arm), 1);
    if (g.rows)
        put_energy(p, m, file);
    else
        pen_text(p, "");
    pen_fixed(p, price_of(m, file), 2);
}

bool report_table_machines(const report_model *m, arena *mem, table *t) {
    static const char *const arms[] = {"bf16", "fp8"};
    const char *note = machines_note(m, mem);
    if (!note)
        return false;
    *t = (table){.id = "machines",
                 .caption = "Comparison of the machines",
                 .note = note,
                 .columns = {{"#", "", TABLE_NUMBER, true},
                             {"device", "", TABLE_TEXT, true},
                             {"file", "", TABLE_TEXT, false},
                             {"arm", "", TABLE_TEXT, true},
                             {"cells", "", TABLE_NUMBER, true},
                             {"not comparable", "", TABLE_NUMBER, true},
                             {"with flags", "", TABLE_NUMBER, true},
                             {"speed vs first file", "", TABLE_NUMBER, true},
                             {"% of own roofline", "", TABLE_NUMBER, true},
                             {"energy", "", TABLE_TEXT, true},
                             {"$/h", "", TABLE_NUMBER, true}}};
    size_t rows = 0;
    for (int f = 0; f < m->n_files; f++) {
        rows += is_apart(m, f);
        for (int a = 0; a < 2; a++)
            rows += gain_of(m, f, arms[a]).rows > 0;
    }
    if (!pen_start(t, mem, rows))
        return false;
    pen p = {t, mem, false};
    for (int f = 0; f < m->n_files; f++) {
        if (is_apart(m, f))
            put_machine(&p, m, f, ""); /* so that no machine is missing from the table */
        for (int a = 0; a < 2; a++)
            if (gain_of(m, f, arms[a]).rows)
                put_machine(&p, m, f, arms[a]);
    }
    return !p.failed;
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

static void put_cell(pen *p, const report_cell *c) {
    pen_text(p, cell_arm_name(c->row));
    pen_text(p, c->row->scope);
    pen_shape(p, c);
}

static void put_marks(pen *p, const compared *c) {
    if (c->differs[0])
        pen_printf(p, "other %s%s%s", c->differs, c->cell->flags[0] ? "; " : "", c->cell->flags);
    else
        pen_put(p, c->cell->flags);
}

static bool any_energy(const report_model *m) {
    for (size_t i = 0; i < m->n_compared; i++)
        if (!isnan(m->compared[i].cell->perf->tok_j))
            return true;
    return false;
}

/* In LaTeX, the number of the file stands for the device, and the column of the energy is left out
 * if it is empty. */
bool report_table_compare(const report_model *m, arena *mem, table *t) {
    bool priced = any_price(m);
    *t = (table){
        .id = "compare",
        .caption = "Every cell on every machine",
        .note = "# is the number of the file in the table above. A row marked 'other ...' was "
                "measured under other conditions than the first file's row and has no relative "
                "speed. tok/J is computed from the energy that the sensors of the table above "
                "report during loops without pauses.",
        .columns = {{"arm", "", TABLE_TEXT, true},
                    {"scope", "", TABLE_TEXT, true},
                    PEN_SHAPE_COLUMNS,
                    {"device", "", TABLE_TEXT, false},
                    {"#", "", TABLE_NUMBER, true},
                    {"µs", "", TABLE_NUMBER, true},
                    {"speed vs first file", "", TABLE_NUMBER, true},
                    {"% of own roofline", "", TABLE_NUMBER, true},
                    {"TFLOPS", "", TABLE_NUMBER, false},
                    {"GB/s", "", TABLE_NUMBER, false},
                    {"tok/s", "", TABLE_NUMBER, true},
                    {"tok/J", "", TABLE_NUMBER, any_energy(m)},
                    {"marks", "", TABLE_FLAGS, true},
                    {"tok/$", "", TABLE_NUMBER, true}}};
    pen_drop_last_unless(t, priced);
    if (!pen_start(t, mem, m->n_compared))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_compared; i++) {
        const report_cell *c = m->compared[i].cell;
        put_cell(&p, c);
        pen_device(&p, m, c->file);
        pen_fixed(&p, c->file + 1, 0);
        pen_fixed(&p, c->perf->median_ns * 1e-3, 1);
        pen_times(&p, m->compared[i].ratio);
        pen_fixed(&p, c->perf->roofline_pct, 1);
        pen_fixed(&p, c->perf->tflops, 2);
        pen_fixed(&p, c->perf->gb_s, 1);
        pen_fixed(&p, c->perf->tok_s, 0);
        if (isnan(c->perf->tok_j))
            pen_put(&p, "not measured");
        else
            pen_fixed(&p, c->perf->tok_j, 1);
        put_marks(&p, &m->compared[i]);
        if (priced)
            pen_fixed(&p, m->compared[i].tok_usd, 0);
    }
    return !p.failed;
}
