/* eval_show.c - `snapmla eval show RUN` */
#include <limits.h>

#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/view/eval_show.h"

static show_options o = {.sample = -1, .rows = 50};
static opt_list arms;

static const opt options[] = {
    {OPT_STR, "suite", 's', &o.tasks, "LIST", "show only questions of these tasks; default: all", 0,
     0},
    {OPT_LIST, "arm", 'a', &arms, "NAME", "show only the answers of this arm; default: all arms", 0,
     0},
    {OPT_STR, "only", 0, &o.only, "LIST",
     "show only questions of these kinds: differs (one arm is right and another is not), wrong, "
     "unparsed, truncated, empty, failed, correct",
     0, 0},
    {OPT_STR, "problem", 0, &o.problem, "ID",
     "show only this problem, named as in the column 'problem'", 0, 0},
    {OPT_INT, "sample", 0, &o.sample, "K",
     "show only sample K, counted from 0; with --problem, print the full answers; -1 = all", -1,
     INT_MAX},
    {OPT_FLAG, "full", 0, &o.full, NULL, "print the full answers, arms side by side", 0, 0},
    {OPT_INT, "rows", 0, &o.rows, "N", "maximum number of questions; 0 = all", 0, INT_MAX},
    {OPT_STR, "out", 'o', &o.run, "RUN", "folder of the run, if it is not given as an argument", 0,
     0},
    {.type = OPT_END},
};

static snap_status print_piece(void *ctx, const buf *text, snap_err *err) {
    (void)ctx;
    return print_bytes(buf_str(text), text->len, err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    o.run = shared->n_args ? shared->args[0] : o.run;
    if (!o.run)
        return err_set(err, SNAP_E_USAGE, "no run is given: write 'snapmla eval show RUN'");
    if (arms.n > 1)
        return err_set(err, SNAP_E_USAGE,
                       "--arm is given more than once: eval show takes one arm or none");
    o.arm = arms.n ? arms.items[0] : NULL;
    o.json = shared->json;
    o.color = term_use_color(1);
    o.width = term_width(1);
    return eval_show(&o, print_piece, NULL, err);
}

const opt_command cmd_eval_show = {
    .name = "eval show",
    .summary = "show the questions and answers of a run",
    .synopsis = "RUN [options]",
    .about = "Shows the questions of a run and the answers of each arm, one question per line.\n"
             "With --full it prints the full answers, arms side by side.",
    .examples = "  snapmla eval show RUN --only differs,unparsed\n"
                "  snapmla eval show RUN --problem p08 --sample 0",
    .options = options,
    .max_args = 1,
    .run = run,
    .of = &cmd_eval,
};
