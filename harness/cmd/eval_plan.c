/* eval_plan.c - `snapmla eval plan` */
#include <limits.h>

#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/eval/power.h"
#include "harness/view/eval_plan.h"

static power_options o;

static const opt options[] = {
    {OPT_STR, "suite", 's', &o.suite, "LIST", "tasks and suites, as for eval", 0, 0},
    {OPT_INT, "samples", 'n', &o.samples, "N", "samples of each problem; 0 = the suite's", 0,
     100000},
    {OPT_INT, "limit", 0, &o.limit, "N", "the first N problems of each task; 0 = all", 0, INT_MAX},
    {OPT_NUM, "margin", 0, &o.margin_pp, "PP",
     "largest difference in accuracy that counts as none, in points; 0 = the suite's", 0, 100},
    {OPT_NUM, "power", 0, &o.power, "P",
     "chance to show equivalence when there is no difference; 0 = 0.9", 0, 0.999},
    {OPT_STR, "from", 0, &o.from, "RUN",
     "take the variances from an earlier run; default: planning values", 0, 0},
    {.type = OPT_END},
};

static snap_status run(opt_shared *shared, snap_err *err) {
    js *rows = NULL;
    buf text = {0};
    snap_status st;
    o.power = o.power > 0 ? o.power : 0.9;
    TRY(power_plan(&o, &rows, err));
    if (shared->json) {
        TRY(print_json(rows, err));
    } else {
        TRY(eval_plan_text(rows, term_use_color(1), &text, err));
        TRY(print_text(&text, "a table", err));
    }
cleanup:
    buf_release(&text);
    js_free(rows);
    return st;
}

const opt_command cmd_eval_plan = {
    .name = "eval plan",
    .summary = "how many samples it takes to show equivalence",
    .synopsis = "--suite LIST [options]",
    .about =
        "Computes for each task what a comparison with so many samples can show: the standard\n"
        "error of the difference, the power of the test of equivalence, and the samples or\n"
        "problems that the wanted power takes.",
    .examples = "  snapmla eval plan --suite aime24,math500 --margin 2 --power 0.9\n"
                "  snapmla eval plan --from RUN",
    .options = options,
    .run = run,
    .of = &cmd_eval,
};
