#include "harness/view/eval_plan.h"

#include <math.h>

#include "harness/view/writers.h"

static void cell_needed(table *t, const js *row, const char *key) {
    int64_t n = js_get_int(row, key, 0);
    if (n)
        table_cell(t, "%lld", (long long)n);
    else
        table_cell(t, "-");
}

snap_status eval_plan_text(const js *rows, bool color, buf *out, snap_err *err) {
    static const char *const heads[] = {
        "task",       "problems",   "samples", "margin pp",      "within",      "between", "SE pp",
        "95 % CI +-", "TOST power", "wanted",  "samples needed", "or problems", "from"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        table_cell(&t, "%s", js_get_str(row, "task"));
        table_number(&t, js_get_num(row, "problems", 0), 0);
        table_number(&t, js_get_num(row, "samples", 0), 0);
        table_number(&t, js_get_num(row, "margin_pp", 0), 2);
        table_number(&t, js_get_num(row, "within", 0), 4);
        table_number(&t, js_get_num(row, "between", 0), 4);
        table_number(&t, js_get_num(row, "se_pp", (double)NAN), 2);
        table_number(&t, js_get_num(row, "ci95_pp", (double)NAN), 2);
        table_number(&t, js_get_num(row, "power", (double)NAN), 3);
        table_number(&t, js_get_num(row, "power_wanted", 0), 2);
        cell_needed(&t, row, "samples_needed");
        cell_needed(&t, row, "problems_needed");
        table_cell(&t, "%s", js_get_str(row, "source"));
    }
    snap_status st = write_text(&t, color, out, err);
    table_release(&t);
    return st;
}
