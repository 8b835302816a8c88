/* Tests which reads of a stream give exact times (generator/http/attempt.h). */
#include <CUnit/CUnit.h>
#include <string.h>

#include "generator/http/attempt.h"
#include "generator/test/scripted_server.h"

#define PIECE(text) CHAT_DELTA("{\"content\":\"" text "\"}")

static void take(attempt *a, const char *bytes, bool exact) {
    const http_response head = {.status = 200, .type = "text/event-stream"};
    CU_ASSERT_TRUE(attempt_take(a, &head, bytes, strlen(bytes), 7));
    CU_ASSERT_EQUAL(attempt_times_are_exact(a), exact);
}

static void test_reads_with_one_event(void) {
    attempt a;
    attempt_init(&a, true, false);
    attempt_begin(&a);
    take(&a, PIECE("a"), true);
    take(&a, PIECE("b") PIECE("c"), false);
    take(&a, ": comment\n\n", true);
    take(&a, PIECE("d") "data:", false); /* the next event has begun */
    take(&a, "", true);                  /* no event is complete, so no time is taken */
    take(&a, "\n\n", true);
    take(&a, PIECE("e") ": comment\n\n", false); /* the comment may have come later */
    take(&a, PIECE("f") "\n", false);
    take(&a, "data: {}\n\n" PIECE("g"), true); /* only the last event has a time */
    take(&a, PIECE("h") "data: {}\n\n", false);
    take(&a, "data: {}\n\n: comment\n\n", true);
    take(&a, "data: {}\r\n\r", true);
    take(&a, "\n", true);
    take(&a, "data:", true);
    take(&a, " [DONE]\n", true);
    take(&a, "\n", true);
    CU_ASSERT_EQUAL(a.first_token_ns, 7);
    attempt_release(&a);
}

/* The stream ends without the blank line that completes an event. Its time is that of its last
 * byte. */
static void test_an_unfinished_event(void) {
    const http_response res = {.status = 200, .type = "text/event-stream", .message = ""};
    attempt a;
    attempt_init(&a, true, false);
    attempt_begin(&a);
    char piece[] = PIECE("a");
    piece[strlen(piece) - 2] = '\0';
    take(&a, piece, true);
    CU_ASSERT_EQUAL(a.first_token_ns, -1);
    attempt_judge(&a, &res);
    CU_ASSERT_EQUAL(a.first_token_ns, 7);
    attempt_begin(&a);
    take(&a, PIECE("a") "data: [DONE]", false);
    attempt_judge(&a, &res);
    CU_ASSERT_EQUAL(a.finish_ns, 7);
    attempt_release(&a);
}

static void test_a_whole_answer(void) {
    attempt a;
    const http_response head = {.status = 200, .type = "application/json"};
    attempt_init(&a, true, false);
    attempt_begin(&a);
    CU_ASSERT_TRUE(attempt_take(&a, &head, "{", 1, 7));
    CU_ASSERT_TRUE(attempt_times_are_exact(&a)); /* it has no pieces */
    attempt_release(&a);
}

/* What vLLM 0.32.0 sent for "stream_options": {"include_usage": true}. */
#define VLLM_HEAD                                                                                  \
    "data: {\"id\":\"chatcmpl-be8d2e9df7d32f49\",\"object\":\"chat.completion.chunk\","            \
    "\"created\":1796068371,\"model\":\"tiny\",\"choices\":["
#define VLLM_ROLE                                                                                  \
    VLLM_HEAD                                                                                      \
    "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"          \
    "\"finish_reason\":null}],\"prompt_token_ids\":null,\"prompt_text\":null}\n\n"
#define VLLM_PIECE(text, finish)                                                                   \
    VLLM_HEAD "{\"index\":0,\"delta\":{\"content\":\"" text "\"},\"logprobs\":null,"               \
              "\"finish_reason\":" finish ",\"token_ids\":null}]}\n\n"
#define VLLM_USAGE                                                                                 \
    VLLM_HEAD "],\"usage\":{\"prompt_tokens\":14,\"total_tokens\":17,\"completion_tokens\":3},"    \
              "\"system_fingerprint\":\"vllm-0.32.0-c161c7f6\"}\n\n"

static void count_piece(void *ctx, int64_t now_ns) {
    int *pieces = ctx;
    CU_ASSERT_EQUAL(now_ns, 7);
    ++*pieces;
}

/* The chunk with the role is no piece, and the first piece has an exact time although both come in
 * one read. */
static void test_a_stream_of_vllm(void) {
    const http_response res = {.status = 200, .type = "text/event-stream", .message = ""};
    attempt a;
    int pieces = 0;
    attempt_init(&a, true, false);
    a.on_piece = count_piece;
    a.piece_ctx = &pieces;
    attempt_begin(&a);
    take(&a, VLLM_ROLE, true);
    CU_ASSERT_EQUAL(a.first_token_ns, -1);
    attempt_begin(&a);
    take(&a, VLLM_ROLE VLLM_PIECE(" doub", "null"), true);
    CU_ASSERT_EQUAL(a.first_token_ns, 7);
    take(&a, VLLM_PIECE("ee", "null"), true);
    take(&a, VLLM_PIECE("li", "\"length\",\"stop_reason\":null") VLLM_USAGE, false);
    take(&a, "data: [DONE]\n\n", true);
    attempt_judge(&a, &res);
    CU_ASSERT_EQUAL(a.end, ATTEMPT_OK);
    CU_ASSERT_EQUAL(pieces, 3);
    CU_ASSERT_STRING_EQUAL(buf_str(&a.answer.text), " doubeeli");
    CU_ASSERT_STRING_EQUAL(a.answer.finish_reason, "length");
    CU_ASSERT_EQUAL(a.answer.prompt_tokens, 14);
    CU_ASSERT_EQUAL(a.answer.completion_tokens, 3);
    attempt_release(&a);
}

CU_TestInfo tests_attempt[] = {
    {"a chunk with only the role is no piece of text", test_a_stream_of_vllm},
    {"reads with one event", test_reads_with_one_event},
    {"an unfinished event", test_an_unfinished_event},
    {"an answer that is not streamed", test_a_whole_answer},
    CU_TEST_INFO_NULL};
