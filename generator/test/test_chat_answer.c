#include <CUnit/CUnit.h>
#include <string.h>

#include "generator/http/chat_answer.h"
#include "generator/http/chat_request.h"
#include "generator/http/server_error.h"

#define CHOICE(message, finish)                                                                    \
    "{\"choices\":[{\"index\":0,\"message\":" message ",\"finish_reason\":" finish "}]}"

static snap_status read_whole(chat_answer *a, const char *json, snap_err *err) {
    *err = (snap_err){0};
    chat_answer_clear(a);
    return chat_answer_read(a, json, strlen(json), err);
}

static void test_whole_answer(void) {
    static const char json[] =
        "{\"id\":\"x\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":"
        "[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"So \\u221a2 \\ud83d\\ude00"
        "\\u0000!\",\"reasoning_content\":\"hm\",\"reasoning\":\"hm\",\"tool_calls\":[]},"
        "\"logprobs\":null,\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":12,"
        "\"completion_tokens\":34,\"total_tokens\":46}}";
    chat_answer a = chat_answer_make();
    snap_err err;
    CU_ASSERT_EQUAL(read_whole(&a, json, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&a.text), "So \xE2\x88\x9A"
                                             "2 \xF0\x9F\x98\x80\xEF\xBF\xBD!");
    CU_ASSERT_STRING_EQUAL(buf_str(&a.reasoning), "hm");
    CU_ASSERT_STRING_EQUAL(a.finish_reason, "length");
    CU_ASSERT_EQUAL(a.prompt_tokens, 12);
    CU_ASSERT_EQUAL(a.completion_tokens, 34);
    chat_answer_release(&a);
}

/* What is not Unicode becomes U+FFFD, and `repaired` is set. */
static void test_repairs(void) {
    static const struct {
        const char *content, *text;
        bool repaired;
    } cases[] = {
        {"plain \\u00e9 \\ud83d\\ude00 \\\\ud83d", "plain \xc3\xa9 \xf0\x9f\x98\x80 \\ud83d",
         false},
        {"a\xff"
         "b",
         "a\xef\xbf\xbd"
         "b",
         true},
        {"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd", true},
        {"half \\ud83d", "half \xef\xbf\xbd", true},
        {"\\uDE00\\uD83D swapped", "\xef\xbf\xbd\xef\xbf\xbd swapped", true},
        {"\\ud83d\\u0041",
         "\xef\xbf\xbd"
         "A",
         true},
        {"\\\\\\ud83d\\n\xc3", "\\\xef\xbf\xbd\n\xef\xbf\xbd", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        chat_answer a = chat_answer_make();
        buf json = {0};
        snap_err err;
        (void)buf_printf(&json, CHOICE("{\"content\":\"%s\"}", "\"stop\""), cases[i].content);
        CU_ASSERT_EQUAL(read_whole(&a, buf_str(&json), &err), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(buf_str(&a.text), cases[i].text);
        CU_ASSERT_EQUAL(a.repaired, cases[i].repaired);
        chat_answer_clear(&a);
        CU_ASSERT_FALSE(a.repaired);
        buf_release(&json);
        chat_answer_release(&a);
    }
}

/* One chunk of a stream may be repaired; what is not JSON stays an error. */
static void test_repaired_chunks(void) {
    static const char first[] = "{\"choices\":[{\"delta\":{\"content\":\"a\\udc80\"}}]}";
    static const char last[] =
        "{\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}";
    static const char broken[] = "{\"choices\":[{\"delta\":{\"content\":\"\xff";
    chat_answer a = chat_answer_make();
    snap_err err = {0};
    CU_ASSERT_EQUAL(chat_answer_read_chunk(&a, first, strlen(first), &err), SNAP_OK);
    CU_ASSERT_EQUAL(chat_answer_read_chunk(&a, last, strlen(last), &err), SNAP_OK);
    CU_ASSERT(a.repaired && chat_answer_complete(&a));
    CU_ASSERT_STRING_EQUAL(buf_str(&a.text), "a\xef\xbf\xbd"
                                             "b");
    CU_ASSERT_EQUAL(chat_answer_read_chunk(&a, broken, strlen(broken), &err), SNAP_E_INPUT);
    chat_answer_release(&a);
}

static void test_what_an_answer_may_lack(void) {
    chat_answer a = chat_answer_make();
    snap_err err;
    CU_ASSERT_EQUAL(
        read_whole(&a, CHOICE("{\"content\":null,\"reasoning\":\"r\"}", "\"stop\""), &err),
        SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&a.text), "");
    CU_ASSERT_STRING_EQUAL(buf_str(&a.reasoning), "r");
    CU_ASSERT_EQUAL(a.prompt_tokens, -1);
    CU_ASSERT_EQUAL(read_whole(&a, CHOICE("{}", "\"stop\""), &err), SNAP_OK);
    chat_answer_release(&a);
}

/* A part may be a string. The character U+0000 becomes U+FFFD in each kind of part. */
static void test_lists_of_parts(void) {
    chat_answer a = chat_answer_make();
    snap_err err;
    CU_ASSERT_EQUAL(
        read_whole(&a,
                   CHOICE("{\"content\":[\"a\\u0000b\",{\"type\":\"text\",\"text\":\"c\\u0000\"},"
                          "{\"type\":\"thinking\",\"thinking\":[\"d\\u0000e\"]}]}",
                          "\"stop\""),
                   &err),
        SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&a.text), "a\xef\xbf\xbd"
                                             "bc\xef\xbf\xbd");
    CU_ASSERT_STRING_EQUAL(buf_str(&a.reasoning), "d\xef\xbf\xbd"
                                                  "e");
    chat_answer_release(&a);
}

static void test_malformed_answers_say_why(void) {
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"<html>", "answer:1:1: "},
        {"{\"choices\":[{\"message\":{\"content\":\"a", "answer:1:"},
        {"[]", "the answer must be an object, got array"},
        {"{}", "the answer has no 'choices'"},
        {"{\"choices\":{}}", "the answer has no 'choices'"},
        {"{\"choices\":[]}", "the answer's 'choices' are empty"},
        {"{\"choices\":[3]}", "the answer's choice has no 'message'"},
        {"{\"choices\":[{\"index\":1,\"message\":{}}]}", "the answer's 'choices' are empty"},
        {CHOICE("{\"content\":7}", "\"stop\""),
         "the answer's 'content' must be a string, got integer"},
        {CHOICE("{\"content\":\"a\"}", "null"), "the answer has no 'finish_reason'"},
        {CHOICE("{\"content\":\"a\"}", "5"),
         "the answer's 'finish_reason' must be a string of 1 to 31 bytes"},
        {CHOICE("{\"content\":\"a\"}", "\"0123456789012345678901234567890123456789\""),
         "the answer's 'finish_reason' must be a string of 1 to 31 bytes"},
    };
    chat_answer a = chat_answer_make();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snap_err err;
        CU_ASSERT_EQUAL(read_whole(&a, cases[i].json, &err), SNAP_E_INPUT);
        CU_ASSERT_EQUAL(strncmp(err.text, cases[i].why, strlen(cases[i].why)), 0);
    }
    chat_answer_release(&a);
}

static void test_error_objects(void) {
    static const char *const objects[] = {
        "{\"error\":{\"message\":\"out of pages\",\"type\":\"server_error\"}}",
        "{\"error\":\"out of pages\"}",
        "{\"object\":\"error\",\"message\":\"out of pages\",\"code\":500}",
        "{\"detail\":\"out of\\n\\tpages\"}",
        "{\"error\":{\"message\":\"out of pages\"},\"choices\":[]}",
    };
    chat_answer a = chat_answer_make();
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        snap_err err;
        CU_ASSERT_EQUAL(read_whole(&a, objects[i], &err), SNAP_E_NET);
        CU_ASSERT_STRING_EQUAL(err.text, "the server reports: out of pages");
        err = (snap_err){0};
        CU_ASSERT_EQUAL(chat_answer_read_chunk(&a, objects[i], strlen(objects[i]), &err),
                        SNAP_E_NET);
    }
    chat_answer_release(&a);
}

static void test_chunks_add_up(void) {
    static const char *const chunks[] = {
        "{\"choices\":[],\"prompt_filter_results\":[]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"th\"}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"ink\",\"content\":null}}]}",
        "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"not ours\"}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"4\"},\"finish_reason\":null}],"
        "\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}",
        "",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"2\"},\"finish_reason\":\"stop\"}]}",
        "{\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":4}}",
        "[DONE]",
        "not JSON, and too late to matter",
    };
    chat_answer a = chat_answer_make();
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        CU_ASSERT_EQUAL(chat_answer_complete(&a), i > 7);
        CU_ASSERT_EQUAL(chat_answer_read_chunk(&a, chunks[i], strlen(chunks[i]), NULL), SNAP_OK);
    }
    CU_ASSERT_STRING_EQUAL(buf_str(&a.text), "42");
    CU_ASSERT_STRING_EQUAL(buf_str(&a.reasoning), "think");
    CU_ASSERT_STRING_EQUAL(a.finish_reason, "stop");
    CU_ASSERT_EQUAL(a.prompt_tokens, 5);
    CU_ASSERT_EQUAL(a.completion_tokens, 4);
    CU_ASSERT_TRUE(a.done);
    chat_answer_release(&a);
}

static void test_endless_text_is_refused(void) {
    buf chunk = {0};
    (void)buf_puts(&chunk, "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"");
    for (int i = 0; i < 1 << 20; i++)
        (void)buf_puts(&chunk, "xxxx");
    (void)buf_puts(&chunk, "\"}}]}");
    chat_answer a = chat_answer_make();
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(chat_answer_read_chunk(&a, chunk.data, chunk.len, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(a.text.len, CHAT_TEXT_LIMIT);
    CU_ASSERT_EQUAL(chat_answer_read_chunk(&a, chunk.data, chunk.len, NULL), SNAP_E_NOMEM);
    chat_answer_release(&a);
    buf_release(&chunk);
}

static void expect_refusal(int status, const char *body, const char *location, const char *want) {
    buf out = {0};
    server_error_describe(status, body, strlen(body), location, &out);
    CU_ASSERT_STRING_EQUAL(buf_str(&out), want);
    buf_release(&out);
}

static void test_refusals_are_one_line(void) {
    expect_refusal(503, "", "", "HTTP 503");
    expect_refusal(429, "{\"error\":{\"message\":\"slow\\r\\n  down\"}}", "",
                   "HTTP 429: slow down");
    expect_refusal(502, "<html>\n <b>Bad\tGateway</b>\x01\n</html>\n", "",
                   "HTTP 502: <html> <b>Bad Gateway</b> </html>");
    expect_refusal(500, "\xFF\xFE{}", "", "HTTP 500: ??{}");
    expect_refusal(422, "{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"bad\"}]}", "",
                   "HTTP 422: [{\"loc\":[\"body\"],\"msg\":\"bad\"}]; check the model name, max "
                   "tokens and sampling against what the server accepts");
    expect_refusal(
        404,
        "{\"error\":{\"message\":\"The model `nope` does not exist. Valid aliases: tiny.\","
        "\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}", /* vLLM 0.32.0 */
        "",
        "HTTP 404: The model `nope` does not exist. Valid aliases: tiny; check that the "
        "URL ends in the API's root (often /v1) and that model= names a served model");
    expect_refusal(500, "Sorry.", "", "HTTP 500: Sorry.");
    expect_refusal(401, "{\"message\":\"who?\"}", "",
                   "HTTP 401: who?; set SNAPMLA_API_KEY, or the variable that the arm's key_env "
                   "names, to a key that this server accepts");
    expect_refusal(308, "moved", "http://b/v1",
                   "HTTP 308: the server redirects the request, which is not followed for a "
                   "POST; use the URL "
                   "that it points to: http://b/v1");
}

static void test_refusals_are_short(void) {
    buf body = {0}, out = {0};
    for (int i = 0; i < 5000; i++)
        (void)buf_puts(&body, "\xE2\x88\x91");
    server_error_describe(500, body.data, body.len, "", &out);
    CU_ASSERT_TRUE(out.len < 320);
    CU_ASSERT_STRING_EQUAL(out.data + out.len - 6, "\xE2\x88\x91...");
    buf_release(&body);
    buf_release(&out);
}

static int64_t sent_seed(uint64_t seed) {
    static const gen_message message = {"user", "a"};
    const gen_request req = {.messages = &message, .n_messages = 1, .sampling = {.seed = seed}};
    buf body = {0};
    CU_ASSERT_EQUAL_FATAL(chat_request_write(&req, NULL, false, &body, NULL), SNAP_OK);
    js *object = js_parse(buf_str(&body), body.len, "body", NULL);
    int64_t sent = js_get_int(object, "seed", -1);
    js_free(object);
    buf_release(&body);
    return sent;
}

/* Folding must keep small seeds, must stay within 31 bits, and must depend on each of the 64
 * bits. */
static void test_seeds_are_folded(void) {
    CU_ASSERT_EQUAL(sent_seed(0), 0);
    CU_ASSERT_EQUAL(sent_seed(0x7FFFFFFF), 0x7FFFFFFF);
    for (int bit = 0; bit < 64; bit++) {
        int64_t s = sent_seed(UINT64_C(12345) ^ UINT64_C(1) << bit);
        CU_ASSERT_TRUE(s >= 0 && s <= 0x7FFFFFFF && s != 12345);
    }
}

CU_TestInfo tests_chat_answer[] = {{"an answer that is not streamed", test_whole_answer},
                                   {"text that is not Unicode", test_repairs},
                                   {"chunks that are not Unicode", test_repaired_chunks},
                                   {"members that may be absent", test_what_an_answer_may_lack},
                                   {"lists of parts", test_lists_of_parts},
                                   {"malformed answers", test_malformed_answers_say_why},
                                   {"error objects", test_error_objects},
                                   {"chunks add up", test_chunks_add_up},
                                   {"an endless text is refused", test_endless_text_is_refused},
                                   {"refusals: one line", test_refusals_are_one_line},
                                   {"refusals: short", test_refusals_are_short},
                                   {"seeds are folded to 31 bits", test_seeds_are_folded},
                                   CU_TEST_INFO_NULL};
