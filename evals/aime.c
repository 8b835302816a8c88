/* aime.c - the American Invitational Mathematics Examination: 30 problems a year, answers 0..999.
 *
 * Rows come in two forms: {"prompt", "answer": int}, the instruction included in the prompt, and
 * {"problem" or "question", "answer": int or "int"}, to which it is added here. Source of the
 * wording: the evaluation scripts that Qwen publish with QwQ. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "evals/integer.h"
#include "evals/task.h"

enum { kGreatestAnswer = 999 };

static const char kInstruction[] =
    "\nPlease reason step by step, and put your final answer within \\boxed{}.";

/* The first of the named keys whose value is text without NULs. */
static const char *text_of(const js *row, const char *const *keys) {
    for (; *keys; keys++) {
        size_t n;
        const char *s = js_get_strn(row, *keys, &n);
        if (s && strlen(s) == n && !text_is_blank(s, n))
            return s;
    }
    return NULL;
}

static const char *with_instruction(arena *mem, const char *problem) {
    buf text = {0};
    bool ok = buf_puts(&text, problem) && buf_puts(&text, kInstruction);
    const char *kept = ok ? arena_strdup(mem, buf_str(&text)) : NULL;
    buf_release(&text);
    return kept;
}

static snap_status read_prompt(const js *row, arena *mem, task_row *out, const char *where,
                               snap_err *err) {
    const char *prompt = text_of(row, (const char *const[]){"prompt", NULL});
    const char *problem = text_of(row, (const char *const[]){"problem", "question", NULL});
    if (!prompt && !problem)
        return err_set(err, SNAP_E_INPUT, "%s: needs a text 'prompt' or 'problem'", where);
    out->prompt = prompt ? arena_strdup(mem, prompt) : with_instruction(mem, problem);
    return out->prompt ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
}

static snap_status read_gold(const js *row, arena *mem, task_row *out, const char *where,
                             snap_err *err) {
    const js *answer = js_get(row, "answer");
    int64_t value = js_is_int(answer) ? js_int(answer) : -1;
    char digits[INTEGER_MAX];
    const char *s = js_str(answer);
    if (s && integer_parse((span){s, strlen(s)}, digits) && !text_to_int(digits, &value))
        value = -1;
    if (value < 0 || value > kGreatestAnswer)
        return err_set(err, SNAP_E_INPUT, "%s: 'answer' must be an integer 0..%d", where,
                       kGreatestAnswer);
    (void)snprintf(digits, sizeof digits, "%lld", (long long)value);
    out->gold = arena_strdup(mem, digits);
    return out->gold ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
}

static snap_status read_id(const js *row, arena *mem, task_row *out, const char *where,
                           snap_err *err) {
    const char *text =
        text_of(row, (const char *const[]){"id", "ID", "problem_idx", "unique_id", NULL});
    const js *number = js_get(row, "id") ? js_get(row, "id") : js_get(row, "problem_idx");
    char digits[24];
    if (!text && js_is_int(number)) {
        (void)snprintf(digits, sizeof digits, "%lld", (long long)js_int(number));
        text = digits;
    }
    if (text && !(out->id = arena_strdup(mem, text)))
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    return SNAP_OK;
}

static snap_status read_row(const js *row, arena *mem, task_row *out, const char *where,
                            snap_err *err) {
    snap_status st;
    TRY(read_prompt(row, mem, out, where, err));
    TRY(read_gold(row, mem, out, where, err));
    TRY(read_id(row, mem, out, where, err));
cleanup:
    return st;
}

const task_spec task_aime24 = {.name = "aime24",
                               .title = "AIME 2024",
                               .files = {"aime_2024/aime24.jsonl", "aime24.jsonl"},
                               .samples = 32,
                               .grader = &grader_aime,
                               .read_row = read_row};

const task_spec task_aime25 = {.name = "aime25",
                               .title = "AIME 2025",
                               .files = {"aime_2025/aime25.jsonl", "aime25.jsonl"},
                               .samples = 32,
                               .grader = &grader_aime,
                               .read_row = read_row};

/* Problems of our own in the same form, for the demonstration and the tests. */
const task_spec task_synth_aime = {.name = "synth_aime",
                                   .title = "synthetic AIME",
                                   .files = {"synth_aime/problems.jsonl", "synth_aime.jsonl"},
                                   .samples = 4,
                                   .grader = &grader_aime,
                                   .read_row = read_row};
