/* cmd_verify.c - `snapmla verify-run` */
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "base/text.h"
#include "harness/audit/bundle.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/view/findings.h"

static const char *plugin, *checkpoint;

static const opt options[] = {
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
    TRY(shared->json ? findings_json(&f, &text, err)
                     : findings_text(&f, term_use_color(STDOUT_FILENO), &text, err));
    TRY(print_text(&text, "findings", err));
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
    .about = "Checks whether a result can be what it claims to be. The argument is a result file,\n"
             "a RUN folder or a bundle of pack. Checked are keys, hashes, statistics against\n"
             "samples, rates against time and shape, times against the file's own ceilings,\n"
             "speeds without a passed check, mixed conditions, accuracies against samples,\n"
             "verdicts against intervals, and which files were measured.",
    .exits = "0 consistent, 2 usage, 3 malformed or altered, 6 mixed conditions, "
             "7 a speed or verdict that can't be",
    .examples = "  snapmla verify-run run.json\n"
                "  snapmla verify-run RUN.zip --json\n"
                "  snapmla verify-run bench.json --plugin ./vendor.so",
    .options = options,
    .min_args = 1,
    .max_args = 1,
    .run = verify,
};
