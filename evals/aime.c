/* aime.c - the American Invitational Mathematics Examination: 30 problems per year, answers 0..999.
 *
 * A row is {"prompt", "answer"}, and the prompt includes the instruction, or {"problem" or
 * "question", "answer"}, and the instruction is added here. The answer is an integer or a text with
 * one. Source of the wording: the evaluation scripts that Qwen published with QwQ. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "evals/integer.h"
#include "evals/task_rows.h"

enum { kGreatestAnswer = 999 };

static snap_status read_gold(const js *row, task_rows *rows, task_row *out, const char *where,
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
    return row_keep(rows, digits, &out->gold, where, err);
}

static snap_status read_row(const js *row, task_rows *rows, task_row *out, const char *where,
                            snap_err *err) {
    snap_status st;
    TRY(row_prompt(row, rows, "", kRowBoxed, out, where, err));
    TRY(read_gold(row, rows, out, where, err));
    TRY(row_id(row, rows, out, where, err));
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

/* Generated problems in the same form, for the demonstration and the tests. */
const task_spec task_synth_aime = {.name = "synth_aime",
                                   .title = "synthetic AIME",
                                   .files = {"synth_aime/problems.jsonl", "synth_aime.jsonl"},
                                   .samples = 4,
                                   .grader = &grader_aime,
                                   .read_row = read_row};
