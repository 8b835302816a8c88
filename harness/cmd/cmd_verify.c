/* cmd_verify.c - `snapmla verify-run`, and `snapmla pack`, whose bundles it reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "base/text.h"
#include "harness/audit/bundle.h"
#include "harness/cmd/cmd.h"
#include "harness/view/run_report.h"
#include "harness/view/writers.h"

static const char *plugin, *checkpoint;

static const opt verify_options[] = {
    {OPT_STR, "plugin", 0, &plugin, "FILE", "the shared object that must have been measured", 0, 0},
    {OPT_STR, "checkpoint", 0, &checkpoint, "DIR", "the checkpoint that an arm must have had", 0,
     0},
    {.type = OPT_END},
};

/* A RUN's samples lie beside its result file. */
static snap_status read_beside(const char *dir, buf *samples, snap_err *err) {
    char *path = fs_join(dir, "samples.jsonl");
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    snap_status st = fs_exists(path) ? fs_read(path, samples, err) : SNAP_OK;
    free(path);
    return st;
}

static snap_status open_any(const char *argument, results **r, buf *samples, snap_err *err) {
    if (text_ends(argument, ".zip"))
        return bundle_open(argument, r, samples, err);
    char *path = results_file_of(argument);
    snap_status st =
        path ? results_load(r, path, err) : err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    free(path);
    if (st == SNAP_OK && fs_is_dir(argument))
        st = read_beside(argument, samples, err);
    return st;
}

static snap_status write_json(const verify_findings *f, buf *out, snap_err *err) {
    js *o = js_new_object();
    bool ok = o && js_set_int(o, "checks", (int64_t)f->checks) &&
              js_set_new(o, "findings", f->rows ? js_copy(f->rows) : js_new_array());
    snap_status st = ok ? js_write(o, JS_PRETTY, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for findings");
    (void)buf_puts(out, "\n");
    js_free(o);
    return st;
}

static snap_status findings_text(const verify_findings *f, buf *out, snap_err *err) {
    static const char *const heads[] = {"kind", "where", "what"};
    table t = table_new(heads, 3);
    snap_status st = SNAP_OK;
    size_t more = 0;
    for (int k = 0; k < VERIFY_KINDS; k++)
        more += f->n[k] > VERIFY_MAX ? f->n[k] - VERIFY_MAX : 0;
    for (size_t i = 0; i < js_len(f->rows); i++)
        for (int c = 0; c < 3; c++)
            table_cell(&t, "%s", js_get_str(js_at(f->rows, i), heads[c]));
    if (js_len(f->rows))
        st = write_text(&t, term_use_color(STDOUT_FILENO), out, err);
    if (more)
        (void)buf_printf(out, "... and %zu more\n", more);
    (void)buf_printf(out, "%zu statements checked\n", f->checks);
    table_release(&t);
    return st;
}

static snap_status verify(opt_shared *shared, snap_err *err) {
    results *r = NULL;
    verify_findings f = {0};
    buf samples = {0}, text = {0};
    snap_status st = SNAP_OK;
    TRY(open_any(shared->args[0], &r, &samples, err));
    verify_document(r, &f);
    if (plugin)
        TRY(verify_plugin(r, plugin, &f, err));
    if (checkpoint)
        TRY(verify_checkpoint(r, checkpoint, &f, err));
    if (samples.len)
        TRY(verify_samples(r, &samples, "samples.jsonl", &f, err));
    TRY(shared->json ? write_json(&f, &text, err) : findings_text(&f, &text, err));
    TRY(buf_check(&text, "findings", err));
    (void)fputs(buf_str(&text), stdout);
    st = verify_status(&f, err);
cleanup:
    verify_release(&f);
    results_free(r);
    buf_release(&samples);
    buf_release(&text);
    return st;
}

const opt_command cmd_verify = {
    .name = "verify-run",
    .summary = "check whether a result can be what it says",
    .synopsis = "FILE_or_DIR_or_ZIP [options]",
    .about =
        "Can a result be what it says? Checks a result file, a RUN folder or a bundle of pack:\n"
        "keys, hashes, statistics against samples, rates against time and shape, times against\n"
        "the file's own ceilings, speeds without a passed check, mixed conditions, accuracies\n"
        "against samples, verdicts against intervals, which files were measured.",
    .exits = "0 consistent, 2 usage, 3 malformed or altered, 6 mixed conditions, "
             "7 a speed or verdict that can't be",
    .examples = "  snapmla verify-run run.json\n"
                "  snapmla verify-run RUN.zip --json\n"
                "  snapmla verify-run bench.json --plugin ./vendor.so",
    .options = verify_options,
    .min_args = 1,
    .max_args = 1,
    .run = verify,
};

/* ---- pack ---- */

static const char *out;

static const opt pack_options[] = {
    {OPT_STR, "out", 'o', &out, "FILE", "the bundle; default: the run's name and .zip", 0, 0},
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

static snap_status pack(opt_shared *shared, snap_err *err) {
    buf path = {0};
    snap_status st = SNAP_OK;
    if (out)
        (void)buf_puts(&path, out);
    else
        TRY(default_name(shared->args[0], &path, err));
    TRY(buf_check(&path, "a path", err));
    TRY(bundle_pack(shared->args[0], buf_str(&path), run_report_markdown, err));
    (void)puts(buf_str(&path));
cleanup:
    buf_release(&path);
    return st;
}

const opt_command cmd_pack = {
    .name = "pack",
    .summary = "bundle a run into one zip that can be checked",
    .synopsis = "FILE_or_DIR [options]",
    .about = "One zip of a run: result file, samples, log, configuration, report, and a manifest\n"
             "with the sha256 of each. 'snapmla verify-run' checks it on any machine. Its path is\n"
             "printed.",
    .examples = "  snapmla pack RUN\n"
                "  snapmla pack bench.json --out bench.zip",
    .options = pack_options,
    .min_args = 1,
    .max_args = 1,
    .run = pack,
};
