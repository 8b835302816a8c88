/* Tests which reads of a stream have one time for all pieces in them (generator/http/attempt.h). */
#include <CUnit/CUnit.h>
#include <string.h>

#include "generator/http/attempt.h"
#include "generator/test/scripted_server.h"

#define PIECE(text) CHAT_DELTA("{\"content\":\"" text "\"}")

static void take(attempt *a, const char *bytes, bool one_event) {
    const http_response head = {.status = 200, .type = "text/event-stream"};
    CU_ASSERT_TRUE(attempt_take(a, &head, bytes, strlen(bytes), 7));
    CU_ASSERT_EQUAL(attempt_took_one_event(a), one_event);
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
    CU_ASSERT_TRUE(attempt_took_one_event(&a)); /* it has no pieces */
    attempt_release(&a);
}

CU_TestInfo tests_attempt[] = {{"reads with one event", test_reads_with_one_event},
                               {"an unfinished event", test_an_unfinished_event},
                               {"a whole answer", test_a_whole_answer},
                               CU_TEST_INFO_NULL};
