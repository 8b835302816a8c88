/* Tests the calls of a runner that another runner repeats (generator/local/model/calls.h). */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "generator/local/model/runner.h"
#include "generator/test/tiny_model.h"

enum { kPages = 4, kMessages = 16 };

/* Keeps the messages instead of sending them. */
typedef struct {
    call_sender base;
    buf message[kMessages];
    int n, failed;
} keeper;

static snap_status keep(call_sender *s, const void *bytes, size_t n, snap_err *err) {
    keeper *k = (keeper *)s;
    if (k->n == kMessages)
        return err_set(err, SNAP_E_NOMEM, "more messages than this test has room for");
    return buf_append(&k->message[k->n++], bytes, n)
               ? SNAP_OK
               : err_set(err, SNAP_E_NOMEM, "no memory for a message");
}

static void note_failure(call_sender *s, snap_err *err) {
    keeper *k = (keeper *)s;
    (void)err;
    k->failed++;
}

static keeper keeper_make(void) {
    return (keeper){.base = {.send = keep, .fail = note_failure}};
}

static void keeper_release(keeper *k) {
    for (int i = 0; i < kMessages; i++)
        buf_release(&k->message[i]);
}

/* Creates a runner whose cache is zero, so that pages can be compared. */
static runner *open_runner(const tiny_model *t, kv_format format, call_sender *calls) {
    runner *r = NULL;
    runner_options opt = {.format = format,
                          .pages = kPages,
                          .context = TINY_TOKENS,
                          .max_rows = TINY_TOKENS,
                          .max_decode = 2,
                          .threads = 1,
                          .calls = calls};
    CU_ASSERT_EQUAL_FATAL(runner_create(&r, &t->weights, &opt, NULL), SNAP_OK);
    char *zero = calloc(1, kv_cache_page_bytes(runner_cache(r)));
    CU_ASSERT_PTR_NOT_NULL_FATAL(zero);
    for (int32_t i = 0; i < kPages; i++)
        CU_ASSERT_EQUAL(kv_cache_write_page(runner_cache(r), i, zero, NULL), SNAP_OK);
    free(zero);
    return r;
}

/* All kinds of calls: chunks of two prompts, a copied page, decode steps, a page from the host. */
static void make_calls(runner *r, const tiny_model *t) {
    int vocab = t->shape.vocab_size;
    float *logits = calloc(4 * (size_t)vocab, sizeof *logits);
    char *page = malloc(kv_cache_page_bytes(runner_cache(r)));
    CU_ASSERT_FATAL(logits && page);
    const int32_t first[] = {0, 1}, second[] = {2, 3};
    reading wanted[2] = {{.kind = READ_BEST}, {.kind = READ_BEST}};
    reading_result got[2];
    int32_t next[2];
    model_piece prompts[] = {
        {.tokens = t->tokens, .count = 66, .pages = first, .logits = 1, .chunk = true},
        {.tokens = t->tokens, .count = 1, .pages = second, .chunk = true}};
    model_piece tokens[] = {
        {.tokens = t->tokens + 66, .count = 1, .position = 66, .pages = first, .logits = 1},
        {.tokens = t->tokens + 1, .count = 1, .position = 1, .pages = second, .logits = 1}};
    CU_ASSERT_EQUAL(runner_step(r, prompts, 2, logits, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(runner_copy_page(r, 0, 3, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(runner_step_read(r, tokens, 2, wanted, got, logits, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(kv_cache_read_page(runner_cache(r), 1, page, NULL), SNAP_OK);
    page[0] ^= 1;
    CU_ASSERT_EQUAL(runner_write_page(r, 1, page, NULL), SNAP_OK);
    tokens[0].position++;
    tokens[1].position++;
    CU_ASSERT_EQUAL(runner_step_greedy(r, tokens, 2, next, NULL), SNAP_OK);
    free(page);
    free(logits);
}

static void expect_same_cache(runner *a, runner *b) {
    size_t n = kv_cache_page_bytes(runner_cache(a));
    char *x = malloc(n), *y = malloc(n);
    CU_ASSERT_FATAL(x && y);
    for (int32_t i = 0; i < kPages; i++) {
        CU_ASSERT_EQUAL(kv_cache_read_page(runner_cache(a), i, x, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(kv_cache_read_page(runner_cache(b), i, y, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(memcmp(x, y, n), 0);
    }
    free(x);
    free(y);
}

/* After the calls, all pages of the two caches have the same bits. */
static void test_repeated(void) {
    static const kv_format formats[] = {CACHE_BF16, CACHE_FP8, CACHE_F32};
    tiny_model t;
    tiny_open(&t, "v3");
    for (int f = 0; f < 3; f++) {
        keeper k = keeper_make();
        runner *a = open_runner(&t, formats[f], &k.base), *b = open_runner(&t, formats[f], NULL);
        make_calls(a, &t);
        CU_ASSERT_EQUAL(k.n, 5);
        CU_ASSERT_EQUAL(k.failed, 0);
        for (int i = 0; i < k.n; i++)
            CU_ASSERT_EQUAL(runner_repeat(b, k.message[i].data, k.message[i].len, NULL), SNAP_OK);
        expect_same_cache(a, b);
        runner_free(a);
        runner_free(b);
        keeper_release(&k);
    }
    tiny_close(&t);
}

/* A call that is refused before it was sent does not end the other ranks. */
static void test_refused(void) {
    tiny_model t;
    keeper k = keeper_make();
    float logits[1];
    int32_t pages[] = {kPages};
    tiny_open(&t, "v3");
    runner *r = open_runner(&t, CACHE_BF16, &k.base);
    model_piece p = {.tokens = t.tokens, .count = 1, .pages = pages};
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, logits, NULL), SNAP_E_SHAPE);
    CU_ASSERT(k.n == 0 && k.failed == 0);
    pages[0] = 0;
    model_piece three[] = {p, p, p}; /* more sequences than max_decode: found in the step */
    CU_ASSERT_EQUAL(runner_step(r, three, 3, logits, NULL), SNAP_E_SHAPE);
    CU_ASSERT(k.n == 1 && k.failed == 1);
    runner_free(r);
    keeper_release(&k);
    tiny_close(&t);
}

static void expect_input(runner *r, const void *bytes, size_t n) {
    snap_err err = {0};
    CU_ASSERT_EQUAL(runner_repeat(r, bytes, n, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "a call from rank 0 is malformed");
}

/* Messages that are cut or too long are refused. Other numbers in a message are refused, or are
 * another valid call. */
static void test_malformed(void) {
    static const int32_t wrong[] = {-1, 0, 1, 4, TINY_TOKENS + 1, INT32_MAX, INT32_MIN};
    tiny_model t;
    keeper k = keeper_make();
    tiny_open(&t, "v3");
    runner *a = open_runner(&t, CACHE_BF16, &k.base), *b = open_runner(&t, CACHE_BF16, NULL);
    make_calls(a, &t);
    for (int i = 0; i < k.n; i++) {
        buf *m = &k.message[i];
        size_t step = m->len > 4096 ? 997 : 1;
        for (size_t n = 0; n < m->len; n += step)
            expect_input(b, m->data, n);
        CU_ASSERT_TRUE(buf_append(m, "\0\0\0", 4));
        expect_input(b, m->data, m->len);
        m->len -= 4;
        for (size_t at = 0; at + 4 <= m->len && at < 400; at += 4)
            for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
                int32_t before;
                memcpy(&before, m->data + at, 4);
                memcpy(m->data + at, &wrong[w], 4);
                snap_status st = runner_repeat(b, m->data, m->len, NULL);
                CU_ASSERT(st == SNAP_OK || st == SNAP_E_INPUT || st == SNAP_E_SHAPE);
                memcpy(m->data + at, &before, 4);
            }
    }
    runner_free(a);
    runner_free(b);
    keeper_release(&k);
    tiny_close(&t);
}

CU_TestInfo tests_calls[] = {
    {"calls are repeated", test_repeated},
    {"refused calls", test_refused},
    {"malformed messages", test_malformed},
    CU_TEST_INFO_NULL,
};
