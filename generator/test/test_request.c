/* Tests requests with settings, and the forms in which servers answer them. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "generator/http/chat_request.h"
#include "generator/http/client.h"
#include "generator/settings.h"
#include "generator/test/drive.h"
#include "generator/test/scripted_server.h"

static const retry_policy once = {.base_s = 0.002, .cap_s = 0.01, .server_cap_s = 0.5};

#define USAGE ",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":9,\"total_tokens\":16}"
#define COUNTED                                                                                    \
    ",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":9,\"total_tokens\":16,"                 \
    "\"completion_tokens_details\":{\"reasoning_tokens\":4}}"
#define WHOLE(message, usage)                                                                      \
    "{\"choices\":[{\"index\":0,\"message\":" message ",\"finish_reason\":\"stop\"}]" usage "}"
#define DELTA(delta) "data: {\"choices\":[{\"index\":0,\"delta\":" delta "}]}\n\n"
#define STOP         CHAT_FINISH("stop")
#define END          "data: {\"choices\":[]" COUNTED "}\n\ndata: [DONE]\n\n"
#define SSE          "text/event-stream"
#define JSON         "application/json"

/* One answer of a server. @stream: events were requested. @text NULL: the request fails. */
static const struct {
    const char *name, *type, *body;
    bool stream;
    const char *text, *reasoning;
    int64_t reasoning_tokens;
} kForms[] = {
    {"JSON for a stream", JSON, "\n " WHOLE("{\"content\":\"a\"}", USAGE), true, "a", NULL, -1},
    {"JSON with a charset for a stream", JSON "; charset=utf-8",
     WHOLE("{\"content\":\"a\",\"reasoning_content\":\"r\"}", COUNTED), true, "a", "r", 4},
    {"JSON as plain text for a stream", "text/plain", WHOLE("{\"content\":\"a\"}", USAGE), true,
     "a", NULL, -1},
    {"events for a document", SSE, DELTA("{\"content\":\"a\"}") STOP END, false, "a", NULL, 4},
    {"events as plain text", "text/plain", DELTA("{\"content\":\"a\"}") STOP END, true, "a", NULL,
     4},
    {"no space after the colon", SSE,
     "data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}"
     "\r\n\r\ndata:[DONE]\r\n\r\n",
     true, "a", NULL, -1},
    {"comments and other events", SSE,
     ": waiting\n\nevent: ping\ndata: {}\n\n" DELTA(
         "{\"content\":\"a\"}") ":\n\n" STOP "event: ping\ndata: {\"type\":\"ping\"}\n\n" END,
     true, "a", NULL, 4},
    {"null as delta and as usage", SSE,
     "data: {\"choices\":[{\"index\":0,\"delta\":null}],\"usage\":null}\n\n" DELTA(
         "{\"content\":\"a\"}") STOP END,
     true, "a", NULL, 4},
    {"a message in a stream", SSE,
     "data: {\"choices\":[{\"index\":0,\"message\":{\"content\":\"a\"},\"finish_reason\":"
     "\"stop\"}]" USAGE "}\n\n",
     true, "a", NULL, -1},
    {"an error in a stream", SSE,
     DELTA("{\"content\":\"a\"}") "data: {\"error\":{\"message\":\"no memory\"}}\n\n", true, NULL,
     NULL, -1},
    {"an error with status 200", JSON, "{\"error\":{\"message\":\"no memory\"}}", true, NULL, NULL,
     -1},
    {"HTML for a stream", "text/html", "<html>", true, NULL, NULL, -1},
    {"reasoning_content", SSE,
     DELTA("{\"reasoning_content\":\"r\",\"content\":null}") DELTA("{\"content\":\"a\"}") STOP END,
     true, "a", "r", 4},
    {"reasoning", SSE, DELTA("{\"reasoning\":\"r\"}") DELTA("{\"content\":\"a\"}") STOP END, true,
     "a", "r", 4},
    {"reasoning twice", SSE,
     DELTA("{\"reasoning\":\"r\",\"reasoning_content\":\"\",\"reasoning_details\":[{\"type\":"
           "\"reasoning.text\",\"text\":\"r\"}]}") DELTA("{\"content\":\"a\"}") STOP END,
     true, "a", "r", 4},
    {"reasoning_details", JSON,
     WHOLE("{\"content\":\"a\",\"reasoning_details\":[{\"type\":\"reasoning.summary\","
           "\"summary\":\"r\"},{\"type\":\"reasoning.encrypted\",\"data\":\"x\"}]}",
           COUNTED),
     false, "a", "r", 4},
    {"parts", JSON,
     WHOLE("{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"r\"}]}"
           ",{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\"},\"b\"]}",
           USAGE),
     false, "ab", "r", -1},
    {"parts in a stream", SSE,
     DELTA("{\"content\":[{\"type\":\"thinking\",\"thinking\":\"r\"}]}")
         DELTA("{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}") STOP END,
     true, "a", "r", 4},
    {"no content", JSON, WHOLE("{\"content\":null}", USAGE), false, "", NULL, -1},
    {"tool calls", JSON,
     "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"a\",\"tool_calls\":[{\"id\":\"t\"}]},"
     "\"finish_reason\":\"tool_calls\"}]}",
     false, "a", NULL, -1},
    {"a text completion", JSON,
     "{\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":\"stop\"}]}", false, "a", NULL,
     -1},
    {"a text completion in a stream", SSE,
     "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"index\":0,"
     "\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n" END,
     true, "a", NULL, 4},
    {"reasoning tokens beside the others", JSON,
     WHOLE("{\"content\":\"a\"}",
           ",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":9,\"reasoning_tokens\":5}"),
     false, "a", NULL, 5},
    {"0 reasoning tokens beside reasoning", JSON,
     WHOLE("{\"content\":\"<think>r</think>a\"}",
           ",\"usage\":{\"completion_tokens\":9,\"reasoning_tokens\":0}"),
     false, "<think>r</think>a", NULL, -1},
};

static void run_one(const reply *r, bool stream, drive *d) {
    server *s = server_start(r, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    generator *g;
    const generator_options opt = {.no_stream = !stream};
    CU_ASSERT_EQUAL_FATAL(client_open(&g, server_url(s), &opt, &once, &d->err), SNAP_OK);
    CU_ASSERT_EQUAL(drive_run(d, g, 1), SNAP_OK);
    generator_close(g);
    server_stop(s);
    server_free(s);
    CU_ASSERT_EQUAL_FATAL(d->n_kept, 1);
}

/* Each form is sent at once, and byte by byte. */
static void test_forms_of_answers(void) {
    for (size_t i = 0; i < 2 * (sizeof kForms / sizeof *kForms); i++) {
        size_t n = i / 2;
        const reply r = {.type = kForms[n].type, .body = kForms[n].body, .step = (int)(i % 2)};
        drive d = {0};
        run_one(&r, kForms[n].stream, &d);
        const kept *k = &d.kept[0];
        bool right = k->failed == !kForms[n].text;
        if (kForms[n].text)
            right = right && strcmp(k->text, kForms[n].text) == 0 &&
                    k->res.reasoning_tokens == kForms[n].reasoning_tokens &&
                    strcmp(k->reasoning ? k->reasoning : "",
                           kForms[n].reasoning ? kForms[n].reasoning : "") == 0;
        if (!right)
            printf("\n%s: '%s' '%s' %s\n", kForms[n].name, k->text,
                   k->reasoning ? k->reasoning : "", k->error ? k->error : "");
        CU_ASSERT_TRUE(right);
        drive_release(&d);
    }
}

/* xAI's completion_tokens leave the reasoning out, which the total shows. */
static void test_reasoning_outside_the_completion(void) {
    static const reply r = {
        .body = WHOLE("{\"content\":\"a\"}",
                      ",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":14,"
                      "\"completion_tokens_details\":{\"reasoning_tokens\":4}}")};
    drive d = {0};
    run_one(&r, false, &d);
    CU_ASSERT(d.kept[0].res.completion_tokens == 7 && d.kept[0].res.reasoning_tokens == 4);
    drive_release(&d);
}

/* ---- requests ---- */

static const gen_message kMessages[] = {{"system", "old"}, {"user", "Why?"}};

static js *request_with(const gen_settings *s, gen_sampling sampling) {
    buf body = {0};
    const gen_request req = {
        .messages = kMessages, .n_messages = 2, .sampling = sampling, .settings = s};
    CU_ASSERT_EQUAL_FATAL(chat_request_write(&req, "m", false, &body, NULL), SNAP_OK);
    js *v = js_parse(buf_str(&body), body.len, "request", NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    buf_release(&body);
    return v;
}

static const gen_sampling kSampling = {.temperature = 1, .top_p = 0.5, .max_tokens = 9, .seed = 3};

/* Each setting gives these members of the request; null: the member is absent. */
static void test_requests(void) {
    static const struct {
        gen_settings settings;
        const char *members;
    } cases[] = {
        {{0}, "{\"max_tokens\":9,\"top_k\":null,\"min_p\":null,\"seed\":3,\"prompt\":null}"},
        {{.system = "new"},
         "{\"messages\":[{\"role\":\"system\",\"content\":\"new\"},{\"role\":\"user\",\"content\":"
         "\"Why?\"}]}"},
        {{.parts = true},
         "{\"messages\":[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"old\"}]},"
         "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Why?\"}]}]}"},
        {{.completions = true}, "{\"prompt\":\"old\\n\\nWhy?\",\"messages\":null}"},
        {{.completions = true, .prompt = "{\"user\":\"Q: {content}\\n\",\"end\":\"A:\"}"},
         "{\"prompt\":\"oldQ: Why?\\nA:\"}"},
        {{.completion_limit = true}, "{\"max_tokens\":null,\"max_completion_tokens\":9}"},
        {{.body = "{\"a\":{\"b\":1},\"seed\":null}"}, "{\"a\":{\"b\":1},\"seed\":null}"},
        {{.thinking_budget = 5, .server = "vllm"}, "{\"thinking_token_budget\":5}"},
        {{.thinking_budget = 5, .server = "sglang"}, "{\"custom_params\":{\"thinking_budget\":5}}"},
        {{.thinking_budget = 5, .server = "llamacpp"},
         "{\"thinking_budget_tokens\":5,\"reasoning_budget_tokens\":5}"},
        {{.thinking_budget = 5,
          .server = "template",
          .body = "{\"chat_template_kwargs\":{\"enable_thinking\":true}}"},
         "{\"chat_template_kwargs\":{\"enable_thinking\":true,\"thinking_budget\":5}}"},
        {{.thinking_budget = 5, .server = "dashscope"},
         "{\"enable_thinking\":true,\"thinking_budget\":5}"},
        {{.thinking_budget = 5, .server = "openrouter"}, "{\"reasoning\":{\"max_tokens\":5}}"},
        {{.thinking_budget = 5, .server = "anthropic"},
         "{\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":5}}"},
        {{.thinking_budget = 5, .server = "nim"}, "{\"nvext\":{\"max_thinking_tokens\":5}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CU_ASSERT_EQUAL(gen_settings_check(&cases[i].settings, NULL), SNAP_OK);
        js *sent = request_with(&cases[i].settings, kSampling);
        js *want = js_parse(cases[i].members, strlen(cases[i].members), "members", NULL);
        for (void *it = js_first(want); it; it = js_next(want, it)) {
            js *value = js_value(it);
            bool right = js_is_null(value) ? !js_has(sent, js_key(it))
                                           : js_equal(js_get(sent, js_key(it)), value);
            if (!right)
                printf("\n%s\n", cases[i].members);
            CU_ASSERT_TRUE(right);
        }
        js_free(want);
        js_free(sent);
    }
}

static void test_sampling(void) {
    gen_sampling s = kSampling;
    s.top_k = 20;
    s.min_p = 0.05;
    s.presence_penalty = 1.5;
    s.frequency_penalty = -1;
    s.repetition_penalty = 1.1;
    js *sent = request_with(&(gen_settings){0}, s);
    CU_ASSERT(js_get_int(sent, "top_k", 0) == 20 && js_is_int(js_get(sent, "top_k")));
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(sent, "min_p", 0), 0.05, 0);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(sent, "presence_penalty", 0), 1.5, 0);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(sent, "frequency_penalty", 0), -1, 0);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(sent, "repetition_penalty", 0), 1.1, 0);
    js_free(sent);
    sent = request_with(&(gen_settings){.server = "llamacpp"}, s);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(sent, "repeat_penalty", 0), 1.1, 0);
    CU_ASSERT_FALSE(js_has(sent, "repetition_penalty"));
    js_free(sent);
}

static void test_what_is_refused(void) {
    static const struct {
        gen_settings settings;
        const char *message;
    } bad[] = {
        {{.body = "[1]"}, "body must be a JSON object"},
        {{.body = "{"}, "body must be a JSON object: "},
        {{.body = "{\"model\":\"x\"}"}, "body: 'model' is set by snapmla: use the key model"},
        {{.body = "{\"n\":2}"}, "body: 'n' is set by snapmla: use --samples"},
        {{.body = "{\"seed\":2}"}, "or null to leave it out"},
        {{.body = "{\"max_tokens\":null}"}, "'max_tokens' is set by snapmla"},
        {{.body = "{\"a\":[{\"My_API_Key\":1}]}"}, "'My_API_Key' looks like a secret"},
        {{.prompt = "{}"}, "needs api=completions"},
        {{.prompt = "{\"user\":1}", .completions = true}, "the members are texts"},
        {{.prompt = "{\"bot\":\"{content}\"}", .completions = true}, "the members are texts"},
        {{.prompt = "{\"user\":\"Q\"}", .completions = true}, "does not contain {content}"},
        {{.parts = true, .completions = true}, "content=parts needs api=chat"},
        {{.thinking_budget = 1}, "needs server=FAMILY"},
        {{.server = "x"}, "must be one of vllm"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL(gen_settings_check(&bad[i].settings, &err), SNAP_E_USAGE);
        if (!strstr(err.text, bad[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].message));
    }
    buf deep = {0};
    for (int i = 0; i < 100; i++)
        (void)buf_puts(&deep, "{\"a\":");
    (void)buf_puts(&deep, "1");
    for (int i = 0; i < 100; i++)
        (void)buf_puts(&deep, "}");
    CU_ASSERT_EQUAL(gen_settings_check(&(gen_settings){.body = buf_str(&deep)}, NULL),
                    SNAP_E_USAGE);
    buf_release(&deep);
}

/* The text has only settings that can change an answer, and equal settings give equal texts. */
static void test_settings_as_json(void) {
    js *v = gen_settings_json(
        &(gen_settings){.parts = true, .completion_limit = true, .server = "vllm"});
    CU_ASSERT(v && !js_first(v));
    js_free(v);
    v = gen_settings_json(&(gen_settings){.system = "s",
                                          .body = "{\"a\":1}",
                                          .thinking_budget = 5,
                                          .server = "vllm",
                                          .completions = true,
                                          .prompt = "{}",
                                          .opened = true});
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(js_write(v, JS_COMPACT, &text, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&text),
                           "{\"api\":\"completions\",\"body\":{\"a\":1},\"reasoning\":\"opened\","
                           "\"system\":\"s\",\"template\":{},\"thinking_budget\":5}");
    buf_release(&text);
    js_free(v);
}

CU_TestInfo tests_request[] = {
    {"forms of answers", test_forms_of_answers},
    {"reasoning outside the completion", test_reasoning_outside_the_completion},
    {"each setting becomes a member of the request", test_requests},
    {"sampling parameters become members of the request", test_sampling},
    {"parameters that are refused", test_what_is_refused},
    {"settings as JSON", test_settings_as_json},
    CU_TEST_INFO_NULL,
};
