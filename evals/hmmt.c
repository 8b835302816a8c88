/* hmmt.c - the Harvard-MIT Mathematics Tournament of February 2025: 30 problems, LaTeX answers.
 *
 * Two layouts are supported: JSON lines with {"problem_idx", "problem", "answer"} as in
 * MathArena/hmmt_feb_2025, and MathArena's folder, which has answers.csv with "id" and "answer" and
 * a file problems/<id>.tex for each problem. The instruction and its place before the problem are
 * MathArena's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/fs.h"
#include "base/text.h"
#include "evals/task_rows.h"

enum { kProblemLimit = 1 << 20, kIdDigits = 6 };

static const char kInstruction[] = "Put your final answer within \\boxed{}.\n\n";

static snap_status read_row(const js *row, task_rows *rows, task_row *out, const char *where,
                            snap_err *err) {
    snap_status st;
    TRY(row_prompt(row, rows, kInstruction, "", out, where, err));
    TRY(row_answer(row, rows, out, where, err));
    TRY(row_id(row, rows, out, where, err));
cleanup:
    return st;
}

/* True for 1 to kIdDigits digits. The id becomes part of a file name. */
static bool is_number(const csv_field *f) {
    return f->n > 0 && f->n <= kIdDigits && strspn(f->s, "0123456789") == f->n;
}

/* Appends problems/<id>.tex, from the folder of answers.csv, to @text. */
static snap_status read_problem(const char *answers, const char *id, buf *text, snap_err *err) {
    const char *slash = strrchr(answers, '/');
    buf path = {0};
    (void)buf_append(&path, answers, slash ? (size_t)(slash - answers) + 1 : 0);
    (void)buf_printf(&path, "problems/%s.tex", id);
    snap_status st = buf_check(&path, "a path", err);
    if (st == SNAP_OK)
        st = fs_read(buf_str(&path), text, err);
    if (st == SNAP_OK &&
        (strlen(buf_str(text)) != text->len || text_is_blank(buf_str(text), text->len) ||
         !text_is_utf8(buf_str(text), text->len)))
        st = err_set(err, SNAP_E_INPUT, "%s: the file must hold the text of a problem",
                     buf_str(&path));
    buf_release(&path);
    return st;
}

static void trim_end(buf *text) {
    while (text->len && text_is_blank(text->data + text->len - 1, 1))
        text->data[--text->len] = '\0';
}

static snap_status add_problem(task_rows *r, const csv_field *id, const csv_field *answer,
                               const buf *text, const char *where, snap_err *err) {
    snap_status st;
    task_row row = {0};
    buf prompt = {0};
    (void)buf_printf(&prompt, "%s%s", kInstruction, buf_str(text));
    TRY(buf_check(&prompt, where, err));
    TRY(row_keep(r, buf_str(&prompt), &row.prompt, where, err));
    TRY(row_keep(r, id->s, &row.id, where, err));
    TRY(row_keep(r, answer->s, &row.gold, where, err));
    TRY(task_rows_add(r, &row, where, err));
cleanup:
    buf_release(&prompt);
    return st;
}

static snap_status check_fields(const csv_field *id, const csv_field *answer, const char *where,
                                snap_err *err) {
    if (!is_number(id))
        return err_set(err, SNAP_E_INPUT, "%s: 'id' must be a number of at most %d digits", where,
                       kIdDigits);
    if (strlen(answer->s) != answer->n || text_is_blank(answer->s, answer->n))
        return err_set(err, SNAP_E_INPUT, "%s: 'answer' must be text", where);
    return SNAP_OK;
}

/* Problems past the limit are read too, so that the set's digest does not depend on the limit. */
static snap_status read_record(void *ctx, const csv_field *fields, size_t n, long line,
                               snap_err *err) {
    task_rows *r = ctx;
    char where[300];
    buf text = {.limit = kProblemLimit};
    snap_status st;
    (void)n;
    (void)snprintf(where, sizeof where, "%.240s:%ld", r->set->file, line);
    TRY(check_fields(&fields[0], &fields[1], where, err));
    TRY(read_problem(r->set->file, fields[0].s, &text, err));
    TRY(task_rows_also(r, &text, err));
    trim_end(&text);
    if (task_rows_next(r))
        TRY(add_problem(r, &fields[0], &fields[1], &text, where, err));
cleanup:
    buf_release(&text);
    return st;
}

static snap_status read_file(task_rows *r, const buf *text, snap_err *err) {
    static const char *const columns[] = {"id", "answer"};
    return csv_each_record(buf_str(text), text->len, r->set->file, columns, 2, read_record, r, err);
}

const task_spec task_hmmt_feb25 = {.name = "hmmt_feb25",
                                   .title = "HMMT February 2025",
                                   .files = {"hmmt_feb_2025/answers.csv", "hmmt_feb25/answers.csv",
                                             "hmmt_feb_2025.jsonl", "hmmt_feb25.jsonl",
                                             "answers.csv"},
                                   .samples = 32,
                                   .grader = &grader_math_field,
                                   .strict_grader = &grader_math_strict,
                                   .read_row = read_row,
                                   .read_file = read_file};
