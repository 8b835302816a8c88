#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/text.h"

/* ---- memory ---- */

/* Where to continue if an allocation of the parser fails; NULL while the parser does not run. */
static _Thread_local jmp_buf *parser_failed;

/* The parser of jansson 2.14 ignores that the buffer of a string cannot grow: it loses characters
 * or corrupts the heap. So a failed allocation leaves the parser at once, by longjmp(). The memory
 * that the parser has allocated so far is leaked. */
static void *allocate(size_t n) {
    void *p = fault_malloc(n);
    if (!p && parser_failed)
        longjmp(*parser_failed, 1);
    return p;
}

/* Runs before main(), so that all memory of jansson comes from allocate(). */
__attribute__((constructor)) static void set_allocate(void) {
    json_set_alloc_funcs(allocate, free);
}

/* ---- reading JSON ---- */

/* NULL if the text is refused, or after a noted fault. @flags: further flags of jansson. */
static json_t *load(const char *text, size_t n, size_t flags, json_error_t *je) {
    jmp_buf here;
    json_t *volatile v = NULL;
    parser_failed = &here;
    if (setjmp(here) == 0)
        v = json_loadb(text, n, flags | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY,
                       je);
    parser_failed = NULL;
    return v;
}

static js *parse(const char *text, size_t n, size_t flags, const char *name, snap_err *err) {
    json_error_t je = {.text = ""};
    fault_mark before = fault_begin();
    json_t *v = load(text, n, flags, &je);
    if (!v && fault_since(before))
        (void)err_set(err, SNAP_E_NOMEM, "%s: out of memory", name);
    else if (!v)
        (void)err_set(err, SNAP_E_INPUT, "%s:%d:%d: %s", name, je.line, je.column, je.text);
    return v;
}

js *js_parse(const char *text, size_t n, const char *name, snap_err *err) {
    return parse(text, n, 0, name, err);
}

static js *parse_file(const char *path, size_t limit, size_t flags, snap_err *err) {
    buf text = {.limit = limit};
    js *v = NULL;
    if (fs_read_regular(path, &text, err) == SNAP_OK)
        v = parse(buf_str(&text), text.len, flags, path, err);
    buf_release(&text);
    return v;
}

js *js_parse_file(const char *path, size_t limit, snap_err *err) {
    return parse_file(path, limit, 0, err);
}

js *js_parse_file_as_reals(const char *path, size_t limit, snap_err *err) {
    return parse_file(path, limit, JSON_DECODE_INT_AS_REAL, err);
}

void js_free(js *v) {
    json_decref(v);
}

js *js_get(const js *object, const char *key) {
    json_t *v = json_object_get(object, key);
    return json_is_null(v) ? NULL : v;
}

bool js_has(const js *object, const char *key) {
    return json_object_get(object, key) != NULL;
}

js *js_get_object(const js *object, const char *key) {
    json_t *v = json_object_get(object, key);
    return json_is_object(v) ? v : NULL;
}

js *js_get_array(const js *object, const char *key) {
    json_t *v = json_object_get(object, key);
    return json_is_array(v) ? v : NULL;
}

const char *js_get_str(const js *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

const char *js_get_strn(const js *object, const char *key, size_t *n) {
    const json_t *v = json_object_get(object, key);
    *n = json_string_length(v);
    return json_string_value(v);
}

double js_get_num(const js *object, const char *key, double fallback) {
    const json_t *v = json_object_get(object, key);
    return json_is_number(v) ? json_number_value(v) : fallback;
}

int64_t js_get_int(const js *object, const char *key, int64_t fallback) {
    const json_t *v = json_object_get(object, key);
    return json_is_integer(v) ? json_integer_value(v) : fallback;
}

bool js_get_bool(const js *object, const char *key, bool fallback) {
    const json_t *v = json_object_get(object, key);
    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

static snap_status missing(const js *object, const char *key, const char *want, const char *where,
                           snap_err *err) {
    const json_t *v = json_object_get(object, key);
    if (!v)
        return err_set(err, SNAP_E_INPUT, "%s: key '%s' (%s) is missing", where, key, want);
    return err_set(err, SNAP_E_INPUT, "%s: key '%s' must be %s, got %s", where, key, want,
                   js_type_name(v));
}

snap_status js_need_str(const js *object, const char *key, const char **out, const char *where,
                        snap_err *err) {
    *out = js_get_str(object, key);
    return *out ? SNAP_OK : missing(object, key, "a string", where, err);
}

snap_status js_need_num(const js *object, const char *key, double *out, const char *where,
                        snap_err *err) {
    const json_t *v = json_object_get(object, key);
    *out = json_number_value(v);
    return json_is_number(v) ? SNAP_OK : missing(object, key, "a number", where, err);
}

snap_status js_need_int(const js *object, const char *key, int64_t *out, const char *where,
                        snap_err *err) {
    const json_t *v = json_object_get(object, key);
    *out = json_integer_value(v);
    return json_is_integer(v) ? SNAP_OK : missing(object, key, "an integer", where, err);
}

snap_status js_need_array(const js *object, const char *key, js **out, const char *where,
                          snap_err *err) {
    *out = js_get_array(object, key);
    return *out ? SNAP_OK : missing(object, key, "an array", where, err);
}

snap_status js_need_object(const js *object, const char *key, js **out, const char *where,
                           snap_err *err) {
    *out = js_get_object(object, key);
    return *out ? SNAP_OK : missing(object, key, "an object", where, err);
}

bool js_is_object(const js *v) {
    return json_is_object(v);
}

bool js_is_array(const js *v) {
    return json_is_array(v);
}

bool js_is_str(const js *v) {
    return json_is_string(v);
}

bool js_is_num(const js *v) {
    return json_is_number(v);
}

bool js_is_int(const js *v) {
    return json_is_integer(v);
}

bool js_is_bool(const js *v) {
    return json_is_boolean(v);
}

bool js_is_null(const js *v) {
    return json_is_null(v);
}

const char *js_type_name(const js *v) {
    static const char *const names[] = {
        [JSON_OBJECT] = "object",   [JSON_ARRAY] = "array", [JSON_STRING] = "string",
        [JSON_INTEGER] = "integer", [JSON_REAL] = "real",   [JSON_TRUE] = "boolean",
        [JSON_FALSE] = "boolean",   [JSON_NULL] = "null"};
    return v ? names[json_typeof(v)] : "nothing";
}

size_t js_len(const js *array) {
    return json_array_size(array);
}

js *js_at(const js *array, size_t i) {
    return json_array_get(array, i);
}

const char *js_str(const js *v) {
    return json_string_value(v);
}

size_t js_str_len(const js *v) {
    return json_string_length(v);
}

double js_num(const js *v) {
    return json_number_value(v);
}

int64_t js_int(const js *v) {
    return json_integer_value(v);
}

bool js_true(const js *v) {
    return json_is_true(v);
}

bool js_equal(const js *a, const js *b) {
    return json_equal(a, b) != 0;
}

/* jansson's iterators take an object that is not const, but do not change it. */
static js *unconst(const js *object) {
    return (js *)(uintptr_t)object;
}

void *js_first(const js *object) {
    return json_object_iter(unconst(object));
}

void *js_next(const js *object, void *it) {
    return json_object_iter_next(unconst(object), it);
}

const char *js_key(void *it) {
    return json_object_iter_key(it);
}

js *js_value(void *it) {
    return json_object_iter_value(it);
}

/* ---- making JSON ---- */

js *js_new_object(void) {
    return json_object();
}

js *js_new_array(void) {
    return json_array();
}

js *js_new_strn(const char *s, size_t n) {
    if (!s)
        return json_null();
    fault_mark before = fault_begin();
    json_t *v = json_stringn(s, n);
    if (v || fault_since(before))
        return v;
    buf clean = {0}; /* jansson refuses invalid UTF-8: repair it and try again */
    text_append_utf8_lossy(&clean, s, n);
    v = clean.failed ? NULL : json_stringn(buf_str(&clean), clean.len);
    buf_release(&clean);
    return v;
}

js *js_new_str(const char *s) {
    return js_new_strn(s, s ? strlen(s) : 0);
}

js *js_new_num(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

js *js_new_nums(const double *x, size_t n) {
    js *a = js_new_array();
    bool ok = a != NULL;
    for (size_t i = 0; i < n && ok; i++)
        ok = js_push_new(a, js_new_num(x[i]));
    if (ok)
        return a;
    js_free(a);
    return NULL;
}

js *js_new_int(int64_t x) {
    return json_integer(x);
}

js *js_new_bool(bool x) {
    return json_boolean(x);
}

js *js_new_null(void) {
    return json_null();
}

js *js_copy(const js *v) {
    return json_deep_copy(v);
}

bool js_set_new(js *object, const char *key, js *value) {
    return json_object_set_new(object, key, value) == 0;
}

bool js_push_new(js *array, js *value) {
    return json_array_append_new(array, value) == 0;
}

bool js_set_str(js *object, const char *key, const char *s) {
    return js_set_new(object, key, js_new_str(s));
}

bool js_set_num(js *object, const char *key, double x) {
    return js_set_new(object, key, js_new_num(x));
}

bool js_set_int(js *object, const char *key, int64_t x) {
    return js_set_new(object, key, js_new_int(x));
}

bool js_set_bool(js *object, const char *key, bool x) {
    return js_set_new(object, key, js_new_bool(x));
}

bool js_delete(js *object, const char *key) {
    return json_object_del(object, key) == 0;
}

/* ---- writing ---- */

static int write_chunk(const char *bytes, size_t n, void *out) {
    return buf_append(out, bytes, n) ? 0 : -1;
}

/* Copies pretty-printed text and joins the lines within each element of an array, so that one
 * element takes one line. Only arrays that are not nested in another array count. */
static bool fold_elements(const buf *pretty, buf *out) {
    const char *text = buf_str(pretty);
    int depth = 0, array = 0; /* array: nesting depth of the current outermost array; 0 = not in an
                                 array */
    bool string = false, ok = true;
    size_t from = 0;
    for (size_t i = 0; i < pretty->len && ok; i++) {
        char c = text[i];
        if (string && c == '\\')
            i++;
        else if (c == '"')
            string = !string;
        else if (string)
            continue;
        else if (c == '{' || c == '[')
            depth++, array = array || c == '{' ? array : depth;
        else if (c == '}' || c == ']')
            array = depth == array ? 0 : array, depth--;
        else if (c == '\n' && array && depth > array) {
            ok = buf_append(out, text + from, i - from);
            from = i + 1 + strspn(text + i + 1, " ");
            i = from - 1;
        }
    }
    return ok && buf_append(out, text + from, pretty->len - from);
}

static snap_status write_rows(const js *v, buf *out, snap_err *err) {
    buf pretty = {0};
    snap_status st = js_write(v, JS_PRETTY, &pretty, err);
    if (st == SNAP_OK && !fold_elements(&pretty, out))
        st = err_set(err, SNAP_E_NOMEM, "a JSON value cannot be written: out of memory");
    buf_release(&pretty);
    return st;
}

snap_status js_write(const js *v, js_style style, buf *out, snap_err *err) {
    size_t flags = JSON_SORT_KEYS | JSON_ENCODE_ANY;
    if (style == JS_ROWS)
        return write_rows(v, out, err);
    flags |= style == JS_PRETTY ? JSON_INDENT(2) : JSON_COMPACT;
    if (v && json_dump_callback(v, write_chunk, out, flags) == 0)
        return SNAP_OK;
    return err_set(err, SNAP_E_NOMEM, "a JSON value cannot be written: out of memory");
}

snap_status js_write_shown(const js *v, js_style style, buf *out, snap_err *err) {
    buf raw = {.limit = out->limit};
    snap_status st = js_write(v, style, &raw, err);
    if (st == SNAP_OK)
        text_append_shown_json(out, buf_str(&raw));
    buf_release(&raw);
    return st == SNAP_OK ? buf_check(out, "JSON", err) : st;
}

snap_status js_write_file(const js *v, const char *path, snap_err *err) {
    buf text = {0};
    snap_status st = js_write(v, JS_ROWS, &text, err);
    if (st == SNAP_OK && !buf_puts(&text, "\n"))
        st = buf_check(&text, path, err);
    if (st == SNAP_OK)
        st = fs_write_atomic(path, text.data, text.len, err);
    buf_release(&text);
    return st;
}

/* ---- JSON lines ---- */

static snap_status one_line(const char *text, size_t n, const char *name, long line, js_line_fn fn,
                            void *ctx, snap_err *err) {
    json_error_t je = {.text = ""};
    fault_mark before = fault_begin();
    json_t *v = load(text, n, 0, &je);
    const char *quote = v ? NULL : strstr(je.text, " near '");
    if (!v && fault_since(before))
        return err_set(err, SNAP_E_NOMEM, "%s:%ld: out of memory", name, line);
    if (!v)
        return err_set(err, SNAP_E_INPUT, "%s:%ld:%d: %.*s", name, line, je.column,
                       quote ? (int)(quote - je.text) : JSON_ERROR_TEXT_LENGTH, je.text);
    snap_status st;
    if (json_is_object(v))
        st = fn(ctx, v, line, err);
    else
        st = err_set(err, SNAP_E_INPUT, "%s:%ld: a line must be an object, got %s", name, line,
                     js_type_name(v));
    json_decref(v);
    return st;
}

snap_status js_each_line(const char *text, size_t n, const char *name, js_line_fn fn, void *ctx,
                         snap_err *err) {
    snap_status st = SNAP_OK;
    const char *end = text + n;
    long line = 1;
    for (const char *p = text; p < end && st == SNAP_OK; line++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        const char *stop = nl ? nl : end;
        if (!text_is_blank(p, (size_t)(stop - p)))
            st = one_line(p, (size_t)(stop - p), name, line, fn, ctx, err);
        p = nl ? nl + 1 : end;
    }
    return st;
}
