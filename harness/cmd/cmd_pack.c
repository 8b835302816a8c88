/* cmd_pack.c - `snapmla pack` */
#include <stdio.h>
#include <string.h>

#include "harness/audit/bundle.h"
#include "harness/cmd/cmd.h"
#include "harness/view/run_report.h"

static const char *out;
static opt_list files;

static const opt options[] = {
    {OPT_STR, "out", 'o', &out, "FILE",
     "path of the bundle; default: the name of the run with .zip", 0, 0},
    {OPT_LIST, "file", 0, &files, "FILE",
     "plugin or Python file of an arm, if the run's folder has no copy of it", 0, 0},
    {.type = OPT_END},
};

/* "RUN/" and "bench.json" become "RUN.zip" and "bench.zip". */
static snap_status default_name(const char *run, buf *path, snap_err *err) {
    size_t n = strlen(run);
    while (n > 1 && run[n - 1] == '/')
        n--;
    if (n > 5 && strncmp(run + n - 5, ".json", 5) == 0)
        n -= 5;
    (void)buf_append(path, run, n);
    (void)buf_puts(path, ".zip");
    return buf_check(path, "a path", err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    buf path = {0};
    snap_status st = SNAP_OK;
    if (out)
        (void)buf_puts(&path, out);
    else
        TRY(default_name(shared->args[0], &path, err));
    TRY(buf_check(&path, "a path", err));
    TRY(bundle_pack(shared->args[0], buf_str(&path),
                    &(bundle_options){run_report_markdown, files.items, files.n}, err));
    (void)puts(buf_str(&path));
cleanup:
    buf_release(&path);
    return st;
}

const opt_command cmd_pack = {
    .name = "pack",
    .summary = "pack a run into one zip file that can be verified",
    .synopsis = "FILE_or_DIR [options]",
    .about = "Packs a run into one zip file: result file, samples, log, configuration, report,\n"
             "the plugins, Python files and cache formats of the arms, and a manifest with the\n"
             "sha256 of each file. 'snapmla verify-run' checks the zip file on any machine. The\n"
             "path of the zip file is printed.",
    .examples = "  snapmla pack RUN\n"
                "  snapmla pack bench.json --out bench.zip --file mine.so",
    .options = options,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
