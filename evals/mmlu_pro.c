/* mmlu_pro.c - MMLU-Pro: 12,032 questions from 14 fields with up to ten options.
 *
 * Rows as in TIGER-Lab/MMLU-Pro: {"question_id", "question", "options": [..10], "answer": "A".."J",
 * "answer_index", "category", "cot_content"}. Options "N/A" are skipped. If the user names a folder
 * and validation.jsonl is in the folder of the test file, up to five worked examples of the
 * question's field precede the question, as the authors ask. Otherwise there are no examples.
 * Wording: the authors' evaluate_from_api.py. Their script replaces an answer that cannot be found
 * by a random guess; here it counts as not correct. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/task_rows.h"

enum { kOptions = 10, kExamples = 5, kFields = 64, kFileLimit = 256 << 20 };

static const char kThink[] = "Let's think step by step.";

/* The worked examples of one field as prompt text. */
typedef struct {
    const char *name;
    buf text;
    int n;
} field;

typedef struct {
    task_rows *rows;
    const char *path;
    field fields[kFields];
    size_t n;
} reading;

/* ---- prompts ---- */

/* Writes the question and its options, one per line: "A. ..". *count: number of options written. */
static snap_status word_question(const js *row, buf *out, int *count, const char *where,
                                 snap_err *err) {
    const char *question = row_text(row, (const char *const[]){"question", NULL});
    const js *options = js_get_array(row, "options");
    *count = 0;
    if (!question || js_len(options) < 2 || js_len(options) > kOptions)
        return err_set(err, SNAP_E_INPUT, "%s: needs a text 'question' and 2 to %d 'options'",
                       where, kOptions);
    (void)buf_printf(out, "Question: %s\nOptions: ", question);
    for (size_t i = 0; i < js_len(options); i++) {
        const char *option = js_str(js_at(options, i));
        if (!option)
            return err_set(err, SNAP_E_INPUT, "%s: option %zu must be text", where, i + 1);
        if (strcmp(option, "N/A") != 0)
            (void)buf_printf(out, "%c. %s\n", (char)('A' + (*count)++), option);
    }
    return buf_check(out, where, err);
}

static field *field_of(reading *f, const char *name) {
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->fields[i].name, name) == 0)
            return &f->fields[i];
    return NULL;
}

static snap_status word_prompt(reading *f, const js *row, buf *out, int *options, const char *where,
                               snap_err *err) {
    const char *category;
    snap_status st;
    TRY(js_need_str(row, "category", &category, where, err));
    const field *examples = field_of(f, category);
    (void)buf_printf(out,
                     "The following are multiple choice questions (with answers) about %s. Think "
                     "step by step and then output the answer in the format of \"The answer is "
                     "(X)\" at the end.\n\n%s",
                     category, examples ? buf_str(&examples->text) : "");
    TRY(word_question(row, out, options, where, err));
    (void)buf_printf(out, "Answer: %s\n\n", kThink);
    TRY(buf_check(out, where, err));
cleanup:
    return st;
}

/* ---- rows ---- */

static snap_status read_question(reading *f, const js *row, task_row *out, const char *where,
                                 snap_err *err) {
    buf prompt = {0};
    int options;
    char id[24];
    const char *answer = js_get_str(row, "answer");
    const js *number = js_get(row, "question_id");
    snap_status st;
    TRY(word_prompt(f, row, &prompt, &options, where, err));
    if (!answer || answer[0] < 'A' || answer[0] >= 'A' + options || answer[1])
        TRY(err_set(err, SNAP_E_INPUT, "%s: 'answer' must be the letter of an option, A..%c", where,
                    'A' + (options ? options - 1 : 0)));
    TRY(row_keep(f->rows, buf_str(&prompt), &out->prompt, where, err));
    TRY(row_keep(f->rows, answer, &out->gold, where, err));
    TRY(row_id(row, f->rows, out, where, err));
    (void)snprintf(id, sizeof id, "%lld", (long long)js_int(number));
    if (!out->id && js_is_int(number))
        TRY(row_keep(f->rows, id, &out->id, where, err));
cleanup:
    buf_release(&prompt);
    return st;
}

static snap_status read_line(void *ctx, js *object, long line, snap_err *err) {
    reading *f = ctx;
    task_row row = {0};
    char where[300];
    if (!task_rows_next(f->rows))
        return SNAP_OK;
    (void)snprintf(where, sizeof where, "%.240s:%ld", f->path, line);
    snap_status st = read_question(f, object, &row, where, err);
    return st == SNAP_OK ? task_rows_add(f->rows, &row, where, err) : st;
}

/* ---- examples ---- */

/* Finds a field or adds it. NULL, with the error set, if there are too many fields or memory is
 * exhausted. */
static field *need_field(reading *f, const char *name, const char *where, snap_err *err) {
    field *found = field_of(f, name);
    if (found)
        return found;
    if (f->n == kFields) {
        (void)err_set(err, SNAP_E_INPUT, "%s: more than %d categories", where, kFields);
        return NULL;
    }
    found = &f->fields[f->n];
    if (row_keep(f->rows, name, &found->name, where, err) != SNAP_OK)
        return NULL;
    f->n++;
    return found;
}

static snap_status read_example(void *ctx, js *row, long line, snap_err *err) {
    reading *f = ctx;
    char where[300];
    const char *category, *worked;
    int options;
    snap_status st;
    (void)snprintf(where, sizeof where, "%.240s:%ld", f->path, line);
    TRY(js_need_str(row, "category", &category, where, err));
    TRY(js_need_str(row, "cot_content", &worked, where, err));
    field *to = need_field(f, category, where, err);
    if (!to)
        return err ? err->code : SNAP_E_INPUT;
    if (to->n == kExamples)
        return SNAP_OK;
    TRY(word_question(row, &to->text, &options, where, err));
    (void)buf_printf(&to->text, "Answer: %s\n\n", text_starts(worked, "A: ") ? worked + 3 : worked);
    TRY(buf_check(&to->text, where, err));
    to->n++;
cleanup:
    return st;
}

/* Path of validation.jsonl in the folder of the test file, in the arena; NULL if there is none or
 * if the user named the file itself. */
static const char *examples_path(const task_rows *r) {
    const char *file = r->set->file, *slash = strrchr(file, '/');
    buf path = {0};
    (void)buf_append(&path, file, slash ? (size_t)(slash - file) + 1 : 0);
    (void)buf_puts(&path, "validation.jsonl");
    const char *kept = !path.failed && r->in_folder && fs_exists(buf_str(&path))
                           ? arena_strdup(&r->set->mem, buf_str(&path))
                           : NULL;
    buf_release(&path);
    return kept;
}

/* ---- the files ---- */

static snap_status load(task_rows *r, snap_err *err) {
    buf text = {.limit = kFileLimit};
    reading *f = calloc(1, sizeof *f);
    snap_status st = SNAP_OK;
    if (!f)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", r->set->file);
    *f = (reading){.rows = r, .path = examples_path(r)};
    if (f->path) {
        TRY(fs_read(f->path, &text, err));
        TRY(task_rows_also(r, &text, err));
        TRY(js_each_line(buf_str(&text), text.len, f->path, read_example, f, err));
        buf_clear(&text);
    }
    f->path = r->set->file;
    TRY(fs_read(f->path, &text, err));
    TRY(hash_bytes(buf_str(&text), text.len, r->set->sha256, err));
    TRY(js_each_line(buf_str(&text), text.len, f->path, read_line, f, err));
cleanup:
    for (size_t i = 0; i < kFields; i++)
        buf_release(&f->fields[i].text);
    free(f);
    buf_release(&text);
    return st;
}

const task_spec task_mmlu_pro = {
    .name = "mmlu_pro",
    .title = "MMLU-Pro",
    .files = {"mmlu_pro/test.jsonl", "MMLU-Pro/test.jsonl", "mmlu_pro.jsonl"},
    .samples = 1,
    .grader = &grader_ten_letters,
    .load = load};
