#include "harness/serving/request_lines.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"

static const size_t kMostBytes = (size_t)4 << 30;
static const double kMostSeconds = 1e7; /* largest time since the start of a block */

/* ---- writing ---- */

/* Appends a whole number. A line may have thousands of them, and snprintf() is slower. */
static void put_int(buf *out, int64_t x) {
    char text[24], *at = text + sizeof text;
    uint64_t left = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (x < 0)
        *--at = '-';
    (void)buf_append(out, at, (size_t)(text + sizeof text - at));
}

static void put_count(buf *out, const char *key, int64_t x) {
    if (x < 0)
        return;
    (void)buf_puts(out, key);
    put_int(out, x);
}

static void put_time(buf *out, const char *key, double s) {
    if (s >= 0)
        (void)buf_printf(out, "%s%.6f", key, s);
}

static void put_gaps(buf *out, const serving_request *r) {
    if (r->pieces < 2)
        return;
    (void)buf_puts(out, ",\"gap_us\":[");
    for (int i = 0; i < r->pieces - 1; i++) {
        if (i)
            (void)buf_append(out, ",", 1);
        put_int(out, llround((double)r->gap_s[i] * 1e6));
    }
    (void)buf_append(out, "]", 1);
}

static void put_error(buf *out, const char *error) {
    js *text = js_new_str(error ? error : "");
    buf json = {0};
    if (!text || js_write(text, JS_COMPACT, &json, NULL) != SNAP_OK)
        out->failed = true;
    (void)buf_printf(out, ",\"failed\":true,\"error\":%s", buf_str(&json));
    buf_release(&json);
    js_free(text);
}

void request_line_append(const serving_request *r, buf *out) {
    put_count(out, "{\"arm\":", r->arm);
    put_count(out, ",\"point\":", r->point);
    put_count(out, ",\"block\":", r->block);
    put_count(out, ",\"index\":", r->index);
    if (r->part)
        put_count(out, ",\"part\":", r->part);
    put_time(out, ",\"due\":", r->due_s);
    put_time(out, ",\"sent\":", r->sent_s);
    put_time(out, ",\"first\":", r->first_s);
    put_time(out, ",\"end\":", r->end_s);
    put_count(out, ",\"prompt_tokens\":", r->prompt_tokens);
    put_count(out, ",\"completion_tokens\":", r->completion_tokens);
    put_count(out, ",\"wanted_tokens\":", r->wanted_tokens);
    put_count(out, ",\"pieces\":", r->pieces);
    put_gaps(out, r);
    put_time(out, ",\"lag\":", r->lag_s);
    put_time(out, ",\"received_lag\":", r->received_lag_s);
    if (r->cut)
        (void)buf_puts(out, ",\"cut\":true");
    if (r->failed)
        put_error(out, r->error);
    (void)buf_puts(out, "}\n");
}

/* ---- reading requests.jsonl ---- */

typedef struct {
    request_list *list;
    const char *name;
} reader;

static snap_status refuse(const reader *rd, long line, const char *why, snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "%s:%ld: %s", rd->name, line, why);
}

static bool take_small(const js *o, const char *key, int *out) {
    int64_t x = js_get_int(o, key, -1);
    *out = x >= 0 && x <= INT_MAX ? (int)x : -1;
    return *out >= 0;
}

static bool take_count(const js *o, const char *key, int64_t *out) {
    *out = js_get_int(o, key, -1);
    return !js_has(o, key) || *out >= 0;
}

static bool take_time(const js *o, const char *key, bool needed, double *out) {
    *out = js_get_num(o, key, -1);
    return (*out >= 0 && *out <= kMostSeconds) || (!needed && !js_has(o, key));
}

/* Whether the times of a request are in order: due, sent, first piece, end. */
static bool are_in_order(const serving_request *r) {
    return r->due_s <= r->sent_s && (r->first_s < 0 || r->first_s >= r->sent_s) &&
           (r->end_s < 0 || r->end_s >= (r->first_s < 0 ? r->sent_s : r->first_s));
}

static snap_status take_gaps(reader *rd, const js *o, serving_request *r, long line,
                             snap_err *err) {
    const js *list = js_get_array(o, "gap_us");
    size_t n = js_len(list);
    if (n != (size_t)(r->pieces < 2 ? 0 : r->pieces - 1))
        return refuse(rd, line, "the number of gaps must be the number of pieces minus 1", err);
    float *gaps = n ? arena_alloc(&rd->list->mem, n, sizeof *gaps) : NULL;
    if (n && !gaps)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", rd->name);
    for (size_t i = 0; i < n; i++) {
        double us = js_num(js_at(list, i));
        if (!js_is_num(js_at(list, i)) || us < 0 || us > kMostSeconds * 1e6)
            return refuse(rd, line, "a gap is not a number of microseconds", err);
        gaps[i] = (float)(us * 1e-6);
    }
    r->gap_s = gaps;
    return SNAP_OK;
}

static snap_status append(request_list *list, serving_request r, const char *name, snap_err *err) {
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 256;
        serving_request *grown = arena_alloc(&list->mem, capacity, sizeof *grown);
        if (!grown)
            return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", name);
        if (list->n)
            memcpy(grown, list->at, list->n * sizeof *grown);
        list->at = grown;
        list->capacity = capacity;
    }
    list->at[list->n++] = r;
    return SNAP_OK;
}

static snap_status read_line(void *ctx, js *o, long line, snap_err *err) {
    reader *rd = ctx;
    serving_request r = {0};
    if (!take_small(o, "arm", &r.arm) || !take_small(o, "point", &r.point) ||
        !take_small(o, "block", &r.block) || !take_small(o, "index", &r.index) ||
        !take_small(o, "pieces", &r.pieces))
        return refuse(rd, line, "arm, point, block, index and pieces must be counts", err);
    if (js_has(o, "part") && (!take_small(o, "part", &r.part) || r.part < 1))
        return refuse(rd, line, "part must be a number from 1 on", err);
    if (!take_time(o, "due", true, &r.due_s) || !take_time(o, "sent", true, &r.sent_s) ||
        !take_time(o, "lag", true, &r.lag_s) || !take_time(o, "first", false, &r.first_s) ||
        !take_time(o, "end", false, &r.end_s) ||
        !take_time(o, "received_lag", false, &r.received_lag_s))
        return refuse(rd, line, "due, sent, first, end and lags must be from 0 to 1e7 seconds",
                      err);
    if (r.received_lag_s < 0) /* earlier versions did not write it */
        r.received_lag_s = r.lag_s;
    if (!are_in_order(&r))
        return refuse(rd, line, "the times due, sent, first and end must be in this order", err);
    if (!take_count(o, "prompt_tokens", &r.prompt_tokens) ||
        !take_count(o, "completion_tokens", &r.completion_tokens) ||
        !take_count(o, "wanted_tokens", &r.wanted_tokens))
        return refuse(rd, line, "a number of tokens must be a count", err);
    r.cut = js_get_bool(o, "cut", false);
    r.failed = js_get_bool(o, "failed", false);
    const char *error = js_get_str(o, "error");
    if (r.failed && !(r.error = arena_strdup(&rd->list->mem, error ? error : "")))
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", rd->name);
    snap_status st = take_gaps(rd, o, &r, line, err);
    return st == SNAP_OK ? append(rd->list, r, rd->name, err) : st;
}

snap_status request_lines_parse(const char *text, size_t n, const char *name, request_list *out,
                                snap_err *err) {
    reader rd = {out, name};
    return js_each_line(text, n, name, read_line, &rd, err);
}

snap_status request_lines_read(const char *path, request_list *out, snap_err *err) {
    buf text = {.limit = kMostBytes};
    snap_status st = fs_read_regular(path, &text, err);
    if (st == SNAP_OK)
        st = request_lines_parse(buf_str(&text), text.len, path, out, err);
    buf_release(&text);
    return st;
}

/* Reads the bytes of a file after the first @from. */
static snap_status read_after(FILE *f, const char *path, int64_t from, buf *text, snap_err *err) {
    char block[1 << 16];
    size_t n;
    if (fseeko(f, (off_t)from, SEEK_SET) != 0)
        return err_set_errno(err, "cannot read '%s'", path);
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        (void)buf_append(text, block, n);
    if (ferror(f))
        return err_set_errno(err, "cannot read '%s'", path);
    return buf_check(text, path, err);
}

snap_status request_lines_read_new(const char *path, int64_t *from, request_list *out,
                                   snap_err *err) {
    buf text = {.limit = kMostBytes};
    FILE *f = NULL;
    snap_status st = fs_stream_regular(path, &f, err);
    if (st == SNAP_OK)
        st = read_after(f, path, *from, &text, err);
    if (st == SNAP_OK)
        st = request_lines_parse(buf_str(&text), text.len, path, out, err);
    if (st == SNAP_OK)
        *from += (int64_t)text.len;
    if (f)
        (void)fclose(f);
    buf_release(&text);
    return st;
}

snap_status request_list_add(request_list *list, const serving_request *from, snap_err *err) {
    serving_request r = *from;
    size_t gaps = r.pieces > 1 ? (size_t)r.pieces - 1 : 0;
    float *copy = gaps ? arena_alloc(&list->mem, gaps, sizeof *copy) : NULL;
    if (gaps && copy)
        memcpy(copy, r.gap_s, gaps * sizeof *copy);
    r.gap_s = copy;
    r.error = r.error ? arena_strdup(&list->mem, r.error) : NULL;
    if ((gaps && !copy) || (from->error && !r.error))
        return err_set(err, SNAP_E_NOMEM, "out of memory for the requests");
    return append(list, r, "the requests", err);
}

void request_list_release(request_list *list) {
    arena_release(&list->mem);
    *list = (request_list){0};
}
