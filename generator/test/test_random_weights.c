#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/answer.h"
#include "generator/local/random_model.h"
#include "generator/test/random_model.h"

/* Each id has a text of its own, and a text becomes its bytes. */
static void test_tokenizer(void) {
    enum { kIds = 1000 };
    static const char kText[] = "Grüße, 17 * 23?\n";
    tokenizer *t = NULL;
    tok_encoder *e = NULL;
    tok_ids ids = {0};
    buf text = {0};
    size_t n;
    CU_ASSERT_EQUAL_FATAL(random_tokenizer(&t, kIds, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(tok_encoder_create(&e, t, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(tokenizer_size(t), kIds);
    CU_ASSERT_EQUAL(tok_encode(e, kText, strlen(kText), TOK_SPECIALS, &ids, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(ids.n, strlen(kText));
    for (size_t i = 0; i < ids.n; i++)
        CU_ASSERT_EQUAL(ids.v[i], (unsigned char)kText[i]);
    for (int32_t id = 0; id < 256; id++) {
        const char *byte = tokenizer_bytes(t, id, &n);
        CU_ASSERT(n == 1 && (unsigned char)*byte == id);
    }
    CU_ASSERT_EQUAL(tok_decode(t, &(int32_t){256}, 1, false, &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(tok_decode(t, &(int32_t){kIds - 1}, 1, false, &text, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&text), " t256 t999");
    CU_ASSERT_PTR_NULL(tokenizer_bytes(t, kIds, &n));
    CU_ASSERT_PTR_NULL(tokenizer_bytes(t, -1, &n));
    buf_release(&text);
    tok_ids_release(&ids);
    tok_encoder_free(e);
    tokenizer_free(t);
    CU_ASSERT_EQUAL(random_tokenizer(&t, 255, NULL), SNAP_E_UNSUPPORTED);
    CU_ASSERT_PTR_NULL(t);
}

/* A model of random weights answers, so its logits are finite, and its answer has a text. */
static void test_answers(void) {
    model_shape shape;
    local_model m;
    local_answers a;
    gen_message message = {"user", "Hi"};
    answer_options o = {.samples = 1, .max_tokens = 12};
    const char *configs[] = {random_wide_v2, random_wide_v3};
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(
            model_shape_parse(&shape, configs[i], strlen(configs[i]), "config", NULL), SNAP_OK);
        local_options how = {.random = &shape, .threads = 1, .context = 64, .sequences = 1};
        CU_ASSERT_EQUAL_FATAL(local_open(&m, NULL, &how, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(local_answer_prompt(&m, &message, 1, &o, &a, NULL), SNAP_OK);
        CU_ASSERT(a.all[0].why == FINISH_LENGTH || a.all[0].why == FINISH_STOP);
        CU_ASSERT(a.all[0].text.len > 0);
        local_answers_release(&a);
        local_close(&m);
    }
}

static void test_two_tensors_of_one_name(void) {
    checkpoint *c = NULL;
    arena mem = {0};
    tensor *two = calloc(2, sizeof *two);
    CU_ASSERT_PTR_NOT_NULL_FATAL(two);
    two[0] = two[1] = (tensor){.name = "a", .file = "memory"};
    CU_ASSERT_EQUAL(checkpoint_of(&c, two, 2, &mem, NULL), SNAP_E_INPUT);
    CU_ASSERT_PTR_NULL(c);
}

CU_TestInfo tests_random_weights[] = {
    {"a tokenizer for any number of ids", test_tokenizer},
    {"a model of random weights answers", test_answers},
    {"two tensors of one name", test_two_tensors_of_one_name},
    CU_TEST_INFO_NULL,
};
