#include "harness/view/run_report.h"

#include <stdlib.h>

#include "base/fs.h"
#include "harness/record/provenance.h"
#include "harness/view/report.h"

snap_status run_report_write(results *r, const char *dir, bool keep_gpqa_text, snap_err *err) {
    report_model *model = NULL;
    char *name = provenance_cut_folders(dir), *samples = fs_join(dir, "samples.jsonl");
    const char *const names[] = {name};
    snap_status st = SNAP_OK;
    if (!name || !samples)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a report"));
    TRY(report_model_new(&model, &r, names, 1, err));
    TRY(report_model_add_samples(model, dir, samples, keep_gpqa_text, err));
    TRY(report_write(model, dir, REPORT_DEFAULT, NULL, err));
cleanup:
    report_model_free(model);
    free(samples);
    free(name);
    return st;
}

snap_status run_report_markdown(results *r, const char *name, buf *out, snap_err *err) {
    report_model *model = NULL;
    snap_status st = report_model_new(&model, &r, &name, 1, err);
    if (st == SNAP_OK) {
        report_markdown(model, out);
        st = buf_check(out, "a report", err);
    }
    report_model_free(model);
    return st;
}
