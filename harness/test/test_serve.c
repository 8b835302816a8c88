/* test_serve.c - the answers of a server, its other endpoints, and what it refuses */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "generator/local/answer.h"
#include "generator/local/tokenizer/utf8.h"
#include "generator/test/tiny_model.h"
#include "harness/serve/openai_logprobs.h"
#include "harness/test/serve_answers.h"

#define CHAT        "/v1/chat/completions"
#define COMPLETIONS "/v1/completions"
#define MESSAGES    "\"messages\":[{\"role\":\"user\",\"content\":\"What is 2 + 2?\"}]"

static const char *const kQuestion = "What is 2 + 2?";

/* ---- answers ---- */

/* The answer that the engine gives without a server. */
static void answer_here(const serve_child *c, int max_tokens, local_answers *out) {
    local_model m;
    local_options how = {.context = 8192, .threads = 1};
    gen_message message = {"user", kQuestion};
    answer_options o = {.samples = 1, .max_tokens = max_tokens};
    CU_ASSERT_EQUAL_FATAL(local_open(&m, c->dir, &how, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(local_answer_prompt(&m, &message, 1, &o, out, NULL), SNAP_OK);
    local_close(&m);
}

/* The prompt tokens that the usage reports as cached; -1 = it does not. */
static int64_t cached_of(const js *answer) {
    const js *usage = js_get_object(answer, "usage");
    return js_get_int(js_get_object(usage, "prompt_tokens_details"), "cached_tokens", -1);
}

/* The second of two equal prompts is in the cache. A prompt counts once for several choices. */
static void test_cached_tokens(void) {
    static const char two[] =
        "{\"prompt\":[\"a cached prompt\",\"another\"],\"max_tokens\":3,\"n\":2}";
    serve_child c;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 4);
    js *first = serve_ask_json(&c, CHAT, "{" MESSAGES ",\"max_tokens\":4}");
    js *again = serve_ask_json(&c, CHAT, "{" MESSAGES ",\"max_tokens\":4}");
    CU_ASSERT_EQUAL(cached_of(first), 0);
    CU_ASSERT(serve_usage(again, "prompt_tokens") > 0);
    CU_ASSERT_EQUAL(cached_of(again), serve_usage(again, "prompt_tokens"));
    js_free(first);
    js_free(again);
    first = serve_ask_json(&c, COMPLETIONS, two);
    again = serve_ask_json(&c, COMPLETIONS, two);
    CU_ASSERT_EQUAL(cached_of(first), 0);
    CU_ASSERT_EQUAL(cached_of(again), serve_usage(again, "prompt_tokens"));
    js_free(first);
    js_free(again);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

static void test_answers_are_those_of_the_engine(void) {
    serve_child c;
    local_answers here;
    serve_child_make(&c);
    answer_here(&c, 40, &here);
    serve_child_start(&c, &(serve_options){0}, 4);
    js *whole = serve_ask_json(&c, CHAT, "{" MESSAGES ",\"temperature\":0,\"max_tokens\":40}");
    CU_ASSERT_STRING_EQUAL(serve_content(whole, 0), buf_str(&here.all[0].text));
    CU_ASSERT_STRING_EQUAL(js_get_str(serve_choice(whole, 0), "finish_reason"),
                           here.all[0].why == FINISH_STOP ? "stop" : "length");
    CU_ASSERT_EQUAL(serve_usage(whole, "prompt_tokens"), here.prompt_tokens);
    CU_ASSERT_EQUAL(serve_usage(whole, "completion_tokens"), here.all[0].tokens);
    CU_ASSERT_EQUAL(serve_usage(whole, "total_tokens"), here.prompt_tokens + here.all[0].tokens);
    serve_stream s =
        serve_stream_ask(&c, CHAT,
                         "{" MESSAGES ",\"temperature\":0,\"max_completion_tokens\":40,\"stream\":"
                         "true,\"stream_options\":{\"include_usage\":true},\"model\":\"tiny\"}");
    CU_ASSERT_STRING_EQUAL(buf_str(&s.text[0]), buf_str(&here.all[0].text));
    CU_ASSERT_EQUAL(s.completion, here.all[0].tokens);
    CU_ASSERT_EQUAL(s.prompt, here.prompt_tokens);
    CU_ASSERT(s.events > 5);
    serve_stream_release(&s);
    js *plain = serve_ask_json(
        &c, COMPLETIONS, "{\"prompt\":\"What is 2 + 2?\",\"temperature\":0,\"max_tokens\":40}");
    CU_ASSERT_STRING_EQUAL(js_get_str(serve_choice(plain, 0), "text"), buf_str(&here.all[0].text));
    js_free(plain);
    js_free(whole);
    serve_child_stop(&c);
    local_answers_release(&here);
    serve_child_remove(&c);
}

static void test_choices_seeds_and_stops(void) {
    serve_child c;
    char body[400];
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 4);
#define SEEDED "{" MESSAGES ",\"seed\":7,\"max_tokens\":30,\"ignore_eos\":true,\"n\":3"
    js *whole = serve_ask_json(&c, CHAT, SEEDED "}");
    serve_stream s = serve_stream_ask(&c, CHAT, SEEDED ",\"stream\":true}");
    CU_ASSERT_EQUAL(js_len(js_get_array(whole, "choices")), 3);
    CU_ASSERT_EQUAL(serve_usage(whole, "completion_tokens"), 90);
    CU_ASSERT_EQUAL(s.completion, -1); /* usage was not asked for */
    for (size_t i = 0; i < 3; i++) {
        CU_ASSERT_STRING_EQUAL(buf_str(&s.text[i]), serve_content(whole, i));
        CU_ASSERT_STRING_EQUAL(js_get_str(serve_choice(whole, i), "finish_reason"), "length");
    }
    CU_ASSERT_STRING_NOT_EQUAL(serve_content(whole, 0), serve_content(whole, 1));
    /* A piece of the first answer as a stop string, at a boundary of characters. */
    const char *text = serve_content(whole, 0), *from = text + strlen(text) / 2;
    while (((unsigned char)*from & 0xC0) == 0x80)
        from++;
    js *one = js_new_object();
    buf quoted = {0};
    js *stop = js_new_strn(from, strlen(from));
    CU_ASSERT_EQUAL_FATAL(js_write(stop, JS_COMPACT, &quoted, NULL), SNAP_OK);
    (void)snprintf(body, sizeof body,
                   "{" MESSAGES ",\"seed\":7,\"max_tokens\":30,\"ignore_eos\":true,"
                   "\"stop\":[\"never\",%.200s]}",
                   buf_str(&quoted));
    js *cut = serve_ask_json(&c, CHAT, body);
    const char *first = strstr(text, from);
    CU_ASSERT_EQUAL(strlen(serve_content(cut, 0)), (size_t)(first - text));
    CU_ASSERT_EQUAL(strncmp(serve_content(cut, 0), text, (size_t)(first - text)), 0);
    CU_ASSERT_STRING_EQUAL(js_get_str(serve_choice(cut, 0), "finish_reason"), "stop");
    js_free(stop);
    js_free(one);
    js_free(cut);
    js_free(whole);
    buf_release(&quoted);
    serve_stream_release(&s);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* Special tokens, such as <|end|>, are in the list of tokens and not in the text. */
static bool is_special(const char *token) {
    size_t n = strlen(token);
    return n > 4 && strncmp(token, "<|", 2) == 0 && strcmp(token + n - 2, "|>") == 0;
}

/* The bytes of all tokens are the text of the answer. The tiny model's tokens are single bytes or
 * longer, and its answer has parts of characters: their tokens have bytes that their texts lack. */
static void test_bytes_of_tokens(void) {
    serve_child c;
    buf bytes = {0}, text = {0};
    int parts = 0;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 4);
    js *v = serve_ask_json(&c, CHAT,
                           "{" MESSAGES ",\"seed\":7,\"max_tokens\":30,\"ignore_eos\":true,"
                           "\"logprobs\":true,\"top_logprobs\":1}");
    js *content = js_get_array(js_get_object(serve_choice(v, 0), "logprobs"), "content");
    for (size_t i = 0; i < js_len(content); i++) {
        const js *token = js_at(content, i), *list = js_get_array(token, "bytes");
        buf own = {0};
        for (size_t b = 0; b < js_len(list); b++)
            (void)buf_append(&own, &(char){(char)js_num(js_at(list, b))}, 1);
        if (!is_special(js_get_str(token, "token")))
            (void)buf_append(&bytes, own.data, own.len);
        (void)utf8_append_repaired(&text, own.data, own.len, false);
        CU_ASSERT_STRING_EQUAL(js_get_str(token, "token"), buf_str(&text));
        parts += own.len != text.len || memcmp(own.data, text.data, own.len) != 0;
        buf_clear(&text);
        buf_release(&own);
    }
    CU_ASSERT(parts > 0);
    (void)utf8_append_repaired(&text, bytes.data, bytes.len, false);
    CU_ASSERT_STRING_EQUAL(serve_content(v, 0), buf_str(&text));
    js_free(v);
    buf_release(&bytes);
    buf_release(&text);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* The names of likely tokens can look like the end of one member of the object and the beginning of
 * the next. A name that is there already is left out. */
static void test_names_of_likely_tokens(void) {
    static const char *const names[] = {"a,", ":x", ":-1,"};
    enum { kNames = 3, kFirst = 626 };
    token_logit top[kNames + 1] = {[kNames] = {kFirst, -2}};
    openai_logprobs l = {0};
    tokenizer *t;
    buf text = {0}, out = {0};
    js *file = js_parse_file("generator/test/tokenizer/bytes/tokenizer.json", 1 << 20, NULL);
    for (int i = 0; i < kNames; i++) {
        js *token = js_new_object();
        top[i] = (token_logit){kFirst + i, -1};
        CU_ASSERT_FATAL(js_set_int(token, "id", top[i].id) &&
                        js_set_str(token, "content", names[i]) &&
                        js_push_new(js_get_array(file, "added_tokens"), token));
    }
    CU_ASSERT_EQUAL_FATAL(js_write(file, JS_COMPACT, &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(tokenizer_parse(&t, text.data, text.len, "names", NULL), SNAP_OK);
    openai_logprobs_add(&l, t, kFirst, -1, top, kNames + 1);
    openai_logprobs_write(&l, &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), "[{\"a,\":-1,\":x\":-1,\":-1,\":-1}]"));
    CU_ASSERT_FALSE(l.failed);
    openai_logprobs_release(&l);
    tokenizer_free(t);
    js_free(file);
    buf_release(&text);
    buf_release(&out);
}

/* The log-probabilities of an answer must be those that scoring the answer as a prompt gives. */
static void test_scores_of_prompts(void) {
    serve_child c;
    buf body = {0};
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 4);
    js *ids = serve_ask_json(&c, "/tokenize", "{\"prompt\":\"What is 2 + 2?\"}");
    js *made = serve_ask_json(&c, COMPLETIONS,
                              "{\"prompt\":\"What is 2 + 2?\",\"temperature\":0,\"max_tokens\":20,"
                              "\"ignore_eos\":true,\"logprobs\":3,\"echo\":true}");
    js *logprobs = js_get_object(serve_choice(made, 0), "logprobs");
    int64_t n = js_get_int(ids, "count", -1), all = n + 20;
    CU_ASSERT_EQUAL((int64_t)js_len(js_get_array(logprobs, "tokens")), all);
    CU_ASSERT_EQUAL((int64_t)js_len(js_get_array(logprobs, "top_logprobs")), all);
    CU_ASSERT_EQUAL((int64_t)js_len(js_get_array(logprobs, "text_offset")), all);
    js *values = js_get_array(logprobs, "token_logprobs");
    CU_ASSERT_TRUE(js_is_null(js_at(values, 0)));
    CU_ASSERT_EQUAL(
        strncmp(js_get_str(serve_choice(made, 0), "text"), kQuestion, strlen(kQuestion)), 0);
    /* greedy tokens are the likeliest ones */
    for (int64_t i = n; i < all; i++) {
        const js *top = js_at(js_get_array(logprobs, "top_logprobs"), (size_t)i);
        double own = js_num(js_at(values, (size_t)i));
        for (void *it = js_first(top); it; it = js_next(top, it))
            CU_ASSERT(js_num(js_value(it)) <= own);
    }
    /* chat gives the same numbers as completions */
    js *chat =
        serve_ask_json(&c, CHAT,
                       "{" MESSAGES ",\"temperature\":0,\"max_tokens\":20,\"ignore_eos\":true,"
                       "\"logprobs\":true,\"top_logprobs\":2}");
    js *content = js_get_array(js_get_object(serve_choice(chat, 0), "logprobs"), "content");
    CU_ASSERT_EQUAL(js_len(content), 20);
    for (size_t i = 0; i < 20; i++) {
        CU_ASSERT_DOUBLE_EQUAL(js_get_num(js_at(content, i), "logprob", 1),
                               js_num(js_at(values, (size_t)n + i)), 2e-2);
        CU_ASSERT_EQUAL(js_len(js_get_array(js_at(content, i), "top_logprobs")), 2);
    }
    /* the prompt alone, given as ids */
    (void)buf_puts(&body, "{\"max_tokens\":0,\"echo\":true,\"logprobs\":0,\"prompt\":");
    CU_ASSERT_EQUAL(js_write(js_get_array(ids, "tokens"), JS_COMPACT, &body, NULL), SNAP_OK);
    (void)buf_puts(&body, "}");
    js *scored = serve_ask_json(&c, COMPLETIONS, buf_str(&body));
    js *again = js_get_array(js_get_object(serve_choice(scored, 0), "logprobs"), "token_logprobs");
    CU_ASSERT_EQUAL((int64_t)js_len(again), n);
    for (int64_t i = 1; i < n; i++)
        CU_ASSERT_EQUAL(js_num(js_at(again, (size_t)i)), js_num(js_at(values, (size_t)i)));
    CU_ASSERT_EQUAL(serve_usage(scored, "completion_tokens"), 0);
    /* each of several choices has the scores, also in a stream */
    serve_stream s =
        serve_stream_ask(&c, COMPLETIONS,
                         "{\"prompt\":\"What is 2 + 2?\",\"max_tokens\":2,\"ignore_eos\":true,"
                         "\"logprobs\":1,\"echo\":true,\"n\":3,\"stream\":true}");
    bool seen[3] = {false};
    for (size_t i = 0; i < js_len(s.all); i++) {
        const js *first = serve_choice(js_at(s.all, i), 0);
        const js *list = js_get_array(js_get_object(first, "logprobs"), "token_logprobs");
        int64_t index = js_get_int(first, "index", 0);
        if (seen[index])
            continue;
        seen[index] = true;
        CU_ASSERT((int64_t)js_len(list) >= n);
        CU_ASSERT_EQUAL(js_num(js_at(list, 2)), js_num(js_at(values, 2)));
        CU_ASSERT_EQUAL(strncmp(buf_str(&s.text[index]), kQuestion, strlen(kQuestion)), 0);
    }
    CU_ASSERT_TRUE(seen[0] && seen[1] && seen[2]);
    serve_stream_release(&s);
    js_free(scored);
    js_free(chat);
    js_free(made);
    js_free(ids);
    buf_release(&body);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* A checkpoint with a NaN: no answer may have a text or a log-probability. */
static void test_weights_that_are_nan(void) {
    static const struct {
        const char *path, *body;
    } requests[] = {{CHAT, "{" MESSAGES ",\"max_tokens\":5}"},
                    {CHAT, "{" MESSAGES ",\"max_tokens\":5,\"logprobs\":true,\"top_logprobs\":2}"},
                    {CHAT, "{" MESSAGES ",\"max_tokens\":5,\"temperature\":0,\"n\":2}"},
                    {COMPLETIONS, "{\"prompt\":\"What is\",\"max_tokens\":5}"},
                    {COMPLETIONS, "{\"prompt\":\"What is\",\"max_tokens\":0,\"echo\":true,"
                                  "\"logprobs\":1}"}};
    serve_child c;
    serve_child_make(&c);
    tiny_spoil(c.dir, "model.layers.1.self_attn.o_proj.weight", 7, 1, NAN);
    serve_child_start(&c, &(serve_options){0}, 4);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        serve_reply r;
        serve_ask(&c, requests[i].path, NULL, requests[i].body, &r);
        CU_ASSERT_EQUAL(r.status, 500);
        js *answer = serve_parse(&r);
        CU_ASSERT_PTR_NULL(js_get_array(answer, "choices"));
        const char *why = js_get_str(js_get_object(answer, "error"), "message");
        CU_ASSERT(why && strstr(why, "NaN or infinite"));
        js_free(answer);
        serve_reply_release(&r);
    }
    serve_reply r;
    serve_ask(&c, CHAT, NULL, "{" MESSAGES ",\"max_tokens\":5,\"stream\":true}", &r);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.body), "NaN or infinite"));
    CU_ASSERT_PTR_NULL(strstr(buf_str(&r.body), "[DONE]"));
    for (const char *at = buf_str(&r.body); (at = strstr(at, "\"content\":")); at += 10)
        CU_ASSERT_EQUAL(strncmp(at, "\"content\":\"\"", 12), 0);
    serve_reply_release(&r);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* The ids of the question in the template deepseek-v3.1, as the engine makes them. */
static void ids_here(const serve_child *c, bool thinking, tok_ids *out) {
    local_model m;
    local_options how = {.context = 256,
                         .sequences = 1,
                         .threads = 1,
                         .chat_template = "deepseek-v3.1",
                         .thinking = thinking ? THINKING_ON : THINKING_DEFAULT};
    gen_message message = {"user", kQuestion};
    CU_ASSERT_EQUAL_FATAL(local_open(&m, c->dir, &how, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(local_prompt(&m, &message, 1, out, NULL), SNAP_OK);
    local_close(&m);
}

static void test_chat_template_kwargs(void) {
    static const struct {
        const char *kwargs;
        bool thinking;
    } all[] = {{"{}", false},
               {"{\"thinking\":true}", true},
               {"{\"enable_thinking\":true}", true},
               {"{\"enable_thinking\":false}", false}};
    serve_child c;
    tok_ids ids[2] = {{0}};
    char body[300];
    serve_child_make(&c);
    c.chat_template = "deepseek-v3.1";
    serve_child_start(&c, &(serve_options){0}, 2);
    for (int i = 0; i < 2; i++)
        ids_here(&c, i == 1, &ids[i]);
    CU_ASSERT(ids[0].n != ids[1].n || memcmp(ids[0].v, ids[1].v, ids[0].n * sizeof *ids[0].v) != 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const tok_ids *want = &ids[all[i].thinking];
        (void)snprintf(body, sizeof body, "{" MESSAGES ",\"chat_template_kwargs\":%s}",
                       all[i].kwargs);
        js *v = serve_ask_json(&c, "/tokenize", body);
        CU_ASSERT_TRUE(serve_same_ids(want, js_get_array(v, "tokens")));
        js_free(v);
    }
    tok_ids_release(&ids[0]);
    tok_ids_release(&ids[1]);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* NaN and +inf must not become "null" or -9999 in an answer. -inf is a log-probability. */
static void test_logprobs_that_are_not_finite(void) {
    static const struct {
        float own, top;
        bool bad;
    } cases[] = {{-1, -2, false}, {-INFINITY, -INFINITY, false},
                 {NAN, -1, true}, {INFINITY, -1, true},
                 {-1, NAN, true}, {-1, INFINITY, true}};
    serve_child c;
    tokenizer *t;
    serve_child_make(&c);
    CU_ASSERT_EQUAL_FATAL(tokenizer_open(&t, c.dir, NULL), SNAP_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int chat = 0; chat < 2; chat++) {
            openai_logprobs l = {.chat = chat == 1};
            buf out = {0};
            token_logit top = {70, cases[i].top};
            openai_logprobs_add_first(&l, t, 65);
            CU_ASSERT_FALSE(l.not_finite);
            openai_logprobs_add(&l, t, 66, cases[i].own, &top, 1);
            CU_ASSERT_EQUAL(l.not_finite, cases[i].bad);
            openai_logprobs_write(&l, &out);
            CU_ASSERT_EQUAL(strstr(buf_str(&out), "-9999") != NULL,
                            isinf(cases[i].own) || isinf(cases[i].top));
            buf_release(&out);
            openai_logprobs_release(&l);
        }
    tokenizer_free(t);
    serve_child_remove(&c);
}

static void test_lists_of_prompts(void) {
    serve_child c;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){0}, 2);
    js *v = serve_ask_json(
        &c, COMPLETIONS,
        "{\"prompt\":[\"one\",\"two\",[5,6,7]],\"n\":2,\"max_tokens\":3,\"temperature\":0,"
        "\"ignore_eos\":true}");
    CU_ASSERT_EQUAL(js_len(js_get_array(v, "choices")), 6);
    js_free(v);
    serve_reply r;
    serve_ask(&c, COMPLETIONS, NULL, "{\"prompt\":[\"one\",[1]],\"max_tokens\":1}", &r);
    CU_ASSERT_EQUAL(r.status, 200);
    serve_reply_release(&r);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* ---- other endpoints, and refusals ---- */

typedef struct {
    const char *path, *body;
    int status;
    const char *param, *code; /* members of the error; NULL = null */
} refusal;

static void check_refusal(const serve_child *c, const refusal *x) {
    serve_reply r;
    serve_ask(c, x->path, NULL, x->body, &r);
    js *v = serve_parse(&r), *e = js_get_object(v, "error");
    const char *param = js_get_str(e, "param"), *code = js_get_str(e, "code");
    if (r.status != x->status || (param ? !x->param || strcmp(param, x->param) != 0 : !!x->param) ||
        (code ? !x->code || strcmp(code, x->code) != 0 : !!x->code)) {
        (void)fprintf(stderr, "%s: %d %s\n", x->body, r.status, buf_str(&r.body));
        CU_FAIL("an unexpected refusal");
    }
    CU_ASSERT_PTR_NOT_NULL(js_get_str(e, "message"));
    CU_ASSERT_PTR_NOT_NULL(js_get_str(e, "type"));
    js_free(v);
    serve_reply_release(&r);
}

static void test_refusals(void) {
    static const refusal all[] = {
        {"/nothing", NULL, 404, NULL, "not_found"},
        {CHAT, NULL, 405, NULL, "method_not_allowed"},
        {"/health", "{}", 405, NULL, "method_not_allowed"},
        {"/v1/models/other", NULL, 404, "model", "model_not_found"},
        {CHAT, "", 400, NULL, "invalid_json"},
        {CHAT, "{", 400, NULL, "invalid_json"},
        {CHAT, "[]", 400, NULL, "invalid_json"},
        {CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", 400, NULL,
         "invalid_json"},
        {CHAT, "{}", 400, "messages", NULL},
        {CHAT, "{\"messages\":[]}", 400, "messages", NULL},
        {CHAT, "{\"messages\":[1]}", 400, "messages", NULL},
        {CHAT, "{\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]}", 400, "messages", NULL},
        {CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}", 400,
         "messages", NULL},
        {CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\\u0000b\"}]}", 400, "messages",
         NULL},
        {CHAT, "{" MESSAGES ",\"temperature\":-1}", 400, "temperature", NULL},
        {CHAT, "{" MESSAGES ",\"temperature\":1e300}", 400, "temperature", NULL},
        {CHAT, "{" MESSAGES ",\"temperature\":1e999}", 400, NULL, "invalid_json"},
        {CHAT, "{" MESSAGES ",\"temperature\":NaN}", 400, NULL, "invalid_json"},
        {CHAT, "{" MESSAGES ",\"top_p\":0}", 400, "top_p", NULL},
        {CHAT, "{" MESSAGES ",\"n\":0}", 400, "n", NULL},
        {CHAT, "{" MESSAGES ",\"n\":5000}", 400, "n", NULL},
        {CHAT, "{" MESSAGES ",\"n\":\"2\"}", 400, "n", NULL},
        {CHAT, "{" MESSAGES ",\"max_tokens\":0}", 400, "max_tokens", NULL},
        {CHAT, "{" MESSAGES ",\"max_tokens\":9000}", 400, "messages", "context_length_exceeded"},
        {CHAT, "{" MESSAGES ",\"max_tokens\":5,\"min_tokens\":6}", 400, "min_tokens", NULL},
        {CHAT, "{" MESSAGES ",\"top_logprobs\":2}", 400, "top_logprobs", NULL},
        {CHAT, "{" MESSAGES ",\"stop\":[1]}", 400, "stop", NULL},
        {CHAT, "{" MESSAGES ",\"stream\":1}", 400, "stream", NULL},
        {CHAT, "{" MESSAGES ",\"tools\":[{}]}", 400, "tools", "unsupported_parameter"},
        {CHAT, "{" MESSAGES ",\"response_format\":{\"type\":\"json_object\"}}", 400,
         "response_format", "unsupported_parameter"},
        {CHAT, "{" MESSAGES ",\"response_format\":\"json_object\"}", 400, "response_format", NULL},
        {CHAT, "{" MESSAGES ",\"response_format\":{\"type\":1}}", 400, "response_format", NULL},
        {CHAT, "{" MESSAGES ",\"chat_template_kwargs\":[]}", 400, "chat_template_kwargs", NULL},
        {CHAT, "{" MESSAGES ",\"model\":\"other\"}", 404, "model", "model_not_found"},
        {CHAT, "{" MESSAGES ",\"chat_template_kwargs\":{\"thinking\":1}}", 400, "thinking", NULL},
        {COMPLETIONS, "{\"prompt\":[]}", 400, "prompt", NULL},
        {COMPLETIONS, "{\"prompt\":[640]}", 400, "prompt", NULL},
        {COMPLETIONS, "{\"prompt\":[-1]}", 400, "prompt", NULL},
        {COMPLETIONS, "{\"prompt\":[1,\"x\"]}", 400, "prompt", NULL},
        {COMPLETIONS, "{\"prompt\":\"x\",\"logprobs\":21}", 400, "logprobs", NULL},
        {COMPLETIONS, "{\"prompt\":\"x\",\"best_of\":3}", 400, "best_of", "unsupported_parameter"},
        {COMPLETIONS, "{\"prompt\":\"x\",\"n\":200}", 429, NULL, "queue_full"},
    };
    serve_child c;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.max_queue = 100}, 4);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_refusal(&c, &all[i]);
    js *v = serve_ask_json(&c, CHAT,
                           "{" MESSAGES ",\"max_tokens\":2,\"unknown\":[1],\"user\":null,"
                           "\"response_format\":null,\"chat_template_kwargs\":null}");
    js_free(v);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

static void test_other_endpoints(void) {
    serve_child c;
    serve_reply r;
    serve_child_make(&c);
    serve_child_start(&c, &(serve_options){.api_key = "secret"}, 4);
    serve_ask(&c, "/health", NULL, NULL, &r);
    CU_ASSERT_EQUAL(r.status, 200);
    serve_reply_release(&r);
    serve_ask(&c, "/version", NULL, NULL, &r);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.body), "\"1.2.3\""));
    serve_reply_release(&r);
    static const char *const wrong[] = {NULL, "Authorization: Bearer secre\r\n",
                                        "Authorization: Bearer secrets\r\n",
                                        "Authorization: Basic secret\r\n"};
    for (int i = 0; i < 4; i++) {
        serve_ask(&c, "/v1/models", wrong[i], NULL, &r);
        CU_ASSERT_EQUAL(r.status, 401);
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.head), "WWW-Authenticate: Bearer"));
        serve_reply_release(&r);
    }
    serve_ask(&c, "/v1/models", "Authorization: Bearer secret\r\n", NULL, &r);
    CU_ASSERT_EQUAL(r.status, 200);
    js *v = serve_parse(&r);
    js *model = js_at(js_get_array(v, "data"), 0);
    CU_ASSERT_STRING_EQUAL(js_get_str(model, "id"), "tiny");
    CU_ASSERT_EQUAL(js_get_int(model, "max_model_len", 0), 8192);
    js_free(v);
    serve_reply_release(&r);
    serve_ask(&c, CHAT, "Authorization: bearer secret\r\n",
              "{" MESSAGES ",\"max_tokens\":2,\"ignore_eos\":true}", &r);
    CU_ASSERT_EQUAL(r.status, 200);
    serve_reply_release(&r);
    CU_ASSERT_EQUAL(serve_metric(&c, "vllm:generation_tokens_total"), 2);
    CU_ASSERT_EQUAL(serve_metric(&c, "vllm:request_success_total{finished_reason=\"length\""), 1);
    CU_ASSERT_EQUAL(serve_metric(&c, "vllm:time_to_first_token_seconds_count"), 1);
    CU_ASSERT_EQUAL(serve_metric(&c, "vllm:inter_token_latency_seconds_count"), 1);
    CU_ASSERT_EQUAL(serve_metric(&c, "vllm:e2e_request_latency_seconds_count"), 1);
    double busy = serve_metric(&c, "snapmla:engine_busy_seconds_total"),
           in_model = serve_metric(&c, "snapmla:engine_model_seconds_total");
    CU_ASSERT_TRUE(in_model > 0 && in_model < busy);
    CU_ASSERT_EQUAL(serve_metric(&c, "snapmla:model_wait_seconds_total"), 0); /* no GPU */
    CU_ASSERT_TRUE(serve_metric(&c, "snapmla:model_layers_total") > 0);
    serve_child_stop(&c);
    serve_child_remove(&c);
}

CU_TestInfo tests_serve[] = {
    {"cached tokens of prompts", test_cached_tokens},
    {"answers are those of the engine", test_answers_are_those_of_the_engine},
    {"choices, seeds and stop strings", test_choices_seeds_and_stops},
    {"log-probabilities of prompts and answers", test_scores_of_prompts},
    {"weights that are NaN", test_weights_that_are_nan},
    {"log-probabilities that are not finite", test_logprobs_that_are_not_finite},
    {"the bytes of tokens", test_bytes_of_tokens},
    {"names of likely tokens", test_names_of_likely_tokens},
    {"arguments of the chat template", test_chat_template_kwargs},
    {"lists of prompts", test_lists_of_prompts},
    {"refusals", test_refusals},
    {"other endpoints, the key, the metrics", test_other_endpoints},
    CU_TEST_INFO_NULL,
};
