#include <CUnit/CUnit.h>
#include <string.h>

#include "harness/bench/tokenizing.h"

static const char kDir[] = "generator/test/tokenizer/bytes";

static void test_a_text_that_comes_back(void) {
    tokenizing_row row;
    buf text = {0};
    tokenizing_text(5, 20000, &text);
    CU_ASSERT(text.len >= 20000 && text.len < 20100);
    CU_ASSERT_EQUAL_FATAL(tokenizing_bench(kDir, text.data, text.len, 0.01, &row, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(row.bytes, (int64_t)text.len);
    CU_ASSERT(row.tokens > 0 && row.tokens <= row.bytes);
    CU_ASSERT_DOUBLE_EQUAL(row.encode_tok_s / row.encode_mb_s,
                           1e6 * (double)row.tokens / (double)row.bytes, 1);
    CU_ASSERT(row.decode_tok_s > 0);
    buf_release(&text);
}

static void test_refusals(void) {
    tokenizing_row row;
    snap_err err = {0};
    CU_ASSERT_EQUAL(tokenizing_bench(kDir, "a\xFF", 2, 0.01, &row, &err), SNAP_E_WRONG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "does not return the text"));
    CU_ASSERT_EQUAL(tokenizing_bench("generator/test", "a", 1, 0.01, &row, NULL), SNAP_E_IO);
}

CU_TestInfo tests_tokenizing[] = {
    {"decoding returns the text", test_a_text_that_comes_back},
    {"bad texts are refused", test_refusals},
    CU_TEST_INFO_NULL,
};
