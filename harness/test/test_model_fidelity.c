#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "generator/local/local.h"
#include "generator/test/tiny_model.h"
#include "harness/bench/model_fidelity.h"

static const char kText[] =
    "The cache holds one row a token, and a row holds its content and its place. What is read most "
    "is laid out first. She measured it twice; the second time it was not faster.";

static void make_dir(char dir[64]) {
    char path[128];
    buf b = {0};
    (void)snprintf(dir, 64, "/tmp/snapmla-fidelity-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    tiny_write(dir, "v3", 640);
    CU_ASSERT_EQUAL_FATAL(fs_read("generator/test/tokenizer/bytes/tokenizer.json", &b, NULL),
                          SNAP_OK);
    (void)snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, b.data, b.len, NULL), SNAP_OK);
    buf_release(&b);
}

/* Perplexity by the engine's scoring, which is tested against sampling. */
static double perplexity(const char *dir, int *n) {
    static float logprobs[128];
    local_model m;
    tok_ids ids = {0};
    double sum = 0;
    local_options how = {.precision = "fp32", .sequences = 1, .threads = 1};
    CU_ASSERT_EQUAL_FATAL(local_open(&m, dir, &how, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(tok_encode(m.encoder, kText, strlen(kText), TOK_SPECIALS, &ids, NULL), SNAP_OK);
    *n = (int)ids.n;
    CU_ASSERT_FATAL(*n > 20 && *n <= 128);
    CU_ASSERT_EQUAL(engine_score(m.engine, ids.v, *n, 8, logprobs, NULL, NULL, NULL), SNAP_OK);
    for (int i = 0; i + 1 < *n; i++)
        sum -= (double)logprobs[i];
    tok_ids_release(&ids);
    local_close(&m);
    return exp(sum / (*n - 1));
}

static void test_formats_against_the_first(void) {
    char dir[64];
    model_fidelity_row rows[MODEL_FIDELITY_FORMATS];
    int n, tokens;
    make_dir(dir);
    double want = perplexity(dir, &tokens);
    for (int chunks = 0; chunks < 2; chunks++) {
        model_fidelity_options o = {.dir = dir,
                                    .text = kText,
                                    .formats = "fp32,fp32,bf16,fp8",
                                    .threads = 1,
                                    .chunks = chunks};
        CU_ASSERT_EQUAL_FATAL(model_fidelity_run(&o, rows, &n, NULL), SNAP_OK);
        CU_ASSERT_EQUAL_FATAL(n, 4);
        for (int i = 0; i < n; i++) {
            CU_ASSERT_EQUAL(rows[i].all.tokens, tokens - 1);
            CU_ASSERT_EQUAL(rows[i].range[0].tokens, tokens - 1);
            CU_ASSERT_DOUBLE_EQUAL(rows[i].range[0].kl, rows[i].all.kl, 0);
            CU_ASSERT_EQUAL(rows[i].range[1].tokens, 0);
        }
        CU_ASSERT_DOUBLE_EQUAL(exp(rows[0].all.nll / (tokens - 1)), want, 1e-4 * want);
        CU_ASSERT(rows[1].all.kl == 0 && rows[1].all.flips == 0);
        CU_ASSERT(rows[2].all.kl > 0 && rows[2].all.kl < 0.1 * tokens);
        CU_ASSERT(rows[3].all.kl > 0 && rows[3].all.kl < 0.1 * tokens);
        CU_ASSERT(rows[3].all.kl_max <= rows[3].all.kl);
        CU_ASSERT(rows[3].all.kl_max >= rows[3].all.kl / (tokens - 1));
        CU_ASSERT_STRING_EQUAL(rows[3].format, "fp8");
        /* three layers of 64 + 32: bf16, twice that, and e4m3 with bf16 RoPE and a scale */
        CU_ASSERT_EQUAL(rows[0].cache_bytes, 3 * 384);
        CU_ASSERT_EQUAL(rows[2].cache_bytes, 3 * 192);
        CU_ASSERT_EQUAL(rows[3].cache_bytes, 3 * (64 + 64 + 4));
    }
    tiny_remove(dir);
}

static void test_refusals(void) {
    char dir[64];
    model_fidelity_row rows[MODEL_FIDELITY_FORMATS];
    int n;
    snap_err err = {0};
    make_dir(dir);
    model_fidelity_options o = {.dir = dir, .text = kText, .formats = "bf16,int4", .threads = 1};
    CU_ASSERT_EQUAL(model_fidelity_run(&o, rows, &n, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "int4"));
    o.formats = "bf16";
    o.max_tokens = 1;
    CU_ASSERT_EQUAL(model_fidelity_run(&o, rows, &n, NULL), SNAP_E_INPUT);
    volatile sig_atomic_t cancel = 1;
    o.max_tokens = 0;
    o.cancel = &cancel;
    CU_ASSERT_EQUAL(model_fidelity_run(&o, rows, &n, NULL), SNAP_E_CANCELLED);
    tiny_remove(dir);
}

CU_TestInfo tests_model_fidelity[] = {
    {"formats against the first", test_formats_against_the_first},
    {"refusals", test_refusals},
    CU_TEST_INFO_NULL,
};
