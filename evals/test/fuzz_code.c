/* Uses any bytes as input of the code around the judge: pickles, packed tests, values, outputs and
 * responses. The first byte selects the function. Functions that compare two texts get the parts
 * before and after the first NUL. */
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "evals/code/compare.h"
#include "evals/code/fenced.h"
#include "evals/code/pickle.h"
#include "evals/code/program.h"
#include "evals/code/python_text.h"
#include "evals/code/tests.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        __builtin_trap();
}

static bool within(span part, span whole) {
    return part.s >= whole.s && part.s + part.n <= whole.s + whole.n;
}

static void try_pickle(span bytes) {
    span text;
    snap_err err = {0};
    snap_status st = pickle_text(bytes, &text, "fuzz", &err);
    require(st == SNAP_OK ? within(text, bytes) : st == SNAP_E_INPUT && err.text[0]);
}

static void try_unpack(span bytes) {
    buf out = {.limit = 1 << 20};
    snap_err err = {0};
    snap_status st = tests_unpack(bytes, &out, "fuzz", &err);
    require(st == SNAP_OK || err.text[0]);
    require(out.len <= out.limit);
    buf_release(&out);
}

static void try_row(span bytes) {
    js *row = js_parse(bytes.s, bytes.n, "fuzz", NULL);
    code_tests t = {0};
    if (js_is_object(row) && tests_read(row, &t, "fuzz", NULL) == SNAP_OK)
        require(t.n > 0 && t.tests[t.n - 1].output.s);
    tests_release(&t);
    js_free(row);
}

/* The verdict does not depend on the order of the values, and a value is malformed exactly if
 * compare_is_value() is false. */
static void try_values(span a, span b) {
    value_verdict v = compare_value(a, b);
    require(v == compare_value(b, a) || v == VALUE_NO_MEMORY);
    require((compare_value(a, a) != VALUE_MALFORMED) == compare_is_value(a));
}

static void try_outputs(span a, span b) {
    require(compare_output(a, b) == compare_output(b, a));
    require(compare_output(a, a));
}

/* Code without comments and strings has as many bytes and lines as the code. */
static void try_bare(span code) {
    buf bare = {0};
    require(python_bare(code, &bare) && bare.len == code.n);
    for (size_t i = 0; i < code.n; i++)
        require(bare.data[i] == ' ' || bare.data[i] == code.s[i]);
    for (size_t i = 0; i < code.n; i++)
        require((bare.data[i] == '\n') == (code.s[i] == '\n'));
    buf_release(&bare);
}

/* A program that is found has a rule, and is not longer than the response. */
static void try_programs(span text) {
    static const code_tests tests[] = {{.n = 1, .entry = "f", .before = "def f():\n"},
                                       {.n = 1, .after = "assert f(1) == max(2)"},
                                       {.n = 1, .fn_name = "f"},
                                       {.n = 1}};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        buf out = {0};
        const char *rule = program_find(text, &tests[i], i % 2 == 0, &out);
        require(!out.failed && (rule || !out.len) && out.len <= text.n);
        buf_release(&out);
    }
}

static void try_response(span text) {
    try_bare(text);
    try_programs(text);
    extraction x;
    fenced_block b;
    for (size_t at = 0; fenced_next(text, &at, &b);)
        require(within(b.text, text) && within(b.language, text));
    if (fenced_last(text, &x))
        require(within(x.answer, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size)
        return 0;
    const span all = {(const char *)data + 1, size - 1};
    const char *end = memchr(all.s, '\0', all.n);
    const span a = {all.s, end ? (size_t)(end - all.s) : all.n};
    const span b = {all.s + a.n + (end != NULL), all.n - a.n - (end != NULL)};
    switch (data[0] % 6) {
    case 0:
        try_pickle(all);
        break;
    case 1:
        try_unpack(all);
        break;
    case 2:
        try_row(all);
        break;
    case 3:
        try_values(a, b);
        break;
    case 4:
        try_outputs(a, b);
        break;
    default:
        try_response(all);
    }
    return 0;
}
