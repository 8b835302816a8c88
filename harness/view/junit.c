/* junit.c - a gate's verdicts as JUnit XML. */
#include "base/text.h"
#include "harness/gate/verdicts.h"
#include "harness/view/gate_verdicts.h"

static size_t count_failures(const js *rows, bool failures) {
    size_t n = 0;
    for (size_t i = 0; i < js_len(rows); i++)
        n += verdict_is_bad(js_at(rows, i)) && verdict_is_failure(js_at(rows, i)) == failures;
    return n;
}

static void put_case(const js *row, buf *out) {
    buf message = {0};
    verdict_message(row, &message);
    out->failed |= message.failed;
    (void)buf_puts(out, "  <testcase classname=\"gate.");
    text_append_xml(out, verdict_text(row, "kind"));
    (void)buf_puts(out, "\" name=\"");
    text_append_xml(out, verdict_text(row, "name"));
    (void)buf_printf(out, "\" time=\"0\">\n    <%s",
                     !verdict_is_bad(row)      ? "system-out>"
                     : verdict_is_failure(row) ? "failure"
                                               : "error");
    if (verdict_is_bad(row)) {
        (void)buf_puts(out, " type=\"");
        text_append_xml(out, verdict_text(row, "verdict"));
        (void)buf_puts(out, "\" message=\"");
        text_append_xml(out, buf_str(&message));
        (void)buf_puts(out, "\"/>\n  </testcase>\n");
    } else {
        text_append_xml(out, buf_str(&message));
        (void)buf_puts(out, "</system-out>\n  </testcase>\n");
    }
    buf_release(&message);
}

void verdicts_junit(const js *rows, buf *out) {
    size_t failures = count_failures(rows, true), errors = count_failures(rows, false);
    (void)buf_printf(out,
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<testsuites>\n<testsuite name=\"snapmla gate\" tests=\"%zu\" "
                     "failures=\"%zu\" errors=\"%zu\" skipped=\"0\" time=\"0\">\n",
                     js_len(rows), failures, errors);
    for (size_t i = 0; i < js_len(rows); i++)
        put_case(js_at(rows, i), out);
    (void)buf_puts(out, "</testsuite>\n</testsuites>\n");
}
