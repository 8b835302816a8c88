/* task_synth.c - generated problems as tasks, with rows as `snapmla synth` writes them.
 *
 * From a row, {"id", "prompt", "answer"} are read, or {"id", "prompt", "inputs", "outputs"} if the
 * answer is a program. The task synth_aime is in aime.c. */
#include "evals/code/code_rows.h"

static snap_status read_row(const js *row, task_rows *rows, task_row *out, const char *where,
                            snap_err *err) {
    snap_status st;
    TRY(row_prompt(row, rows, "", "", out, where, err));
    TRY(row_answer(row, rows, out, where, err));
    TRY(row_id(row, rows, out, where, err));
cleanup:
    return st;
}

static snap_status read_code_row(const js *row, task_rows *rows, task_row *out, const char *where,
                                 snap_err *err) {
    snap_status st;
    code_tests tests = {0};
    TRY(tests_read(row, &tests, where, err));
    TRY(row_prompt(row, rows, "", "", out, where, err));
    TRY(row_keep(rows, rows->gold, &out->gold, where, err));
    TRY(row_id(row, rows, out, where, err));
cleanup:
    tests_release(&tests);
    return st;
}

const task_spec task_synth_math = {
    .name = "synth_math",
    .title = "synthetic MATH",
    .files = {"synth_math/problems.jsonl", "synth_heldout/synth_math.jsonl", "synth_math.jsonl"},
    .samples = 4,
    .grader = &grader_math_field,
    .strict_grader = &grader_math_strict,
    .read_row = read_row};

const task_spec task_synth_gpqa = {
    .name = "synth_gpqa",
    .title = "synthetic GPQA",
    .files = {"synth_gpqa/problems.jsonl", "synth_heldout/synth_gpqa.jsonl", "synth_gpqa.jsonl"},
    .samples = 4,
    .grader = &grader_letter,
    .read_row = read_row};

const task_spec task_synth_code = {
    .name = "synth_code",
    .title = "synthetic code",
    .files = {"synth_code/problems.jsonl", "synth_heldout/synth_code.jsonl", "synth_code.jsonl"},
    .samples = 4,
    .grader = &grader_code_real,
    .lcb_grader = &grader_code_lcb,
    .read_row = read_code_row,
    .load = code_rows_load,
    .read_tests = tests_read};
