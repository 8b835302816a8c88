#include "harness/view/serving_text.h"

#include <string.h>

#include "harness/view/tables.h"
#include "harness/view/writers.h"

static snap_status append(const report_model *m, report_table_fn build, bool color, buf *out,
                          snap_err *err) {
    arena mem = {0};
    table t;
    snap_status st = build(m, &mem, &t) ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory");
    if (st == SNAP_OK && t.n_rows) {
        (void)buf_printf(out, "%s%s\n", out->len ? "\n" : "", t.caption);
        st = write_text(&t, color, out, err);
    }
    arena_release(&mem);
    return st;
}

snap_status serving_view(results *r, bool color, buf *out, snap_err *err) {
    static const report_table_fn builds[] = {report_table_serving, report_table_serving_parts,
                                             report_table_latencies_brief,
                                             report_table_serving_pairs, report_table_knees};
    report_model *m = NULL;
    snap_status st = SNAP_OK;
    const char *name = "run.json";
    TRY(report_model_new(&m, &r, &name, 1, err));
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++)
        TRY(append(m, builds[i], color, out, err));
    st = buf_check(out, "the tables of servers", err);
cleanup:
    report_model_free(m);
    return st;
}
