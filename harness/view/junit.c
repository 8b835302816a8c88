/* junit.c - writes a gate's verdicts as JUnit XML. */
#include "base/text.h"
#include "harness/gate/verdicts.h"
#include "harness/view/gate_verdicts.h"

static size_t count_failures(const verdict_list *all, bool failures) {
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        n += verdict_is_bad(&all->at[i]) && verdict_is_failure(&all->at[i]) == failures;
    return n;
}

/* Appends text for XML as it is shown (text_append_shown()): pages of CI systems print it. */
static void put_shown(buf *out, const char *text) {
    buf shown = {0};
    text_append_shown(&shown, text);
    text_append_xml(out, buf_str(&shown));
    out->failed |= shown.failed;
    buf_release(&shown);
}

static void put_case(const verdict_record *row, buf *out) {
    buf message = {0}, title = {0};
    verdict_message(row, &message);
    verdict_title(row, &title);
    out->failed |= message.failed || title.failed;
    (void)buf_puts(out, "  <testcase classname=\"gate.");
    put_shown(out, row->kind);
    (void)buf_puts(out, "\" name=\"");
    text_append_xml(out, buf_str(&title));
    (void)buf_printf(out, "\" time=\"0\">\n    <%s",
                     !verdict_is_bad(row)      ? "system-out>"
                     : verdict_is_failure(row) ? "failure"
                                               : "error");
    if (verdict_is_bad(row)) {
        (void)buf_puts(out, " type=\"");
        put_shown(out, row->verdict);
        (void)buf_puts(out, "\" message=\"");
        text_append_xml(out, buf_str(&message));
        (void)buf_puts(out, "\"/>\n  </testcase>\n");
    } else {
        text_append_xml(out, buf_str(&message));
        (void)buf_puts(out, "</system-out>\n  </testcase>\n");
    }
    buf_release(&message);
    buf_release(&title);
}

void verdicts_junit(const js *rows, buf *out) {
    arena mem = {0};
    verdict_list all = verdict_read(rows, &mem, &out->failed);
    size_t failures = count_failures(&all, true), errors = count_failures(&all, false);
    (void)buf_printf(out,
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<testsuites>\n<testsuite name=\"snapmla gate\" tests=\"%zu\" "
                     "failures=\"%zu\" errors=\"%zu\" skipped=\"0\" time=\"0\">\n",
                     all.n, failures, errors);
    for (size_t i = 0; i < all.n; i++)
        put_case(&all.at[i], out);
    (void)buf_puts(out, "</testsuite>\n</testsuites>\n");
    arena_release(&mem);
}
