/* cmd_report.c - tables, figures and a page from result files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "harness/cmd/cmd.h"
#include "harness/record/results.h"
#include "harness/view/report.h"

static const char *out_dir, *format_list = "html,md,csv,tex";
static bool join, show_samples = true, keep_gpqa_text;
static opt_list reported, e2e;

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Of 'report paper'"},
    {OPT_LIST, "e2e", 0, &e2e, "FILE", "what 'bench model' wrote to --out; may be given again", 0,
     0},
    {OPT_LIST, "reported", 0, &reported, "FILE",
     "further figures that papers report, JSON; may be given again", 0, 0},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &out_dir, "DIR", "write the files here; without it Markdown is printed",
     0, 0},
    {OPT_STR, "format", 0, &format_list, "LIST",
     "which files: html, md, csv, tex, svg (figures), or all", 0, 0},
    {OPT_FLAG, "join", 0, &join, NULL, "report all files as one run and write it as DIR/run.json",
     0, 0},
    {OPT_FLAG, "samples", 0, &show_samples, NULL,
     "questions and answers on the HTML page, where a DIR has them", 0, 0},
    {OPT_FLAG, "keep-gpqa-text", 0, &keep_gpqa_text, NULL,
     "also the answers to GPQA, which may quote it; its authors ask not to publish it", 0, 0},
    {.type = OPT_END},
};

static snap_status load(results **out, const char *argument, snap_err *err) {
    char *path = results_file_of(argument);
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", argument);
    snap_status st = results_load(out, path, err);
    free(path);
    return st;
}

static const char *machine_of(const results *r) {
    const js *provenance = js_get_object(results_document(r), "provenance");
    const char *hash = js_get_str(js_get_object(provenance, "host"), "name_sha256");
    return hash ? hash : "";
}

/* Ceilings of two machines in one file would measure the one by the other. */
static snap_status check_one_machine(results **runs, int n, const opt_shared *shared,
                                     snap_err *err) {
    int first = -1;
    for (int i = 0; i < n; i++) {
        if (js_len(results_section(runs[i], "ceilings")) == 0)
            continue;
        if (first >= 0 && strcmp(machine_of(runs[first]), machine_of(runs[i])) != 0)
            return err_set(err, SNAP_E_USAGE,
                           "'%s' and '%s' are of two machines: report them without --join",
                           shared->args[first], shared->args[i]);
        first = first < 0 ? i : first;
    }
    return SNAP_OK;
}

/* One document with everybody's rows, in place of the files. */
static snap_status join_runs(results **runs, int *n, const opt_shared *shared, snap_err *err) {
    results *joined = NULL;
    snap_status st = SNAP_OK;
    TRY(check_one_machine(runs, *n, shared, err));
    TRY(results_new(&joined, "report", shared->resolved, 0, err));
    for (int i = 0; i < *n; i++)
        TRY(results_join(joined, runs[i], err));
    for (int i = 0; i < *n; i++) {
        results_free(runs[i]);
        runs[i] = NULL;
    }
    runs[0] = joined;
    joined = NULL;
    *n = 1;
cleanup:
    results_free(joined);
    return st;
}

static snap_status save_joined(results *r, buf *paths, snap_err *err) {
    snap_status st = SNAP_OK;
    char *path = fs_join(out_dir, "run.json");
    TRY(path ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", out_dir));
    TRY(fs_mkdirs(out_dir, err));
    TRY(results_save(r, path, err));
    (void)buf_printf(paths, "%s\n", path);
cleanup:
    free(path);
    return st;
}

static snap_status add_samples(report_model *m, const opt_shared *shared, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < shared->n_args && show_samples && st == SNAP_OK; i++) {
        char *path = fs_join(shared->args[i], "samples.jsonl");
        if (!path)
            st = err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", shared->args[i]);
        else if (fs_exists(path))
            st = report_model_add_samples(m, shared->args[i], path, keep_gpqa_text, err);
        free(path);
    }
    return st;
}

/* What goes to standard output: the document, the paths of the files, or Markdown. */
static snap_status print(results *r, const report_model *m, const buf *paths,
                         const opt_shared *shared, snap_err *err) {
    buf text = {0};
    snap_status st = SNAP_OK;
    if (shared->json)
        TRY(js_write(results_document(r), JS_PRETTY, &text, err));
    else if (out_dir)
        (void)buf_append(&text, buf_str(paths), paths->len - (paths->len > 0));
    else
        report_markdown(m, &text);
    TRY(buf_check(&text, "the report", err));
    (void)puts(buf_str(&text));
cleanup:
    buf_release(&text);
    return st;
}

enum { kDocumentLimit = 16 << 20 };

typedef snap_status (*add_fn)(report_model *m, const js *doc, const char *name, snap_err *err);

static snap_status add_documents(report_model *m, const opt_list *files, add_fn add,
                                 snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < files->n && st == SNAP_OK; i++) {
        js *doc = js_parse_file(files->items[i], kDocumentLimit, err);
        st = doc ? add(m, doc, files->items[i], err) : SNAP_E_INPUT;
        js_free(doc);
    }
    return st;
}

static snap_status make_paper(report_model *m, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(report_paper(m, err));
    TRY(add_documents(m, &reported, report_add_reported, err));
    TRY(add_documents(m, &e2e, report_add_e2e, err));
cleanup:
    return st;
}

static snap_status report(results **runs, int n, bool paper, const opt_shared *shared,
                          snap_err *err) {
    report_model *m = NULL;
    buf paths = {0};
    const char *joined = "run.json", *const *names = shared->args;
    unsigned formats;
    snap_status st = SNAP_OK;
    TRY(report_parse_formats(format_list, &formats, err));
    TRY(join && !out_dir ? err_set(err, SNAP_E_USAGE, "--join needs --out") : SNAP_OK);
    for (int i = 0; i < n; i++)
        TRY(load(&runs[i], shared->args[i], err));
    if (join || (shared->json && n > 1)) {
        TRY(join_runs(runs, &n, shared, err));
        names = &joined;
    }
    if (join)
        TRY(save_joined(runs[0], &paths, err));
    TRY(report_model_new(&m, runs, names, n, err));
    TRY(paper ? make_paper(m, err) : add_samples(m, shared, err));
    if (out_dir)
        TRY(report_write(m, out_dir, formats, &paths, err));
    TRY(print(runs[0], m, &paths, shared, err));
cleanup:
    report_model_free(m);
    buf_release(&paths);
    return st;
}

/* 'paper' is a verb; a folder of that name is ./paper. */
static bool is_paper(const opt_shared *shared) {
    return strcmp(shared->args[0], "paper") == 0;
}

static snap_status check_use(const opt_shared *files, bool paper, snap_err *err) {
    if (!paper && (reported.n || e2e.n))
        return err_set(err, SNAP_E_USAGE, "--reported and --e2e belong to 'report paper'");
    if (!files->n_args && (join || files->json))
        return err_set(err, SNAP_E_USAGE, "--join and --json need a result file");
    return SNAP_OK;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    bool paper = is_paper(shared);
    opt_shared files = *shared;
    files.args += paper;
    files.n_args -= paper;
    snap_status st = check_use(&files, paper, err);
    if (st != SNAP_OK)
        return st;
    results **runs = calloc((size_t)files.n_args + 1, sizeof(results *));
    if (!runs)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a report");
    st = report(runs, files.n_args, paper, &files, err);
    for (int i = 0; i < files.n_args; i++)
        results_free(runs[i]); /* NULL where it was not read, or joined */
    free(runs);
    return st;
}

const opt_command cmd_report = {
    .name = "report",
    .summary = "tables, figures and a page from result files",
    .synopsis = "[paper] FILE_or_DIR...",
    .about =
        "Tables and figures from one or more result files: one HTML page, Markdown, CSV, and\n"
        "LaTeX tables for \\input. A DIR is a RUN folder with a run.json. The files' paths are\n"
        "printed.\n"
        "'report paper' makes the tables and figures of the SnapMLA paper from these files, with\n"
        "what the paper reports beside them, marked so; what no file has is said in a line.",
    .examples = "  snapmla report run.json\n"
                "  snapmla report bench.json RUN --out report --format html,tex\n"
                "  snapmla report paper bench.json fidelity.json RUN --out paper --format all\n",
    .options = options,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
