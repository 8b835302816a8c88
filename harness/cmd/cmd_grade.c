/* cmd_grade.c - `snapmla grade` */
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/eval/grade_answers.h"

static grade_options o;
static int64_t jobs;

static const opt options[] = {
    {OPT_STR, "task", 't', &o.task, "NAME",
     "task of the answers: aime24, aime25, math500, hmmt_feb25, gsm8k, gpqa_diamond, beyond_aime, "
     "mmlu_pro, mmlu_redux, ifeval, zebralogic, livecodebench, humaneval, mbpp, synth_aime, "
     "synth_math, synth_gpqa, synth_code, or the path of a task file",
     0, 0},
    {OPT_STR, "math-policy", 0, &o.math_policy, "NAME",
     "grading of mathematics; truth: accepts what is mathematically equal; field: gives the "
     "verdict of the usual graders where they agree; strict: as prm800k; default: truth",
     0, 0},
    {OPT_STR, "judge", 0, &o.judge, "KIND",
     "how programs are tested; real: one Python process for each test, or for all assertions of a "
     "problem; lcb: like LiveCodeBench's own checker, to match published figures; default: real",
     0, 0},
    {OPT_INT, "jobs", 'j', &jobs, "N",
     "programs that are tested at the same time; 0 = one per processor", 0, 1024},
    {.type = OPT_END},
};

static snap_status run(opt_shared *shared, snap_err *err) {
    buf out = {0};
    o.jobs = (int)jobs;
    o.cancel = &cmd_cancelled;
    snap_status st = grade_answers(shared->n_args ? shared->args[0] : "-", &o, &out, err);
    if (st == SNAP_OK)
        st = print_text(&out, "the verdicts", err);
    buf_release(&out);
    return st;
}

const opt_command cmd_grade = {
    .name = "grade",
    .summary = "grade recorded answers",
    .synopsis = "--task NAME [FILE]",
    .about = "Grades recorded answers, one JSON object per line. For {\"gold\", \"response\"}\n"
             "the answer is extracted from the response; for {\"gold\", \"answer\"} it is taken\n"
             "as it is. Other keys are ignored, so the samples.jsonl of a run can be graded. One\n"
             "object is written per line, in the same order: the verdict (correct, wrong,\n"
             "unparsed), the extracted answer, the rule that extracted it, and the reason. A\n"
             "line for ifeval or zebralogic may also have the layout of its data set plus a\n"
             "response. If a line is malformed, nothing is written. If the answers are programs,\n"
             "a line is {\"code\" or \"response\", \"inputs\", \"outputs\", \"fn_name\"}, or\n"
             "contains the tests as the data set publishes them, and the verdict is pass, wrong,\n"
             "timeout or error. Programs run in a sandbox (bubblewrap). Without a sandbox no\n"
             "program is run, and the exit code is 6.\n"
             "Without FILE, standard input is read. FILE may be the pipe of <(command), but not a\n"
             "named pipe.",
    .examples =
        "  snapmla grade --task aime24 < RUN/samples.jsonl\n"
        "  snapmla grade --task math500 --math-policy strict answers.jsonl > verdicts.jsonl\n"
        "  snapmla grade --task livecodebench --judge lcb programs.jsonl",
    .options = options,
    .max_args = 1,
    .run = run,
};
