#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#include "harness/view/writers.h"

static const char *const heads[] = {"arm", "us", "note"};

static void fill(table *t) {
    table_cell(t, "bf16");
    table_number(t, 1234.56, 1);
    table_cell(t, "-");
    table_cell(t, "fp8");
    table_number(t, (double)NAN, 1);
    table_cell(t, "x y");
}

static void test_alignment(void) {
    table t = table_new(heads, 3);
    buf out = {0};
    fill(&t);
    CU_ASSERT(write_text(&t, false, &out, NULL) == SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&out), "arm       us  note\n"
                                          "bf16  1234.6  -\n"
                                          "fp8        -  x y\n");
    buf_release(&out);
    table_release(&t);
}

static void test_color_marks_heads_only(void) {
    table t = table_new(heads, 3);
    buf out = {0};
    fill(&t);
    CU_ASSERT(write_text(&t, true, &out, NULL) == SNAP_OK);
    const char *rows = strchr(buf_str(&out), '\n');
    CU_ASSERT_FATAL(rows != NULL);
    CU_ASSERT(strstr(buf_str(&out), "\033[1m") != NULL);
    CU_ASSERT(strchr(rows, '\033') == NULL);
    buf_release(&out);
    table_release(&t);
}

static void test_long_cells_are_cut(void) {
    table t = table_new(heads, 3);
    buf out = {0};
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 600; i++)
        table_cell(&t, "%s", text);
    CU_ASSERT(write_text(&t, false, &out, NULL) == SNAP_OK);
    CU_ASSERT(out.len < 201 * 3 * (TABLE_CELL + 3));
    buf_release(&out);
    table_release(&t);
}

/* A table that lacks cells because memory was exhausted is not written as if it were whole. */
static void test_incomplete_tables(void) {
    static void (*const writers[])(const table *t, buf *out) = {write_markdown, write_html,
                                                                write_latex};
    table t = table_new(heads, 3);
    fill(&t);
    t.id = t.caption = "x";
    t.failed = true;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        buf out = {0};
        snap_err err = {0};
        writers[i](&t, &out);
        CU_ASSERT_EQUAL(buf_check(&out, "a table", &err), SNAP_E_NOMEM);
        CU_ASSERT_STRING_EQUAL(err.text, "out of memory for a table");
        buf_release(&out);
    }
    CU_ASSERT_EQUAL(write_text(&t, false, &(buf){0}, NULL), SNAP_E_NOMEM);
    table_release(&t);
}

CU_TestInfo tests_table[] = {
    {"numbers are aligned to the right", test_alignment},
    {"only heads of columns are coloured", test_color_marks_heads_only},
    {"long cells", test_long_cells_are_cut},
    {"incomplete tables", test_incomplete_tables},
    CU_TEST_INFO_NULL,
};
