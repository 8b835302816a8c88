#include "evals/code/tests.h"

#include <string.h>

static const size_t kPlainLimit = (size_t)1 << 30;

static snap_status no_memory(const char *where, snap_err *err) {
    (void)err_set(err, SNAP_E_NOMEM, "%s: out of memory for the tests", where);
    return SNAP_E_NOMEM;
}

static bool keep(code_tests *t, const char *s, size_t n, span *out) {
    *out = (span){s ? arena_strndup(&t->mem, s, n) : NULL, n};
    return out->s != NULL;
}

/* ---- {"inputs", "outputs", "fn_name"} ---- */

static snap_status keep_name(code_tests *t, const js *row, const char *key, const char *where,
                             snap_err *err) {
    const js *name = js_get(row, key);
    if (!name || (js_str(name) && !js_str(name)[0]))
        return SNAP_OK;
    if (!js_str(name))
        return err_set(err, SNAP_E_INPUT, "%s: '%s' must be the name of a function", where, key);
    t->fn_name = arena_strdup(&t->mem, js_str(name));
    return t->fn_name ? SNAP_OK : no_memory(where, err);
}

/* Stores a test's input or output. A text is kept unchanged. A list becomes lines: lines of
 * standard input, or one JSON value per argument. */
static snap_status keep_part(code_tests *t, const js *part, span *out, const char *where,
                             snap_err *err) {
    buf lines = {0};
    snap_status st = SNAP_OK;
    if (js_str(part))
        return keep(t, js_str(part), strlen(js_str(part)), out) ? SNAP_OK : no_memory(where, err);
    if (!js_is_array(part))
        return err_set(err, SNAP_E_INPUT, "%s: test %zu is neither text nor a list", where, t->n);
    for (size_t i = 0; i < js_len(part) && st == SNAP_OK; i++) {
        const js *item = js_at(part, i);
        if (i)
            (void)buf_puts(&lines, "\n");
        if (t->fn_name)
            st = js_write(item, JS_COMPACT, &lines, err);
        else if (js_str(item))
            (void)buf_puts(&lines, js_str(item));
        else
            st = err_set(err, SNAP_E_INPUT, "%s: test %zu: a line must be text", where, t->n);
    }
    if (st == SNAP_OK && (lines.failed || !keep(t, buf_str(&lines), lines.len, out)))
        st = no_memory(where, err);
    buf_release(&lines);
    return st;
}

/* Stores the expected output. For a function, the row may have the value itself instead of its
 * text. */
static snap_status keep_output(code_tests *t, const js *output, span *out, const char *where,
                               snap_err *err) {
    buf text = {0};
    if (!t->fn_name || !output || js_str(output))
        return keep_part(t, output, out, where, err);
    snap_status st = js_write(output, JS_COMPACT, &text, err);
    if (st == SNAP_OK && !keep(t, buf_str(&text), text.len, out))
        st = no_memory(where, err);
    buf_release(&text);
    return st;
}

static snap_status read_lists(const js *row, code_tests *t, const char *where, snap_err *err) {
    snap_status st;
    js *inputs, *outputs;
    TRY(js_need_array(row, "inputs", &inputs, where, err));
    TRY(js_need_array(row, "outputs", &outputs, where, err));
    TRY(keep_name(t, row, "fn_name", where, err));
    if (js_len(inputs) != js_len(outputs))
        TRY(err_set(err, SNAP_E_INPUT, "%s: %zu inputs, %zu outputs", where, js_len(inputs),
                    js_len(outputs)));
    t->tests = arena_alloc(&t->mem, js_len(inputs) + 1, sizeof *t->tests);
    if (!t->tests)
        return no_memory(where, err);
    for (; t->n < js_len(inputs); t->n++) {
        TRY(keep_part(t, js_at(inputs, t->n), &t->tests[t->n].input, where, err));
        TRY(keep_output(t, js_at(outputs, t->n), &t->tests[t->n].output, where, err));
    }
cleanup:
    return st;
}

static snap_status read_nested(const js *row, code_tests *t, const char *where, snap_err *err) {
    size_t n;
    const char *text = js_get_strn(row, "input_output", &n);
    js *inner = js_parse(text, n, where, err);
    snap_status st = inner ? read_lists(inner, t, where, err) : SNAP_E_INPUT;
    js_free(inner);
    return st;
}

/* ---- LiveCodeBench ---- */

static snap_status read_case(code_tests *t, const js *one, const char *where, snap_err *err) {
    size_t n_in, n_out;
    const char *input = js_get_strn(one, "input", &n_in);
    const char *output = js_get_strn(one, "output", &n_out), *type = js_get_str(one, "testtype");
    if (!input || !output || !type)
        return err_set(err, SNAP_E_INPUT, "%s: a test needs 'input', 'output' and 'testtype'",
                       where);
    if (strcmp(type, t->fn_name ? "functional" : "stdin") != 0)
        return err_set(err, SNAP_E_INPUT, "%s: a test of type '%.40s', but %s", where, type,
                       t->fn_name ? "a function is named" : "no function is named");
    code_test *test = &t->tests[t->n++];
    return keep(t, input, n_in, &test->input) && keep(t, output, n_out, &test->output)
               ? SNAP_OK
               : no_memory(where, err);
}

static snap_status read_cases(const js *list, code_tests *t, const char *where, snap_err *err) {
    snap_status st = SNAP_OK;
    if (!js_is_array(list))
        return err_set(err, SNAP_E_INPUT, "%s: the tests must be a list", where);
    for (size_t i = 0; i < js_len(list) && st == SNAP_OK; i++)
        st = read_case(t, js_at(list, i), where, err);
    return st;
}

/* Parses a list of tests, stored as text or packed under @key. The caller frees it with js_free();
 * NULL on failure. */
static js *parse_cases(const js *row, const char *key, const char *where, snap_err *err) {
    size_t n;
    const char *text = js_get_strn(row, key, &n);
    buf plain = {.limit = kPlainLimit};
    js *list = NULL;
    if (!text) {
        (void)err_set(err, SNAP_E_INPUT, "%s: '%s' must be text", where, key);
        return NULL;
    }
    if (n && strspn(text, " \t\r\n") < n && text[strspn(text, " \t\r\n")] == '[')
        return js_parse(text, n, where, err);
    if (tests_unpack((span){text, n}, &plain, where, err) == SNAP_OK)
        list = js_parse(buf_str(&plain), plain.len, where, err);
    buf_release(&plain);
    return list;
}

static snap_status read_metadata(const js *row, code_tests *t, const char *where, snap_err *err) {
    size_t n;
    const char *text = js_get_strn(row, "metadata", &n);
    if (!text)
        return err_set(err, SNAP_E_INPUT, "%s: 'metadata' must be text", where);
    js *metadata = js_parse(text, n, where, err);
    snap_status st = metadata ? keep_name(t, metadata, "func_name", where, err) : SNAP_E_INPUT;
    js_free(metadata);
    return st;
}

static snap_status read_published(const js *row, code_tests *t, const char *where, snap_err *err) {
    snap_status st = read_metadata(row, t, where, err);
    js *open = st == SNAP_OK ? parse_cases(row, "public_test_cases", where, err) : NULL;
    js *closed = open ? parse_cases(row, "private_test_cases", where, err) : NULL;
    if (st == SNAP_OK && (!open || !closed))
        st = SNAP_E_INPUT;
    if (st == SNAP_OK) {
        t->tests = arena_alloc(&t->mem, js_len(open) + js_len(closed) + 1, sizeof *t->tests);
        st = t->tests ? SNAP_OK : no_memory(where, err);
    }
    if (st == SNAP_OK)
        st = read_cases(open, t, where, err);
    if (st == SNAP_OK)
        st = read_cases(closed, t, where, err);
    js_free(open);
    js_free(closed);
    return st;
}

bool tests_present(const js *row) {
    return js_get(row, "inputs") || js_get_str(row, "input_output") ||
           js_get_str(row, "public_test_cases");
}

snap_status tests_read(const js *row, code_tests *out, const char *where, snap_err *err) {
    *out = (code_tests){0};
    if (!tests_present(row))
        return err_set(err, SNAP_E_INPUT,
                       "%s: no tests: a row needs 'inputs' and 'outputs', or the keys that "
                       "LiveCodeBench publishes (for the samples of a run: eval --regrade)",
                       where);
    snap_status st = js_get(row, "inputs")             ? read_lists(row, out, where, err)
                     : js_get_str(row, "input_output") ? read_nested(row, out, where, err)
                                                       : read_published(row, out, where, err);
    if (st == SNAP_OK && !out->n)
        st = err_set(err, SNAP_E_INPUT, "%s: no tests", where);
    return st;
}

void tests_release(code_tests *t) {
    arena_release(&t->mem);
    *t = (code_tests){0};
}
