/* beyond_aime.c - BeyondAIME: 100 problems harder than AIME's. The answers are integers and may
 * exceed 999.
 *
 * Rows as in ByteDance-Seed/BeyondAIME: {"problem", "answer": integer}. The wording is from its
 * dataset card. */
#include "evals/task_rows.h"

static snap_status read_row(const js *row, task_rows *rows, task_row *out, const char *where,
                            snap_err *err) {
    snap_status st;
    TRY(row_prompt(row, rows, "", "\nRemember to put your final answer within \\boxed{}.", out,
                   where, err));
    TRY(row_answer(row, rows, out, where, err));
    TRY(row_id(row, rows, out, where, err));
cleanup:
    return st;
}

const task_spec task_beyond_aime = {
    .name = "beyond_aime",
    .title = "BeyondAIME",
    .files = {"beyond_aime/test.jsonl", "BeyondAIME/test.jsonl", "beyond_aime.jsonl"},
    .samples = 10,
    .grader = &grader_aime,
    .read_row = read_row};
