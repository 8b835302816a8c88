/* eval_show.c - `snapmla eval show RUN` */
#include <limits.h>

#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/view/eval_show.h"

static show_options o = {.sample = -1, .rows = 50};
static opt_list arms;

static const opt options[] = {
    {OPT_STR, "suite", 's', &o.tasks, "LIST", "questions of these tasks; default: all", 0, 0},
    {OPT_LIST, "arm", 'a', &arms, "NAME", "the answers of this arm; default: all arms", 0, 0},
    {OPT_STR, "only", 0, &o.only, "LIST",
     "questions of these kinds: differs (one arm right, another not), wrong, unparsed, truncated, "
     "empty, failed, correct",
     0, 0},
    {OPT_STR, "problem", 0, &o.problem, "ID", "of that problem", 0, 0},
    {OPT_INT, "sample", 0, &o.sample, "K",
     "of that sample, from 0; with --problem the answers in full; -1 = all", -1, INT_MAX},
    {OPT_FLAG, "full", 0, &o.full, NULL, "the answers themselves, arms side by side", 0, 0},
    {OPT_INT, "rows", 0, &o.rows, "N", "so many questions at most; 0 = all", 0, INT_MAX},
    {OPT_STR, "out", 'o', &o.run, "RUN", "the folder, where no argument names it", 0, 0},
    {.type = OPT_END},
};

static snap_status print_piece(void *ctx, const buf *text, snap_err *err) {
    (void)ctx;
    return print_bytes(buf_str(text), text->len, err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    o.run = shared->n_args ? shared->args[0] : o.run;
    if (!o.run)
        return err_set(err, SNAP_E_USAGE, "eval show: no folder of a run is given");
    if (arms.n > 1)
        return err_set(err, SNAP_E_USAGE, "eval show takes one --arm NAME, or none");
    o.arm = arms.n ? arms.items[0] : NULL;
    o.json = shared->json;
    o.color = term_use_color(1);
    o.width = term_width(1);
    return eval_show(&o, print_piece, NULL, err);
}

const opt_command cmd_eval_show = {
    .name = "eval show",
    .summary = "the questions and answers of a run",
    .synopsis = "RUN [options]",
    .about =
        "Shows the questions of a run with what each arm answered, one per line; or the answers\n"
        "in full, arms side by side.",
    .examples = "  snapmla eval show RUN --only differs,unparsed\n"
                "  snapmla eval show RUN --problem 2024-II-4 --sample 3",
    .options = options,
    .max_args = 1,
    .run = run,
    .of = &cmd_eval,
};
