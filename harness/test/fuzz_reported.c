/* Reads random bytes as a file of reported figures or of decode steps of whole models; the first
 * byte selects which. They must be shown as HTML, Markdown and CSV, or refused with a message. */
#include <stdint.h>

#include "base/term.h"
#include "harness/view/pages.h"
#include "harness/view/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(const report_model *m) {
    buf out = {0};
    write_page(m, &out);
    report_markdown(m, &out);
    write_csv(m, &out);
    buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    snap_err err = {0};
    report_model *m = NULL;
    term_set_quiet(true);
    js *doc = size ? js_parse((const char *)data + 1, size - 1, "file.json", &err) : NULL;
    if (!doc)
        return 0;
    if (report_model_new(&m, NULL, NULL, 0, &err) == SNAP_OK && report_paper(m, &err) == SNAP_OK) {
        snap_status st = data[0] & 1 ? report_add_e2e(m, doc, "file.json", &err)
                                     : report_add_reported(m, doc, "file.json", &err);
        if (st == SNAP_OK)
            show(m);
        else if (!err.text[0])
            __builtin_trap();
    }
    report_model_free(m);
    js_free(doc);
    return 0;
}
