/* cmd_report.c - tables, figures and a page from result files. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "harness/cmd/cmd.h"
#include "harness/report/report.h"
#include "harness/results/results.h"

static const char *out_dir, *format_list = "html,md,csv,tex";
static bool join;

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &out_dir, "DIR", "write the files here; without it Markdown is printed",
     0, 0},
    {OPT_STR, "format", 0, &format_list, "LIST",
     "which files: html, md, csv, tex, svg (figures), or all", 0, 0},
    {OPT_FLAG, "join", 0, &join, NULL, "report all files as one run and write it as DIR/run.json",
     0, 0},
    {.type = OPT_END},
};

static const opt_command spec = {
    .name = "report",
    .synopsis = "FILE_or_DIR...",
    .about =
        "Tables and figures from one or more result files: one HTML page, Markdown, CSV, and\n"
        "LaTeX tables for \\input. A DIR is a RUN folder with a run.json. The files' paths are\n"
        "printed.",
    .examples = "  snapmla report run.json\n"
                "  snapmla report bench.json RUN --out report --format html,tex\n",
    .options = options,
    .min_args = 1,
    .max_args = -1,
};

static snap_status load(results **out, const char *argument, snap_err *err) {
    char *path = results_file_of(argument);
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", argument);
    snap_status st = results_load(out, path, err);
    free(path);
    return st;
}

/* One document with everybody's rows, in place of the files. */
static snap_status join_runs(results **runs, int *n, const opt_shared *shared, snap_err *err) {
    results *joined = NULL;
    char *path = NULL;
    snap_status st = SNAP_OK;
    TRY(out_dir ? SNAP_OK : err_set(err, SNAP_E_USAGE, "--join needs --out"));
    TRY(results_new(&joined, "report", shared->resolved, 0, err));
    for (int i = 0; i < *n; i++)
        TRY(results_join(joined, runs[i], err));
    path = fs_join(out_dir, "run.json");
    TRY(path ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", out_dir));
    TRY(fs_mkdirs(out_dir, err));
    TRY(results_save(joined, path, err));
    (void)printf("%s\n", path);
    for (int i = 0; i < *n; i++)
        results_free(runs[i]);
    runs[0] = joined;
    joined = NULL;
    *n = 1;
cleanup:
    results_free(joined);
    free(path);
    return st;
}

static snap_status write_report(const report_model *m, unsigned formats, snap_err *err) {
    buf text = {0};
    snap_status st = SNAP_OK;
    if (out_dir)
        st = report_write(m, out_dir, formats, &text, err);
    else
        report_markdown(m, &text);
    if (st == SNAP_OK)
        st = buf_check(&text, "the report", err);
    if (st == SNAP_OK)
        (void)fputs(buf_str(&text), stdout);
    buf_release(&text);
    return st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    int n = 0;
    unsigned formats;
    results **runs = calloc((size_t)shared->n_args, sizeof *runs);
    report_model *m = NULL;
    snap_status st = SNAP_OK;
    TRY(runs ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a report"));
    TRY(report_parse_formats(format_list, &formats, err));
    for (; n < shared->n_args; n++)
        TRY(load(&runs[n], shared->args[n], err));
    if (join)
        TRY(join_runs(runs, &n, shared, err));
    TRY(report_model_new(&m, runs, shared->args, n, err));
    TRY(write_report(m, formats, err));
cleanup:
    report_model_free(m);
    for (int i = 0; runs && i < n; i++)
        results_free(runs[i]);
    free(runs);
    return st;
}

const cmd cmd_report = {&spec, run, "tables, figures and a page from result files"};
