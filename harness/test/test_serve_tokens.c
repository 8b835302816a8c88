/* test_serve_tokens.c - /tokenize, /detokenize, /tokenizer_info and the usage in events */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "harness/test/serve_answers.h"

#define COMPLETIONS "/v1/completions"

/* /detokenize is the inverse of /tokenize, and add_special_tokens is obeyed. */
static void test_detokenize(void) {
    static const char text[] = "{\"prompt\":\"Äpfel & \\\"x\\\"\\n\",\"add_special_tokens\":false}";
    static const char *const bad[] = {"{}", "{\"tokens\":5}", "{\"tokens\":[1,\"x\"]}",
                                      "{\"tokens\":[-1]}", "{\"tokens\":[1000000]}"};
    serve_child c;
    buf body = {0};
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 2);
    js *plain = serve_ask_json(&c, "/tokenize", text);
    (void)buf_puts(&body, "{\"tokens\":");
    CU_ASSERT_EQUAL(js_write(js_get_array(plain, "tokens"), JS_COMPACT, &body, NULL), SNAP_OK);
    (void)buf_puts(&body, "}");
    js *back = serve_ask_json(&c, "/detokenize", buf_str(&body));
    CU_ASSERT_STRING_EQUAL(js_get_str(back, "prompt"), "Äpfel & \"x\"\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        serve_reply r;
        serve_ask(&c, "/detokenize", NULL, bad[i], &r);
        CU_ASSERT_EQUAL(r.status, 400);
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.body), "\"param\":\"tokens\""));
        serve_reply_release(&r);
    }
    js_free(plain);
    js_free(back);
    buf_release(&body);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* A tokenizer that puts a token before each prompt does so unless the client forbids it. */
static void test_special_tokens_of_prompts(void) {
    serve_child c = {.dir = "models/snapmla-10m"};
    local_model m;
    local_options how = {.context = 512, .threads = 1, .cache_bytes = 1 << 24};
    tok_ids with = {0}, without = {0};
    CU_ASSERT_EQUAL_FATAL(local_open(&m, c.dir, &how, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(tok_encode(m.encoder, "a text", 6, TOK_SPECIALS, &with, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(tok_encode(m.encoder, "a text", 6, 0, &without, NULL), SNAP_OK);
    serve_child_start(&c, &(serve_options){0}, 2);
    js *a = serve_ask_json(&c, "/tokenize", "{\"prompt\":\"a text\"}");
    js *b = serve_ask_json(&c, "/tokenize", "{\"prompt\":\"a text\",\"add_special_tokens\":false}");
    CU_ASSERT_TRUE(serve_same_ids(&with, js_get_array(a, "tokens")));
    CU_ASSERT_TRUE(serve_same_ids(&without, js_get_array(b, "tokens")));
    js_free(a);
    js_free(b);
    tok_ids_release(&with);
    tok_ids_release(&without);
    local_close(&m);
    serve_child_stop(&c);
}

static void test_tokenizer_info(void) {
    serve_child c = {.dir = "models/snapmla-10m"};
    serve_reply r;
    buf source = {0};
    CU_ASSERT_EQUAL_FATAL(chat_template_source(c.dir, &source, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&source), "add_generation_prompt"));
    serve_child_start(&c, &(serve_options){.chat_template = buf_str(&source)}, 2);
    serve_ask(&c, "/tokenizer_info", NULL, NULL, &r);
    js *v = serve_parse(&r),
       *config = js_parse_file("models/snapmla-10m/tokenizer_config.json", 1 << 16, NULL);
    static const char *const keys[] = {"bos_token", "eos_token", "chat_template"};
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_STRING_EQUAL(js_get_str(v, keys[i]), js_get_str(config, keys[i]));
    CU_ASSERT(js_has(v, "pad_token"));
    js_free(v);
    js_free(config);
    serve_reply_release(&r);
    buf_release(&source);
    serve_child_stop(&c);
}

/* Each event has the usage of its choice so far, if both options ask for it. */
static void test_continuous_usage(void) {
    static const char rest[] =
        "\"prompt\":[[5,6,7],[8,9]],\"n\":2,\"max_tokens\":4,\"ignore_eos\":true,\"seed\":2,"
        "\"stream\":true,\"stream_options\":{\"continuous_usage_stats\":true";
    serve_child c;
    char body[300];
    int64_t made[4] = {0};
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 4);
    (void)snprintf(body, sizeof body, "{%s,\"include_usage\":true}}", rest);
    serve_stream s = serve_stream_ask(&c, COMPLETIONS, body);
    for (size_t i = 0; i + 1 < js_len(s.all); i++) {
        const js *event = js_at(s.all, i), *choice = serve_choice(event, 0);
        int64_t k = js_get_int(choice, "index", 0), prompt = k < 2 ? 3 : 2;
        int64_t now = serve_usage(event, "completion_tokens");
        CU_ASSERT(now >= made[k] && now >= 1); /* some tokens complete no character */
        made[k] = now;
        CU_ASSERT_EQUAL(serve_usage(event, "prompt_tokens"), prompt);
        CU_ASSERT_EQUAL(serve_usage(event, "total_tokens"), prompt + made[k]);
    }
    for (int k = 0; k < 4; k++)
        CU_ASSERT_EQUAL(made[k], 4);
    CU_ASSERT_EQUAL(s.completion, 16); /* the last event: all choices */
    serve_stream_release(&s);
    (void)snprintf(body, sizeof body, "{%s}}", rest);
    s = serve_stream_ask(&c, COMPLETIONS, body);
    CU_ASSERT_FALSE(js_has(js_at(s.all, 0), "usage"));
    serve_stream_release(&s);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

CU_TestInfo tests_serve_tokens[] = {
    {"detokenize", test_detokenize},
    {"special tokens of prompts", test_special_tokens_of_prompts},
    {"tokenizer info", test_tokenizer_info},
    {"usage in each event", test_continuous_usage},
    CU_TEST_INFO_NULL,
};
