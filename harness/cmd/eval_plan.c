/* eval_plan.c - `snapmla eval plan` */
#include <limits.h>

#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/eval/power.h"
#include "harness/view/eval_plan.h"

static power_options o;

static const opt options[] = {
    {OPT_STR, "suite", 's', &o.suite, "LIST", "tasks or suites, as in 'snapmla eval'", 0, 0},
    {OPT_INT, "samples", 'n', &o.samples, "N", "samples per problem; 0 = as in the suite", 0,
     100000},
    {OPT_INT, "limit", 0, &o.limit, "N", "use only the first N problems of each task; 0 = all", 0,
     INT_MAX},
    {OPT_NUM, "margin", 0, &o.margin_pp, "PP",
     "equivalence margin: the largest difference in accuracy that counts as no difference, in "
     "percentage points; 0 = as in the suite",
     0, 100},
    {OPT_NUM, "power", 0, &o.power, "P",
     "probability that equivalence is shown if there is no difference; 0 = 0.9", 0, 0.999},
    {OPT_STR, "from", 0, &o.from, "RUN",
     "take the variances from this earlier run; default: typical values", 0, 0},
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
    .summary = "compute how many samples are needed to show equivalence",
    .synopsis = "--suite LIST [options]",
    .about = "Computes for each task what a comparison with the given samples can show: the\n"
             "standard error of the difference, the power of the test of equivalence, and the\n"
             "number of samples or problems that the wanted power needs.",
    .examples = "  snapmla eval plan --suite aime24,math500 --margin 2 --power 0.9\n"
                "  snapmla eval plan --from RUN",
    .options = options,
    .run = run,
    .of = &cmd_eval,
};
