/* cmd_verify.c - `snapmla verify-run` */
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "base/text.h"
#include "harness/audit/arm_files.h"
#include "harness/audit/bundle.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/view/findings.h"

static const char *plugin, *checkpoint;

static const opt options[] = {
    {OPT_STR, "plugin", 0, &plugin, "FILE", "check that this shared object was measured", 0, 0},
    {OPT_STR, "checkpoint", 0, &checkpoint, "DIR", "check that an arm used this checkpoint", 0, 0},
    {.type = OPT_END},
};

/* Reads the samples.jsonl of a RUN folder. The samples stay empty if there is no such file. */
static snap_status read_beside(const char *dir, buf *samples, snap_err *err) {
    char *path = fs_join(dir, "samples.jsonl");
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    snap_status st = fs_exists(path) ? fs_read_regular(path, samples, err) : SNAP_OK;
    free(path);
    return st;
}

/* Checks the rows of servers under load against the requests.jsonl of a RUN folder, if there is
 * one. */
static snap_status check_requests(const char *dir, const results *r, verify_findings *f,
                                  snap_err *err) {
    if (!fs_is_dir(dir) || !js_len(results_section(r, "serving")))
        return SNAP_OK;
    char *path = fs_join(dir, "requests.jsonl");
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    snap_status st = fs_exists(path) ? verify_serving(r, path, f, err) : SNAP_OK;
    free(path);
    return st;
}

static snap_status open_any(const char *argument, results **r, buf *samples, verify_findings *f,
                            snap_err *err) {
    if (text_ends(argument, ".zip"))
        return bundle_open(argument, r, samples, f, err);
    char *path = results_file_of(argument);
    snap_status st =
        path ? results_load(r, path, err) : err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    free(path);
    if (st == SNAP_OK && fs_is_dir(argument))
        st = verify_folder_files(*r, argument, f, err);
    if (st == SNAP_OK && fs_is_dir(argument))
        st = read_beside(argument, samples, err);
    return st;
}

static snap_status verify(opt_shared *shared, snap_err *err) {
    results *r = NULL;
    verify_findings f = {0};
    buf samples = {0}, text = {0};
    snap_status st = SNAP_OK;
    TRY(open_any(shared->args[0], &r, &samples, &f, err));
    verify_document(r, &f);
    if (plugin)
        TRY(verify_plugin(r, plugin, &f, err));
    if (checkpoint)
        TRY(verify_checkpoint(r, checkpoint, &f, err));
    if (samples.len)
        TRY(verify_samples(r, &samples, "samples.jsonl", &f, err));
    TRY(check_requests(shared->args[0], r, &f, err));
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
    .summary = "check a result for consistency",
    .synopsis = "FILE_or_DIR_or_ZIP [options]",
    .about = "Checks whether the statements of a result are consistent. The argument is a result\n"
             "file, a RUN folder or a bundle that 'snapmla pack' wrote. These things are\n"
             "checked: keys, hashes, statistics against samples, rates against times and shapes,\n"
             "times against the file's own ceilings, speeds without a passed correctness check,\n"
             "mixed conditions, accuracies against samples, servers' rates and latencies\n"
             "against requests, verdicts against intervals, and the hashes of the measured\n"
             "files.",
    .exits =
        "0 consistent, 2 usage, 3 malformed or altered, 6 mixed conditions, 7 an impossible speed "
        "or verdict",
    .examples = "  snapmla verify-run run.json\n"
                "  snapmla verify-run RUN.zip --json\n"
                "  snapmla verify-run bench.json --plugin ./vendor.so",
    .options = options,
    .min_args = 1,
    .max_args = 1,
    .run = verify,
};
