/* Compares the formats of kernels/format/coded.h with numpy, bit for bit
 * (fixtures/make_coded.py). */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "kernels/format/coded.h"

enum { kC = 512, kWidth = 576, kTokens = 37 };

/* The content of the fixture's tokens, with zeros for NaNs and for numbers beyond FP16. */
static void read_tokens(float *x, int width) {
    buf rows = {0};
    static float all[kTokens * kWidth];
    CU_ASSERT_EQUAL_FATAL(fs_read("kernels/test/fixtures/formats.f32", &rows, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(rows.len, sizeof all);
    memcpy(all, rows.data, sizeof all);
    buf_release(&rows);
    for (int i = 0; i < kTokens; i++)
        for (int d = 0; d < width; d++) {
            float v = all[i * kWidth + d];
            x[i * width + d] = isnan(v) || fabsf(v) > 6e4f ? 0.0f : v;
        }
}

static void check(const coded_format *f, const char *width_name, const js *want) {
    static float x[kTokens * kC];
    char hex[HASH_HEX];
    int width = atoi(width_name);
    read_tokens(x, width);
    CU_ASSERT_EQUAL(f->bytes(width, f->setting), js_get_num(want, "bytes", 0));
    CU_ASSERT_EQUAL(coded_token_bytes(f, width, 64), js_get_num(want, "bytes", 0) + 128);
    coded_round_rows(f, x, kTokens, width, width);
    for (int i = 0; i < kTokens * width; i++)
        x[i] += 0.0f; /* -0 becomes 0 */
    size_t bytes = (size_t)(kTokens * width) * sizeof *x;
    CU_ASSERT_EQUAL_FATAL(hash_bytes(x, bytes, hex, NULL), SNAP_OK);
    if (strcmp(hex, js_get_str(want, "values")) != 0) {
        (void)printf("%s, %d columns\n", f->name, width);
        CU_FAIL("rounded numbers differ from numpy's");
    }
}

static void test_numpy(void) {
    snap_err err = {0};
    int known = 0;
    js *doc = js_parse_file("kernels/test/fixtures/coded.json", 1 << 20, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    for (const coded_format *f = coded_formats(); f->name; f++, known++) {
        const js *widths = js_get_object(doc, f->name);
        CU_ASSERT_PTR_EQUAL(coded_format_find(f->name), f);
        int checked = 0;
        for (void *it = js_first(widths); it; it = js_next(widths, it), checked++)
            check(f, js_key(it), js_value(it));
        CU_ASSERT_EQUAL(checked, 3);
    }
    for (void *it = js_first(doc); it; it = js_next(doc, it))
        known--;
    CU_ASSERT_EQUAL(known, 0);
    CU_ASSERT_PTR_NULL(coded_format_find("kivi5"));
    js_free(doc);
}

/* Rounding must not turn a NaN into a number, and only rows of the NaN's own group may change. */
static void test_not_a_number(void) {
    static float x[kTokens * kC], y[kTokens * kC];
    for (const coded_format *f = coded_formats(); f->name; f++) {
        read_tokens(x, kC);
        x[25 * kC + 100] = NAN;
        memcpy(y, x, sizeof y);
        coded_round_rows(f, y, kTokens, kC, kC);
        CU_ASSERT(isnan(y[25 * kC + 100]));
        int first = f->tokens == 1 ? 26 : f->tokens;
        for (int i = first * kC; i < kTokens * kC; i++)
            CU_ASSERT_FALSE(isnan(y[i]));
    }
}

CU_TestInfo tests_coded[] = {
    {"every format has the numbers of numpy", test_numpy},
    {"a NaN stays one", test_not_a_number},
    CU_TEST_INFO_NULL,
};
