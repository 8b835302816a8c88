/* Tests the Parquet reader with files that pyarrow wrote. rows.jsonl holds their rows as pyarrow
 * returned them (fixtures/parquet/make.py). */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/parquet.h"

#define FOLDER "base/test/fixtures/parquet/"

static const parquet_limits kLimits = {10000, 1 << 20};

static buf file_of(const char *name) {
    buf bytes = {0};
    char path[200];
    (void)snprintf(path, sizeof path, FOLDER "%s", name);
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &bytes, NULL), SNAP_OK);
    return bytes;
}

static snap_status add_line(void *ctx, js *row, long number, snap_err *err) {
    (void)number;
    return js_push_new(ctx, js_copy(row)) ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "a test");
}

static void expect_rows(const char *name) {
    buf bytes = file_of(name), lines = file_of("rows.jsonl");
    js *rows = js_new_array(), *expected = js_new_array();
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(
        js_each_line(buf_str(&lines), lines.len, "rows.jsonl", add_line, expected, &err), SNAP_OK);
    CU_ASSERT_EQUAL(js_len(expected), 36);
    CU_ASSERT_EQUAL(parquet_each_row(bytes.data, bytes.len, name, kLimits, add_line, rows, &err),
                    SNAP_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT(js_equal(rows, expected));
    js_free(rows);
    js_free(expected);
    buf_release(&bytes);
    buf_release(&lines);
}

static void test_rows(void) {
    expect_rows("default.parquet");
    expect_rows("pages.parquet");
    expect_rows("gzip.parquet");
    expect_rows("zstd.parquet");
}

static snap_status count(void *ctx, js *row, long number, snap_err *err) {
    long *rows = ctx;
    (void)row;
    (void)err;
    *rows = number;
    return SNAP_OK;
}

static snap_status read_bytes(const buf *bytes, parquet_limits limits, snap_err *err) {
    long rows = 0;
    *err = (snap_err){0};
    return parquet_each_row(buf_str(bytes), bytes->len, "f", limits, count, &rows, err);
}

static void expect_refused(const char *name, parquet_limits limits, snap_status status,
                           const char *message) {
    buf bytes = file_of(name);
    snap_err err;
    CU_ASSERT_EQUAL(read_bytes(&bytes, limits, &err), status);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    buf_release(&bytes);
}

static void test_unsupported(void) {
    expect_refused("delta.parquet", kLimits, SNAP_E_UNSUPPORTED, "the encoding 5 of the column 'l");
    expect_refused("brotli.parquet", kLimits, SNAP_E_UNSUPPORTED, "the compression 4 of the colum");
    expect_refused("rows.jsonl", kLimits, SNAP_E_INPUT, "not a Parquet file");
}

static void test_limits(void) {
    expect_refused("zstd.parquet", (parquet_limits){500, 1 << 20}, SNAP_E_INPUT, "more data");
    expect_refused("zstd.parquet", (parquet_limits){10000, 1000}, SNAP_E_INPUT, "more data");
    /* There are limits that suffice for the pages, but not for the texts of the rows as well. */
    buf bytes = file_of("zstd.parquet");
    size_t limit = 0, texts = 0;
    snap_err err;
    snap_status st;
    do {
        limit += 50;
        st = read_bytes(&bytes, (parquet_limits){10000, limit}, &err);
        texts += strstr(err.text, "more text") != NULL;
    } while (st == SNAP_E_INPUT && limit < 10000);
    CU_ASSERT_EQUAL(st, SNAP_OK);
    CU_ASSERT(texts > 0);
    buf_release(&bytes);
}

/* A file that was cut off is refused at every length. */
static void test_truncated(void) {
    buf bytes = file_of("default.parquet");
    snap_err err;
    for (size_t n = 0; n < bytes.len; n++) {
        buf cut = {.data = bytes.data, .len = n};
        CU_ASSERT_EQUAL(read_bytes(&cut, kLimits, &err), SNAP_E_INPUT);
    }
    buf_release(&bytes);
}

/* The pages of this file have checksums. A changed byte before the footer is therefore noticed, in
 * the page or in its header, unless it is in a part of the header that is not used. */
static void test_damaged(void) {
    buf bytes = file_of("pages.parquet");
    size_t refused = 0;
    snap_err err;
    for (size_t i = 0; i < bytes.len; i++) {
        bytes.data[i] ^= 0x55;
        snap_status st = read_bytes(&bytes, kLimits, &err);
        CU_ASSERT((st == SNAP_OK) == (err.text[0] == '\0'));
        refused += st != SNAP_OK;
        bytes.data[i] ^= 0x55;
    }
    CU_ASSERT(refused > bytes.len / 2);
    buf_release(&bytes);
}

static snap_status stop(void *ctx, js *row, long number, snap_err *err) {
    (void)ctx;
    (void)row;
    return number == 3 ? err_set(err, SNAP_E_USAGE, "row 3") : SNAP_OK;
}

static void test_stop(void) {
    buf bytes = file_of("gzip.parquet");
    snap_err err = {0};
    CU_ASSERT_EQUAL(parquet_each_row(bytes.data, bytes.len, "f", kLimits, stop, NULL, &err),
                    SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "row 3");
    buf_release(&bytes);
}

CU_TestInfo tests_parquet[] = {
    {"rows equal those that pyarrow reads", test_rows},
    {"files that are not supported are refused", test_unsupported},
    {"data beyond the caller's limits is refused", test_limits},
    {"truncated files", test_truncated},
    {"damaged files", test_damaged},
    {"an error of the caller stops the reading", test_stop},
    CU_TEST_INFO_NULL,
};
