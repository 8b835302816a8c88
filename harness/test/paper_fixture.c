#include "harness/test/paper_fixture.h"

#include <CUnit/CUnit.h>
#include <string.h>

report_model *paper_of(results *r) {
    report_model *m;
    const char *name = "run.json";
    results *runs[1] = {r};
    CU_ASSERT_EQUAL_FATAL(report_model_new(&m, runs, &name, r ? 1 : 0, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(report_paper(m, NULL), SNAP_OK);
    return m;
}

snap_status paper_add(report_model *m, const char *json, bool e2e, snap_err *err) {
    js *doc = js_parse(json, strlen(json), "doc", NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    snap_status st =
        e2e ? report_add_e2e(m, doc, "doc", err) : report_add_reported(m, doc, "doc", err);
    js_free(doc);
    return st;
}

const char *paper_cell(const table *t, size_t row, const char *head, const char *group) {
    for (int c = 0; c < t->n_columns; c++)
        if (strcmp(t->columns[c].head, head) == 0 && strcmp(t->columns[c].group, group) == 0)
            return table_at(t, row, c);
    return "no such column";
}
