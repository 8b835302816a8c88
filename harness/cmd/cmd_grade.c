/* cmd_grade.c - `snapmla grade` */
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/eval/grade_answers.h"

static grade_options o;
static int64_t jobs;

static const opt options[] = {
    {OPT_STR, "task", 't', &o.task, "NAME",
     "the task: aime24, aime25, math500, hmmt_feb25, gsm8k, gpqa_diamond, beyond_aime, "
     "mmlu_pro, mmlu_redux, ifeval, zebralogic, livecodebench, humaneval, mbpp, synth_aime, "
     "synth_math, synth_gpqa, synth_code",
     0, 0},
    {OPT_STR, "math-policy", 0, &o.math_policy, "NAME",
     "field: what the field's graders accept between them; strict: as prm800k; default: field", 0,
     0},
    {OPT_STR, "judge", 0, &o.judge, "KIND",
     "of programs; real: each test in a Python process of its own; lcb: as LiveCodeBench's own "
     "checker, to agree with published figures; default: real",
     0, 0},
    {OPT_INT, "jobs", 'j', &jobs, "N", "programs judged at once; 0 = one per processor", 0, 1024},
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
    .summary = "judge recorded answers again, without generating",
    .synopsis = "--task NAME [FILE]",
    .about = "Judges recorded answers, one JSON object per line: {\"gold\", \"response\"}\n"
             "searches the response for its answer, {\"gold\", \"answer\"} takes the answer as it\n"
             "is. Other keys are ignored, so the samples.jsonl of a run is an input. Writes one\n"
             "object per line in the same order: the verdict (correct, wrong, unparsed), what was\n"
             "extracted, by which rule, and the reason. Rows of ifeval and zebralogic may have\n"
             "the layout of their data, with a response. Nothing is written if a line is\n"
             "malformed. If answers are programs, a line is {\"code\" or \"response\",\n"
             "\"inputs\", \"outputs\", \"fn_name\"}, or has the tests as the data set publishes\n"
             "them; the verdict is pass, wrong, timeout or error. Programs run in a sandbox\n"
             "(bubblewrap). Without a sandbox no program is run, and the exit code is 6.",
    .examples =
        "  snapmla grade --task aime24 < RUN/samples.jsonl\n"
        "  snapmla grade --task math500 --math-policy strict answers.jsonl > verdicts.jsonl\n"
        "  snapmla grade --task livecodebench --judge lcb programs.jsonl",
    .options = options,
    .max_args = 1,
    .run = run,
};
