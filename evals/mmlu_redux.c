/* mmlu_redux.c - MMLU-Redux 2.0: 57 subjects of MMLU with 100 manually checked questions each.
 *
 * Rows as in edinburgh-dawg/mmlu-redux-2.0: {"question", "choices": [4], "answer": 0..3,
 * "error_type", "correct_answer"}. A row is used if its error_type is "ok", or if it is
 * "wrong_groundtruth" and correct_answer names a choice, which then is the gold. The other rows
 * are left out, because they have no single right answer. The data may be one file per subject, as
 * published, or one file for all. The wording and the choice of rows follow ZeroEval, whose figures
 * are quoted in reports about models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/extract.h"
#include "evals/task_rows.h"

enum { kChoices = 4, kSubjectLimit = 16 << 20 };

static const char *const subjects[] = {"abstract_algebra",
                                       "anatomy",
                                       "astronomy",
                                       "business_ethics",
                                       "clinical_knowledge",
                                       "college_biology",
                                       "college_chemistry",
                                       "college_computer_science",
                                       "college_mathematics",
                                       "college_medicine",
                                       "college_physics",
                                       "computer_security",
                                       "conceptual_physics",
                                       "econometrics",
                                       "electrical_engineering",
                                       "elementary_mathematics",
                                       "formal_logic",
                                       "global_facts",
                                       "high_school_biology",
                                       "high_school_chemistry",
                                       "high_school_computer_science",
                                       "high_school_european_history",
                                       "high_school_geography",
                                       "high_school_government_and_politics",
                                       "high_school_macroeconomics",
                                       "high_school_mathematics",
                                       "high_school_microeconomics",
                                       "high_school_physics",
                                       "high_school_psychology",
                                       "high_school_statistics",
                                       "high_school_us_history",
                                       "high_school_world_history",
                                       "human_aging",
                                       "human_sexuality",
                                       "international_law",
                                       "jurisprudence",
                                       "logical_fallacies",
                                       "machine_learning",
                                       "management",
                                       "marketing",
                                       "medical_genetics",
                                       "miscellaneous",
                                       "moral_disputes",
                                       "moral_scenarios",
                                       "nutrition",
                                       "philosophy",
                                       "prehistory",
                                       "professional_accounting",
                                       "professional_law",
                                       "professional_medicine",
                                       "professional_psychology",
                                       "public_relations",
                                       "security_studies",
                                       "sociology",
                                       "us_foreign_policy",
                                       "virology",
                                       "world_religions"};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

/* ---- rows ---- */

static snap_status word_prompt(const js *row, buf *out, const char *where, snap_err *err) {
    const char *question = row_text(row, (const char *const[]){"question", NULL});
    const js *choices = js_get_array(row, "choices");
    if (!question || js_len(choices) != kChoices)
        return err_set(err, SNAP_E_INPUT, "%s: needs a text 'question' and %d 'choices'", where,
                       kChoices);
    (void)buf_printf(out, "\n## Question: \n\n%s\n\n## Choices:\n\n", question);
    for (size_t i = 0; i < kChoices; i++) {
        const char *choice = js_str(js_at(choices, i));
        if (!choice)
            return err_set(err, SNAP_E_INPUT, "%s: choice %zu must be text", where, i + 1);
        (void)buf_printf(out, "- (%c) %s\n", (char)('A' + i), choice);
    }
    (void)buf_puts(out, "\n\n## Instruction \n\nPlease answer this question by first reasoning and "
                        "then selecting the correct choice. \nPresent your reasoning and solution "
                        "in the following json format. \nPlease show your choice in the `answer` "
                        "field with only the choice letter, e.g.,`\"answer\": \"C\"`.\n\n```json\n"
                        "{\n    \"reasoning\": \"___\",\n    \"answer\": \"___\"\n}\n```\n");
    return buf_check(out, where, err);
}

/* The choice that correct_answer names by letter, number or text; -1 if it names none. */
static int corrected(const js *row) {
    const js *number = js_get(row, "correct_answer"), *choices = js_get_array(row, "choices");
    const char *text = js_str(number);
    if (js_is_int(number) && js_int(number) >= 0 && js_int(number) < kChoices)
        return (int)js_int(number);
    if (!text)
        return -1;
    span s = span_trim((span){text, strlen(text)});
    if (s.n == 1 && s.s[0] >= 'A' && s.s[0] < 'A' + kChoices)
        return s.s[0] - 'A';
    if (s.n == 1 && s.s[0] >= '0' && s.s[0] < '0' + kChoices)
        return s.s[0] - '0';
    for (size_t i = 0; i < kChoices; i++)
        if (s.n && text_equal(js_str(js_at(choices, i)), text))
            return (int)i;
    return -1;
}

/* Sets *out to the right choice; -1 if the question has no single right one. */
static snap_status right_choice(const js *row, int *out, const char *where, snap_err *err) {
    const char *type;
    int64_t answer;
    snap_status st;
    *out = -1;
    TRY(js_need_str(row, "error_type", &type, where, err));
    if (strcmp(type, "wrong_groundtruth") == 0)
        *out = corrected(row);
    if (strcmp(type, "ok") != 0)
        return SNAP_OK;
    TRY(js_need_int(row, "answer", &answer, where, err));
    if (answer < 0 || answer >= kChoices)
        TRY(err_set(err, SNAP_E_INPUT, "%s: 'answer' must be 0..%d", where, kChoices - 1));
    *out = (int)answer;
cleanup:
    return st;
}

/* Sets an id such as "anatomy/17" (subject and row number) if the row names its subject, else the
 * id that row_id() finds. */
static snap_status name_row(const js *row, task_rows *r, task_row *out, const char *where,
                            snap_err *err) {
    char id[200];
    const char *subject = row_text(row, (const char *const[]){"subject", "config", NULL});
    if (!subject)
        return row_id(row, r, out, where, err);
    (void)snprintf(id, sizeof id, "%.120s/%zu", subject, r->set->rows);
    return row_keep(r, id, &out->id, where, err);
}

static snap_status read_row(const js *row, task_rows *r, task_row *out, const char *where,
                            snap_err *err) {
    buf prompt = {0};
    int choice;
    snap_status st;
    TRY(word_prompt(row, &prompt, where, err));
    TRY(right_choice(row, &choice, where, err));
    out->skip = choice < 0;
    if (out->skip)
        goto cleanup;
    const char gold[2] = {(char)('A' + choice), '\0'};
    TRY(row_keep(r, buf_str(&prompt), &out->prompt, where, err));
    TRY(row_keep(r, gold, &out->gold, where, err));
    TRY(name_row(row, r, out, where, err));
cleanup:
    buf_release(&prompt);
    return st;
}

/* ---- the files ---- */

typedef struct {
    task_rows *rows;
    const char *path, *subject; /* subject: NULL if one file has all subjects */
} reading;

static snap_status read_line(void *ctx, js *object, long line, snap_err *err) {
    reading *f = ctx;
    task_row row = {0};
    char where[300], id[100];
    (void)snprintf(where, sizeof where, "%.240s:%ld", f->path, line);
    if (!task_rows_next(f->rows))
        return SNAP_OK;
    snap_status st = read_row(object, f->rows, &row, where, err);
    if (st != SNAP_OK || row.skip)
        return st;
    (void)snprintf(id, sizeof id, "%s/%ld", f->subject ? f->subject : "", line);
    if (f->subject)
        st = row_keep(f->rows, id, &row.id, where, err);
    return st == SNAP_OK ? task_rows_add(f->rows, &row, where, err) : st;
}

static snap_status read_one(reading *f, buf *text, snap_err *err) {
    snap_status st;
    buf_clear(text);
    TRY(fs_read(f->path, text, err));
    if (f->rows->set->sha256[0])
        TRY(task_rows_digest(f->rows, f->rows->set->sha256, err));
    TRY(hash_bytes(buf_str(text), text->len, f->rows->set->sha256, err));
    TRY(js_each_line(buf_str(text), text->len, f->path, read_line, f, err));
cleanup:
    return st;
}

/* Reads the files of all subjects in alphabetical order. A missing file is an error. */
static snap_status read_subjects(task_rows *r, size_t folder, buf *text, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < SUBJECTS && st == SNAP_OK; i++) {
        buf path = {0};
        (void)buf_append(&path, r->set->file, folder);
        (void)buf_printf(&path, "%s.jsonl", subjects[i]);
        reading f = {.rows = r, .path = buf_str(&path), .subject = subjects[i]};
        st = buf_check(&path, "a path", err);
        if (st == SNAP_OK)
            st = read_one(&f, text, err);
        buf_release(&path);
    }
    return st;
}

static snap_status load(task_rows *r, snap_err *err) {
    buf text = {.limit = kSubjectLimit};
    const char *slash = strrchr(r->set->file, '/'), *name = slash ? slash + 1 : r->set->file;
    size_t folder = slash ? (size_t)(name - r->set->file) : 0;
    bool by_subject = r->in_folder && strcmp(name, "abstract_algebra.jsonl") == 0;
    reading f = {.rows = r, .path = r->set->file};
    snap_status st = by_subject ? read_subjects(r, folder, &text, err) : read_one(&f, &text, err);
    buf_release(&text);
    return st;
}

const task_spec task_mmlu_redux = {
    .name = "mmlu_redux",
    .title = "MMLU-Redux",
    .files = {"mmlu_redux/test.jsonl", "mmlu_redux.jsonl", "mmlu_redux/abstract_algebra.jsonl"},
    .samples = 1,
    .chance = 0.25,
    .grader = &grader_letter_field,
    .read_row = read_row,
    .load = load};
