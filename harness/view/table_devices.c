/* table_devices.c - the tables that have one line for each device of a comparison: means over
 * the cells that all devices share, means over the cells that a device shares with the first
 * one, and what the devices are. */
#include <math.h>
#include <string.h>

#include "harness/view/compare.h"
#include "harness/view/pen.h"

/* ---- means over the cells that all devices share --------------------------------------------- */

/* Appends how many of a device's rows with `common` have each flag: "3 noisy, 1 shared". */
static void put_flags(const report_model *m, int device, bool loops, buf *out) {
    static const char *const known[] = {"noisy",        "shared",         "throttled",
                                        "power_capped", "below_floor",    "not_captured",
                                        "host_limited", "lse_not_checked"};
    enum { KNOWN = sizeof known / sizeof *known };
    size_t n[KNOWN] = {0}, others = 0, warm = 0;
    for (size_t i = 0; i < m->n_compared; i++) {
        const report_cell *c = m->compared[i].cell;
        if (!m->compared[i].common || m->device_of[c->file] != device || report_is_loop(c) != loops)
            continue;
        warm += compare_is_warm(c);
        for (size_t f = 0; f < c->row->flags.n; f++) {
            size_t k = 0;
            while (k < KNOWN && strcmp(known[k], c->row->flags.at[f]) != 0)
                k++;
            if (k < KNOWN)
                n[k]++;
            else
                others += strcmp(c->row->flags.at[f], "weak_baseline") != 0;
        }
    }
    const char *before = "";
    for (size_t k = 0; k < KNOWN; k++) {
        if (!n[k])
            continue;
        (void)buf_printf(out, "%s%zu %s", before, n[k], known[k]);
        before = ", ";
    }
    if (others)
        (void)buf_printf(out, "%s%zu other", before, others);
    if (warm)
        (void)buf_printf(out, "%s%zu warm cache", others ? ", " : before, warm);
}

static size_t rows_of(const report_model *m, int device, bool loops) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_cells; i++)
        n += m->device_of[m->cells[i].file] == device && report_is_loop(&m->cells[i]) == loops &&
             compare_usable(&m->cells[i]);
    return n;
}

static void put_device(pen *p, const report_model *m, int device) {
    pen_fixed(p, device + 1, 0);
    pen_text(p, m->labels[device]);
}

static void put_means(pen *p, const report_model *m, int device, bool loops) {
    device_means bf16 = compare_means(m, device, "bf16", loops);
    device_means fp8 = compare_means(m, device, "fp8", loops);
    buf flags = {0};
    put_flags(m, device, loops, &flags);
    put_device(p, m, device);
    pen_times(p, bf16.speed);
    pen_times(p, fp8.speed);
    pen_times(p, compare_fp8_gain(m, device, loops));
    pen_digits(p, bf16.tok_s);
    pen_digits(p, fp8.tok_s);
    pen_fixed(p, bf16.roofline_pct, 1);
    pen_fixed(p, fp8.roofline_pct, 1);
    pen_digits(p, bf16.tok_j);
    pen_digits(p, fp8.tok_j);
    pen_digits(p, bf16.tok_usd * 1e-6);
    pen_digits(p, fp8.tok_usd * 1e-6);
    pen_printf(p, "%zu + %zu", bf16.n, fp8.n);
    pen_printf(p, "%zu + %zu", bf16.metered, fp8.metered);
    if (!bf16.n && !fp8.n)
        pen_put(p, rows_of(m, device, loops) ? "shares too few cells" : "not measured");
    else
        pen_put(p, buf_str(&flags));
    p->failed |= flags.failed;
    buf_release(&flags);
}

/* Whether a device has measured cells. Files of errors or accuracies have none. */
static bool has_cells(const report_model *m, int device) {
    return rows_of(m, device, false) + rows_of(m, device, true) > 0;
}

static bool fill_means(const report_model *m, arena *mem, table *t, bool loops) {
    static const table_column columns[] = {{"#", "", TABLE_NUMBER, true},
                                           {"device", "", TABLE_TEXT, true},
                                           {"BF16", "speed vs first", TABLE_NUMBER, true},
                                           {"FP8", "speed vs first", TABLE_NUMBER, true},
                                           {"vs BF16", "FP8", TABLE_NUMBER, true},
                                           {"BF16", "tok/s", TABLE_NUMBER, true},
                                           {"FP8", "tok/s", TABLE_NUMBER, true},
                                           {"BF16", "% of own roofline", TABLE_NUMBER, true},
                                           {"FP8", "% of own roofline", TABLE_NUMBER, true},
                                           {"BF16", "tok/J", TABLE_NUMBER, true},
                                           {"FP8", "tok/J", TABLE_NUMBER, true},
                                           {"BF16", "M tok/$", TABLE_NUMBER, true},
                                           {"FP8", "M tok/$", TABLE_NUMBER, true},
                                           {"speed", "cells", TABLE_NUMBER, true},
                                           {"tok/J", "cells", TABLE_NUMBER, true},
                                           {"flagged cells", "", TABLE_FLAGS, true}};
    size_t n = 0;
    t->whole = true;
    memcpy(t->columns, columns, sizeof columns);
    for (int d = 0; d < m->n_devices; d++)
        n += has_cells(m, d);
    if (!pen_start(t, mem, m->n_compared ? n : 0))
        return false;
    pen p = {t, mem, false};
    for (int d = 0; d < m->n_devices && m->n_compared; d++)
        if (has_cells(m, d))
            put_means(&p, m, d, loops);
    return !p.failed;
}

#define MEANS_NOTE                                                                                 \
    " Means are geometric. The % of the own roofline is a median, relative to what the device "    \
    "itself reached in short probes. Cells: how many of BF16 and of FP8 are behind each mean. A "  \
    "cell is one shape in one scope. Cells with flags are included, and the last column counts "   \
    "them. A token is one new token of one sequence, in the attention of one layer: a model with " \
    "60 layers needs 60 such steps for each token. M tok/$: millions of tokens for one US dollar."

bool report_table_devices(const report_model *m, arena *mem, table *t) {
    bool loops = !compare_has(m, false);
    *t = (table){
        .id = "devices",
        .caption = loops ? "Devices: means over the loops that all devices share"
                         : "Devices: means over the single steps that all devices share",
        .note = loops ? "All devices have the same cells." MEANS_NOTE
                      : "All devices have the same cells. tok/J: over the loops that all devices "
                        "with energy sensors share." MEANS_NOTE};
    return fill_means(m, mem, t, loops);
}

/* Empty if the first table has the loops, or if there are none. */
bool report_table_devices_loops(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "devices-loops",
                 .caption = "Devices: means over the loops that all devices share",
                 .note = "As in the first table, for loops without pauses. The percentage of the "
                         "roofline leaves out loops with a warm cache."};
    if (compare_has(m, false) && compare_has(m, true))
        return fill_means(m, mem, t, true);
    t->columns[0] = (table_column){"#", "", TABLE_NUMBER, true};
    return pen_start(t, mem, 0);
}

/* ---- means over the cells that a device shares with the first one ---------------------------- */

typedef struct {
    size_t n;
    double sum; /* sum of the logarithms of the speeds */
} mean;

/* The speed of a device's arm relative to the first device, over the cells that both have. */
static mean against_first(const report_model *m, int device, const char *arm, bool loops,
                          bool flagged) {
    mean x = {0};
    for (size_t i = 0; i < m->n_compared; i++) {
        const compared *r = &m->compared[i];
        if (isnan(r->ratio) || m->device_of[r->cell->file] != device ||
            m->device_of[r->first->file] != 0 || report_is_loop(r->cell) != loops ||
            strcmp(r->cell->row->arm, arm) != 0 ||
            (!flagged && (compare_doubtful(r->cell) || compare_doubtful(r->first))))
            continue;
        x.n++;
        x.sum += log(r->ratio);
    }
    return x;
}

static void put_mean(pen *p, mean x) {
    pen_times(p, x.n ? exp(x.sum / (double)x.n) : (double)NAN);
    pen_fixed(p, (double)x.n, 0);
}

bool report_table_pairs(const report_model *m, arena *mem, table *t) {
    *t =
        (table){.id = "pairs",
                .caption = "Each device against the first one",
                .note = "Geometric means of the speed, over all cells that the two devices share. "
                        "These are more cells than in the first table, and other ones for each "
                        "device, so the means of two lines cannot be compared. Without flags: over "
                        "the cells in which neither device has a flag. The flag weak_baseline "
                        "excludes no cell, because it compares FP8 with BF16 on one device.",
                .whole = true,
                .columns = {{"#", "", TABLE_NUMBER, true},
                            {"device", "", TABLE_TEXT, true},
                            {"mode", "", TABLE_TEXT, true},
                            {"BF16", "all cells", TABLE_NUMBER, true},
                            {"n", "all cells", TABLE_NUMBER, true},
                            {"FP8", "all cells", TABLE_NUMBER, true},
                            {"n", "all cells", TABLE_NUMBER, true},
                            {"BF16", "without flags", TABLE_NUMBER, true},
                            {"n", "without flags", TABLE_NUMBER, true},
                            {"FP8", "without flags", TABLE_NUMBER, true},
                            {"n", "without flags", TABLE_NUMBER, true}}};
    if (!pen_start(t, mem, m->n_compared ? 2 * (size_t)m->n_devices : 0))
        return false;
    pen p = {t, mem, false};
    for (int d = 1; m->n_compared && d < m->n_devices; d++)
        for (int loops = 0; loops < 2; loops++) {
            if (!against_first(m, d, "bf16", loops, true).n &&
                !against_first(m, d, "fp8", loops, true).n)
                continue;
            put_device(&p, m, d);
            pen_put(&p, loops ? "loops" : "single steps");
            for (int flagged = 1; flagged >= 0; flagged--) {
                put_mean(&p, against_first(m, d, "bf16", loops, flagged));
                put_mean(&p, against_first(m, d, "fp8", loops, flagged));
            }
        }
    return !p.failed;
}

/* ---- what the devices are -------------------------------------------------------------------- */

/* The sensors that gave the energy of a device's loops, or why it is missing. */
static void put_energy(pen *p, const report_model *m, int device) {
    const char *source = "", *missing = "";
    bool measured = false;
    for (size_t i = 0; i < m->n_cells; i++) {
        const report_cell *c = &m->cells[i];
        if (m->device_of[c->file] != device || !compare_usable(c))
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

/* The note of the table of devices, with the prices that it uses. NULL: out of memory. */
static const char *machines_note(const report_model *m, arena *mem) {
    buf text = {0};
    (void)buf_puts(&text, "Cells: all that were measured, also those that no other device has.");
    (void)buf_puts(&text, m->price_note ? m->price_note : "");
    const char *note = text.failed ? NULL : arena_strdup(mem, buf_str(&text));
    buf_release(&text);
    return note;
}

bool report_table_machines(const report_model *m, arena *mem, table *t) {
    const char *note = machines_note(m, mem);
    if (!note)
        return false;
    *t = (table){.id = "machines",
                 .caption = "What was compared",
                 .note = note,
                 .whole = true,
                 .columns = {{"#", "", TABLE_NUMBER, true},
                             {"device", "", TABLE_TEXT, true},
                             {"commit", "", TABLE_TEXT, true},
                             {"date", "", TABLE_TEXT, true},
                             {"single steps", "cells", TABLE_NUMBER, true},
                             {"loops", "cells", TABLE_NUMBER, true},
                             {"$/h", "", TABLE_NUMBER, true},
                             {"energy", "", TABLE_TEXT, true},
                             {"file", "", TABLE_TEXT, false}}};
    if (!pen_start(t, mem, m->n_compared ? (size_t)m->n_devices : 0))
        return false;
    pen p = {t, mem, false};
    for (int d = 0; m->n_compared && d < m->n_devices; d++) {
        const origin_record *from = compare_origin(m, d);
        put_device(&p, m, d);
        pen_text(&p, from ? from->program.commit : "");
        pen_printf(&p, "%.10s", from ? from->started : "");
        pen_fixed(&p, (double)rows_of(m, d, false), 0);
        pen_fixed(&p, (double)rows_of(m, d, true), 0);
        pen_fixed(&p, m->usd_per_hour[d], 2);
        if (has_cells(m, d))
            put_energy(&p, m, d);
        else
            pen_text(&p, "");
        pen_text(&p, m->given[d]);
    }
    return !p.failed;
}
