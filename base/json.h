/* json.h - JSON values: parse, read, build, and write with sorted keys. Only base/json.c calls
 * jansson.
 *
 * Ownership: the caller owns the values that js_parse*(), js_copy() and the js_new_*() constructors
 * return, and frees them with js_free(). Values from other functions belong to their container.
 * js_set_new() and js_push_new() take ownership of the value even if they fail. They accept NULL (a
 * failed constructor) and then return failure. A failed allocation is also noted as a fault
 * (fault.h). */
#ifndef SNAPMLA_BASE_JSON_H
#define SNAPMLA_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct json_t js; /* jansson's own tag: the type stays opaque outside base/json.c */

/* ---- reading JSON ---- */

/* Parses one JSON text. Refuses duplicate keys, trailing content, invalid UTF-8, more than 2048
 * levels (the limit of jansson), integers beyond 64 bits and other numbers beyond the range of a
 * double. @name stands for the text in messages ("configs/demo.json"). On failure: NULL, and
 * SNAP_E_INPUT with "name:line:column: reason" or SNAP_E_NOMEM. */
js *js_parse(const char *text, size_t n, const char *name, snap_err *err);
/* Parses a regular file, or standard input if @path is "-". @limit: bytes. Also SNAP_E_IO. */
js *js_parse_file(const char *path, size_t limit, snap_err *err);
/* Like js_parse_file(), but all numbers become reals, so integers beyond 64 bits are accepted.
 * Python programs write such integers. */
js *js_parse_file_as_reals(const char *path, size_t limit, snap_err *err);
void js_free(js *v); /* NULL is allowed */

/* Optional lookups. They return NULL or the fallback if the key is absent or has another type.
 * js_get() returns a value of any type, but NULL for JSON null. */
js *js_get(const js *object, const char *key);
bool js_has(const js *object, const char *key); /* also true where the value is null */
js *js_get_object(const js *object, const char *key);
js *js_get_array(const js *object, const char *key);
const char *js_get_str(const js *object, const char *key);             /* borrowed */
const char *js_get_strn(const js *object, const char *key, size_t *n); /* @n gets the length; the
                                                                         text may hold NUL bytes */
double js_get_num(const js *object, const char *key, double fallback); /* integer or real */
int64_t js_get_int(const js *object, const char *key, int64_t fallback);
bool js_get_bool(const js *object, const char *key, bool fallback);

/* Required lookups. If the key is absent or has another type: SNAP_E_INPUT, and the message has
 * @where and the key. */
snap_status js_need_str(const js *object, const char *key, const char **out, const char *where,
                        snap_err *err) SNAP_CHECK_RESULT;
snap_status js_need_num(const js *object, const char *key, double *out, const char *where,
                        snap_err *err) SNAP_CHECK_RESULT;
snap_status js_need_int(const js *object, const char *key, int64_t *out, const char *where,
                        snap_err *err) SNAP_CHECK_RESULT;
snap_status js_need_array(const js *object, const char *key, js **out, const char *where,
                          snap_err *err) SNAP_CHECK_RESULT;
snap_status js_need_object(const js *object, const char *key, js **out, const char *where,
                           snap_err *err) SNAP_CHECK_RESULT;

bool js_is_object(const js *v);
bool js_is_array(const js *v);
bool js_is_str(const js *v);
bool js_is_num(const js *v); /* integer or real */
bool js_is_int(const js *v);
bool js_is_bool(const js *v);
bool js_is_null(const js *v);
const char *js_type_name(const js *v); /* "object", "array", "string", "integer", "real", ... */

size_t js_len(const js *array); /* 0 if not an array */
js *js_at(const js *array, size_t i);
const char *js_str(const js *v); /* NULL if not a string */
size_t js_str_len(const js *v);  /* bytes, also those after a NUL; 0 if not a string */
double js_num(const js *v);      /* 0 if not a number */
int64_t js_int(const js *v);     /* 0 if not an integer */
bool js_true(const js *v);
bool js_equal(const js *a, const js *b);

/* Iterates over an object's keys in insertion order:
 *   for (it = js_first(o); it; it = js_next(o, it)) */
void *js_first(const js *object);
void *js_next(const js *object, void *it);
const char *js_key(void *it);
js *js_value(void *it);

/* ---- making JSON ---- */

js *js_new_object(void);
js *js_new_array(void);
js *js_new_str(const char *s); /* NULL gives JSON null; invalid UTF-8 becomes U+FFFD */
js *js_new_strn(const char *s, size_t n);
js *js_new_num(double x);                   /* NaN and infinities become null */
js *js_new_nums(const double *x, size_t n); /* an array; NaN and infinities become null. NULL if
                                               memory is exhausted */
js *js_new_int(int64_t x);
js *js_new_bool(bool x);
js *js_new_null(void);
js *js_copy(const js *v); /* deep */

bool js_set_new(js *object, const char *key, js *value);
bool js_push_new(js *array, js *value);

/* Shorthands; false if memory is exhausted. js_delete() is false if the key is absent. */
bool js_set_str(js *object, const char *key, const char *s);
bool js_set_num(js *object, const char *key, double x);
bool js_set_int(js *object, const char *key, int64_t x);
bool js_set_bool(js *object, const char *key, bool x);
bool js_delete(js *object, const char *key);

/* ---- writing ---- */

/* JS_ROWS is JS_PRETTY except that each element of an outermost array takes one line. A file with
 * many rows stays small. */
typedef enum { JS_COMPACT, JS_PRETTY, JS_ROWS } js_style;

/* Appends the text: sorted keys, numbers that read back exactly, no newline at the end.
 * SNAP_E_NOMEM. */
snap_status js_write(const js *v, js_style style, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* js_write() for a terminal or a log: characters that a terminal or a CI system would act on are
 * escaped (text_append_shown_json()). The value is the same. */
snap_status js_write_shown(const js *v, js_style style, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Writes JS_ROWS with a newline at the end, through fs_write_atomic(). */
snap_status js_write_file(const js *v, const char *path, snap_err *err) SNAP_CHECK_RESULT;

/* ---- JSON lines ---- */

/* Called with the object of each non-blank line; @line counts from 1. An error stops the
 * reading. */
typedef snap_status (*js_line_fn)(void *ctx, js *object, long line, snap_err *err);

/* Parses @text line by line. Every line must be one JSON object or blank. SNAP_E_INPUT with
 * "name:line:column: reason", or "name:line: reason" if the value is not an object; SNAP_E_NOMEM;
 * errors of @fn. A message quotes at most an invalid byte or escape of the line, because the data
 * set may not be public. */
snap_status js_each_line(const char *text, size_t n, const char *name, js_line_fn fn, void *ctx,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
