#include "harness/cmd/model_predict.h"

#include <stdlib.h>

#include "harness/cmd/print.h"
#include "harness/view/predict_tables.h"

/* Prints a table after an empty line, and releases it. */
static snap_status print_next(table t, snap_err *err) {
    snap_status st = print_bytes("\n", 1, err);
    if (st == SNAP_OK)
        st = print_table(&t, err);
    table_release(&t);
    return st;
}

static snap_status show_tables(const predict_options *o, const predict_result *p, snap_err *err) {
    table rows = predict_rows_table(p);
    snap_status st = print_table(&rows, err);
    table_release(&rows);
    if (st == SNAP_OK && o->against)
        st = print_next(predict_agreement_table(p), err);
    return st == SNAP_OK ? print_next(predict_rules_table(p), err) : st;
}

snap_status model_predict_run(const predict_options *o, opt_shared *shared, snap_err *err) {
    predict_result *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a prediction");
    snap_status st = predict_run(o, shared->resolved, p, err);
    if (st == SNAP_OK && shared->json) {
        js *rows = predict_json(p);
        st = print_json(rows, err);
        js_free(rows);
    } else if (st == SNAP_OK) {
        st = show_tables(o, p, err);
    }
    predict_release(p);
    free(p);
    return st;
}
