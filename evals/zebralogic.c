/* zebralogic.c - ZebraLogic: 1,000 grid puzzles ("who owns the zebra?") with answers as JSON.
 *
 * Rows as in WildEval/ZebraLogic and allenai/ZebraLogicBench: {"id", "size", "puzzle", "solution":
 * {"header": ["House", ..], "rows": [["1", ..], ..]}}. The public copy of ZebraLogicBench has no
 * solutions. It is refused, and the message says where the solutions are. The wording and its
 * worked example are ZeroEval's template ZEBRA_GRID. */
#include <stdio.h>
#include <string.h>

#include "evals/task_rows.h"

static const char kBefore[] =
    "\n# Example Puzzle \n\n"
    "There are 3 houses, numbered 1 to 3 from left to right, as seen from across the street. Each "
    "house is occupied by a different person. Each house has a unique attribute for each of the "
    "following characteristics:\n"
    " - Each person has a unique name: `Peter`, `Eric`, `Arnold`.\n"
    " - Each person has a unique favorite drink: `tea`, `water`, `milk`\n\n"
    "## Clues for the Example Puzzle\n\n"
    "1. Peter is in the second house.\n"
    "2. Arnold is directly left of the one who only drinks water.\n"
    "3. The one who only drinks water is directly left of the person who likes milk.\n\n"
    "## Answer to the Example Puzzle\n\n"
    "{\n    \"reasoning\": \"Given Clue 1, we know Peter is in House 2. According to Clue 2, "
    "Arnold "
    "is directly left of the one who only drinks water. The person in House 3 cannot be on the "
    "left "
    "of anyone, so Arnold must be in House 1. Thus, Peter drinks water, and Eric lives in House 3. "
    "Then, according to Clue 3, Eric drinks milk. Therefore, Arnold drinks tea.\",\n"
    "    \"solution\": {\n"
    "        \"House 1\": {\n            \"Name\": \"Arnold\",\n            \"Drink\": \"tea\"\n"
    "        },\n"
    "        \"House 2\": {\n            \"Name\": \"Peter\",\n            \"Drink\": \"water\"\n"
    "        },\n"
    "        \"House 3\": {\n            \"Name\": \"Eric\",\n            \"Drink\": \"milk\"\n"
    "        }\n    }\n}\n\n"
    "# Puzzle to Solve \n\n";

static const char kAfter[] = "\n\n\n# Instruction\n\nNow please solve the above puzzle. Present "
                             "your reasoning and solution in the following json format:\n\n";

/* Appends a JSON string with its quotes. */
static void put_quoted(buf *out, const js *s) {
    if (js_write(s, JS_COMPACT, out, NULL) != SNAP_OK)
        out->failed = true;
}

/* Appends the form that the model fills in, with the columns in the order of the header.
 * grade_check_gold() has accepted header and rows. */
static void put_form(const js *solution, buf *out) {
    const js *header = js_get_array(solution, "header");
    size_t houses = js_len(js_get_array(solution, "rows")), columns = js_len(header);
    (void)buf_puts(out, "{\n    \"reasoning\": \"___\",\n    \"solution\": {");
    for (size_t i = 0; i < houses; i++) {
        (void)buf_printf(out, "%s\n        \"House %zu\": {", i ? "," : "", i + 1);
        for (size_t k = 1; k < columns; k++) {
            (void)buf_printf(out, "%s\n            ", k > 1 ? "," : "");
            put_quoted(out, js_at(header, k));
            (void)buf_puts(out, ": \"___\"");
        }
        (void)buf_puts(out, "\n        }");
    }
    (void)buf_puts(out, "\n    }\n}\n\n");
}

static snap_status word_prompt(const js *row, task_rows *r, task_row *out, const char *where,
                               snap_err *err) {
    buf text = {0};
    const char *puzzle = row_text(row, (const char *const[]){"puzzle", NULL});
    if (!puzzle)
        return err_set(err, SNAP_E_INPUT, "%s: needs a text 'puzzle'", where);
    (void)buf_printf(&text, "%s%s%s", kBefore, puzzle, kAfter);
    put_form(js_get_object(row, "solution"), &text);
    snap_status st = buf_check(&text, where, err);
    if (st == SNAP_OK)
        st = row_keep(r, buf_str(&text), &out->prompt, where, err);
    buf_release(&text);
    return st;
}

static snap_status read_row(const js *row, task_rows *r, task_row *out, const char *where,
                            snap_err *err) {
    buf gold = {0};
    js *solution;
    snap_err why = {0};
    snap_status st;
    TRY(js_need_object(row, "solution", &solution, where, err));
    TRY(js_write(solution, JS_COMPACT, &gold, err));
    if (grade_check_gold(&grader_zebra, buf_str(&gold), &why) != SNAP_OK)
        TRY(err_set(err, SNAP_E_INPUT, "%s: %s", where, why.text));
    TRY(word_prompt(row, r, out, where, err));
    TRY(row_keep(r, buf_str(&gold), &out->gold, where, err));
    TRY(row_id(row, r, out, where, err));
cleanup:
    buf_release(&gold);
    return st;
}

static js *gold_of(const js *row) {
    const js *solution = js_get_object(row, "solution");
    return solution ? js_copy(solution) : NULL;
}

const task_spec task_zebralogic = {
    .name = "zebralogic",
    .title = "ZebraLogic",
    .files = {"zebralogic/test.jsonl", "ZebraLogic/test.jsonl", "zebralogic.jsonl"},
    .samples = 1,
    .grader = &grader_zebra,
    .read_row = read_row,
    .gold_of = gold_of};
