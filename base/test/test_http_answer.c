/* Tests base/http_answer.h. The expected values follow from RFC 9112. Each response is read as a
 * whole, byte by byte, and in two parts that are split at each position. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/http_answer.h"

typedef struct {
    const char *bytes;
    bool ends; /* the connection ends after the bytes */
    answer_state state;
    int status;
    const char *body;
    bool keeps;
} expected;

#define OK      "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

static const expected cases[] = {
    {OK "Content-Length: 3\r\n\r\nabc", false, ANSWER_COMPLETE, 200, "abc", true},
    {OK "content-length:3\n\nabc", false, ANSWER_COMPLETE, 200, "abc", true},
    {OK "Content-Length: 3 \t\r\n\r\nab", false, ANSWER_OPEN, 200, "ab", false},
    {OK "Content-Length: 3\r\n\r\nab", true, ANSWER_BROKEN, 200, "ab", false},
    {OK "Content-Length: 0\r\n\r\n", false, ANSWER_COMPLETE, 200, "", true},
    {OK "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", false, ANSWER_COMPLETE, 200, "abc",
     true},
    {OK "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", false, ANSWER_INVALID, 200, "", false},
    {OK "Content-Length: -1\r\n\r\n", false, ANSWER_INVALID, 200, "", false},
    {OK "Content-Length: 3x\r\n\r\nabc", false, ANSWER_INVALID, 200, "", false},
    {OK "Content-Length: 99999999999999999999\r\n\r\n", false, ANSWER_INVALID, 200, "", false},
    {OK "Content-Length:\r\n\r\n", false, ANSWER_INVALID, 200, "", false},
    /* the connection delimits the body */
    {OK "\r\nabc", false, ANSWER_OPEN, 200, "abc", false},
    {OK "\r\nabc", true, ANSWER_COMPLETE, 200, "abc", false},
    {"HTTP/1.0 200 OK\r\n\r\nabc", true, ANSWER_COMPLETE, 200, "abc", false},
    /* the last column: whether another request can be sent on the connection */
    {OK "Connection: close\r\nContent-Length: 1\r\n\r\na", false, ANSWER_COMPLETE, 200, "a", false},
    {OK "Connection: x, Close\r\nContent-Length: 1\r\n\r\na", false, ANSWER_COMPLETE, 200, "a",
     false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", false, ANSWER_COMPLETE, 200, "a", false},
    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na", false,
     ANSWER_COMPLETE, 200, "a", true},
    {OK "Connection: closed\r\nContent-Length: 1\r\n\r\na", false, ANSWER_COMPLETE, 200, "a", true},
    /* no body */
    {"HTTP/1.1 204 No Content\r\n\r\n", false, ANSWER_COMPLETE, 204, "", true},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", false, ANSWER_COMPLETE, 304, "",
     true},
    /* informational responses */
    {"HTTP/1.1 100 Continue\r\nContent-Length: 9\r\n\r\nHTTP/1.1 103 Early Hints\r\n"
     "Link: </style.css>\r\n\r\n" OK "Content-Length: 1\r\n\r\na",
     false, ANSWER_COMPLETE, 200, "a", true},
    /* chunks */
    {CHUNKED "3\r\nabc\r\n0\r\n\r\n", false, ANSWER_COMPLETE, 200, "abc", true},
    {CHUNKED "3\r\nabc\r\n2;name=\"x\"\r\nde\r\n000\r\nTrailer: 5\r\nMore: 6\r\n\r\n", false,
     ANSWER_COMPLETE, 200, "abcde", true},
    {CHUNKED "3\nabc\n0\n\n", false, ANSWER_COMPLETE, 200, "abc", true},
    {CHUNKED "0a \r\n0123456789\r\nA\r\n9876543210\r\n0\r\n\r\n", false, ANSWER_COMPLETE, 200,
     "01234567899876543210", true},
    {CHUNKED "3\r\nabc\r\n", false, ANSWER_OPEN, 200, "abc", false},
    {CHUNKED "3\r\nabc\r\n", true, ANSWER_BROKEN, 200, "abc", false},
    {CHUNKED "3\r\nabc\r\n0\r\n", true, ANSWER_BROKEN, 200, "abc", false},
    {CHUNKED "3\r\nabcd\r\n", false, ANSWER_BROKEN, 200, "abc", false},
    {CHUNKED "3\r\nabc\r\r\n", false, ANSWER_BROKEN, 200, "abc", false},
    {CHUNKED "zz\r\n", false, ANSWER_BROKEN, 200, "", false},
    {CHUNKED "\r\n", false, ANSWER_BROKEN, 200, "", false},
    {CHUNKED ";x\r\n", false, ANSWER_BROKEN, 200, "", false},
    {CHUNKED "-1\r\n", false, ANSWER_BROKEN, 200, "", false},
    {CHUNKED "0x2\r\nab\r\n0\r\n\r\n", false, ANSWER_BROKEN, 200, "", false},
    {CHUNKED "0,\r\n\r\n", false, ANSWER_BROKEN, 200, "", false},
    {CHUNKED "ffffffffffffffffff\r\n", false, ANSWER_BROKEN, 200, "", false},
    {OK "Content-Length: 2\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false,
     ANSWER_COMPLETE, 200, "abc", true},
    {OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
     false, ANSWER_COMPLETE, 200, "abc", true},
    {OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", false, ANSWER_INVALID, 200, "", false},
    {OK "Transfer-Encoding: identity\r\nContent-Length: 1\r\n\r\na", false, ANSWER_COMPLETE, 200,
     "a", true},
    /* other protocols and damage */
    {"", true, ANSWER_BROKEN, 0, "", false},
    {"HTTP/1.1 200", true, ANSWER_BROKEN, 0, "", false},
    {"SSH-2.0-OpenSSH_9.2\r\n", false, ANSWER_INVALID, 0, "", false},
    {"\x16\x03\x01", false, ANSWER_INVALID, 0, "", false},
    {"HTTP/2 200 OK\r\n\r\n", false, ANSWER_INVALID, 0, "", false},
    {"HTTP/1.1 20 OK\r\n\r\n", false, ANSWER_INVALID, 0, "", false},
    {"HTTP/1.1 2000 OK\r\n\r\n", false, ANSWER_INVALID, 0, "", false},
    {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", false, ANSWER_COMPLETE, 200, "", true},
    {OK "no colon\r\n\r\n", false, ANSWER_INVALID, 200, "", false},
    {OK "A: b\r\n  folded, without colon\r\nContent-Length: 1\r\n\r\na", false, ANSWER_COMPLETE,
     200, "a", true},
};

/* Feeds the bytes up to each of @n positions and then the rest. Compares with @want. */
static void check_split(const expected *want, size_t n_bytes, const size_t *at, size_t n) {
    http_answer a = {0};
    buf body = {0};
    size_t from = 0;
    for (size_t i = 0; i <= n && a.state == ANSWER_OPEN; i++) {
        size_t to = i < n ? at[i] : n_bytes, kept;
        char *part = malloc(to - from + 1); /* exact, so that a read past its end is found */
        CU_ASSERT_PTR_NOT_NULL_FATAL(part);
        memcpy(part, want->bytes + from, to - from);
        (void)http_answer_take(&a, part, to - from, &kept);
        CU_ASSERT_FATAL(kept <= to - from);
        CU_ASSERT(!kept || a.status);
        (void)buf_append(&body, part, kept);
        free(part);
        from = to;
    }
    if (want->ends)
        (void)http_answer_close(&a);
    CU_ASSERT_EQUAL(a.state, want->state);
    CU_ASSERT_EQUAL(a.status, want->status);
    CU_ASSERT_STRING_EQUAL(buf_str(&body), want->body);
    CU_ASSERT_EQUAL(a.keeps, want->keeps);
    CU_ASSERT_EQUAL(a.why != NULL, a.state != ANSWER_OPEN && a.state != ANSWER_COMPLETE);
    buf_release(&body);
    http_answer_release(&a);
}

static void test_responses_in_any_parts(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].bytes), each[400];
        check_split(&cases[i], n, NULL, 0);
        for (size_t at = 0; at <= n; at++)
            check_split(&cases[i], n, &at, 1);
        CU_ASSERT_FATAL(n < sizeof each / sizeof *each);
        for (size_t k = 0; k < n; k++)
            each[k] = k + 1;
        check_split(&cases[i], n, each, n);
    }
}

static void take(http_answer *a, const char *bytes, answer_state want) {
    size_t kept;
    char *copy = strdup(bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    CU_ASSERT_EQUAL(http_answer_take(a, copy, strlen(copy), &kept), want);
    free(copy);
}

static void test_headers(void) {
    http_answer a = {0};
    take(&a, OK "Etag: \"1\"\r\nX-A:b \t\r\nX-A: c\r\nEmpty:\r\n", ANSWER_OPEN);
    CU_ASSERT_PTR_NULL(http_answer_header(&a, "etag"));
    take(&a, "Retry-After :  7\r\nContent-Length: 0\r\n\r\n", ANSWER_COMPLETE);
    CU_ASSERT_STRING_EQUAL(http_answer_header(&a, "ETAG"), "\"1\"");
    CU_ASSERT_STRING_EQUAL(http_answer_header(&a, "x-a"), "b");
    CU_ASSERT_STRING_EQUAL(http_answer_header(&a, "empty"), "");
    CU_ASSERT_STRING_EQUAL(http_answer_header(&a, "retry-after"), "7");
    CU_ASSERT_PTR_NULL(http_answer_header(&a, "X"));
    CU_ASSERT_PTR_NULL(http_answer_header(&a, "HTTP/1.1 200 OK"));
    http_answer_clear(&a);
    CU_ASSERT_PTR_NULL(http_answer_header(&a, "etag"));
    take(&a, OK "Content-Length: 0\r\n\r\n", ANSWER_COMPLETE);
    CU_ASSERT_PTR_NULL(http_answer_header(&a, "etag"));
    http_answer_release(&a);
}

/* Bytes after the response belong to no request, so the connection is not used again. */
static void test_surplus_bytes(void) {
    http_answer a = {0};
    take(&a, OK "Content-Length: 1\r\n\r\nab", ANSWER_COMPLETE);
    CU_ASSERT_FALSE(a.keeps);
    http_answer_release(&a);
}

static void test_a_nul_in_a_header(void) {
    http_answer a = {0};
    char bytes[] = OK "A: b\0c\r\n\r\n";
    size_t kept;
    CU_ASSERT_EQUAL(http_answer_take(&a, bytes, sizeof bytes - 1, &kept), ANSWER_INVALID);
    http_answer_release(&a);
}

/* Headers, trailers and chunk extensions that never end are refused at a limit. */
static void test_lines_have_a_ceiling(void) {
    static const struct {
        const char *begin;
        answer_state want;
    } endless[] = {{OK "A: ", ANSWER_TOO_LARGE},
                   {OK, ANSWER_TOO_LARGE},
                   {CHUNKED "0\r\n", ANSWER_TOO_LARGE},
                   {CHUNKED "1;", ANSWER_BROKEN}};
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        http_answer a = {0};
        take(&a, endless[i].begin, ANSWER_OPEN);
        size_t sent = 0, kept;
        for (; a.state == ANSWER_OPEN && sent < 1 << 20; sent += 7) {
            char part[] = "X: abc\n";
            (void)http_answer_take(&a, i == 3 ? memset(part, 'x', 7) : part, 7, &kept);
        }
        CU_ASSERT_EQUAL(a.state, endless[i].want);
        CU_ASSERT(sent <= HTTP_HEADERS_MAX + 7);
        http_answer_release(&a);
    }
}

CU_TestInfo tests_http_answer[] = {
    {"responses in any parts", test_responses_in_any_parts},
    {"headers are found by name", test_headers},
    {"bytes after a response end the connection", test_surplus_bytes},
    {"a NUL in a header", test_a_nul_in_a_header},
    {"limits on sizes", test_lines_have_a_ceiling},
    CU_TEST_INFO_NULL};
