/* eval_check_task.c - `snapmla eval check-task FILE` */
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/eval/check_task.h"
#include "harness/view/task_check.h"

static check_task_options o = {.problems = 3, .seed = 1};
static opt_list answers;

static const opt options[] = {
    {OPT_STR, "data", 'd', &o.data, "PATH",
     "folder of the data sets, or the data file; default: the shipped datasets/ and the folder of "
     "the task file",
     0, 0},
    {OPT_STR, "lengths", 0, &o.lengths, "LIST",
     "lengths in tokens of texts that the program makes, as in 'snapmla eval'", 0, 0},
    {OPT_STR, "tokenizer", 0, &o.tokenizer, "DIR",
     "folder of a checkpoint whose tokenizer counts these tokens", 0, 0},
    {OPT_NUM, "chars-per-token", 0, &o.chars_per_token, "X",
     "count X characters as one token; 0 = use the tokenizer, or without one 4", 0, 100},
    {OPT_LIST, "answer", 'a', &answers, "TEXT",
     "grade this response; may be given again; default: the gold, a wrong answer and an empty one",
     0, 0},
    {OPT_INT, "problems", 'n', &o.problems, "N", "number of problems that are shown", 0, 1000},
    {OPT_INT, "seed", 0, &o.seed, "N",
     "seed of shuffled choices and drawn examples, as in 'snapmla eval'", 0, 9007199254740991.0},
    {OPT_STR, "math-policy", 0, &o.math_policy, "NAME",
     "grading of mathematics, as in 'snapmla eval'; default: truth", 0, 0},
    {.type = OPT_END},
};

static snap_status run(opt_shared *shared, snap_err *err) {
    js *check = NULL;
    buf text = {0};
    snap_status st;
    o.task = shared->args[0];
    o.answers = answers.items;
    o.n_answers = answers.n;
    o.cancel = &cmd_cancelled;
    TRY(check_task(&o, &check, err));
    if (shared->json) {
        TRY(print_json(check, err));
    } else {
        TRY(task_check_text(check, &text, err));
        TRY(print_text(&text, "the check", err));
    }
cleanup:
    buf_release(&text);
    js_free(check);
    return st;
}

const opt_command cmd_eval_check_task = {
    .name = "eval check-task",
    .summary = "check a task file, and show prompts and verdicts",
    .synopsis = "FILE [options]",
    .about = "Checks a task file, or a task with that name, and its data. Prints the prompts of\n"
             "the first problems and what the grader says about answers to them. docs/evals.md\n"
             "describes task files.",
    .examples = "  snapmla eval check-task quiz.json\n"
                "  snapmla eval check-task quiz.json --answer 'The capital is Paris.'\n"
                "  snapmla eval check-task aime24 --data ../datasets",
    .options = options,
    .min_args = 1,
    .max_args = 1,
    .run = run,
    .of = &cmd_eval,
};
