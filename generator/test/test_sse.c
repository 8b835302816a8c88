#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "generator/http/sse.h"

static snap_status collect(void *ctx, const char *data, size_t n, snap_err *err) {
    (void)err;
    CU_ASSERT_EQUAL(strlen(data), n);
    (void)buf_printf(ctx, "[%s]", data);
    return SNAP_OK;
}

/* Feeds @n bytes in steps of @step and returns the events as "[data][data]". */
static snap_status events(const char *bytes, size_t n, size_t step, bool finish, buf *out) {
    sse p = sse_make();
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n && st == SNAP_OK; i += step)
        st = sse_feed(&p, bytes + i, n - i < step ? n - i : step, collect, out, NULL);
    if (st == SNAP_OK && finish)
        st = sse_finish(&p, collect, out, NULL);
    sse_release(&p);
    return st;
}

/* Feeds the stream in steps of every size, from one byte to the whole stream. */
static void expect(const char *stream, const char *want) {
    size_t n = strlen(stream);
    for (size_t step = 1; step <= n; step++) {
        buf got = {0};
        CU_ASSERT_EQUAL(events(stream, n, step, false, &got), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(buf_str(&got), want);
        buf_release(&got);
    }
}

/* The examples of WHATWG HTML 9.2.6, with the events that its text states. */
static void test_examples_of_the_standard(void) {
    expect("data: This is the first message.\n\n"
           "data: This is the second message, it\ndata: has two lines.\n\n"
           "data: This is the third message.\n\n",
           "[This is the first message.][This is the second message, it\nhas two lines.]"
           "[This is the third message.]");
    expect("data: YHOO\ndata: +2\ndata: 10\n\n", "[YHOO\n+2\n10]");
    expect(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
           "data:  third event\n\n",
           "[first event][second event][ third event]");
    expect("data\n\ndata\ndata\n\ndata:", "[][\n]");
    expect("data:test\n\ndata: test\n\n", "[test][test]");
}

static void test_line_ends(void) {
    expect("data: a\r\n\r\ndata: b\r\rdata: c\n\n", "[a][b][c]");
    expect("data: a\r\ndata: b\r\n\r\n", "[a\nb]");
    expect("data: a\n\r\ndata: b\r\n\n", "[a][b]");
    expect("\r\n\r\n\n\ndata: a\r\n\r\n\r\n", "[a]");
}

static void test_byte_order_mark_is_skipped_once(void) {
    expect("\xEF\xBB\xBF"
           "data: a\n\n",
           "[a]");
    expect("data: a\n\n\xEF\xBB\xBF"
           "data: b\n\n",
           "[a]");
}

static void test_other_fields_are_ignored(void) {
    expect("event: error\nid: 7\nretry: 10\ndatax: no\n data: no\nDATA: no\ndata: yes\n\n",
           "[yes]");
    expect(":\n: ping - 2026\n\n", "");
}

static void test_the_end_gives_out_what_was_begun(void) {
    static const char *const streams[] = {"data: a\n\ndata: b", "data: a\n\ndata: b\n",
                                          "data: a\n\ndata: b\n\n"};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        buf got = {0};
        CU_ASSERT_EQUAL(events(streams[i], strlen(streams[i]), 3, true, &got), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(buf_str(&got), "[a][b]");
        buf_release(&got);
    }
}

static void fill(buf *b, const char *line, size_t n) {
    (void)buf_puts(b, line);
    while (b->len < n)
        (void)buf_append(b, "x", 1);
}

static void test_endless_lines_are_refused(void) {
    buf stream = {0}, got = {0};
    fill(&stream, "data: ", SSE_EVENT_LIMIT + 1);
    CU_ASSERT_EQUAL(events(stream.data, stream.len, 1 << 16, true, &got), SNAP_E_NOMEM);
    CU_ASSERT_EQUAL(got.len, 0);
    buf_clear(&stream);
    fill(&stream, "data: ", SSE_EVENT_LIMIT - 1);
    CU_ASSERT_EQUAL(events(stream.data, stream.len, 1 << 16, true, &got), SNAP_OK);
    CU_ASSERT_EQUAL(got.len, SSE_EVENT_LIMIT - 1 - 6 + 2);
    buf_release(&stream);
    buf_release(&got);
}

static void test_endless_events_are_refused(void) {
    buf stream = {0}, got = {0};
    for (int i = 0; i < 5; i++) {
        fill(&stream, "data: ", stream.len + SSE_EVENT_LIMIT / 4);
        (void)buf_puts(&stream, "\n");
    }
    CU_ASSERT_EQUAL(events(stream.data, stream.len, 1 << 16, true, &got), SNAP_E_NOMEM);
    buf_release(&stream);
    buf_release(&got);
}

static snap_status refuse(void *ctx, const char *data, size_t n, snap_err *err) {
    (void)n;
    ++*(int *)ctx;
    return err_set(err, SNAP_E_INPUT, "no %s", data);
}

static void test_an_error_of_the_taker_stops(void) {
    sse p = sse_make();
    snap_err err = {0};
    int calls = 0;
    static const char stream[] = "data: a\n\ndata: b\n\n";
    CU_ASSERT_EQUAL(sse_feed(&p, stream, sizeof stream - 1, refuse, &calls, &err), SNAP_E_INPUT);
    CU_ASSERT_EQUAL(calls, 1);
    CU_ASSERT_STRING_EQUAL(err.text, "no a");
    sse_release(&p);
}

CU_TestInfo tests_sse[] = {
    {"the standard's examples at every split", test_examples_of_the_standard},
    {"LF, CR and CRLF", test_line_ends},
    {"byte-order mark", test_byte_order_mark_is_skipped_once},
    {"other fields than data are ignored", test_other_fields_are_ignored},
    {"the end of a stream ends its last event", test_the_end_gives_out_what_was_begun},
    {"endless lines are refused", test_endless_lines_are_refused},
    {"endless events", test_endless_events_are_refused},
    {"an error of the taker stops", test_an_error_of_the_taker_stops},
    CU_TEST_INFO_NULL};
