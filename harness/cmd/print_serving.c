#include "harness/cmd/print_serving.h"

#include <math.h>
#include <unistd.h>

#include "base/term.h"
#include "harness/cmd/print.h"
#include "harness/view/serving_text.h"
#include "harness/view/table.h"

static void put_parity(table *t, const serving_result *res, const parity_row *p) {
    table_put(t, res->points.at[p->point].name);
    table_put(t, res->arms[p->arm].name);
    table_cell(t, "%zu", p->diff.n);
    table_cell(t, "%zu", p->answers[0]);
    table_cell(t, "%zu", p->answers[1]);
    table_number(t, 100 * p->accuracy[0], 2);
    table_number(t, 100 * p->accuracy[1], 2);
    table_number(t, 100 * p->diff.delta, 2);
    if (isnan(p->diff.ci95.lo))
        table_cell(t, "-");
    else
        table_cell(t, "[%+.2f, %+.2f]", 100 * p->diff.ci95.lo, 100 * p->diff.ci95.hi);
    table_number(t, 100 * p->truncated[0], 1);
    table_number(t, 100 * p->truncated[1], 1);
    table_put(t, stats_verdict_name(p->diff.verdict));
}

static table parity_table(const serving_result *res) {
    static const char *const heads[] = {"load",           "arm",
                                        "problems",       "baseline's answers",
                                        "its answers",    "baseline's accuracy %",
                                        "its accuracy %", "difference pp",
                                        "95 % CI",        "baseline truncated %",
                                        "truncated %",    "verdict"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (int i = 0; i < res->n_parity; i++)
        put_parity(&t, res, &res->parity[i]);
    return t;
}

snap_status print_serving(results *r, const serving_result *res, bool json, snap_err *err) {
    buf text = {0};
    snap_status st = SNAP_OK;
    if (json)
        return print_json(results_document(r), err);
    TRY(serving_view(r, term_use_color(STDOUT_FILENO), &text, err));
    TRY(print_text(&text, "the result", err));
    if (res->n_parity) {
        table t = parity_table(res);
        st = print_bytes("\n", 1, err);
        if (st == SNAP_OK)
            st = print_table(&t, err);
        table_release(&t);
    }
cleanup:
    buf_release(&text);
    return st;
}
