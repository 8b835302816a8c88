/* gpqa.c - GPQA Diamond: 198 multiple-choice questions with four options, written such that a web
 * search does not find the answer.
 *
 * The authors ask that no example is published in plain text. So the published archive is read in
 * memory, with the password that the authors publish unless the user gives another one. Questions
 * and options go into prompts, but not into error messages. A CSV file with the same columns and
 * JSON lines with the same keys are also supported.
 *
 * The order of the options depends only on the seed and the Record ID. The gold is tracked by
 * position, because two records have options with equal text. Wording: OpenAI's simple-evals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/zip.h"
#include "evals/extract.h"
#include "evals/task_rows.h"

enum { kOptions = 4, kTableLimit = 64 << 20 };

static const char kMember[] = "gpqa_diamond.csv";
static const char kPublishedPassword[] = "deserted-untie-orchid";

/* COL_OPTIONS, the first of the options, is the correct one. */
enum { COL_ID, COL_QUESTION, COL_OPTIONS, COLUMNS = COL_OPTIONS + kOptions };
static const char *const columns[COLUMNS] = {"Record ID",          "Question",
                                             "Correct Answer",     "Incorrect Answer 1",
                                             "Incorrect Answer 2", "Incorrect Answer 3"};

/* order[i]: the option that is shown at position i (Fisher-Yates shuffle). */
static void shuffle(uint64_t seed, const char *id, int order[kOptions]) {
    rng r = rng_make(seed, rng_stream_of(id));
    for (int i = 0; i < kOptions; i++)
        order[i] = i;
    for (int i = kOptions - 1; i > 0; i--) {
        int j = (int)rng_below(&r, (uint32_t)i + 1), was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
}

static void put(buf *out, csv_field f) {
    span s = span_trim((span){f.s, f.n});
    (void)buf_append(out, s.s, s.n);
}

static snap_status word_prompt(const csv_field f[COLUMNS], const int order[kOptions], buf *out,
                               const char *where, snap_err *err) {
    (void)buf_puts(out, "Answer the following multiple choice question. The last line of your "
                        "response should be of the following format: 'Answer: $LETTER' (without "
                        "quotes) where LETTER is one of ABCD. Think step by step before "
                        "answering.\n\n");
    put(out, f[COL_QUESTION]);
    (void)buf_puts(out, "\n");
    for (int i = 0; i < kOptions; i++) {
        (void)buf_printf(out, "\n%c) ", 'A' + i);
        put(out, f[COL_OPTIONS + order[i]]);
    }
    return buf_check(out, where, err);
}

static snap_status check_fields(const csv_field f[COLUMNS], const char *where, snap_err *err) {
    for (int i = 0; i < COLUMNS; i++)
        if (strlen(f[i].s) != f[i].n || text_is_blank(f[i].s, f[i].n) ||
            !text_is_utf8(f[i].s, f[i].n))
            return err_set(err, SNAP_E_INPUT, "%s: '%s' must be text", where, columns[i]);
    return SNAP_OK;
}

static snap_status make_row(const csv_field f[COLUMNS], task_rows *r, task_row *out,
                            const char *where, snap_err *err) {
    snap_status st;
    buf prompt = {0};
    int order[kOptions], place = 0;
    char letter[2] = "";
    TRY(check_fields(f, where, err));
    TRY(row_keep(r, f[COL_ID].s, &out->id, where, err));
    shuffle(r->options->seed, out->id, order);
    while (order[place] != 0)
        place++;
    letter[0] = (char)('A' + place);
    TRY(word_prompt(f, order, &prompt, where, err));
    TRY(row_keep(r, buf_str(&prompt), &out->prompt, where, err));
    TRY(row_keep(r, letter, &out->gold, where, err));
cleanup:
    buf_release(&prompt);
    return st;
}

static snap_status read_row(const js *row, task_rows *r, task_row *out, const char *where,
                            snap_err *err) {
    csv_field f[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        f[i].s = js_get_strn(row, columns[i], &f[i].n);
        if (!f[i].s)
            return err_set(err, SNAP_E_INPUT, "%s: '%s' must be text", where, columns[i]);
    }
    return make_row(f, r, out, where, err);
}

static snap_status read_record(void *ctx, const csv_field *fields, size_t n, long line,
                               snap_err *err) {
    task_rows *r = ctx;
    task_row row = {0};
    char where[300];
    (void)n;
    if (!task_rows_next(r))
        return SNAP_OK;
    (void)snprintf(where, sizeof where, "%.240s:%ld", r->set->file, line);
    snap_status st = make_row(fields, r, &row, where, err);
    return st == SNAP_OK ? task_rows_add(r, &row, where, err) : st;
}

static snap_status read_table(task_rows *r, const buf *table, snap_err *err) {
    return csv_each_record(buf_str(table), table->len, r->set->file, columns, COLUMNS, read_record,
                           r, err);
}

static snap_status read_file(task_rows *r, const buf *file, snap_err *err) {
    const char *password = r->options->gpqa_password;
    buf table = {.limit = kTableLimit};
    if (file->len < 2 || memcmp(file->data, "PK", 2) != 0)
        return read_table(r, file, err);
    snap_status st = zip_member_read(file->data, file->len, r->set->file, kMember,
                                     password ? password : kPublishedPassword, &table, err);
    if (st == SNAP_OK)
        st = read_table(r, &table, err);
    buf_release(&table);
    return st;
}

const task_spec task_gpqa_diamond = {.name = "gpqa_diamond",
                                     .title = "GPQA Diamond",
                                     .files = {"gpqa_diamond/dataset.zip", "gpqa/dataset.zip",
                                               "dataset.zip", "gpqa_diamond/gpqa_diamond.csv",
                                               "gpqa_diamond.csv", "gpqa_diamond.jsonl"},
                                     .samples = 16,
                                     .chance = 0.25,
                                     .confidential = true,
                                     .grader = &grader_letter,
                                     .read_row = read_row,
                                     .read_file = read_file};
