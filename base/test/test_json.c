#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/json_line.h"

static js *parse(const char *text, snap_err *err) {
    return js_parse(text, strlen(text), "x.json", err);
}

static void test_errors_name_the_place(void) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"a\": 1,\n  \"b\": }", "x.json:2:"},
        {"{\"a\": 1, \"a\": 2}", "duplicate object key"},
        {"[1, 2] x", "end of file expected"},
        {"\"\xff\"", "unable to decode byte 0xff"},
        {"", "x.json:1:"},
        {"{\"a\": 1e999}", "real number overflow"},
        {"{\"a\": 1000000000000000019884624838656}", "too big integer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snap_err err = {0};
        CU_ASSERT_PTR_NULL(parse(cases[i].text, &err));
        CU_ASSERT_EQUAL(err.code, SNAP_E_INPUT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
    }
}

static void test_numbers_as_reals(void) {
    static const char text[] = "{\"i\": 7, \"large\": -1000000000000000019884624838656}";
    char path[] = "/tmp/snapmla-json-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0 && write(fd, text, sizeof text - 1) == sizeof text - 1);
    (void)close(fd);
    js *v = js_parse_file_as_reals(path, 1 << 10, NULL);
    CU_ASSERT_EQUAL(js_get_num(v, "i", 0), 7);
    CU_ASSERT_EQUAL(js_get_num(v, "large", 0), -1e30);
    CU_ASSERT_PTR_NULL(js_parse_file_as_reals(path, 10, NULL));
    js_free(v);
    CU_ASSERT_EQUAL(unlink(path), 0);
}

static void test_deep_nesting_is_refused(void) {
    enum { DEPTH = 100000 };
    char *deep = malloc(DEPTH + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(deep);
    memset(deep, '[', DEPTH);
    deep[DEPTH] = '\0';
    snap_err err = {0};
    CU_ASSERT_PTR_NULL(parse(deep, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "depth"));
    free(deep);
}

static void test_lookups(void) {
    snap_err err = {0};
    js *v =
        parse("{\"s\":\"a\\u0000b\",\"i\":-7,\"r\":2.5,\"n\":null,\"t\":true,\"l\":[1,2]}", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    size_t n;
    CU_ASSERT_EQUAL(memcmp(js_get_strn(v, "s", &n), "a\0b", 3), 0);
    CU_ASSERT_EQUAL(n, 3);
    CU_ASSERT_EQUAL(js_get_int(v, "i", 0), -7);
    CU_ASSERT_EQUAL(js_get_num(v, "i", 0), -7.0);
    CU_ASSERT_EQUAL(js_get_num(v, "r", 0), 2.5);
    CU_ASSERT_EQUAL(js_get_int(v, "r", 99), 99);
    CU_ASSERT_PTR_NULL(js_get(v, "n"));
    CU_ASSERT_TRUE(js_get_bool(v, "t", false));
    CU_ASSERT_EQUAL(js_len(js_get_array(v, "l")), 2);
    int64_t i;
    CU_ASSERT_EQUAL(js_need_int(v, "r", &i, "row 3", &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "row 3: key 'r' must be an integer, got real");
    js_free(v);
}

/* A number must not change when it is written and read back. NaN becomes null. */
static void test_numbers_round_trip(void) {
    static const double values[] = {0.1, 1e-300, 5e-324, 1.7976931348623157e308,
                                    123456789.123456789};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        js *array = js_new_array();
        CU_ASSERT(js_push_new(array, js_new_num(values[i])));
        CU_ASSERT(js_push_new(array, js_new_num(NAN)));
        buf text = {0};
        CU_ASSERT_EQUAL(js_write(array, JS_COMPACT, &text, NULL), SNAP_OK);
        js *back = parse(buf_str(&text), NULL);
        CU_ASSERT_EQUAL(js_num(js_at(back, 0)), values[i]);
        CU_ASSERT(js_is_null(js_at(back, 1)));
        js_free(back);
        js_free(array);
        buf_release(&text);
    }
}

/* Brackets, quotes and newlines inside strings are content, not structure. */
static void test_rows_take_a_line(void) {
    static const char in[] =
        "{\"b\":[{\"x\":[1,2],\"s\":\"a]\\\"{\\n [\"},[],3],\"a\":{\"c\":{\"d\":null}},"
        "\"e\":[],\"f\":[[1,{\"g\":[2]}],\"\\\\\"]}";
    static const char want[] =
        "{\n  \"a\": {\n    \"c\": {\n      \"d\": null\n    }\n  },\n"
        "  \"b\": [\n    {\"s\": \"a]\\\"{\\n [\",\"x\": [1,2]},\n    [],\n    3\n  ],\n"
        "  \"e\": [],\n  \"f\": [\n    [1,{\"g\": [2]}],\n    \"\\\\\"\n  ]\n}";
    js *v = js_parse(in, strlen(in), "test", NULL), *back;
    buf out = {0};
    CU_ASSERT_FATAL(v && js_write(v, JS_ROWS, &out, NULL) == SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&out), want);
    back = js_parse(buf_str(&out), out.len, "test", NULL);
    CU_ASSERT(js_equal(v, back));
    js_free(back);
    js_free(v);
    buf_release(&out);
}

static void test_invalid_utf8_is_repaired_on_the_way_out(void) {
    js *v = js_new_strn("a\xff\xc3\xa9", 4);
    CU_ASSERT_STRING_EQUAL(js_str(v), "a\xEF\xBF\xBD\xc3\xa9");
    js_free(v);
}

static snap_status count_line(void *ctx, js *object, long line, snap_err *err) {
    (void)err;
    CU_ASSERT_EQUAL(js_get_int(object, "line", 0), line);
    ++*(int *)ctx;
    return SNAP_OK;
}

static void test_lines(void) {
    const char *good = "{\"line\":1}\n\n  \r\n{\"line\":4}";
    int n = 0;
    CU_ASSERT_EQUAL(js_each_line(good, strlen(good), "d", count_line, &n, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(n, 2);
    snap_err err = {0};
    const char *bad = "{\"line\":1}\n[2]\n";
    CU_ASSERT_EQUAL(js_each_line(bad, strlen(bad), "d", count_line, &n, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "d:2: a line must be an object, got array");
    err = (snap_err){0};
    bad = "{\"line\":1}\n{\"a\":\n";
    CU_ASSERT_EQUAL(js_each_line(bad, strlen(bad), "d", count_line, &n, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "d:2:"));
    err = (snap_err){0};
    bad = "{\"line\":1}\n{\"a\": hidden}\n"; /* the message has the place and the reason, not the
                                                data */
    CU_ASSERT_EQUAL(js_each_line(bad, strlen(bad), "d", count_line, &n, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "d:2:12: invalid token");
}

/* The lines are those that a reader counts in the text. */
static void test_lines_of_members(void) {
    static const char text[] =
        "\n{\"a\": 1,\n \"b\": {\"x\": [1,\n2, {\n\"y\": \"}\\\"{,\"}],\n\"z\":"
        "\n\n[]}, \"c\": null}\n";
    static const struct {
        const char *path[4];
        size_t depth;
        long line;
    } cases[] = {
        {{NULL}, 0, 2},          {{"a"}, 1, 2},
        {{"b"}, 1, 3},           {{"b", "x"}, 2, 3},
        {{"b", "x", "0"}, 3, 3}, {{"b", "x", "1"}, 3, 4},
        {{"b", "x", "2"}, 3, 4}, {{"b", "x", "2", "y"}, 4, 5},
        {{"b", "z"}, 2, 6},      {{"b", "z", "0"}, 3, 6},
        {{"c"}, 1, 8},           {{"d"}, 1, 2},
        {{"b", "none"}, 2, 3},   {{"a", "x"}, 2, 2},
    };
    js *v = parse(text, NULL);
    CU_ASSERT_PTR_NOT_NULL(v);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CU_ASSERT_EQUAL(json_line(text, strlen(text), cases[i].path, cases[i].depth),
                        cases[i].line);
    js_free(v);
}

CU_TestInfo tests_json[] = {
    {"errors name the place", test_errors_name_the_place},
    {"numbers as reals", test_numbers_as_reals},
    {"deep nesting is refused", test_deep_nesting_is_refused},
    {"members are looked up by name", test_lookups},
    {"numbers round-trip", test_numbers_round_trip},
    {"each row takes one line", test_rows_take_a_line},
    {"invalid UTF-8 is repaired on the way out", test_invalid_utf8_is_repaired_on_the_way_out},
    {"JSON lines", test_lines},
    {"the line of a member in a text", test_lines_of_members},
    CU_TEST_INFO_NULL};
