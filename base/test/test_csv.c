#include "base/csv.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/rng.h"

/* Prints a row as "line:[field][field]". */
static snap_status show(void *ctx, const csv_field *fields, size_t n, long line, snap_err *err) {
    buf *out = ctx;
    (void)err;
    (void)buf_printf(out, "%ld:", line);
    for (size_t i = 0; i < n; i++) {
        CU_ASSERT_EQUAL(fields[i].s[fields[i].n], '\0');
        (void)buf_puts(out, "[");
        (void)buf_append(out, fields[i].s, fields[i].n);
        (void)buf_puts(out, "]");
    }
    return SNAP_OK;
}

static void test_conformance(void) {
    static const struct {
        const char *text, *rows;
    } cases[] = {
        {"", ""},
        {"\n\r\n", ""},
        {"a", "1:[a]"},
        {"a,b\nc,d\n", "1:[a][b]2:[c][d]"},
        {"a,b\r\nc,d\r\n", "1:[a][b]2:[c][d]"},
        {"a,b\nc,d", "1:[a][b]2:[c][d]"},
        {"\xEF\xBB\xBF"
         "a,b\n",
         "1:[a][b]"},
        {"a,,c\n,,\n", "1:[a][][c]2:[][][]"},
        {"a,", "1:[a][]"},
        {",", "1:[][]"},
        {" a , b \n", "1:[ a ][ b ]"},
        {"\"\"\n", "1:[]"},
        {"\"a,b\",c\n", "1:[a,b][c]"},
        {"\"a\"\"b\",\"\"\"\"\n", "1:[a\"b][\"]"},
        {"\"a\nb\",c\nd,e\n", "1:[a\nb][c]3:[d][e]"},
        {"\"a\r\nb\",c\r\nd,e", "1:[a\r\nb][c]3:[d][e]"},
        {"\"a\rb\",c\n", "1:[a\rb][c]"},
        {"a,b\n\n\nc,d\n", "1:[a][b]4:[c][d]"},
        {"\"\n\n\"\nb\n", "1:[\n\n]4:[b]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf out = {0};
        snap_err err = {0};
        CU_ASSERT_EQUAL(
            csv_each_row(cases[i].text, strlen(cases[i].text), "x.csv", show, &out, &err), SNAP_OK);
        if (strcmp(buf_str(&out), cases[i].rows) != 0)
            printf("\n%s gave %s %s\n", cases[i].text, buf_str(&out), err.text);
        CU_ASSERT_STRING_EQUAL(buf_str(&out), cases[i].rows);
        buf_release(&out);
    }
}

static void test_malformed(void) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a,b\"c\n", "x.csv:1: a quote inside an unquoted field"},
        {"a,b\nc,\"d\"e\n", "x.csv:2: text after a closing quote"},
        {"a\n\"b\nc\nd", "x.csv:2: a quote is never closed"},
        {"\"", "x.csv:1: a quote is never closed"},
        {"\"a\"\"", "x.csv:1: a quote is never closed"},
        {"a\rb\n", "x.csv:1: a carriage return that does not end a line"},
        {"a,b\nc\n", "x.csv:2: 1 fields, the first row has 2"},
        {"a\nb,c\n", "x.csv:2: 2 fields, the first row has 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf out = {0};
        snap_err err = {0};
        CU_ASSERT_EQUAL(
            csv_each_row(cases[i].text, strlen(cases[i].text), "x.csv", show, &out, &err),
            SNAP_E_INPUT);
        CU_ASSERT_STRING_EQUAL(err.text, cases[i].message);
        buf_release(&out);
    }
    buf wide = {0};
    snap_err err = {0};
    for (int i = 0; i < 2000; i++)
        (void)buf_puts(&wide, ",");
    CU_ASSERT_EQUAL(csv_each_row(wide.data, wide.len, "x.csv", show, &wide, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x.csv:1: more than 1024 fields");
    buf_release(&wide);
}

/* Random fields that are written by the rules of the RFC are read back unchanged. */
static void test_round_trip(void) {
    static const char letters[] = "ab,\"\n\r ";
    rng r = rng_make(7, 1);
    for (int round = 0; round < 2000; round++) {
        buf text = {0}, want = {0}, got = {0};
        long line = 1;
        int fields = 1 + (int)rng_below(&r, 4);
        for (int row = 0; row < 3; row++) {
            (void)buf_printf(&want, "%ld:", line);
            for (int f = 0; f < fields; f++) {
                (void)buf_puts(&text, f ? ",\"" : "\"");
                (void)buf_puts(&want, "[");
                for (uint32_t n = rng_below(&r, 6); n; n--) {
                    char c = letters[rng_below(&r, sizeof letters - 1)];
                    line += c == '\n';
                    (void)buf_append(&text, c == '"' ? "\"\"" : &c, c == '"' ? 2 : 1);
                    (void)buf_append(&want, &c, 1);
                }
                (void)buf_puts(&text, "\"");
                (void)buf_puts(&want, "]");
            }
            (void)buf_puts(&text, "\r\n");
            line++;
        }
        CU_ASSERT_EQUAL(csv_each_row(text.data, text.len, "x", show, &got, NULL), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(buf_str(&got), buf_str(&want));
        buf_release(&text);
        buf_release(&want);
        buf_release(&got);
    }
}

static void test_columns(void) {
    static const char *const columns[] = {"c", "a"};
    static const char text[] = "a,b,c\n1,2,3\n4,5,6\n";
    buf out = {0};
    snap_err err = {0};
    CU_ASSERT_EQUAL(csv_each_record(text, strlen(text), "x.csv", columns, 2, show, &out, &err),
                    SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&out), "2:[3][1]3:[6][4]");
    CU_ASSERT_EQUAL(csv_each_record("a,b\n1,2\n", 8, "x.csv", columns, 2, show, &out, &err),
                    SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x.csv:1: no column 'c'");
    err = (snap_err){0};
    CU_ASSERT_EQUAL(csv_each_record("a,c,a\n", 6, "x.csv", columns, 2, show, &out, &err),
                    SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x.csv:1: more than one column 'a'");
    buf_release(&out);
}

CU_TestInfo tests_csv[] = {
    {"files by the rules of RFC 4180", test_conformance},
    {"malformed files are refused", test_malformed},
    {"written fields are read back unchanged", test_round_trip},
    {"columns are found by name", test_columns},
    CU_TEST_INFO_NULL,
};
