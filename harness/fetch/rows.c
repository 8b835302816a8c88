#include "harness/fetch/rows.h"

#include "base/json.h"

snap_status rows_to_lines(const char *text, size_t n, const char *name, buf *out, snap_err *err) {
    js *doc = js_parse(text, n, name, err), *rows, *row;
    if (!doc)
        return SNAP_E_INPUT;
    snap_status st;
    TRY(js_need_array(doc, "rows", &rows, name, err));
    int64_t total = js_get_int(doc, "num_rows_total", (int64_t)js_len(rows));
    if (!js_len(rows) || total != (int64_t)js_len(rows) || js_get_bool(doc, "partial", false))
        TRY(err_set(err, SNAP_E_INPUT, "%s: holds %zu rows, not all of %lld", name, js_len(rows),
                    (long long)total));
    for (size_t i = 0; i < js_len(rows); i++) {
        TRY(js_need_object(js_at(rows, i), "row", &row, name, err));
        if (js_len(js_get_array(js_at(rows, i), "truncated_cells")))
            TRY(err_set(err, SNAP_E_INPUT, "%s: row %zu is cut short", name, i + 1));
        TRY(js_write(row, JS_COMPACT, out, err));
        (void)buf_puts(out, "\n");
    }
    st = buf_check(out, name, err);
cleanup:
    js_free(doc);
    return st;
}
