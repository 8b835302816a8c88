#include <math.h>
#include <string.h>

#include "harness/bench/sweep.h"

/* The BF16 row that an FP8 row is compared with, directly before it; NULL if there is none. */
static const cell_record *baseline_of(const cell_list *rows, size_t i) {
    const cell_record *c = &rows->at[i], *before = c - 1;
    if (i == 0 || c->name[0] || strcmp(c->arm, "fp8") != 0)
        return NULL;
    bool same = cell_same_shape(before, c) && strcmp(before->scope, c->scope) == 0;
    return same ? before : NULL;
}

double sweep_speedup(const cell_list *rows, size_t i) {
    const cell_record *base = baseline_of(rows, i);
    return base ? cell_speedup(base, &rows->at[i]) : (double)NAN;
}

static snap_status read_rows(cell_list *out, const js *rows, arena *mem, snap_err *err) {
    return record_read_all(&cell_type, rows, mem, &out->at, &out->n)
               ? SNAP_OK
               : err_set(err, SNAP_E_NOMEM, "out of memory for the rows of a sweep");
}

/* Whether the row belongs to the named arm; with NULL every row does. */
static bool is_of(const cell_record *c, const char *arm) {
    return !arm || strcmp(c->name, arm) == 0;
}

snap_status sweep_derive(js *rows, const char *arm, const mla_ceilings *c, snap_err *err) {
    arena mem = {0};
    cell_list all;
    snap_status st = SNAP_OK;
    TRY(read_rows(&all, rows, &mem, err));
    for (size_t i = 0; i < all.n; i++) {
        cell_record *row = &all.at[i];
        const cell_record *base = baseline_of(&all, i);
        if (!row->performance.exists || !is_of(row, arm))
            continue;
        TRY(cell_derive(row, c, &mem, err));
        bool ok = !base || cell_flag_baseline(base, row, &mem);
        ok = ok && row_store(js_at(rows, i), row);
        TRY(ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a row"));
    }
cleanup:
    arena_release(&mem);
    return st;
}

snap_status sweep_raise(const js *rows, const char *arm, mla_ceilings *to, snap_err *err) {
    arena mem = {0};
    cell_list all = {0};
    snap_status st = read_rows(&all, rows, &mem, err);
    for (size_t i = 0; i < all.n; i++)
        if (is_of(&all.at[i], arm))
            cell_raise(&all.at[i], to);
    arena_release(&mem);
    return st;
}

size_t sweep_count_flag(const js *rows, const char *arm, const char *flag) {
    arena mem = {0};
    cell_list all = {0};
    size_t n = 0;
    (void)read_rows(&all, rows, &mem, NULL);
    for (size_t i = 0; i < all.n; i++)
        n += is_of(&all.at[i], arm) && cell_has_flag(&all.at[i], flag);
    arena_release(&mem);
    return n;
}

typedef bool (*cell_test)(const cell_record *c);

static bool has_error(const cell_record *c) {
    return strcmp(c->status, "error") == 0;
}

static bool has_failed(const cell_record *c) {
    return strcmp(c->status, "failed") == 0;
}

static bool undercuts(const cell_record *c) {
    return cell_has_flag(c, "below_floor");
}

static size_t count(const cell_list *rows, cell_test test, const cell_record **first) {
    size_t n = 0;
    *first = NULL;
    for (size_t i = 0; i < rows->n; i++)
        if (test(&rows->at[i]))
            *first = n++ ? *first : &rows->at[i];
    return n;
}

static snap_status verdict(const cell_list *rows, cell_test test, snap_status code,
                           const char *what, snap_err *err) {
    const cell_record *c;
    size_t n = count(rows, test, &c);
    if (!n)
        return SNAP_OK;
    return err_set(err, code,
                   "%zu of %zu cells %s, first: %s %s, H %lld, s_q %lld, batch %lld, context "
                   "%lld%s%s",
                   n, rows->n, what, cell_arm_name(c), c->scope, (long long)c->shape.heads,
                   (long long)c->shape.s_q, (long long)c->shape.batch, (long long)c->shape.context,
                   c->reason[0] ? ": " : "", c->reason);
}

snap_status sweep_verdict(const js *rows, snap_err *err) {
    arena mem = {0};
    cell_list all;
    snap_status st = SNAP_OK;
    TRY(read_rows(&all, rows, &mem, err));
    TRY(verdict(&all, has_error, SNAP_E_DEVICE, "could not be run", err));
    TRY(verdict(&all, has_failed, SNAP_E_WRONG, "failed the correctness check", err));
    TRY(verdict(&all, undercuts, SNAP_E_WRONG,
                "took less time than the ceilings allow, a measuring error", err));
cleanup:
    arena_release(&mem);
    return st;
}
