/* humaneval.c - OpenAI's HumanEval: 164 Python functions to complete from their signature and
 * docstring.
 *
 * Rows as in HumanEval.jsonl.gz: {"task_id", "prompt", "entry_point", "canonical_solution",
 * "test"}. A response may repeat the signature or continue after it. If it does not define the
 * function, it is taken as the function's body. A response is correct if it passes the row's
 * assertions, and then fails changed ones (judge_unit.c says how). */
#include <stdio.h>
#include <string.h>

#include "evals/code/code_rows.h"

/* Reads a text that every row must have. */
static snap_status need(const js *row, const char *key, const char **out, const char *where,
                        snap_err *err) {
    *out = row_text(row, (const char *const[]){key, NULL});
    return *out ? SNAP_OK : err_set(err, SNAP_E_INPUT, "%s: needs a text '%s'", where, key);
}

static bool is_name(const char *s) {
    for (; *s; s++)
        if (!((*s | 0x20) >= 'a' && (*s | 0x20) <= 'z') && !(*s >= '0' && *s <= '9') && *s != '_')
            return false;
    return true;
}

static snap_status read_tests(const js *row, code_tests *out, const char *where, snap_err *err) {
    const char *prompt, *test, *entry;
    buf after = {0};
    snap_status st;
    *out = (code_tests){0};
    TRY(need(row, "prompt", &prompt, where, err));
    TRY(need(row, "test", &test, where, err));
    TRY(need(row, "entry_point", &entry, where, err));
    if (!is_name(entry))
        TRY(err_set(err, SNAP_E_INPUT, "%s: 'entry_point' must be a name", where));
    (void)buf_printf(&after, "%s\n\ncheck(%s)\n", test, entry);
    TRY(buf_check(&after, where, err));
    out->n = 1;
    out->before = arena_strdup(&out->mem, prompt);
    out->after = arena_strdup(&out->mem, buf_str(&after));
    out->entry = arena_strdup(&out->mem, entry);
    if (!out->before || !out->after || !out->entry)
        TRY(err_set(err, SNAP_E_NOMEM, "%s: out of memory", where));
cleanup:
    buf_release(&after);
    return st;
}

static snap_status read_row(const js *row, task_rows *r, task_row *out, const char *where,
                            snap_err *err) {
    const char *id, *prompt;
    code_tests tests = {0};
    buf text = {0};
    snap_status st;
    TRY(need(row, "task_id", &id, where, err));
    TRY(read_tests(row, &tests, where, err));
    prompt = tests.before;
    (void)buf_printf(&text,
                     "Complete the following Python function. Answer with the whole function in a "
                     "block of code.\n\n```python\n%s%s```\n",
                     prompt, prompt[strlen(prompt) - 1] == '\n' ? "" : "\n");
    TRY(buf_check(&text, where, err));
    TRY(row_keep(r, id, &out->id, where, err));
    TRY(row_keep(r, r->gold, &out->gold, where, err));
    TRY(row_keep(r, buf_str(&text), &out->prompt, where, err));
cleanup:
    tests_release(&tests);
    buf_release(&text);
    return st;
}

const task_spec task_humaneval = {.name = "humaneval",
                                  .title = "HumanEval",
                                  .files = {"humaneval/HumanEval.jsonl.gz",
                                            "humaneval/HumanEval.jsonl", "HumanEval.jsonl.gz",
                                            "HumanEval.jsonl", "humaneval.jsonl"},
                                  .samples = 1,
                                  .grader = &grader_assertions,
                                  .read_row = read_row,
                                  .load = code_rows_load,
                                  .read_tests = read_tests};
