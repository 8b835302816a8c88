#include "harness/cmd/print.h"

#include <stdio.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/term.h"
#include "harness/view/eval_text.h"
#include "harness/view/writers.h"

snap_status print_bytes(const char *s, size_t n, snap_err *err) {
    snap_status st = fault_of_process(SNAP_OK, err);
    if (st == SNAP_OK && fwrite(s, 1, n, stdout) != n)
        st = err_set_errno(err, "cannot write standard output");
    return st;
}

snap_status print_text(buf *text, const char *what, snap_err *err) {
    snap_status st = buf_check(text, what, err);
    if (st == SNAP_OK)
        st = print_bytes(buf_str(text), text->len, err);
    buf_clear(text);
    return st;
}

snap_status print_json(const js *value, snap_err *err) {
    buf text = {0};
    if (!value)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the result");
    snap_status st = js_write_shown(value, JS_PRETTY, &text, err);
    (void)buf_puts(&text, "\n");
    if (st == SNAP_OK)
        st = print_text(&text, "the result", err);
    buf_release(&text);
    return st;
}

snap_status print_table(const table *t, snap_err *err) {
    buf text = {0};
    snap_status st = write_text(t, term_use_color(STDOUT_FILENO), &text, err);
    if (st == SNAP_OK)
        st = print_text(&text, "a table", err);
    buf_release(&text);
    return st;
}

snap_status print_results(const results *r, const opt_shared *shared, const table *t,
                          snap_err *err) {
    return shared->json ? print_json(results_document(r), err) : print_table(t, err);
}

snap_status print_evals(const results *r, const opt_shared *shared, snap_err *err) {
    buf text = {0};
    if (shared->json)
        return print_json(results_document(r), err);
    snap_status st = eval_view(r, term_use_color(STDOUT_FILENO), &text, err);
    if (st == SNAP_OK)
        st = print_text(&text, "a table", err);
    buf_release(&text);
    return st;
}
