/* cmd_report.c - `snapmla report`, and its verbs paper and lm-eval. */
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/view/lm_eval_out.h"
#include "harness/view/report_files.h"

static report_files_options o = {.formats = "html,md,csv,tex", .samples = true};
static opt_list reported, e2e;

/* clang-format off */
#define OUTPUT_OPTIONS                                                                             \
    {.type = OPT_GROUP, .help = "Output"},                                                         \
    {OPT_STR, "out", 'o', &o.out, "DIR",                                                           \
     "write the files here; without it Markdown is printed", 0, 0},                                \
    {OPT_STR, "format", 0, &o.formats, "LIST",                                                     \
     "which files: html, md, csv, tidy (one CSV file for each kind of row), tex, svg "             \
     "(figures), or all",                                                                          \
     0, 0},                                                                                        \
    {OPT_FLAG, "join", 0, &o.join, NULL,                                                           \
     "report all files as one run and write it as DIR/run.json", 0, 0}
/* clang-format on */

static const opt options[] = {
    OUTPUT_OPTIONS,
    {OPT_FLAG, "samples", 0, &o.samples, NULL,
     "show questions and answers on the HTML page, if a DIR contains them", 0, 0},
    {OPT_FLAG, "keep-gpqa-text", 0, &o.keep_gpqa_text, NULL,
     "also show the answers to GPQA, which may quote it; its authors ask not to publish its text",
     0, 0},
    {.type = OPT_END},
};

static snap_status report(const opt_shared *shared, snap_err *err) {
    buf text = {0};
    o.json = shared->json;
    o.config = shared->resolved;
    snap_status st = report_files((report_paths){shared->args, shared->n_args}, &o, &text, err);
    if (st == SNAP_OK)
        st = print_text(&text, "the report", err);
    buf_release(&text);
    return st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    return report(shared, err);
}

/* ---- report paper ---- */

static const opt paper_options[] = {
    {.type = OPT_GROUP, .help = "Further input"},
    {OPT_LIST, "e2e", 0, &e2e, "FILE",
     "result file of 'snapmla bench model --out'; may be given again", 0, 0},
    {OPT_LIST, "reported", 0, &reported, "FILE",
     "JSON file with further figures that papers report; may be given again", 0, 0},
    OUTPUT_OPTIONS,
    {.type = OPT_END},
};

static snap_status run_paper(opt_shared *shared, snap_err *err) {
    o.paper = true;
    o.reported = (report_paths){reported.items, reported.n};
    o.e2e = (report_paths){e2e.items, e2e.n};
    return report(shared, err);
}

static const opt_command verb_paper = {
    .name = "report paper",
    .summary = "the tables and figures of the SnapMLA paper",
    .synopsis = "[FILE_or_DIR...] [options]",
    .about = "Makes the tables and figures of the SnapMLA paper from result files. Figures that\n"
             "the paper reports are shown beside the measured ones and are marked as reported.\n"
             "Predicted rows come from FILEs of 'bench model --predict', and are marked, too.\n"
             "If a table has no measurements, the report names the command that measures them.",
    .examples = "  snapmla report paper\n"
                "  snapmla report paper bench.json fidelity.json RUN --out paper --format all",
    .options = paper_options,
    .max_args = -1,
    .run = run_paper,
    .of = &cmd_report,
};

/* ---- report lm-eval ---- */

static const char *data;

static const opt lm_eval_options[] = {
    {OPT_STR, "out", 'o', &o.out, "DIR", "write the files of each arm into DIR/ARM", 0, 0},
    {OPT_STR, "data", 'd', &data, "PATH",
     "folder of the data, for the prompts; default: the one that the run names", 0, 0},
    {.type = OPT_END},
};

static snap_status run_lm_eval(opt_shared *shared, snap_err *err) {
    buf written = {0};
    snap_status st;
    if (!o.out)
        return err_set(err, SNAP_E_USAGE, "no folder is given for the files: name it with --out");
    st = lm_eval_write(shared->args[0], data, o.out, &written, err);
    if (st == SNAP_OK)
        st = print_text(&written, "the paths", err);
    buf_release(&written);
    return st;
}

static const opt_command verb_lm_eval = {
    .name = "report lm-eval",
    .summary = "write a run in the files of lm-evaluation-harness",
    .synopsis = "RUN --out DIR [--data PATH]",
    .about = "Writes results_DATE.json and samples_TASK_DATE.jsonl of each arm, in the layout of\n"
             "lm-evaluation-harness, for programs that read its files. The metric is 'acc'. The\n"
             "prompts are made again from the data of the run. Tasks whose authors ask that no\n"
             "text is published have no samples file.",
    .examples = "  snapmla report lm-eval RUN --out DIR",
    .options = lm_eval_options,
    .min_args = 1,
    .max_args = 1,
    .run = run_lm_eval,
    .of = &cmd_report,
};

static const opt_command *const verbs[] = {&verb_paper, &verb_lm_eval, NULL};

const opt_command cmd_report = {
    .name = "report",
    .summary = "make tables, figures and an HTML page from result files",
    .synopsis = "FILE_or_DIR... [options]",
    .about =
        "Makes tables and figures from one or more result files: one HTML page, Markdown,\n"
        "CSV, and LaTeX tables for \\input. A DIR is the folder of a run, which contains\n"
        "run.json. The paths of the written files are printed. 'paper' and 'lm-eval' are verbs,\n"
        "so write ./paper for a folder of that name.",
    .examples = "  snapmla report run.json\n"
                "  snapmla report bench.json RUN --out report --format html,tex\n"
                "  snapmla report paper bench.json fidelity.json RUN --out paper --format all",
    .options = options,
    .min_args = 1,
    .max_args = -1,
    .run = run,
    .verbs = verbs,
};
