#include "harness/fetch/rows.h"

#include "base/json.h"

static snap_status append_rows(const js *rows, const char *name, buf *out, snap_err *err) {
    snap_status st = SNAP_OK;
    js *row;
    for (size_t i = 0; i < js_len(rows); i++) {
        TRY(js_need_object(js_at(rows, i), "row", &row, name, err));
        if (js_len(js_get_array(js_at(rows, i), "truncated_cells")))
            TRY(err_set(err, SNAP_E_INPUT, "%s: row %zu is cut short", name, i + 1));
        TRY(js_write(row, JS_COMPACT, out, err));
        (void)buf_puts(out, "\n");
    }
    st = buf_check(out, name, err);
cleanup:
    return st;
}

snap_status rows_page_to_lines(const char *text, size_t n, const char *name, buf *out,
                               int64_t *count, int64_t *total, snap_err *err) {
    js *doc = js_parse(text, n, name, err), *rows;
    snap_status st = SNAP_OK;
    if (!doc)
        return SNAP_E_INPUT;
    TRY(js_need_array(doc, "rows", &rows, name, err));
    *count = (int64_t)js_len(rows);
    *total = js_get_int(doc, "num_rows_total", *count);
    if (!*count || *total < *count || js_get_bool(doc, "partial", false))
        TRY(err_set(err, SNAP_E_INPUT, "%s: has %lld rows instead of %lld", name, (long long)*count,
                    (long long)*total));
    TRY(append_rows(rows, name, out, err));
cleanup:
    js_free(doc);
    return st;
}

snap_status rows_to_lines(const char *text, size_t n, const char *name, buf *out, snap_err *err) {
    int64_t count, total;
    snap_status st = rows_page_to_lines(text, n, name, out, &count, &total, err);
    if (st == SNAP_OK && count != total)
        return err_set(err, SNAP_E_INPUT, "%s: has %lld rows instead of %lld", name,
                       (long long)count, (long long)total);
    return st;
}
