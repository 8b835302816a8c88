/* Tests the code around the judge without running a program: comparing outputs and values,
 * unpacking tests, and finding the program in a response. layouts.py tests the same with whole
 * programs that are run. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "evals/code/compare.h"
#include "evals/code/fenced.h"
#include "evals/code/pickle.h"
#include "evals/code/program.h"
#include "evals/code/program_fit.h"
#include "evals/code/python_text.h"
#include "evals/code/seccomp.h"
#include "evals/code/tests.h"

static span of(const char *s) {
    return (span){s, strlen(s)};
}

/* ---- outputs: expected results are those of LiveCodeBench's checker ---- */

static void test_output(void) {
    static const struct {
        const char *got, *expected;
        bool same;
    } cases[] = {
        {"6.0", "6", true},
        {"1e0", "1", true},
        {"0.30000000000000004", "0.3", false},
        {"0.3", "0.30", true},
        {"YES", "Yes", false},
        {" a  b ", "a b", false},
        {"a b\n", "  a b  \n\n", true},
        {"a b", "a  b", false},
        {"1 2", "1  2", true},
        {"1\n2", "1\n\n2", false},
        {"1\r\n2\r\n", "1\n2", true},
        {"", "\n", true},
        {"", "0", false},
        {"nan", "nan", true},
        {"nan 1", "NaN 1", false},
        {"inf", "Infinity", true},
        {"Infinity -inf", "inf -Infinity", true},
        {"-inf", "inf", false},
        {"-0", "0", true},
        {"0", "-0.000", true},
        {"1_0", "10", true},
        {"1__0", "10", true},
        {"_1", "1", true},
        {"_-_1_e_-_2_", "-0.01", true},
        {"_", "0", false},
        {"in_f", "inf", true},
        {"+5", "5", true},
        {"--1", "-1", false},
        {"1.", "1", true},
        {".5", "0.5", true},
        {".", "0", false},
        {"e5", "5", false},
        {"1e", "1", false},
        {"+.5e+1", "5", true},
        {"0x10", "16", false},
        {"1e400", "1E+400", true},
        {"1e400", "1e401", false},
        {"1e9999999999999999999", "1", false},
        {"12345678901234567890123456789", "12345678901234567890123456789.0", true},
        {"12345678901234567890123456789", "12345678901234567890123456788", false},
        {"1 a", "1.0 a", false},
        {"1 2 3", "1 2", false},
        {"1e2 3", "100 3.0", true},
        {"00012", "12", true},
        {"1e-3", "0.001", true},
        {"0.00100", "1e-3", true},
        {"100", "1e2", true},
        {"100", "1e3", false},
        {"1,2", "1, 2", false},
        {"True", "1", false},
        {"\xc2\xa0"
         "5\xe2\x80\x83",
         "5", true},
        {"\xe2\x80\x8b"
         "5",
         "5", false},
        {"5\x1c\n", "5", true},
        {"\xff\xfe", "\xff\xfe", true},
        {"1\n\n\n2\n", "1\n\n\n2", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool same = compare_output(of(cases[i].got), of(cases[i].expected));
        if (same != cases[i].same)
            printf("\n'%s' and '%s'\n", cases[i].got, cases[i].expected);
        CU_ASSERT_EQUAL(same, cases[i].same);
    }
    CU_ASSERT_FALSE(compare_output((span){"5\0", 2}, of("5")));
    CU_ASSERT_TRUE(compare_output((span){"a\0b", 3}, (span){"a\0b\n", 4}));
}

/* ---- values: expected results are those of Python's == ---- */

static void test_value(void) {
    static const struct {
        const char *got, *expected;
        value_verdict verdict;
    } cases[] = {
        {"[1,2]", " [ 1 , 2 ] ", VALUE_SAME},
        {"(1,2)", "[1,2]", VALUE_DIFFERS},
        {"[(1,2)]", "[[1,2]]", VALUE_DIFFERS},
        {"[]", "[]", VALUE_SAME},
        {"[]", "{}", VALUE_DIFFERS},
        {"[1]", "[1,1]", VALUE_DIFFERS},
        {"3.0", "3", VALUE_SAME},
        {"3", "3.5", VALUE_DIFFERS},
        {"true", "1", VALUE_SAME},
        {"0", "false", VALUE_SAME},
        {"false", "null", VALUE_DIFFERS},
        {"null", "null", VALUE_SAME},
        {"0.30000000000000004", "0.3", VALUE_DIFFERS},
        {"1e30", "1000000000000000000000000000000", VALUE_DIFFERS},
        {"1e15", "1000000000000000", VALUE_SAME},
        {"9007199254740992.0", "9007199254740993", VALUE_DIFFERS},
        {"9007199254740992.0", "9007199254740992", VALUE_SAME},
        {"123456789012345678901234567890", "123456789012345678901234567890", VALUE_SAME},
        {"123456789012345678901234567890", "123456789012345678901234567891", VALUE_DIFFERS},
        {"-0.0", "0", VALUE_SAME},
        {"-0", "0", VALUE_SAME},
        {"NaN", "NaN", VALUE_DIFFERS},
        {"Infinity", "Infinity", VALUE_SAME},
        {"1e400", "Infinity", VALUE_SAME},
        {"-Infinity", "Infinity", VALUE_DIFFERS},
        {"\"a\\u00e9\\n\"", "\"a\xc3\xa9\\n\"", VALUE_SAME},
        {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"", VALUE_SAME},
        {"\"\\ud800\"", "\"\\ud800\"", VALUE_SAME},
        {"\"\\ud800x\"", "\"\\ud801x\"", VALUE_DIFFERS},
        {"\"1\"", "1", VALUE_DIFFERS},
        {"{\"b\":1,\"a\":[2]}", "{\"a\":[2.0],\"b\":true}", VALUE_SAME},
        {"{\"a\":2}", "{\"a\":1,\"a\":2}", VALUE_SAME},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", VALUE_DIFFERS},
        {"{\"a\":1,\"c\":1}", "{\"a\":1,\"b\":1}", VALUE_DIFFERS},
        {"!", "!", VALUE_DIFFERS},
        {"[!]", "[1]", VALUE_DIFFERS},
        {"", "1", VALUE_MALFORMED},
        {"1", "", VALUE_MALFORMED},
        {"1 2", "1", VALUE_MALFORMED},
        {"[1,]", "[1]", VALUE_MALFORMED},
        {"[1", "[1]", VALUE_MALFORMED},
        {"(1]", "[1]", VALUE_MALFORMED},
        {"{1:2}", "{}", VALUE_MALFORMED},
        {"01", "1", VALUE_MALFORMED},
        {"1.", "1", VALUE_MALFORMED},
        {"\"\\x\"", "\"x\"", VALUE_MALFORMED},
        {"\"\n\"", "\"x\"", VALUE_MALFORMED},
        {"nul", "null", VALUE_MALFORMED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        value_verdict v = compare_value(of(cases[i].got), of(cases[i].expected));
        if (v != cases[i].verdict)
            printf("\n%s and %s: %d\n", cases[i].got, cases[i].expected, (int)v);
        CU_ASSERT_EQUAL(v, cases[i].verdict);
    }
    buf deep = {0};
    for (int i = 0; i < 100000; i++)
        (void)buf_puts(&deep, "[");
    CU_ASSERT_EQUAL(compare_value((span){buf_str(&deep), deep.len}, of("[]")), VALUE_MALFORMED);
    buf_release(&deep);
}

/* ---- pickles ---- */

#define BYTES(text)                                                                                \
    { text, sizeof text - 1 }

static void test_pickle(void) {
    /* the bytes of Python's pickle.dumps("[]", protocol) for protocols 2 to 5, and long forms made
     * by hand */
    static const span good[] = {
        BYTES("\x80\x02X\x02\0\0\0[]q\0."),
        BYTES("\x80\x03X\x02\0\0\0[]q\0."),
        BYTES("\x80\x04\x95\x06\0\0\0\0\0\0\0\x8c\x02[]\x94."),
        BYTES("\x80\x05\x95\x06\0\0\0\0\0\0\0\x8c\x02[]\x94."),
        BYTES("\x80\x04X\x02\0\0\0[]\x94."),
        BYTES("\x80\x04\x8d\x02\0\0\0\0\0\0\0[]r\0\0\0\0."),
    };
    static const span bad[] = {
        BYTES(""),
        BYTES("."),
        BYTES("\x80\x04."),
        BYTES("\x80\x04X\x02\0\0\0[]\x94"),
        BYTES("\x80\x04X\x02\0\0\0[].."),
        BYTES("\x80\x04X\x02\0\0\0[]\x8c\x01x."),
        BYTES("\x80\x04X\xff\xff\xff\xff[]."),
        BYTES("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff[]."),
        BYTES("\x80\x06X\x02\0\0\0[]."),
        BYTES("X\x02\0\0\0[]\x80\x04."),
        BYTES("\x80\x04\x95\xff\0\0\0\0\0\0\0X\x02\0\0\0[]."),
        BYTES("cos\nsystem\n(S'echo bad'\ntR."),        /* a call */
        BYTES("\x80\x04\x8c\x02os\x8c\x06system\x93."), /* STACK_GLOBAL */
        BYTES("\x80\x04X\x02\0\0\0[]\x94\x85R."),       /* a tuple, REDUCE */
        BYTES("\x80\x04]\x94."),                        /* a list */
        BYTES("\x80\x04K\x01."),                        /* a number */
        BYTES("\x80\x04C\x02[]."),                      /* bytes */
        BYTES("V[]\np0\n."),                            /* the text of protocol 0 */
        BYTES("\x80\x04X\x02\0\0\0[]0."),               /* POP */
        BYTES("\x80\x04h\0X\x02\0\0\0[]."),             /* from the memo */
        BYTES("\x80\x04\x82\x01X\x02\0\0\0[]."),        /* an extension */
        BYTES("\x80\x04X\x02\0\0\0[]b."),               /* BUILD */
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        span text;
        CU_ASSERT_EQUAL(pickle_text(good[i], &text, "p", NULL), SNAP_OK);
        CU_ASSERT(text.n == 2 && memcmp(text.s, "[]", 2) == 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        span text;
        snap_err err = {0};
        CU_ASSERT_EQUAL(pickle_text(bad[i], &text, "row 7", &err), SNAP_E_INPUT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "row 7"));
    }
    /* After a text, each operation that the reader does not support is refused at its place. */
    for (int op = 0; op < 256; op++) {
        char bytes[] = "\x80\x04X\x02\0\0\0[]?................";
        span text;
        bytes[9] = (char)op;
        bool ours = op == '.' || op == 0x94 || op == 'q' || op == 'r' || op == 0x80 || op == 0x95;
        snap_err err = {0};
        CU_ASSERT_EQUAL(pickle_text((span){bytes, sizeof bytes - 1}, &text, "p", &err),
                        SNAP_E_INPUT);
        CU_ASSERT_EQUAL(strstr(err.text, "byte 9") != NULL,
                        !ours || op == '.' || op == 0x80 || op == 0x95);
    }
}

/* ---- tests in LiveCodeBench's packed form ---- */

static void put_base64(buf *out, const unsigned char *s, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned word = (unsigned)s[i] << 16 | (i + 1 < n ? (unsigned)s[i + 1] << 8 : 0) |
                        (i + 2 < n ? s[i + 2] : 0);
        char four[] = {digits[word >> 18], digits[word >> 12 & 63],
                       i + 1 < n ? digits[word >> 6 & 63] : '=',
                       i + 2 < n ? digits[word & 63] : '='};
        (void)buf_append(out, four, 4);
    }
}

/* base64 of zlib of a pickle of @text; the last @cut packed bytes are missing. */
static void pack(const char *text, size_t cut, buf *out) {
    size_t n = strlen(text);
    buf pickle = {0};
    (void)buf_append(&pickle, "\x80\x04X", 3);
    for (int i = 0; i < 4; i++)
        (void)buf_append(&pickle, &(unsigned char){(unsigned char)(n >> 8 * i)}, 1);
    (void)buf_append(&pickle, text, n);
    (void)buf_append(&pickle, "\x94.", 2);
    uLongf room = compressBound(pickle.len);
    unsigned char *packed = malloc(room);
    CU_ASSERT_PTR_NOT_NULL_FATAL(packed);
    CU_ASSERT_EQUAL(compress(packed, &room, (const Bytef *)pickle.data, pickle.len), Z_OK);
    put_base64(out, packed, room - cut);
    free(packed);
    buf_release(&pickle);
}

static js *published(const char *open, const char *closed, const char *metadata) {
    js *row = js_new_object();
    CU_ASSERT(js_set_str(row, "public_test_cases", open) &&
              js_set_str(row, "private_test_cases", closed) &&
              js_set_str(row, "metadata", metadata));
    return row;
}

static const char kOpen[] =
    "[{\"input\": \"1\\n\", \"output\": \"2\\n\", \"testtype\": \"stdin\"}]";
static const char kClosed[] = "[{\"input\": \"3\", \"output\": \"4\", \"testtype\": \"stdin\"}, "
                              "{\"input\": \"\", \"output\": \"\", \"testtype\": \"stdin\"}]";

static void check_published(const char *closed) {
    js *row = published(kOpen, closed, "{}");
    code_tests t;
    snap_err err = {0};
    CU_ASSERT_TRUE(tests_present(row));
    CU_ASSERT_EQUAL(tests_read(row, &t, "row", &err), SNAP_OK);
    if (err.code)
        printf("\n%s\n", err.text);
    CU_ASSERT(t.n == 3 && !t.fn_name);
    CU_ASSERT_STRING_EQUAL(t.n == 3 ? t.tests[0].input.s : "", "1\n");
    CU_ASSERT_STRING_EQUAL(t.n == 3 ? t.tests[1].output.s : "", "4");
    tests_release(&t);
    js_free(row);
}

static void expect_refused(js *row, const char *message) {
    code_tests t;
    snap_err err = {0};
    CU_ASSERT_EQUAL(tests_read(row, &t, "row 9", &err), SNAP_E_INPUT);
    if (!strstr(err.text, message) || !strstr(err.text, "row 9"))
        printf("\n%s\n", err.text);
    CU_ASSERT(strstr(err.text, message) && strstr(err.text, "row 9"));
    tests_release(&t);
    js_free(row);
}

static void test_published(void) {
    buf packed = {0}, cut = {0}, list = {0};
    pack(kClosed, 0, &packed);
    pack(kClosed, 3, &cut);
    pack("{}", 0, &list);
    check_published(kClosed);
    check_published(buf_str(&packed));
    expect_refused(published(kOpen, buf_str(&cut), "{}"), "damaged");
    expect_refused(published(kOpen, buf_str(&list), "{}"), "must be a list");
    expect_refused(published(kOpen, "!", "{}"), "neither JSON nor base64");
    expect_refused(published(kOpen, "AAAA", "{}"), "damaged");
    expect_refused(published(kOpen, "", "{}"), "empty");
    expect_refused(published(kOpen, "QQ==Q", "{}"), "after its end");
    expect_refused(published(kOpen, "[{\"input\": \"1\"}]", "{}"), "needs 'input'");
    expect_refused(published(kOpen, kClosed, "{\"func_name\": \"f\"}"), "of type 'stdin'");
    expect_refused(published(kOpen, kClosed, "{\"func_name\": 3}"), "name of a function");
    expect_refused(published("[]", "[]", "{}"), "no tests");
    buf_release(&packed);
    buf_release(&cut);
    buf_release(&list);
}

/* A small file that unpacks to more than the limit. */
static void test_bomb(void) {
    buf packed = {0}, out = {.limit = 1 << 20}, text = {0};
    for (int i = 0; i < 1 << 16; i++)
        (void)buf_puts(&text, "                                                                ");
    snap_err err = {0};
    pack(buf_str(&text), 0, &packed);
    CU_ASSERT(packed.len < 1 << 14);
    CU_ASSERT_EQUAL(tests_unpack((span){buf_str(&packed), packed.len}, &out, "row", &err),
                    SNAP_E_NOMEM);
    buf_release(&packed);
    buf_release(&text);
    buf_release(&out);
}

static void test_lists(void) {
    static const struct {
        const char *row, *input, *output, *message;
    } cases[] = {
        {"{\"inputs\": [\"1\\n2\"], \"outputs\": [\"3\"]}", "1\n2", "3", NULL},
        {"{\"inputs\": [[\"1\", \"2\"]], \"outputs\": [\"3\"], \"fn_name\": null}", "1\n2", "3",
         NULL},
        {"{\"inputs\": [[[1, 2], 3]], \"outputs\": [[4]], \"fn_name\": \"f\"}", "[1,2]\n3", "[4]",
         NULL},
        {"{\"input_output\": \"{\\\"inputs\\\": [\\\"a\\\"], \\\"outputs\\\": [\\\"b\\\"]}\"}", "a",
         "b", NULL},
        {"{\"inputs\": [\"1\"], \"outputs\": []}", "", "", "1 inputs, 0 outputs"},
        {"{\"inputs\": [], \"outputs\": []}", "", "", "no tests"},
        {"{\"inputs\": [1], \"outputs\": [\"1\"]}", "", "", "neither text nor a list"},
        {"{\"inputs\": [[1]], \"outputs\": [\"1\"]}", "", "", "a line must be text"},
        {"{\"inputs\": [\"1\"], \"outputs\": [\"1\"], \"fn_name\": 3}", "", "",
         "name of a function"},
        {"{\"inputs\": \"1\", \"outputs\": [\"1\"]}", "", "", "inputs"},
        {"{}", "", "", "no tests: a row needs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        js *row = js_parse(cases[i].row, strlen(cases[i].row), "row", NULL);
        code_tests t;
        snap_err err = {0};
        CU_ASSERT_PTR_NOT_NULL_FATAL(row);
        snap_status st = tests_read(row, &t, "row", &err);
        CU_ASSERT_EQUAL(st, cases[i].message ? SNAP_E_INPUT : SNAP_OK);
        if (cases[i].message)
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
        if (st == SNAP_OK) {
            CU_ASSERT_STRING_EQUAL(t.tests[0].input.s, cases[i].input);
            CU_ASSERT_STRING_EQUAL(t.tests[0].output.s, cases[i].output);
        }
        tests_release(&t);
        js_free(row);
    }
}

/* ---- fences ---- */

static bool is_text(span s, const char *want) {
    return s.n == strlen(want) && memcmp(s.s, want, s.n) == 0;
}

static void test_last_fences(void) {
    static const struct {
        const char *text, *last; /* NULL: none */
    } cases[] = {
        {"so\n```python\nx = 1\n```\nok", "x = 1"},
        {"```\na\n```\nand\n```py\nb\n\nc\n```", "b\n\nc"},
        {"```python\n```", ""},
        {"no code", NULL},
        {"```python\nx = 1", NULL},
        {"```python\na\n```\nthen\n```python\nb", "then"},
        {"inline ```a``` and\n```\nb\n```", "b"},
        {"```python\r\na\r\n```\r\n", "a\r"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        extraction x;
        bool found = fenced_last(of(cases[i].text), &x);
        CU_ASSERT_EQUAL(found, cases[i].last != NULL);
        if (found)
            CU_ASSERT(is_text(x.answer, cases[i].last));
    }
}

/* Blocks as CommonMark's reference finds them, except that a fence may be indented further, a fence
 * with a language ends an open block, and the last fence of a quoted block may lack its ">". */
static void test_blocks(void) {
    static const struct {
        const char *text, *blocks[3]; /* each block as "language|indent|text", "!" if not closed */
    } cases[] = {
        {"so\n```python\nx = 1\n```\nok", {"python|0|x = 1"}},
        {"```\na\n```\nand\n```py\nb\n\nc\n```", {"|0|a", "py|0|b\n\nc"}},
        {"```python\n```", {"python|0|"}},
        {"no code", {NULL}},
        {"inline ```a``` and\n```\nb\n```", {"|0|b"}},
        {"```python\nx = 1", {"!python|0|x = 1"}},
        {"```python", {"!python|0|"}},
        {"```\nprose\n```python\na\n```", {"!|0|prose", "python|0|a"}},
        {"~~~ Python3 {.numberLines}\na\n```\n~~~", {"Python3|0|a\n```"}},
        {"````md\n```python\na\n```\n````", {"md|0|```python\na\n```"}},
        {"1. so\n\n   ```python\n   a\n   ```\n", {"python|3|   a"}},
        {"- ```python\n  a\n  ```\n", {"python|2|  a"}},
        {"12) ```\na\n```", {"|4|a"}},
        {"-```\na", {NULL}},
        {"```python\r\na\r\n```\r\n", {"python|0|a\r"}},
        {"``\na\n``", {NULL}},
        {"> so\n> ```python\n> a\n> ```\n> ok", {"python|0|> a"}},
        {"> > - ```\n> >   a\n> >   ```", {"|2|> >   a"}},
        {"> ```\n> a\nout\n```\nb\n```", {"|0|> a", "|0|b"}},
        {"> ```\n> a\n```\nout\n", {"|0|> a"}},
        {"```\n> ```\na\n```", {"|0|> ```\na"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fenced_block b;
        size_t at = 0, n = 0;
        for (; fenced_next(of(cases[i].text), &at, &b) && n < 3; n++) {
            char got[128];
            (void)snprintf(got, sizeof got, "%s%.*s|%zu|%.*s", b.closed ? "" : "!",
                           (int)b.language.n, b.language.s, b.indent, (int)b.text.n, b.text.s);
            CU_ASSERT_PTR_NOT_NULL_FATAL(cases[i].blocks[n]);
            CU_ASSERT_STRING_EQUAL(got, cases[i].blocks[n]);
        }
        CU_ASSERT(n == 3 || !cases[i].blocks[n]);
    }
}

#define F "def f(x):\n    return x\n"

/* @rule and @want are NULL if the text has no program. */
static void check_program(const char *text, const code_tests *tests, bool complete,
                          const char *rule, const char *want) {
    buf out = {0};
    const char *got = program_find(of(text), tests, complete, &out);
    bool same = rule ? got && strcmp(got, rule) == 0 && strcmp(buf_str(&out), want) == 0 : !got;
    if (!same)
        printf("\n%s\n  gave rule %s and program\n%s\n", text, got ? got : "none", buf_str(&out));
    CU_ASSERT(same);
    buf_release(&out);
}

/* A response and the program in it; rule and program are NULL if there is none. */
typedef struct {
    const char *text;
    const code_tests *tests;
    const char *rule, *program;
} response_case;

static void check_programs(const response_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++)
        check_program(cases[i].text, cases[i].tests, true, cases[i].rule, cases[i].program);
}

#define CHECK_PROGRAMS(cases) check_programs(cases, sizeof(cases) / sizeof *(cases))

static const code_tests calls = {
    .n = 1, .entry = "f", .after = "check(f)", .before = "def f(x):\n"};
static const code_tests asserts = {.n = 1, .after = "assert sorted(f(1)) == [1]\n"};
static const code_tests method = {.n = 1, .fn_name = "f"};
static const code_tests prints = {.n = 1};

static void test_programs(void) {
    static const response_case cases[] = {
        {"```python\n" F "```", &calls, "fenced", "def f(x):\n    return x"},
        {"```\nold\n```\n```\n" F "```\n```python\nprint(f(1))\n```", &calls, "fenced",
         "def f(x):\n    return x"},
        {"```\ndef f(x): return 1\n```\nno:\n```\n" F "```", &asserts, "fenced",
         "def f(x):\n    return x"},
        {"```\n" F "```\n```\n[1]\n```\n```bash\npython3 f.py\n```", &asserts, "fenced",
         "def f(x):\n    return x"},
        {"```\nf = lambda x: x\n```\n```\nassert f(1) == 1\n```", &asserts, "fenced",
         "f = lambda x: x"},
        {"```\nclass Solution:\n    def f(self, x):\n        return x\n```\n"
         "```\nSolution().f(1)\n```",
         &method, "fenced", "class Solution:\n    def f(self, x):\n        return x"},
        {"```cpp\nf(x)\n```\n```python\n    return x\n```", &calls, "fenced", "    return x"},
        {"1. so\n   ```python\n   def f(x):\n       return x\n   ```", &calls, "fenced",
         "def f(x):\n    return x"},
        {"> ```python\n> def f(x):\n>     return x\n> ```", &calls, "fenced",
         "def f(x):\n    return x"},
        {"- ```\n\n      def f(x):\n          return x\n  ```", &calls, "fenced",
         "\ndef f(x):\n    return x"},
        {"```text\n" F "```\n```\n1\n```", &calls, "fenced", "def f(x):\n    return x"},
        {"```python\n" F, &calls, "open_fence", F},
    };
    CHECK_PROGRAMS(cases);
    check_program("```python\n" F, &calls, false, NULL, NULL);
    check_program(F, &calls, false, NULL, NULL);
    check_program("```python\n" F "```\n```python\ndef f(", &calls, false, "fenced",
                  "def f(x):\n    return x");
}

/* Only code defines a function: not a comment, a text, or a header without a body. */
static void test_named_only(void) {
    static const response_case cases[] = {
        {"```\n" F "```\n```\n# def f(x): return 0\nf(1)\n```", &calls, "fenced",
         "def f(x):\n    return x"},
        {"```\n" F "```\n```\n\"\"\"\ndef f(x): return 0\n\"\"\"\nf(1)\n```", &calls, "fenced",
         "def f(x):\n    return x"},
        {"```\n" F "```\n```\nprint('''\ndef f(x):\n    return 0\n''')\n```", &calls, "fenced",
         "def f(x):\n    return x"},
        {"```\n" F "```\n```\n>>> def f(x): return 0\n```", &calls, "fenced",
         "def f(x):\n    return x"},
        {"```\n" F "```\n```\nfrom solution import g as f\n```", &calls, "fenced",
         "def f(x):\n    return x"},
        {"```\n" F "```\n```\ndef f(x: int) -> int:\n    \"\"\"Returns x.\"\"\"\n```", &calls,
         "fenced", "def f(x):\n    return x"},
        {"```\n" F "```\n```\ndef f(x):\n    # as above\n    ...\n```", &calls, "fenced",
         "def f(x):\n    return x"},
        {"```\n" F "```\n```\ndef test():\n    def f(x): return 0\n```", &calls, "fenced",
         "def f(x):\n    return x"},
        {"```\ndef f(x):\n    \"\"\"x\"\"\"\n```\nIts body:\n```\n    return x\n```", &calls,
         "fenced", "    return x"},
        {"```\nfrom math import gcd as f\n```\n```\nf(1, 2)\n```", &calls, "fenced",
         "from math import gcd as f"},
        {"```\n" F "```\n```\nsorted = f(3)\n```", &asserts, "fenced", "def f(x):\n    return x"},
        {"```\nclass Solution:\n    def f(self, x):\n        return x\n```\n"
         "```\nclass Solution:\n    def f(self, x):\n        pass\n```",
         &method, "fenced", "class Solution:\n    def f(self, x):\n        return x"},
    };
    CHECK_PROGRAMS(cases);
}

#define MAIN "n = int(input())\nprint(n)"

/* A program that reads input is preferred to examples, which read none. */
static void test_main_programs(void) {
    static const char *const examples[] = {
        "print(2 * 3)",
        "assert 2 * 3 == 6",
        "# print(int(input()))\nprint(6)",
        "print('input(3) gives 6')",
        "import subprocess\nr = subprocess.run(['python3', 'a.py'], input='3')\nprint(r.stdout)",
        "import io, sys\nsys.stdin = io.StringIO('3')\nn = int(input())\nprint(n)",
        "from unittest.mock import patch\nwith patch('builtins.input', return_value='3'):\n"
        "    main()",
        "import sys\ninput = sys.stdin.readline",
        "p = Popen(['a'])\np.stdin.write(b'3')\nprint(p.stdout.read())",
        "3",
    };
    static const char *const readers[] = {
        "print(int(input()) * 2)",
        "import sys\nprint(sys.stdin.read())",
        "from sys import stdin, stdout\nstdout.write(stdin.readline())",
        "print(open(0).read())",
        "print(open('/dev/stdin').read())",
        "import os\nos.write(1, os.read(0, 100))",
        "import fileinput\nfor line in fileinput.input():\n    print(line)",
        "print(f\"{int(input()):>3}\")",
        "import sys\nr = sys.stdin.readline\nprint(r())",
        "for line in iter(input, ''):\n    print(line)",
        "import sys as s\nprint(s.stdin.read())",
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        buf text = {0};
        (void)buf_printf(&text, "```python\n" MAIN "\n```\nFor example:\n```python\n%s\n```\n",
                         examples[i]);
        check_program(buf_str(&text), &prints, true, "fenced", MAIN);
        buf_release(&text);
    }
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        buf text = {0};
        (void)buf_printf(&text, "```python\n%s\n```\nFor example:\n```python\nprint(6)\n```\n",
                         readers[i]);
        check_program(buf_str(&text), &prints, true, "fenced", readers[i]);
        buf_release(&text);
    }
    check_program("```\nprint(6)\n```\nIts output:\n```\n6\n```", &prints, true, "fenced",
                  "print(6)");
    check_program("```\n" MAIN "\n```\nor\n```\nprint(input())\n```", &prints, true, "fenced",
                  "print(input())");
}

static void test_unfenced(void) {
    static const response_case cases[] = {
        {"It is this.\n\nimport os\n\n" F "\nIt is linear in x (see above).", &calls, "unfenced",
         "import os\n\n" F},
        {"def g():\n    pass\nno more code\n" F, &calls, "unfenced", F},
        {"def f(x):\n    \"\"\"\nIf x is one, the result is one.\n\"\"\"\n    return x", &calls,
         "unfenced",
         "def f(x):\n    \"\"\"\nIf x is one, the result is one.\n\"\"\"\n    return x"},
        {"The code:\n\nN = 3\n" F "\nIt is linear.", &calls, "unfenced", "N = 3\n" F},
        {"from sys import stdin\nprint(stdin.read())\nThis prints it.", &prints, "unfenced",
         "from sys import stdin\nprint(stdin.read())"},
        {"def f(x): return 0\nNo, rather\n" F, &calls, "unfenced", F},
        {"So:\n\n    def f(x):\n        return x\n\nThat is it.", &calls, "unfenced",
         "def f(x):\n    return x\n"},
        {"    y = x\n    return y\n", &calls, "unfenced", "    y = x\n    return y\n"},
        {"    if x: return 0\n    return x\n", &calls, "unfenced",
         "    if x: return 0\n    return x\n"},
        {"    for i in x: yield i\n", &calls, "unfenced", "    for i in x: yield i\n"},
        {"```\ndef f(x):\n    import math\n```\nThe body:\n```\n    return math.pi\n```", &calls,
         "fenced", "    return math.pi"},
        {F "```\nThis is linear.", &calls, "unfenced", "def f(x):\n    return x"},
        {F "\nIts output:\n```\n3\n```", &calls, "unfenced", F},
        {"<pre><code class=\"x\">def f(x):\n    return x &lt; &#39;a&#39;\n</code></pre>\nDone.",
         &calls, "tagged", "def f(x):\n    return x < 'a'\n"},
        {"Call <code>f(1)</code>.\n<CODE>\ndef f(x):\n    return x</CODE> <code>\n1</code>", &calls,
         "tagged", "\ndef f(x):\n    return x"},
        {"n, m = map(int, input().split())\nprint(n)\nDone.", &prints, "unfenced",
         "n, m = map(int, input().split())\nprint(n)"},
        {"I import from the list.\nfrom the start, def f(x) is simple.", &calls, NULL, NULL},
        {"The function\n\n    return x\n", &calls, NULL, NULL},
        {"I cannot define f here.", &calls, NULL, NULL},
        {"def g(x):\n    return x", &calls, NULL, NULL},
    };
    CHECK_PROGRAMS(cases);
}

static void test_definitions(void) {
    static const struct {
        const char *program;
        bool defines;
    } cases[] = {
        {"def f(x): pass", false},
        {"def f(x): return 1", true},
        {"async def f(): return 1", true},
        {"class f: x = 1", true},
        {"f = 1", true},
        {"x = 1\nf=2", true},
        {"f: int = 1", true},
        {"f: Callable[[int], int] = lambda x: x", true},
        {"def fa(): return", false},
        {"def af(): return", false},
        {"f == 1", false},
        {"f(1)", false},
        {"f: int", false},
        {"if x:\n    f = 1", false},
        {"# def f(): return", false},
        {"'''\ndef f(): return\n'''", false},
        {"x = 'def f(): return", false},
        {"undef f(x): return", false},
        {"def af(): f(1)\ndef f(): return 1", true},
        {"def f(x: 'def',\n      y={1: 2}) -> {3: 4}:\n    return 1", true},
        {"def f(x):\n    'it is \\\n  def'\n\n    # x\n", false},
        {"def f(x):\n    raise NotImplementedError", false},
        {"def f(x):\nreturn x", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool defines = program_defines(of(cases[i].program), of("f"));
        if (defines != cases[i].defines)
            printf("\n%s\n", cases[i].program);
        CU_ASSERT_EQUAL(defines, cases[i].defines);
    }
}

/* Comments and strings become spaces. In @want, '_' stands for such a space. */
static void test_bare(void) {
    static const struct {
        const char *code, *want;
    } cases[] = {
        {"x = 1 # one\ny", "x = 1 _____\ny"},
        {"x = '#' # a 'b", "x = ___ ______"},
        {"a = \"b\\\"c\" + d", "a = ______ + d"},
        {"a = 'b\nc", "a = __\nc"},
        {"a = 'b\\\nc' + d", "a = ___\n__ + d"},
        {"a = 'b\\\r\nc' + d", "a = ____\n__ + d"},
        {"'''a\n'b'\n''' + c", "____\n___\n___ + c"},
        {"\"\"\"a ''' b\"\"\" c", "_____________ c"},
        {"a = '''b", "a = ____"},
        {"rb'a\\' b' c bb'd' e_f'g'", "_________ c _____ e_f___"},
        {"f'a{b}c' + d", "____b___ + d"},
        {"f'{{a}}{b:>{c}}' d", "________b___c___ d"},
        {"f\"{a['b']}{c(':')}\" d", "___a[___]__c(___)__ d"},
        {"f'{a!r:#x}' # b", "___a!r_____ ___"},
        {"f'{x", "___x"},
        {"f'{x\ny", "___x\ny"},
        {"f'''{\nx}\n''' y", "_____\nx_\n___ y"},
        {"''", "__"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf got = {0}, want = {0};
        (void)buf_puts(&want, cases[i].want);
        for (size_t k = 0; k < want.len; k++)
            if (want.data[k] == '_' && cases[i].code[k] != '_')
                want.data[k] = ' ';
        CU_ASSERT_TRUE(python_bare(of(cases[i].code), &got));
        if (strcmp(buf_str(&got), buf_str(&want)) != 0)
            printf("\n%s\n  gave\n%s|\n  and not\n%s|\n", cases[i].code, buf_str(&got),
                   buf_str(&want));
        CU_ASSERT_STRING_EQUAL(buf_str(&got), buf_str(&want));
        buf_release(&got);
        buf_release(&want);
    }
}

CU_TestInfo tests_code[] = {
    {"outputs are compared as LiveCodeBench does", test_output},
    {"values are compared as Python's == does", test_value},
    {"pickles of one text are read, others are refused", test_pickle},
    {"published tests", test_published},
    {"packed tests that unpack to too much", test_bomb},
    {"lists of tests are read", test_lists},
    {"the last fence of a response is found", test_last_fences},
    {"code blocks are those of CommonMark", test_blocks},
    {"the program of a response is found", test_programs},
    {"functions that are only named", test_named_only},
    {"programs that read input", test_main_programs},
    {"programs without a fence", test_unfenced},
    {"Python without comments and strings", test_bare},
    {"whether a program defines a function", test_definitions},
    CU_TEST_INFO_NULL,
};
