#include "harness/serving/trace.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"

enum { kMostHashIds = 1 << 16 };
static const size_t kMostBytes = (size_t)1 << 30;
static const double kMostSeconds = 1e10; /* larger times are malformed */

typedef struct {
    trace *out;
    const char *name;
} reader;

SNAP_PRINTF(4, 5)
static snap_status refuse(const reader *rd, long line, snap_err *err, const char *fmt, ...) {
    char why[300];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return err_set(err, SNAP_E_INPUT, "%s:%ld: %s", rd->name, line, why);
}

static snap_status no_memory(const reader *rd, snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", rd->name);
}

static bool grow(trace *t) {
    size_t capacity = t->capacity ? 2 * t->capacity : 256;
    trace_row *rows = arena_alloc(&t->mem, capacity, sizeof *rows);
    if (!rows)
        return false;
    if (t->n)
        memcpy(rows, t->rows, t->n * sizeof *rows);
    t->rows = rows;
    t->capacity = capacity;
    return true;
}

/* Checks a row and adds it, unless it has no input or no output tokens. */
static snap_status add(reader *rd, trace_row row, long line, snap_err *err) {
    trace *t = rd->out;
    if (!(fabs(row.time_s) <= kMostSeconds))
        return refuse(rd, line, err, "the time is out of range");
    if (row.input_length < 0 || row.input_length > TRACE_MOST_TOKENS || row.output_length < 0 ||
        row.output_length > TRACE_MOST_TOKENS)
        return refuse(rd, line, err, "a length must be 0 to %d tokens", (int)TRACE_MOST_TOKENS);
    if (!row.input_length || !row.output_length) {
        t->unanswered++;
        return SNAP_OK;
    }
    if (t->n == TRACE_MOST_ROWS)
        return refuse(rd, line, err, "more than %d requests", (int)TRACE_MOST_ROWS);
    if (t->n == t->capacity && !grow(t))
        return no_memory(rd, err);
    t->rows[t->n++] = row;
    return SNAP_OK;
}

/* ---- JSON lines ---- */

static snap_status read_hash_ids(reader *rd, const js *list, trace_row *row, long line,
                                 snap_err *err) {
    size_t n = js_len(list);
    if (n > kMostHashIds)
        return refuse(rd, line, err, "more than %d hash ids", (int)kMostHashIds);
    int64_t *ids = n ? arena_alloc(&rd->out->mem, n, sizeof *ids) : NULL;
    if (n && !ids)
        return no_memory(rd, err);
    for (size_t i = 0; i < n; i++) {
        if (!js_is_int(js_at(list, i)))
            return refuse(rd, line, err, "a hash id must be a whole number");
        ids[i] = js_int(js_at(list, i));
    }
    row->hash_ids = ids;
    row->n_hash_ids = n;
    return SNAP_OK;
}

/* Reads a whole number from 0; @absent if it is absent or null. */
static bool optional(const js *o, const char *key, int64_t absent, int64_t *out) {
    const js *v = js_get(o, key);
    *out = v ? js_int(v) : absent;
    return !v || (js_is_int(v) && *out >= 0);
}

static snap_status read_line(void *ctx, js *o, long line, snap_err *err) {
    reader *rd = ctx;
    trace_row row = {.prefix = -1, .prefix_length = -1};
    char where[400];
    (void)snprintf(where, sizeof where, "%.300s:%ld", rd->name, line);
    bool mooncake = js_get(o, "timestamp") != NULL;
    snap_status st = js_need_num(o, mooncake ? "timestamp" : "time", &row.time_s, where, err);
    if (st == SNAP_OK)
        st = js_need_int(o, "input_length", &row.input_length, where, err);
    if (st == SNAP_OK)
        st = js_need_int(o, "output_length", &row.output_length, where, err);
    if (st != SNAP_OK)
        return st;
    row.time_s /= mooncake ? 1000 : 1;
    if (!optional(o, "prefix", -1, &row.prefix) ||
        !optional(o, "prefix_length", -1, &row.prefix_length))
        return refuse(rd, line, err, "'prefix' and 'prefix_length' must be whole numbers from 0");
    if (row.prefix_length > row.input_length)
        return refuse(rd, line, err, "'prefix_length' is larger than 'input_length'");
    st = read_hash_ids(rd, js_get_array(o, "hash_ids"), &row, line, err);
    return st == SNAP_OK ? add(rd, row, line, err) : st;
}

/* ---- CSV ---- */

static bool number_of(csv_field f, double *out) {
    return strlen(f.s) == f.n && text_to_double(f.s, out);
}

/* A whole number of tokens; some tables write it with ".0". */
static bool tokens_of(csv_field f, int64_t *out) {
    double x;
    if (!number_of(f, &x) || x < 0 || x > TRACE_MOST_TOKENS || x > floor(x))
        return false;
    *out = (int64_t)x;
    return true;
}

/* The digits of a number with exactly @n digits; -1 if there are others. */
static int digits(const char **s, int n) {
    int x = 0;
    for (int i = 0; i < n; i++, (*s)++) {
        if (**s < '0' || **s > '9')
            return -1;
        x = 10 * x + (**s - '0');
    }
    return x;
}

/* Days since 1970-01-01 of a date of the Gregorian calendar. */
static int64_t days_of(int64_t year, int month, int day) {
    int64_t y = month > 2 ? year : year - 1, era = y / 400, of_era = y - 400 * era;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return 146097 * era + 365 * of_era + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Seconds of "2023-11-16 18:17:03.9799600". "T" may replace the space. A zone, "+00:00" or "Z", is
 * ignored, because only differences of times count. */
static bool date_of(csv_field f, double *out) {
    const char *s = f.s;
    static const char kBetween[] = "-- ::";
    int part[6] = {0};
    for (int i = 0; i < 6; i++) {
        part[i] = digits(&s, i ? 2 : 4);
        if (part[i] < 0)
            return false;
        if (i < 5 && *s != kBetween[i] && !(i == 2 && *s == 'T'))
            return false;
        s += i < 5;
    }
    double fraction = 0;
    size_t n = *s == '.' ? 1 + strspn(s + 1, "0123456789") : 0;
    char text[24];
    if (n == 1 || n >= sizeof text - 1)
        return false;
    (void)snprintf(text, sizeof text, "0%.*s", (int)n, s);
    if (n && !text_to_double(text, &fraction))
        return false;
    s += n;
    bool zone = !*s || strcmp(s, "Z") == 0 || *s == '+' || *s == '-';
    bool valid = part[1] >= 1 && part[1] <= 12 && part[2] >= 1 && part[2] <= 31 && part[3] < 24 &&
                 part[4] < 60 && part[5] <= 60;
    int64_t days = valid ? days_of(part[0], part[1], part[2]) : 0;
    *out = (double)(days * 86400 + part[3] * 3600 + part[4] * 60 + part[5]) + fraction;
    return zone && valid && strlen(f.s) == f.n;
}

static snap_status take_row(reader *rd, const csv_field *f, bool has_time, double time_s, long line,
                            snap_err *err) {
    trace_row row = {.time_s = time_s, .prefix = -1, .prefix_length = -1};
    if (!has_time)
        return refuse(rd, line, err, "the first column is not a time");
    if (!tokens_of(f[1], &row.input_length) || !tokens_of(f[2], &row.output_length))
        return refuse(rd, line, err, "a number of tokens must be a whole number from 0 to %d",
                      (int)TRACE_MOST_TOKENS);
    return add(rd, row, line, err);
}

static snap_status read_burstgpt(void *ctx, const csv_field *f, size_t n, long line,
                                 snap_err *err) {
    (void)n;
    double time_s = 0;
    bool has_time = number_of(f[0], &time_s);
    return take_row(ctx, f, has_time, time_s, line, err);
}

static snap_status read_azure(void *ctx, const csv_field *f, size_t n, long line, snap_err *err) {
    (void)n;
    double time_s = 0;
    bool has_time = date_of(f[0], &time_s);
    return take_row(ctx, f, has_time, time_s, line, err);
}

static const char *const kBurstGpt[] = {"Timestamp", "Request tokens", "Response tokens"};
static const char *const kAzure[] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};

/* ---- the file ---- */

static int by_time(const void *a, const void *b) {
    const trace_row *x = a, *y = b;
    return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

/* Sorts by time, unless the rows are sorted: then requests of the same time keep their order. */
static void sort(trace *t) {
    bool sorted = true;
    for (size_t i = 1; i < t->n && sorted; i++)
        sorted = t->rows[i - 1].time_s <= t->rows[i].time_s;
    if (!sorted)
        qsort(t->rows, t->n, sizeof *t->rows, by_time);
    double start = t->n ? t->rows[0].time_s : 0;
    for (size_t i = 0; i < t->n; i++)
        t->rows[i].time_s -= start;
}

snap_status trace_parse(const char *text, size_t n, const char *name, trace *out, snap_err *err) {
    reader rd = {out, name};
    size_t mark = n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0, skip = mark;
    while (skip < n && strchr(" \t\r\n", text[skip]) && text[skip])
        skip++;
    const char *head = text + skip;
    const char *end = memchr(head, '\n', n - skip);
    size_t head_n = end ? (size_t)(end - head) : n - skip;
    snap_status st;
    *out = (trace){0};
    if (skip < n && *head == '{')
        st = js_each_line(text + mark, n - mark, name, read_line, &rd, err);
    else if (memmem(head, head_n, kAzure[1], strlen(kAzure[1])))
        st = csv_each_record(text, n, name, kAzure, 3, read_azure, &rd, err);
    else if (memmem(head, head_n, kBurstGpt[1], strlen(kBurstGpt[1])))
        st = csv_each_record(text, n, name, kBurstGpt, 3, read_burstgpt, &rd, err);
    else
        st = err_set(err, SNAP_E_INPUT,
                     "'%s' is no trace: its first line must be a JSON object with 'time' or "
                     "'timestamp', or the head of a CSV file with the columns of BurstGPT "
                     "(Timestamp, Request tokens, Response tokens) or of Azure (TIMESTAMP, "
                     "ContextTokens, GeneratedTokens)",
                     name);
    if (st == SNAP_OK && !out->n)
        st = err_set(err, SNAP_E_INPUT, "'%s' has no request with an answer", name);
    if (st == SNAP_OK)
        sort(out);
    return st;
}

snap_status trace_read(const char *path, trace *out, snap_err *err) {
    buf text = {.limit = kMostBytes};
    *out = (trace){0};
    snap_status st = fs_read_regular(path, &text, err);
    if (st == SNAP_OK)
        st = trace_parse(buf_str(&text), text.len, path, out, err);
    buf_release(&text);
    return st;
}

void trace_release(trace *t) {
    arena_release(&t->mem);
    *t = (trace){0};
}
