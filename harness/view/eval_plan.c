#include "harness/view/eval_plan.h"

#include "harness/record/power_record.h"
#include "harness/view/writers.h"

static void cell_needed(table *t, int64_t n) {
    if (n > 0)
        table_cell(t, "%lld", (long long)n);
    else
        table_cell(t, "-");
}

static void add_row(table *t, const power_record *r) {
    table_cell(t, "%s", r->task);
    table_cell(t, "%lld", (long long)r->problems);
    table_cell(t, "%lld", (long long)r->samples);
    table_number(t, r->margin_pp, 2);
    table_number(t, r->within, 4);
    table_number(t, r->between, 4);
    table_number(t, r->se_pp, 2);
    table_number(t, r->ci95_pp, 2);
    table_number(t, r->power, 3);
    table_number(t, r->power_wanted, 2);
    cell_needed(t, r->samples_needed);
    cell_needed(t, r->problems_needed);
    table_cell(t, "%s", r->source);
}

snap_status eval_plan_text(const js *rows, bool color, buf *out, snap_err *err) {
    static const char *const heads[] = {
        "task",       "problems",   "samples", "margin pp",      "within",      "between", "SE pp",
        "95 % CI +-", "TOST power", "wanted",  "samples needed", "or problems", "from"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    arena mem = {0};
    power_list all = {0};
    bool ok = record_read_all(&power_type, rows, &mem, &all.at, &all.n);
    for (size_t i = 0; i < all.n; i++)
        add_row(&t, &all.at[i]);
    snap_status st = ok ? write_text(&t, color, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the plan");
    arena_release(&mem);
    table_release(&t);
    return st;
}
