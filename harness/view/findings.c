#include "harness/view/findings.h"

#include "harness/view/writers.h"

snap_status findings_json(const verify_findings *f, buf *out, snap_err *err) {
    js *o = js_new_object();
    bool ok = o && js_set_int(o, "checks", (int64_t)f->checks) &&
              js_set_new(o, "findings", f->rows ? js_copy(f->rows) : js_new_array());
    snap_status st = ok ? js_write_shown(o, JS_PRETTY, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for findings");
    (void)buf_puts(out, "\n");
    js_free(o);
    return st;
}

snap_status findings_text(const verify_findings *f, bool color, buf *out, snap_err *err) {
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
        st = write_text(&t, color, out, err);
    if (more)
        (void)buf_printf(out, "... and %zu more\n", more);
    (void)buf_printf(out, "%zu statements checked\n", f->checks);
    table_release(&t);
    return st;
}
