#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/rng.h"
#include "base/text.h"
#include "evals/taskfile/parts.h"

enum { kFileLimit = 256 << 20, kRows = 20000 };

/* ---- the file ---- */

typedef struct {
    js *rows;
    const char *path, *match;
} reading;

static snap_status keep_row(void *ctx, js *row, long line, snap_err *err) {
    reading *f = ctx;
    char where[300];
    (void)snprintf(where, sizeof where, "%.240s:%ld", f->path, line);
    if (f->match && !row_field(row, f->match))
        return row_lacks(row, (const char *const[]){f->match, NULL}, where, err);
    if (js_len(f->rows) == kRows)
        return err_set(err, SNAP_E_INPUT, "%s: more than %d examples", where, kRows);
    return js_push_new(f->rows, js_copy(row))
               ? SNAP_OK
               : err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
}

static snap_status read_file(task_rows *r, file_state *state, const char *path, snap_err *err) {
    buf text = {.limit = kFileLimit};
    reading f = {.rows = state->rows, .path = path, .match = file_of(r)->examples.match};
    snap_status st;
    TRY(fs_read_regular(path, &text, err));
    TRY(task_rows_also(r, &text, err));
    TRY(data_each_row(&text, path, keep_row, &f, err));
cleanup:
    buf_release(&text);
    return st;
}

snap_status examples_load(task_rows *r, file_state *state, snap_err *err) {
    const examples_part *e = &file_of(r)->examples;
    const char *file = r->set->file, *slash = strrchr(file, '/');
    buf path = {0};
    snap_status st = SNAP_OK;
    if (!e->given)
        return SNAP_OK;
    state->rows = e->rows ? js_copy(e->rows) : js_new_array();
    if (!state->rows)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the examples");
    if (!e->data || (e->optional && !r->in_folder))
        return SNAP_OK;
    (void)buf_append(&path, file, slash ? (size_t)(slash - file) + 1 : 0);
    (void)buf_puts(&path, e->data);
    st = buf_check(&path, "a path", err);
    if (st == SNAP_OK && !(e->optional && !fs_exists(buf_str(&path))))
        st = read_file(r, state, buf_str(&path), err);
    buf_release(&path);
    return st;
}

/* ---- the examples of a problem ---- */

static bool same_value(const js *a, const js *b, const char *field) {
    return js_equal(row_field(a, field), row_field(b, field));
}

/* Writes the indices of the examples that may be shown with a row into @out: those that agree with
 * it in the field `match`, if there is one, without the row itself. Returns their number. @out has
 * room for all examples. */
static size_t candidates(const examples_part *e, const js *rows, const js *row, size_t *out) {
    size_t n = 0;
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *example = js_at(rows, i);
        if ((!e->match || same_value(example, row, e->match)) && !js_equal(example, row))
            out[n++] = i;
    }
    return n;
}

/* Moves @count randomly drawn elements to the front. */
static void draw(uint64_t seed, const char *id, size_t *list, size_t n, size_t count) {
    rng r = rng_make(seed, rng_stream_of(id) ^ rng_stream_of("examples"));
    for (size_t i = 0; i < count && i + 1 < n; i++) {
        size_t j = i + rng_below(&r, (uint32_t)(n - i)), was = list[i];
        list[i] = list[j];
        list[j] = was;
    }
}

static snap_status render_one(const task_file *f, const js *example, size_t number, uint64_t seed,
                              buf *out, snap_err *err) {
    shown_choices shown = {0};
    buf gold = {0}, text = {0};
    char where[200], id[40];
    snap_status st;
    (void)snprintf(where, sizeof where, "%.120s: example %zu",
                   f->examples.data ? f->examples.data : f->spec.name, number + 1);
    (void)snprintf(id, sizeof id, "example %zu", number);
    TRY(choices_make(f, example, id, seed, &shown, where, err));
    if (template_uses(f->examples.text, "gold"))
        TRY(gold_make(f, example, &shown, &gold, where, err));
    const template_values values = {
        .row = example, .choices = shown.list, .gold = gold.len ? buf_str(&gold) : NULL};
    TRY(template_render(f->examples.text, &values, &text, where, err));
    (void)buf_append(out, buf_str(&text), text.len);
cleanup:
    js_free(shown.list);
    buf_release(&gold);
    buf_release(&text);
    return st;
}

snap_status examples_render(const task_file *f, const file_state *state, const js *row,
                            const char *id, uint64_t seed, buf *out, const char *where,
                            snap_err *err) {
    const examples_part *e = &f->examples;
    snap_status st = SNAP_OK;
    size_t all = js_len(state->rows), count = (size_t)e->count;
    if (!e->given || !all)
        return SNAP_OK;
    if (e->match && !row_field(row, e->match))
        return row_lacks(row, (const char *const[]){e->match, NULL}, where, err);
    size_t *list = calloc(all, sizeof *list);
    if (!list)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    size_t n = candidates(e, state->rows, row, list);
    if (count > n)
        count = n;
    if (e->random)
        draw(seed, id, list, n, count);
    out->limit = TEMPLATE_OUTPUT_MAX;
    for (size_t i = 0; i < count && st == SNAP_OK; i++)
        st = render_one(f, js_at(state->rows, list[i]), list[i], seed, out, err);
    free(list);
    if (st == SNAP_OK && out->too_long)
        return err_set(err, SNAP_E_INPUT, "%s: examples of more than %d MiB", where,
                       TEMPLATE_OUTPUT_MAX >> 20);
    return st == SNAP_OK ? buf_check(out, where, err) : st;
}
