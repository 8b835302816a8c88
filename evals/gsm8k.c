/* gsm8k.c - Grade School Math: the gold is the integer after "####" at the end of a worked answer.
 *
 * Rows as in OpenAI's test.jsonl: {"question", "answer"}. */
#include "evals/task_rows.h"

static snap_status read_row(const js *row, task_rows *rows, task_row *out, const char *where,
                            snap_err *err) {
    snap_status st;
    TRY(row_prompt(row, rows, "", kRowBoxed, out, where, err));
    TRY(row_answer(row, rows, out, where, err));
    out->gold = grade_gsm8k_gold(out->gold);
    TRY(row_id(row, rows, out, where, err));
cleanup:
    return st;
}

const task_spec task_gsm8k = {
    .name = "gsm8k",
    .title = "GSM8K",
    .files = {"gsm8k/test.jsonl", "grade_school_math/data/test.jsonl", "gsm8k.jsonl", "test.jsonl"},
    .samples = 1,
    .grader = &grader_gsm8k,
    .read_row = read_row};
