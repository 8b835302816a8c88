/* table_lacking.c - what one device of a comparison lacks and another one has, with the command
 * that measures it. */
#include <stdio.h>

#include "harness/view/compare.h"
#include "harness/view/gaps.h"
#include "harness/view/pen.h"

/* Whether one device has several files. If each file is a device of its own, a file without errors
 * and accuracies is not incomplete. */
static bool is_grouped(const report_model *m) {
    return m->n_devices < m->n_files;
}

static bool has_cells(const report_model *m, int device) {
    for (size_t i = 0; i < m->n_measured; i++)
        if (m->device_of[m->cells[i].file] == device)
            return true;
    return false;
}

static bool has_errors(const report_model *m, int device) {
    for (size_t i = 0; i < m->n_fidelity; i++)
        if (m->device_of[m->fidelity[i].file] == device)
            return true;
    return false;
}

static bool has_accuracies(const report_model *m, int device) {
    for (size_t i = 0; i < m->n_evals; i++)
        if (m->device_of[m->evals[i].file] == device)
            return true;
    return false;
}

static void put_row(pen *p, const report_model *m, int device, const char *what,
                    const buf *command) {
    pen_fixed(p, device + 1, 0);
    pen_text(p, m->labels[device]);
    pen_put(p, what);
    p->failed |= command->failed;
    pen_put(p, buf_str(command));
}

static void put_gap(pen *p, const report_model *m, const gap *g, size_t number) {
    char what[80];
    buf command = {0};
    (void)snprintf(what, sizeof what, "%zu cells, %s, scope %s", g->n_cells,
                   report_is_loop(g->cells[0]) ? "loops" : "single steps", g->cells[0]->row->scope);
    gap_command(m, g, number, &command);
    put_row(p, m, g->device, what, &command);
    buf_release(&command);
}

/* Writes rows for errors and accuracies that only other devices have. */
static void put_others(pen *p, const report_model *m, int device, size_t number) {
    buf command = {0};
    if (m->n_fidelity && !has_errors(m, device)) {
        gap_fidelity_command(m, device, number, &command);
        put_row(p, m, device, "numerical errors", &command);
        buf_clear(&command);
    }
    if (m->n_evals && !has_accuracies(m, device)) {
        gap_accuracy_command(m, device, &command);
        put_row(p, m, device, "accuracies", &command);
    }
    buf_release(&command);
}

bool report_table_lacking(const report_model *m, arena *mem, table *t) {
    size_t n = 0;
    gap *gaps = gaps_find(m, mem, &n);
    *t = (table){
        .id = "lacking",
        .caption = "What each device lacks, and the command that measures it",
        .note = "Cells that another device has, also those that a time limit left out. Cells that "
                "the device cannot run are not listed, and neither are shapes that were scaled for "
                "another device (bench --scaled). Run a command on the device of its line. For "
                "many shapes, it names a shipped configuration that has them. Named arms keep "
                "their names, and run on this device's backend.",
        .whole = true,
        .columns = {{"#", "", TABLE_NUMBER, true},
                    {"device", "", TABLE_TEXT, true},
                    {"lacks", "", TABLE_TEXT, true},
                    {"command", "", TABLE_TEXT, true}}};
    if (!gaps || !pen_start(t, mem, m->n_compared ? n + 2 * (size_t)m->n_devices : 0))
        return false;
    pen p = {t, mem, false};
    for (int d = 0; m->n_compared && d < m->n_devices; d++) {
        size_t number = 1;
        for (size_t i = 0; i < n; i++)
            if (gaps[i].device == d)
                put_gap(&p, m, &gaps[i], number++);
        if (is_grouped(m) && has_cells(m, d))
            put_others(&p, m, d, number);
    }
    return !p.failed;
}
