#include "evals/task_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char kRowBoxed[] =
    "\nPlease reason step by step, and put your final answer within \\boxed{}.";

const char *row_text(const js *row, const char *const *keys) {
    for (; *keys; keys++) {
        size_t n;
        const char *s = js_get_strn(row, *keys, &n);
        if (s && strlen(s) == n && !text_is_blank(s, n))
            return s;
    }
    return NULL;
}

snap_status row_keep(task_rows *r, const char *text, const char **out, const char *where,
                     snap_err *err) {
    *out = arena_strdup(&r->set->mem, text);
    return *out ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
}

snap_status row_id(const js *row, task_rows *r, task_row *out, const char *where, snap_err *err) {
    const char *text =
        row_text(row, (const char *const[]){"id", "ID", "problem_idx", "unique_id", NULL});
    const js *number = js_get(row, "id") ? js_get(row, "id") : js_get(row, "problem_idx");
    char digits[24];
    if (!text && js_is_int(number)) {
        (void)snprintf(digits, sizeof digits, "%lld", (long long)js_int(number));
        text = digits;
    }
    return text ? row_keep(r, text, &out->id, where, err) : SNAP_OK;
}
