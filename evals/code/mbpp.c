/* mbpp.c - Google's Mostly Basic Python Problems: a short description and, in most problems, three
 * assertions.
 *
 * Rows as in mbpp.jsonl: {"task_id", "text", "test_list", "test_setup_code"}; the sanitized rows
 * have "prompt" instead of "text". Numbers 11 to 510 are the test split. The others are for
 * training and examples and are not used. The assertions are part of the prompt, as in the paper
 * (Austin et al., arXiv 2108.07732), but without its worked examples. */
#include <stdio.h>
#include <string.h>

#include "evals/code/code_rows.h"

enum { kFirst = 11, kLast = 510 };

/* Writes the assertions, one per line. */
static snap_status write_assertions(const js *row, buf *out, const char *where, snap_err *err) {
    js *list;
    snap_status st = js_need_array(row, "test_list", &list, where, err);
    if (st == SNAP_OK && !js_len(list))
        st = err_set(err, SNAP_E_INPUT, "%s: 'test_list' is empty", where);
    for (size_t i = 0; st == SNAP_OK && i < js_len(list); i++) {
        if (!js_str(js_at(list, i)))
            st = err_set(err, SNAP_E_INPUT, "%s: 'test_list' must hold texts", where);
        else
            (void)buf_printf(out, "%s\n", js_str(js_at(list, i)));
    }
    return st == SNAP_OK ? buf_check(out, where, err) : st;
}

static snap_status read_tests(const js *row, code_tests *out, const char *where, snap_err *err) {
    const char *setup = row_text(row, (const char *const[]){"test_setup_code", NULL});
    buf after = {0};
    snap_status st;
    *out = (code_tests){.n = 1};
    if (setup)
        (void)buf_printf(&after, "%s\n", setup);
    TRY(write_assertions(row, &after, where, err));
    out->after = arena_strdup(&out->mem, buf_str(&after));
    if (!out->after)
        TRY(err_set(err, SNAP_E_NOMEM, "%s: out of memory", where));
cleanup:
    buf_release(&after);
    return st;
}

static snap_status word_prompt(const js *row, task_rows *r, task_row *out, const char *where,
                               snap_err *err) {
    const char *text = row_text(row, (const char *const[]){"text", "prompt", NULL});
    buf prompt = {0};
    snap_status st;
    if (!text)
        return err_set(err, SNAP_E_INPUT, "%s: needs a text 'text' or 'prompt'", where);
    (void)buf_printf(&prompt,
                     "You are an expert Python programmer, and here is your task: %s Your code "
                     "should pass these tests:\n\n",
                     text);
    TRY(write_assertions(row, &prompt, where, err));
    (void)buf_puts(&prompt, "\nAnswer with the program in a block of code.\n");
    TRY(buf_check(&prompt, where, err));
    TRY(row_keep(r, buf_str(&prompt), &out->prompt, where, err));
cleanup:
    buf_release(&prompt);
    return st;
}

static snap_status read_row(const js *row, task_rows *r, task_row *out, const char *where,
                            snap_err *err) {
    int64_t number;
    char id[24];
    code_tests tests = {0};
    snap_status st;
    TRY(js_need_int(row, "task_id", &number, where, err));
    out->skip = number < kFirst || number > kLast;
    TRY(read_tests(row, &tests, where, err));
    (void)snprintf(id, sizeof id, "%lld", (long long)number);
    TRY(row_keep(r, id, &out->id, where, err));
    TRY(row_keep(r, r->gold, &out->gold, where, err));
    TRY(word_prompt(row, r, out, where, err));
cleanup:
    tests_release(&tests);
    return st;
}

const task_spec task_mbpp = {.name = "mbpp",
                             .title = "MBPP",
                             .files = {"mbpp/mbpp.jsonl", "mbpp/test.jsonl", "mbpp.jsonl"},
                             .samples = 1,
                             .grader = &grader_assertions,
                             .read_row = read_row,
                             .load = code_rows_load,
                             .read_tests = read_tests};
