#include "base/csv.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *at, *end;
    const char *name;
    long line;
    char *out; /* where the next byte of the current row goes; unquoting never makes the text
                  longer */
    csv_field *fields;
    size_t n;
} reader;

static snap_status error_at(const reader *r, long line, const char *reason, snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "%s:%ld: %s", r->name, line, reason);
}

static bool at_line_end(const reader *r) {
    return r->at == r->end || *r->at == '\n' ||
           (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n');
}

static void skip_line_end(reader *r) {
    if (r->at == r->end)
        return;
    r->at += *r->at == '\r' ? 2 : 1;
    r->line++;
}

static snap_status read_quoted(reader *r, snap_err *err) {
    long opened = r->line;
    for (r->at++;; r->at++) {
        if (r->at == r->end)
            return error_at(r, opened, "a quote is never closed", err);
        if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"'))
            break;
        r->at += *r->at == '"';
        r->line += *r->at == '\n';
        *r->out++ = *r->at;
    }
    r->at++;
    if (!at_line_end(r) && *r->at != ',')
        return error_at(r, r->line, "text after a closing quote", err);
    return SNAP_OK;
}

static snap_status read_plain(reader *r, snap_err *err) {
    for (; !at_line_end(r) && *r->at != ','; r->at++) {
        if (*r->at == '"')
            return error_at(r, r->line, "a quote inside an unquoted field", err);
        if (*r->at == '\r')
            return error_at(r, r->line, "a carriage return that does not end a line", err);
        *r->out++ = *r->at;
    }
    return SNAP_OK;
}

static snap_status read_field(reader *r, snap_err *err) {
    if (r->n == CSV_FIELDS_MAX)
        return err_set(err, SNAP_E_INPUT, "%s:%ld: more than %d fields", r->name, r->line,
                       CSV_FIELDS_MAX);
    const char *start = r->out;
    bool quoted = r->at < r->end && *r->at == '"';
    snap_status st = quoted ? read_quoted(r, err) : read_plain(r, err);
    r->fields[r->n++] = (csv_field){start, (size_t)(r->out - start)};
    *r->out++ = '\0'; /* takes the room of the comma or of the line end */
    return st;
}

static snap_status read_row(reader *r, snap_err *err) {
    snap_status st = SNAP_OK;
    r->n = 0;
    for (bool more = true; more && st == SNAP_OK;) {
        st = read_field(r, err);
        more = r->at < r->end && *r->at == ',';
        r->at += more;
    }
    return st;
}

static snap_status read_rows(reader *r, char *scratch, csv_row_fn fn, void *ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    size_t width = 0;
    while (r->at < r->end && st == SNAP_OK) {
        if (at_line_end(r)) {
            skip_line_end(r);
            continue;
        }
        long line = r->line;
        r->out = scratch;
        st = read_row(r, err);
        width = width ? width : r->n;
        if (st == SNAP_OK && r->n != width)
            st = err_set(err, SNAP_E_INPUT, "%s:%ld: %zu fields, the first row has %zu", r->name,
                         line, r->n, width);
        if (st == SNAP_OK)
            st = fn(ctx, r->fields, r->n, line, err);
        skip_line_end(r);
    }
    return st;
}

snap_status csv_each_row(const char *text, size_t n, const char *name, csv_row_fn fn, void *ctx,
                         snap_err *err) {
    static const char mark[] = "\xEF\xBB\xBF";
    size_t skip = n >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    char *scratch = malloc(n + 2); /* room for a NUL after the last field, which may have no line
                                      end */
    csv_field *fields = calloc(CSV_FIELDS_MAX, sizeof *fields);
    reader r = {.at = text + skip, .end = text + n, .name = name, .line = 1, .fields = fields};
    snap_status st = scratch && fields ? read_rows(&r, scratch, fn, ctx, err)
                                       : err_set(err, SNAP_E_NOMEM, "%s: out of memory", name);
    free(fields);
    free(scratch);
    return st;
}

/* ---- selection by column name ---- */

typedef struct {
    const char *name;
    const char *const *columns;
    size_t n;
    size_t *index;   /* [n] position of each selected column in a row */
    csv_field *kept; /* [n] */
    bool has_header;
    csv_row_fn fn;
    void *ctx;
} selection;

static snap_status read_header(selection *s, const csv_field *fields, size_t n, long line,
                               snap_err *err) {
    for (size_t c = 0; c < s->n; c++) {
        size_t found = 0;
        for (size_t i = 0; i < n; i++) {
            if (strlen(s->columns[c]) == fields[i].n &&
                memcmp(s->columns[c], fields[i].s, fields[i].n) == 0) {
                s->index[c] = i;
                found++;
            }
        }
        if (found != 1)
            return err_set(err, SNAP_E_INPUT, "%s:%ld: %s column '%s'", s->name, line,
                           found ? "more than one" : "no", s->columns[c]);
    }
    s->has_header = true;
    return SNAP_OK;
}

static snap_status select_row(void *ctx, const csv_field *fields, size_t n, long line,
                              snap_err *err) {
    selection *s = ctx;
    if (!s->has_header)
        return read_header(s, fields, n, line, err);
    for (size_t c = 0; c < s->n; c++)
        s->kept[c] = fields[s->index[c]];
    return s->fn(s->ctx, s->kept, s->n, line, err);
}

snap_status csv_each_record(const char *text, size_t n, const char *name,
                            const char *const *columns, size_t n_columns, csv_row_fn fn, void *ctx,
                            snap_err *err) {
    size_t index[CSV_FIELDS_MAX];
    csv_field kept[CSV_FIELDS_MAX];
    selection s = {.name = name,
                   .columns = columns,
                   .n = n_columns,
                   .index = index,
                   .kept = kept,
                   .fn = fn,
                   .ctx = ctx};
    if (n_columns > CSV_FIELDS_MAX)
        SNAP_BUG("more columns than a row may have");
    return csv_each_row(text, n, name, select_row, &s, err);
}
