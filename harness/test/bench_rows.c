#include "harness/test/bench_rows.h"

#include <math.h>
#include <string.h>

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for a row");
}

snap_status row_derive(js *row, const mla_ceilings *c, snap_err *err) {
    snap_status st = SNAP_OK;
    arena mem = {0};
    cell_record cell;
    TRY(record_read(&cell_type, row, &mem, &cell) ? SNAP_OK : no_memory(err));
    if (!cell.performance.exists)
        goto cleanup;
    TRY(cell_derive(&cell, c, &mem, err));
    TRY(row_store(row, &cell) ? SNAP_OK : no_memory(err));
cleanup:
    arena_release(&mem);
    return st;
}

void row_raise(const js *row, mla_ceilings *c) {
    arena mem = {0};
    cell_record cell;
    if (record_read(&cell_type, row, &mem, &cell))
        cell_raise(&cell, c);
    arena_release(&mem);
}

bool row_has_flag(const js *row, const char *flag) {
    arena mem = {0};
    cell_record cell;
    bool has = record_read(&cell_type, row, &mem, &cell) && cell_has_flag(&cell, flag);
    arena_release(&mem);
    return has;
}

double row_number(const js *row, const char *key) {
    arena mem = {0};
    cell_record cell;
    double x = (double)NAN;
    if (record_read(&cell_type, row, &mem, &cell))
        x = record_number(&cell_performance_type, &cell.performance, key);
    arena_release(&mem);
    return x;
}

double row_paired_pct(const js *row) {
    arena mem = {0};
    cell_record cell;
    double x = (double)NAN;
    if (record_read(&cell_type, row, &mem, &cell))
        x = cell.performance.paired.roofline_pct;
    arena_release(&mem);
    return x;
}

double rows_speedup(const js *rows, size_t i) {
    arena mem = {0};
    cell_list all;
    double times = (double)NAN;
    if (record_read_all(&cell_type, rows, &mem, &all.at, &all.n))
        times = sweep_speedup(&all, i);
    arena_release(&mem);
    return times;
}

bool row_is(const js *row, const char *key, const char *value) {
    const char *s = js_get_str(row, key);
    return s && strcmp(s, value) == 0;
}
