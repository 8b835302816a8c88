/* Reads the CSV file with a separate reader (RFC 4180). */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/serving.h"
#include "harness/test/report_fixture.h"
#include "harness/view/format.h"
#include "harness/view/pages.h"

enum { kSheetFields = 400 };
typedef struct {
    char *fields[kSheetFields];
    int n;
} record;

/* Reads a record and unquotes its fields in place. Returns false at the end of the text. */
static bool next_record(char **text, record *r) {
    char *p = *text;
    r->n = 0;
    if (!*p)
        return false;
    for (;;) {
        CU_ASSERT_FATAL(r->n < kSheetFields);
        bool quoted = *p == '"';
        char *to = p += quoted;
        r->fields[r->n++] = to;
        for (; *p && (quoted || (*p != ',' && *p != '\r')); p++) {
            if (quoted && *p == '"' && *++p != '"')
                break;
            *to++ = *p;
        }
        bool more = *p == ',';
        CU_ASSERT(more || strncmp(p, "\r\n", 2) == 0);
        p += more ? 1 : 2;
        *to = '\0';
        if (!more)
            break;
    }
    *text = p;
    return true;
}

static const char *field_of(const record *head, const record *row, const char *name) {
    for (int i = 0; i < head->n; i++)
        if (strcmp(head->fields[i], name) == 0)
            return row->fields[i];
    CU_FAIL_FATAL("no such column");
    return "";
}

static bool same_cell(const record *head, const record *row, const js *cell) {
    static const char *const keys[] = {"heads", "s_q", "batch", "context"};
    const js *shape = js_get_object(cell, "shape");
    bool same = strcmp(field_of(head, row, "section"), "bench") == 0 &&
                strcmp(field_of(head, row, "arm"), js_get_str(cell, "arm")) == 0 &&
                strcmp(field_of(head, row, "scope"), js_get_str(cell, "scope")) == 0;
    for (size_t i = 0; i < 4; i++)
        same = same && strtod(field_of(head, row, keys[i]), NULL) == js_get_num(shape, keys[i], -1);
    return same;
}

static void check_numbers(const record *head, const record *row, const js *cell) {
    static const char *const keys[] = {"median_ns", "min_ns", "q3_ns",        "tflops",
                                       "gb_s",      "tok_s",  "roofline_pct", "floor_ns"};
    const js *p = js_get_object(cell, "performance");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *text = field_of(head, row, keys[i]);
        double want = p ? js_get_num(p, keys[i], (double)NAN) : (double)NAN;
        if (isnan(want)) {
            CU_ASSERT_STRING_EQUAL(text, "");
        } else {
            CU_ASSERT_EQUAL(strtod(text, NULL), want);
        }
    }
}

static void test_csv_brings_every_number_back(void) {
    results *r = fixture_load();
    report_model *m = fixture_model(r);
    const js *bench = results_section(r, "bench");
    buf out = {0};
    write_csv(m, &out);
    char *p = out.data;
    record head, row;
    size_t rows = 0, found = 0;
    CU_ASSERT_FATAL(next_record(&p, &head));
    for (; next_record(&p, &row); rows++) {
        CU_ASSERT_EQUAL(row.n, head.n);
        for (size_t i = 0; i < js_len(bench); i++)
            if (same_cell(&head, &row, js_at(bench, i))) {
                check_numbers(&head, &row, js_at(bench, i));
                found++;
            }
    }
    CU_ASSERT_EQUAL(found, js_len(bench));
    CU_ASSERT_EQUAL(rows, 3 + js_len(bench) + js_len(results_section(r, "fidelity")) + 4 * 3);
    buf_release(&out);
    report_model_free(m);
    results_free(r);
}

/* Compares a row of one section with the same row of the whole file: equal fields, and no value
 * that is missing. Returns the number of fields with a value. */
static size_t compare_rows(const record *head, const record *row, const record *whole_head,
                           const record *whole) {
    size_t values = 0, expected = 0;
    for (int i = 0; i < head->n; i++) {
        CU_ASSERT_STRING_EQUAL(row->fields[i], field_of(whole_head, whole, head->fields[i]));
        values += row->fields[i][0] != '\0';
    }
    for (int i = 0; i < whole_head->n; i++)
        expected += strcmp(whole_head->fields[i], "section") != 0 && whole->fields[i][0];
    CU_ASSERT_EQUAL(values, expected);
    return values;
}

/* Rows of servers under load have their kind as section, and each kind has a file. */
static void test_each_kind_of_serving_row_has_a_file(void) {
    for (const char *const *kind = serving_kinds; *kind; kind++) {
        const char *const *s = csv_sections;
        while (*s && strcmp(*s, *kind) != 0)
            s++;
        CU_ASSERT_PTR_NOT_NULL(*s);
    }
}

/* The files of the sections together have the rows of the whole file, in its order. */
static void test_tidy_files_have_all_rows(void) {
    results *r = fixture_load();
    report_model *m = fixture_model(r);
    size_t in_whole = 0, in_sections = 0;
    for (const char *const *s = csv_sections; *s; s++) {
        buf whole = {0}, part = {0};
        record whole_head, whole_row, head, row;
        write_csv(m, &whole);
        write_csv_section(m, *s, &part);
        char *p = whole.data, *q = part.len ? part.data : NULL;
        CU_ASSERT_FATAL(next_record(&p, &whole_head));
        if (q) {
            CU_ASSERT_FATAL(next_record(&q, &head));
            CU_ASSERT(head.n < whole_head.n);
        }
        for (in_whole = 0; next_record(&p, &whole_row); in_whole++) {
            if (strcmp(field_of(&whole_head, &whole_row, "section"), *s) != 0)
                continue;
            CU_ASSERT_FATAL(q && next_record(&q, &row));
            CU_ASSERT(compare_rows(&head, &row, &whole_head, &whole_row) > 3);
            in_sections++;
        }
        CU_ASSERT(!q || !next_record(&q, &row));
        buf_release(&whole);
        buf_release(&part);
    }
    CU_ASSERT(in_whole > 0);
    CU_ASSERT_EQUAL(in_sections, in_whole);
    report_model_free(m);
    results_free(r);
}

/* No text field may start a formula. */
static void test_csv_has_no_formulas(void) {
    static const char *const texts[] = {"=1+1", "+1",  "-1",   "@x",    "\tx",
                                        "\n=x", "a,b", "a\"b", "plain", ""};
    static const char *const want[] = {"\"'=1+1\"", "\"'+1\"", "\"'-1\"",    "\"'@x\"", "\"'\tx\"",
                                       "\"'\n=x\"", "\"a,b\"", "\"a\"\"b\"", "plain",   ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf out = {0};
        format_csv_text(&out, texts[i]);
        CU_ASSERT_STRING_EQUAL(buf_str(&out), want[i]);
        buf_release(&out);
    }
}

CU_TestInfo tests_report_csv[] = {
    {"CSV keeps every number exactly", test_csv_brings_every_number_back},
    {"tidy files have all rows", test_tidy_files_have_all_rows},
    {"tidy files of servers under load", test_each_kind_of_serving_row_has_a_file},
    {"CSV has no formulas", test_csv_has_no_formulas},
    CU_TEST_INFO_NULL,
};
