#include "harness/eval/merge_arms.h"

#include <string.h>

#include "base/text.h"

/* The parts "NAME=", "GENERATOR" and ",key=value..." of one text. */
typedef struct {
    const char *name, *spec, *keys;
    size_t name_len, spec_len;
} arm_text;

static arm_text cut(const char *s) {
    arm_text a = {.name = s};
    a.name_len = strcspn(s, "=");
    a.name_len += s[a.name_len] == '=';
    a.spec = s + a.name_len;
    a.spec_len = strcspn(a.spec, ",");
    a.keys = a.spec + a.spec_len;
    return a;
}

static bool same_but_server(const arm_text *a, const arm_text *b) {
    if (a->name_len != b->name_len || memcmp(a->name, b->name, a->name_len) != 0)
        return false;
    if (a->spec_len == b->spec_len && memcmp(a->spec, b->spec, a->spec_len) == 0)
        return strcmp(a->keys, b->keys) == 0;
    return strcmp(a->keys, b->keys) == 0 && text_starts(a->spec, "http") &&
           text_starts(b->spec, "http");
}

/* Whether the list "URL|URL" of length @n contains @url. */
static bool lists_url(const char *list, size_t n, const char *url, size_t url_len) {
    for (size_t at = 0; at < n;) {
        size_t len = strcspn(list + at, "|,");
        if (len == url_len && memcmp(list + at, url, len) == 0)
            return true;
        at += len + 1;
    }
    return false;
}

/* Makes "NAME=URL|URL,keys" with the servers of both; NULL when out of memory. */
static js *join(const arm_text *a, const arm_text *b) {
    buf text = {0};
    (void)buf_append(&text, a->name, a->name_len + a->spec_len);
    for (size_t at = 0; at < b->spec_len;) {
        size_t len = strcspn(b->spec + at, "|,");
        if (!lists_url(a->spec, a->spec_len, b->spec + at, len))
            (void)buf_printf(&text, "|%.*s", (int)len, b->spec + at);
        at += len + 1;
    }
    (void)buf_puts(&text, a->keys);
    js *joined = text.failed ? NULL : js_new_str(buf_str(&text));
    buf_release(&text);
    return joined;
}

/* Joins one arm with its counterpart and appends the result to @to. */
static snap_status merge_one(js *to, const char *one, const char *other, const char *folder,
                             snap_err *err) {
    arm_text a = cut(one), b = cut(other);
    if (!same_but_server(&a, &b))
        return err_set(
            err, SNAP_E_USAGE,
            "'%s' belongs to another run: its arm '%s' differs from '%s' in more than the "
            "server",
            folder, other, one);
    return js_push_new(to, join(&a, &b)) ? SNAP_OK
                                         : err_set(err, SNAP_E_NOMEM, "out of memory for the arms");
}

snap_status merge_arms(js **all, const js *arms, const char *folder, snap_err *err) {
    snap_status st = SNAP_OK;
    js *merged = *all ? js_new_array() : js_copy(arms);
    if (!merged)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for the arms"));
    if (*all && js_len(*all) != js_len(arms))
        TRY(err_set(err, SNAP_E_USAGE, "'%s' belongs to another run: it has %zu arms, not %zu",
                    folder, js_len(arms), js_len(*all)));
    for (size_t i = 0; *all && i < js_len(arms); i++) {
        const char *one = js_str(js_at(*all, i)), *other = js_str(js_at(arms, i));
        TRY(merge_one(merged, one ? one : "", other ? other : "", folder, err));
    }
    js_free(*all);
    *all = merged;
    merged = NULL;
cleanup:
    js_free(merged);
    return st;
}
