#include "evals/taskfile/keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json_line.h"
#include "base/nearest.h"
#include "base/text.h"

snap_status keys_bad(const keys *k, const char *key, snap_err *err, const char *fmt, ...) {
    const char *path[KEYS_DEPTH + 1];
    char member[200] = "", why[400];
    size_t n = 0, depth = k->depth;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    memcpy(path, k->path, depth * sizeof *path);
    if (key)
        path[depth++] = key;
    for (size_t i = 0; i < depth && n < sizeof member; i++)
        n += (size_t)snprintf(member + n, sizeof member - n, "%s%.60s", i ? "." : "", path[i]);
    return err_set(err, SNAP_E_INPUT, "%s:%ld: %s%s%s%s", k->name,
                   json_line(k->text, k->n, path, depth), depth ? "'" : "", member,
                   depth ? "' " : "", why);
}

snap_status keys_check(const keys *k, const char *const *known, snap_err *err) {
    for (void *it = js_first(k->object); it; it = js_next(k->object, it)) {
        const char *const *name = known;
        while (*name && strcmp(*name, js_key(it)) != 0)
            name++;
        char hint[NEAREST_HINT];
        if (!*name)
            return keys_bad(k, js_key(it), err, "is not a key that is known here%s",
                            nearest_hint(js_key(it), known, "", hint));
    }
    return SNAP_OK;
}

snap_status keys_object(const keys *k, const char *key, keys *out, bool *found, snap_err *err) {
    *found = js_has(k->object, key);
    if (!*found)
        return SNAP_OK;
    js *object = js_get_object(k->object, key);
    if (!object)
        return keys_bad(k, key, err, "must be an object");
    keys sub = *k;
    sub.path[sub.depth++] = key;
    sub.object = object;
    *out = sub;
    return SNAP_OK;
}

snap_status keys_element(const keys *k, const char *key, const char *index, keys *out,
                         snap_err *err) {
    int64_t i = 0;
    keys sub = *k;
    sub.path[sub.depth++] = key;
    (void)text_to_int(index, &i);
    js *object = js_at(js_get_array(k->object, key), (size_t)i);
    if (!js_is_object(object))
        return keys_bad(&sub, index, err, "must be an object");
    sub.path[sub.depth++] = index;
    sub.object = object;
    *out = sub;
    return SNAP_OK;
}

/* Copies a value that must be a text. @key names it in messages. */
static snap_status keep(const keys *k, const char *key, const js *value, const char **out,
                        snap_err *err) {
    const char *s = js_str(value);
    if (!s || strlen(s) != js_str_len(value))
        return keys_bad(k, key, err, "must be text");
    if (text_is_blank(s, strlen(s)))
        return keys_bad(k, key, err, "must not be empty");
    *out = arena_strdup(k->mem, s);
    return *out ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "%s: out of memory", k->name);
}

snap_status keys_text(const keys *k, const char *key, const char **out, snap_err *err) {
    *out = NULL;
    if (!js_has(k->object, key))
        return SNAP_OK;
    return keep(k, key, js_get(k->object, key), out, err);
}

snap_status keys_word(const keys *k, const char *key, const char *const *words, int *out,
                      snap_err *err) {
    const char *text;
    char list[300];
    size_t n = 0;
    *out = -1;
    snap_status st = keys_text(k, key, &text, err);
    if (st != SNAP_OK || !text)
        return st;
    for (*out = 0; words[*out]; ++*out)
        if (strcmp(words[*out], text) == 0)
            return SNAP_OK;
    for (size_t i = 0; words[i] && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", words[i]);
    char hint[NEAREST_HINT];
    return keys_bad(k, key, err, "must be one of %s, not '%.40s'%s", list, text,
                    nearest_hint(text, words, "", hint));
}

snap_status keys_texts(const keys *k, const char *key, const char **out, size_t cap, size_t *n,
                       snap_err *err) {
    const js *value = js_get(k->object, key);
    snap_status st = SNAP_OK;
    *n = 0;
    out[0] = NULL;
    if (!js_has(k->object, key))
        return SNAP_OK;
    size_t count = js_is_array(value) ? js_len(value) : 1;
    if (!count || count > cap)
        return keys_bad(k, key, err, "must be text or a list of 1 to %zu texts", cap);
    for (; *n < count && st == SNAP_OK; ++*n)
        st = keep(k, key, js_is_array(value) ? js_at(value, *n) : value, &out[*n], err);
    out[*n] = NULL;
    return st;
}

snap_status keys_num(const keys *k, const char *key, double min, double max, double *out,
                     snap_err *err) {
    const js *value = js_get(k->object, key);
    if (!js_has(k->object, key))
        return SNAP_OK;
    if (!js_is_num(value) || js_num(value) < min || js_num(value) > max)
        return keys_bad(k, key, err, "must be a number %.10g..%.10g", min, max);
    *out = js_num(value);
    return SNAP_OK;
}

snap_status keys_int(const keys *k, const char *key, int64_t min, int64_t max, int64_t *out,
                     snap_err *err) {
    const js *value = js_get(k->object, key);
    if (!js_has(k->object, key))
        return SNAP_OK;
    if (!js_is_int(value) || js_int(value) < min || js_int(value) > max)
        return keys_bad(k, key, err, "must be an integer %lld..%lld", (long long)min,
                        (long long)max);
    *out = js_int(value);
    return SNAP_OK;
}

snap_status keys_bool(const keys *k, const char *key, bool *out, snap_err *err) {
    const js *value = js_get(k->object, key);
    if (!js_has(k->object, key))
        return SNAP_OK;
    if (!js_is_bool(value))
        return keys_bad(k, key, err, "must be true or false");
    *out = js_true(value);
    return SNAP_OK;
}
