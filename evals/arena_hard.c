/* arena_hard.c - reads Arena-Hard's questions and the answers of its baseline models.
 *
 * Rows of question.jsonl as in arena-hard-auto, v0.1 and v2.0: {"uid" or "question_id", "category",
 * "prompt" or "turns": [{"content"}]}. The folder model_answer/ beside it has the baselines'
 * answers: {"uid", "messages": [.., {"content": {"answer"}}]} or {"question_id", "choices":
 * [{"turns": [{"content"}]}]}. If the folder has no answers, the other arms are compared with the
 * first arm. If it has some, every question must have an answer by the baseline model of its
 * category. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/task_rows.h"

enum { kFileLimit = 256 << 20 };

/* The baseline model of each category. model_of() takes "hard_prompt" for other categories. */
static const struct {
    const char *category, *model;
} baselines[] = {
    {"arena-hard-v0.1", "gpt-4-0314"},
    {"hard_prompt", "o3-mini-2025-01-31"},
    {"coding", "o3-mini-2025-01-31"},
    {"math", "o3-mini-2025-01-31"},
    {"creative_writing", "gemini-2.0-flash-001"},
};
enum { BASELINES = sizeof baselines / sizeof *baselines };

static const char *model_of(const char *category) {
    for (size_t i = 0; i < BASELINES; i++)
        if (strcmp(baselines[i].category, category) == 0)
            return baselines[i].model;
    return baselines[1].model;
}

typedef struct {
    task_rows *rows;
    const char *path;
    js *answers; /* {"MODEL\nUID": answer}; NULL: no baseline answers */
    const char *model;
} reading;

/* ---- baseline answers ---- */

static const char *id_of(const js *row) {
    return row_text(row, (const char *const[]){"uid", "question_id", NULL});
}

/* The answer in a row: in the last of its "messages", or in the first turn of the first of its
 * "choices"; NULL if there is none. */
static const char *answer_of(const js *row) {
    const js *messages = js_get_array(row, "messages");
    const js *turns = js_get_array(js_at(js_get_array(row, "choices"), 0), "turns");
    const js *last = js_at(messages, js_len(messages) - 1);
    const char *text = js_get_str(js_get_object(last, "content"), "answer");
    return text ? text : js_get_str(js_at(turns, 0), "content");
}

static snap_status read_answer(void *ctx, js *row, long line, snap_err *err) {
    reading *f = ctx;
    const char *id = id_of(row), *answer = answer_of(row);
    if (!id || !answer)
        return err_set(err, SNAP_E_INPUT, "%s:%ld: needs a text 'uid' and an answer", f->path,
                       line);
    buf key = {0};
    (void)buf_printf(&key, "%s\n%s", f->model, id);
    bool ok = !key.failed && js_set_str(f->answers, buf_str(&key), answer);
    buf_release(&key);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", f->path);
}

/* Reads model_answer/MODEL.jsonl from the folder of the questions. A missing file is not an
 * error. */
static snap_status read_model(reading *f, const char *model, snap_err *err) {
    const char *file = f->rows->set->file, *slash = strrchr(file, '/');
    buf path = {0}, text = {.limit = kFileLimit};
    snap_status st = SNAP_OK;
    (void)buf_append(&path, file, slash ? (size_t)(slash - file) + 1 : 0);
    (void)buf_printf(&path, "model_answer/%s.jsonl", model);
    TRY(buf_check(&path, "a path", err));
    if (!fs_exists(buf_str(&path)))
        goto cleanup;
    f->path = buf_str(&path);
    f->model = model;
    if (!f->answers && !(f->answers = js_new_object()))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", f->path));
    TRY(fs_read(f->path, &text, err));
    TRY(task_rows_also(f->rows, &text, err));
    TRY(js_each_line(buf_str(&text), text.len, f->path, read_answer, f, err));
cleanup:
    buf_release(&text);
    buf_release(&path);
    return st;
}

static snap_status read_models(reading *f, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < BASELINES && st == SNAP_OK; i++)
        if (i == 0 || strcmp(baselines[i].model, baselines[i - 1].model) != 0)
            st = read_model(f, baselines[i].model, err);
    return st;
}

/* ---- questions ---- */

static const char *prompt_of(const js *row) {
    const char *text = row_text(row, (const char *const[]){"prompt", NULL});
    return text ? text
                : row_text(js_at(js_get_array(row, "turns"), 0),
                           (const char *const[]){"content", NULL});
}

/* Stores the gold in the form that evals/arena.h expects: the category, a newline, the baseline's
 * answer. */
static snap_status keep_gold(reading *f, const char *id, const char *category, task_row *out,
                             const char *where, snap_err *err) {
    buf key = {0}, gold = {0};
    const char *model = model_of(category);
    snap_status st;
    (void)buf_printf(&key, "%s\n%s", model, id);
    const char *answer = f->answers ? js_get_str(f->answers, buf_str(&key)) : NULL;
    if (f->answers && !answer)
        TRY(err_set(err, SNAP_E_INPUT, "%s: model_answer/%s.jsonl has no answer for this question",
                    where, model));
    (void)buf_printf(&gold, "%s\n%s", category, answer ? answer : "");
    TRY(buf_check(&gold, where, err));
    TRY(row_keep(f->rows, buf_str(&gold), &out->gold, where, err));
cleanup:
    buf_release(&gold);
    buf_release(&key);
    return st;
}

static snap_status read_question(void *ctx, js *row, long line, snap_err *err) {
    reading *f = ctx;
    char where[300];
    task_row out = {0};
    snap_status st = SNAP_OK;
    if (!task_rows_next(f->rows))
        return SNAP_OK;
    (void)snprintf(where, sizeof where, "%.240s:%ld", f->path, line);
    const char *id = id_of(row), *prompt = prompt_of(row);
    const char *category = row_text(row, (const char *const[]){"category", NULL});
    if (!id || !prompt)
        TRY(err_set(err, SNAP_E_INPUT, "%s: needs a text 'uid' and 'prompt'", where));
    if (category && strchr(category, '\n'))
        TRY(err_set(err, SNAP_E_INPUT, "%s: 'category' must be one line", where));
    TRY(row_keep(f->rows, id, &out.id, where, err));
    TRY(row_keep(f->rows, prompt, &out.prompt, where, err));
    TRY(keep_gold(f, id, category ? category : "arena-hard-v0.1", &out, where, err));
    TRY(task_rows_add(f->rows, &out, where, err));
cleanup:
    return st;
}

static snap_status load(task_rows *r, snap_err *err) {
    reading f = {.rows = r};
    buf text = {.limit = kFileLimit};
    snap_status st;
    TRY(read_models(&f, err));
    f.path = r->set->file;
    TRY(fs_read(f.path, &text, err));
    TRY(hash_bytes(buf_str(&text), text.len, r->set->sha256, err));
    TRY(js_each_line(buf_str(&text), text.len, f.path, read_question, &f, err));
cleanup:
    js_free(f.answers);
    buf_release(&text);
    return st;
}

static snap_status check_gold(const char *gold, snap_err *err) {
    return strchr(gold, '\n') ? SNAP_OK
                              : err_set(err, SNAP_E_INPUT,
                                        "the gold must be a category, a newline "
                                        "and a reference");
}

const grader grader_arena = {
    .id = "arena-1", .check_gold = check_gold, .by_model = true, .metrics = {"win_rate"}};

const task_spec task_arena_hard = {.name = "arena_hard",
                                   .title = "Arena-Hard",
                                   .files = {"arena_hard/question.jsonl",
                                             "arena-hard-v2.0/question.jsonl",
                                             "arena-hard-v0.1/question.jsonl", "question.jsonl"},
                                   .samples = 1,
                                   .grader = &grader_arena,
                                   .load = load};
