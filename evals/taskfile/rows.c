#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/fs.h"
#include "base/parquet.h"
#include "base/text.h"
#include "evals/code/code_rows.h"
#include "evals/integer.h"
#include "evals/taskfile/parts.h"

/* The largest size in bytes of a data file of lines, and of one that is a JSON list or Parquet. The
 * second is also the limit of all values of a Parquet file. It is larger because LongBench v2 is
 * one JSON list of 465 MB, and MRCR's problems with two needles, which are one Parquet file, have
 * texts of more than 700 MB. */
enum { kFileLimit = 256 << 20, kListLimit = 1 << 30 };

/* Largest size of all prompts and system messages of a set. A small file can ask for far more: each
 * row repeats the template, and the template may repeat a field. */
static const size_t kPromptsLimit = (size_t)2 << 30;

/* ---- conditions on rows ---- */

static bool has_value(const js *values, const js *value) {
    if (!js_is_array(values))
        return js_equal(values, value);
    for (size_t i = 0; i < js_len(values); i++)
        if (js_equal(js_at(values, i), value))
            return true;
    return false;
}

/* Sets *in to whether the row belongs to the set. */
static snap_status check_where(const task_file *f, const js *row, bool *in, const char *where,
                               snap_err *err) {
    *in = true;
    for (size_t i = 0; i < f->n_where; i++) {
        const where_part *w = &f->where[i];
        const js *value = row_field(row, w->field);
        if (!value)
            return row_lacks(row, (const char *const[]){w->field, NULL}, where, err);
        bool holds = w->values
                         ? has_value(w->values, value)
                         : js_is_num(value) && js_num(value) >= w->from && js_num(value) <= w->to;
        *in = *in && holds;
    }
    return SNAP_OK;
}

/* ---- ids and golds ---- */

static const char *const kUsualIds[] = {"id", "ID", "problem_idx", "unique_id", NULL};

/* The row's id. If the task names no field for it and the row has no usual one, it is the number of
 * the row. */
static snap_status make_id(const task_file *f, const js *row, task_rows *r, const char **out,
                           const char *where, snap_err *err) {
    const char *const *names = f->n_ids ? f->ids : kUsualIds;
    char number[TEMPLATE_NUMBER_MAX];
    const char *text = NULL;
    for (size_t i = 0; names[i] && !text; i++)
        text = value_text(row_field(row, names[i]), number);
    if (!text && f->n_ids)
        return row_lacks(row, names, where, err);
    if (!text)
        (void)snprintf(number, sizeof number, "%zu", r->set->rows);
    return row_keep(r, text ? text : number, out, where, err);
}

/* Checks the bounds of an integer and replaces it by its digits. */
static snap_status check_range(const task_file *f, buf *gold, const char *where, snap_err *err) {
    char digits[INTEGER_MAX];
    int64_t value;
    if (!integer_parse((span){buf_str(gold), gold->len}, digits) || !text_to_int(digits, &value) ||
        value < f->from || value > f->to)
        return err_set(err, SNAP_E_INPUT, "%s: the answer must be an integer %lld..%lld", where,
                       (long long)f->from, (long long)f->to);
    buf_clear(gold);
    (void)buf_puts(gold, digits);
    return buf_check(gold, where, err);
}

snap_status gold_make(const task_file *f, const js *row, const shown_choices *shown, buf *out,
                      const char *where, snap_err *err) {
    const template_values values = {.row = row, .choices = shown->list};
    char letter[2];
    snap_status st = SNAP_OK;
    if (!f->answer)
        return SNAP_OK;
    TRY(template_render(f->answer, &values, out, where, err));
    if (f->choices.given && f->grader == GRADER_LETTER) {
        TRY(choices_letter(f, row, shown, buf_str(out), letter, where, err));
        buf_clear(out);
        (void)buf_puts(out, letter);
        TRY(buf_check(out, where, err));
    }
    if (f->ranged)
        TRY(check_range(f, out, where, err));
cleanup:
    return st;
}

/* Sets the row's gold in the form that its grader expects. */
static snap_status set_gold(const task_file *f, const js *row, const shown_choices *shown,
                            task_rows *r, task_row *out, const char *where, snap_err *err) {
    buf gold = {0}, judged = {0};
    code_tests tests = {0};
    snap_status st;
    if (f->spec.read_tests) {
        TRY(file_read_tests(&f->spec, row, &tests, where, err));
        TRY(row_keep(r, r->gold, &out->gold, where, err));
        goto cleanup;
    }
    TRY(gold_make(f, row, shown, &gold, where, err));
    if (f->grader == GRADER_JUDGE) { /* a category (the task's name), a newline, the reference: see
                                       evals/arena.h */
        (void)buf_printf(&judged, "%s\n%s", f->spec.name, buf_str(&gold));
        TRY(buf_check(&judged, where, err));
    }
    TRY(row_keep(r, buf_str(judged.len ? &judged : &gold), &out->gold, where, err));
cleanup:
    tests_release(&tests);
    buf_release(&judged);
    buf_release(&gold);
    return st;
}

/* ---- prompts ---- */

static snap_status count_bytes(task_rows *r, size_t n, const char *where, snap_err *err) {
    file_state *state = r->own;
    state->prompt_bytes += n;
    if (state->prompt_bytes > kPromptsLimit)
        return err_set(err, SNAP_E_INPUT, "%s: the prompts exceed %zu GiB", where,
                       kPromptsLimit >> 30);
    return SNAP_OK;
}

static snap_status keep_rendered(const template *t, const template_values *values, task_rows *r,
                                 const char **out, const char *where, snap_err *err) {
    buf text = {0};
    snap_status st;
    TRY(template_render(t, values, &text, where, err));
    if (text_is_blank(buf_str(&text), text.len))
        TRY(err_set(err, SNAP_E_INPUT, "%s: the prompt is empty", where));
    TRY(count_bytes(r, text.len, where, err));
    TRY(row_keep(r, buf_str(&text), out, where, err));
cleanup:
    buf_release(&text);
    return st;
}

/* The first of the task's prompts that fits the row. A single prompt is not checked: rendering it
 * reports what is missing. */
static snap_status choose_prompt(const task_file *f, const template_values *values,
                                 const template **out, const char *where, snap_err *err) {
    const char *lacking[TASK_PROMPTS * TEMPLATE_NAMES + 1];
    size_t n = 0;
    for (size_t i = 0; i < f->n_prompts; i++) {
        const char *const *names = template_lacks(f->prompts[i], values);
        *out = f->prompts[i];
        if (!names)
            return SNAP_OK;
        while (*names)
            lacking[n++] = *names++;
    }
    lacking[n] = NULL;
    return f->n_prompts == 1 ? SNAP_OK : row_lacks(values->row, lacking, where, err);
}

static snap_status set_prompt(const task_file *f, const js *row, const shown_choices *shown,
                              task_rows *r, task_row *out, const char *where, snap_err *err) {
    const template *prompt = NULL;
    buf examples = {0};
    snap_status st;
    TRY(examples_render(f, r->own, row, out->id, r->options->seed, &examples, where, err));
    const template_values values = {.row = row,
                                    .choices = shown->list,
                                    .examples = f->examples.given ? buf_str(&examples) : NULL};
    TRY(choose_prompt(f, &values, &prompt, where, err));
    TRY(keep_rendered(prompt, &values, r, &out->prompt, where, err));
    if (f->system)
        TRY(keep_rendered(f->system, &values, r, &out->system, where, err));
cleanup:
    buf_release(&examples);
    return st;
}

/* ---- rows ---- */

snap_status file_read_row(const js *row, task_rows *r, task_row *out, const char *where,
                          snap_err *err) {
    const task_file *f = file_of(r);
    shown_choices shown = {0};
    bool in;
    snap_status st;
    TRY(check_where(f, row, &in, where, err));
    out->skip = !in;
    if (!in)
        goto cleanup;
    TRY(make_id(f, row, r, &out->id, where, err));
    TRY(choices_make(f, row, out->id, r->options->seed, &shown, where, err));
    TRY(set_prompt(f, row, &shown, r, out, where, err));
    TRY(set_gold(f, row, &shown, r, out, where, err));
    TRY(turns_set(f, row, r, out, where, err));
cleanup:
    js_free(shown.list);
    return st;
}

/* Files of rows past the limit are read too, so that the set's digest does not depend on the
 * limit. */
snap_status file_add_row(task_rows *r, js *row, const char *where, snap_err *err) {
    task_row out = {0};
    snap_status st = field_files_add(r, row, where, err);
    if (st == SNAP_OK)
        st = turns_split(file_of(r), row, where, err);
    if (st != SNAP_OK || !task_rows_next(r))
        return st;
    st = file_read_row(row, r, &out, where, err);
    return st == SNAP_OK && !out.skip ? task_rows_add(r, &out, where, err) : st;
}

static snap_status add_row(task_rows *r, js *row, const char *path, long line, snap_err *err) {
    char where[300];
    (void)snprintf(where, sizeof where, "%.240s:%ld", path, line);
    return file_add_row(r, row, where, err);
}

static snap_status read_line(void *ctx, js *row, long line, snap_err *err) {
    task_rows *r = ctx;
    return add_row(r, row, r->set->file, line, err);
}

/* ---- CSV: the first row has the names of the fields ---- */

typedef struct {
    task_rows *rows;
    const char **names; /* in the set's arena; NULL before the first row */
} table;

static snap_status bad_field(const table *t, long line, size_t i, snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "%s:%ld: field %zu must be UTF-8 without NUL",
                   t->rows->set->file, line, i + 1);
}

static snap_status read_names(table *t, const csv_field *fields, size_t n, long line,
                              snap_err *err) {
    arena *mem = &t->rows->set->mem;
    t->names = arena_alloc(mem, n, sizeof *t->names);
    for (size_t i = 0; t->names && i < n; i++) {
        if (!text_is_utf8(fields[i].s, fields[i].n) || strlen(fields[i].s) != fields[i].n)
            return bad_field(t, line, i, err);
        for (size_t k = 0; k < i; k++)
            if (t->names[k] && strcmp(t->names[k], fields[i].s) == 0)
                return err_set(err, SNAP_E_INPUT, "%s:%ld: two columns have the same name",
                               t->rows->set->file, line);
        t->names[i] = arena_strdup(mem, fields[i].s);
        if (!t->names[i])
            break;
    }
    return t->names && t->names[n - 1]
               ? SNAP_OK
               : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", t->rows->set->file);
}

static snap_status read_record(void *ctx, const csv_field *fields, size_t n, long line,
                               snap_err *err) {
    table *t = ctx;
    if (!t->names)
        return read_names(t, fields, n, line, err);
    js *row = js_new_object();
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n && st == SNAP_OK; i++) {
        if (!text_is_utf8(fields[i].s, fields[i].n) || strlen(fields[i].s) != fields[i].n)
            st = bad_field(t, line, i, err);
        else if (!row || !js_set_str(row, t->names[i], fields[i].s))
            st = err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", t->rows->set->file);
    }
    if (st == SNAP_OK)
        st = add_row(t->rows, row, t->rows->set->file, line, err);
    js_free(row);
    return st;
}

/* ---- the file ---- */

/* The rows of a file that is one JSON array. They are numbered from 1. */
static snap_status each_element(const buf *bytes, const char *path, js_line_fn fn, void *ctx,
                                snap_err *err) {
    js *all = js_parse(buf_str(bytes), bytes->len, path, err);
    snap_status st = SNAP_OK;
    if (!all)
        return err && err->code != SNAP_OK ? err->code : SNAP_E_INPUT;
    if (!js_is_array(all))
        st = err_set(err, SNAP_E_INPUT, "%s: must be a list of rows (JSON lines end in .jsonl)",
                     path);
    for (size_t i = 0; i < js_len(all) && st == SNAP_OK; i++)
        st = js_is_object(js_at(all, i))
                 ? fn(ctx, js_at(all, i), (long)i + 1, err)
                 : err_set(err, SNAP_E_INPUT, "%s:%zu: a row must be an object", path, i + 1);
    js_free(all);
    return st;
}

snap_status data_each_row(const buf *bytes, const char *path, js_line_fn fn, void *ctx,
                          snap_err *err) {
    enum { kMostValues = 1 << 26 };
    const parquet_limits limits = {.values = kMostValues, .bytes = kListLimit};
    if (text_ends(path, ".json"))
        return each_element(bytes, path, fn, ctx, err);
    if (text_ends(path, ".parquet"))
        return parquet_each_row(buf_str(bytes), bytes->len, path, limits, fn, ctx, err);
    return js_each_line(buf_str(bytes), bytes->len, path, fn, ctx, err);
}

/* True if the file is one list, or Parquet. */
static bool is_whole(const char *path) {
    return text_ends(path, ".json") || text_ends(path, ".parquet");
}

static snap_status read_text(task_rows *r, snap_err *err) {
    task_set *set = r->set;
    buf text = {.limit = is_whole(set->file) ? kListLimit : kFileLimit};
    snap_status st;
    TRY(fs_read(set->file, &text, err));
    TRY(hash_bytes(buf_str(&text), text.len, set->sha256, err));
    if (text_ends(set->file, ".csv")) {
        table t = {.rows = r};
        TRY(csv_each_row(buf_str(&text), text.len, set->file, read_record, &t, err));
    } else {
        TRY(data_each_row(&text, set->file, read_line, r, err));
    }
cleanup:
    buf_release(&text);
    return st;
}

snap_status file_load(task_rows *r, snap_err *err) {
    file_state state = {0};
    r->own = &state;
    snap_status st = examples_load(r, &state, err);
    if (st == SNAP_OK && file_of(r)->generator.given)
        st = generated_load(r, err);
    else if (st == SNAP_OK)
        st = file_of(r)->spec.read_tests ? code_rows_load(r, err) : read_text(r, err);
    js_free(state.rows);
    r->own = NULL;
    return st;
}
