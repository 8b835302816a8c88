/* math500.c - MATH-500: 500 problems of MATH (Hendrycks et al.), the test split of Lightman et al.
 *
 * Rows as in prm800k's test.jsonl and HuggingFaceH4/MATH-500: {"problem", "answer", "unique_id",
 * ...}; "answer" is LaTeX. */
#include "evals/task_rows.h"

static snap_status read_row(const js *row, task_rows *rows, task_row *out, const char *where,
                            snap_err *err) {
    snap_status st;
    TRY(row_prompt(row, rows, "", kRowBoxed, out, where, err));
    TRY(row_answer(row, rows, out, where, err));
    TRY(row_id(row, rows, out, where, err));
cleanup:
    return st;
}

const task_spec task_math500 = {.name = "math500",
                                .title = "MATH-500",
                                .files = {"math_500/test.jsonl", "math500/test.jsonl",
                                          "MATH-500/test.jsonl", "prm800k/math_splits/test.jsonl",
                                          "math500.jsonl", "test.jsonl"},
                                .samples = 1,
                                .grader = &grader_math_field,
                                .strict_grader = &grader_math_strict,
                                .read_row = read_row};
