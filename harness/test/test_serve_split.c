/* Tests a server whose model is divided over several processes (TP, EP, and both with DP). */
#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "generator/test/split_ranks.h"
#include "harness/test/serve_answers.h"

#define RUNNING "vllm:num_requests_running"

enum { kStreams = 4, kSequences = 4 };

static void test_rank(void) {
    split_ranks_follow();
    split_ranks_prepare("serve_split");
}

static void send_stream(int fd, int seed, int tokens) {
    char body[240];
    (void)snprintf(body, sizeof body,
                   "{\"messages\":[{\"role\":\"user\",\"content\":\"%d + 2\"}],\"seed\":%d,"
                   "\"ignore_eos\":true,\"max_tokens\":%d,\"stream\":true}",
                   seed, seed, tokens);
    serve_send(fd, "/v1/chat/completions", NULL, body);
}

/* Reads kStreams streams that run at the same time. */
static void read_streams(const serve_child *c, serve_stream s[kStreams]) {
    serve_reply r;
    int fd[kStreams];
    for (int i = 0; i < kStreams; i++) {
        fd[i] = serve_connect(c);
        CU_ASSERT_FATAL(fd[i] >= 0);
        send_stream(fd[i], i, 100);
    }
    for (int i = 0; i < kStreams; i++) {
        serve_read(fd[i], &r);
        s[i] = serve_stream_read(&r);
        CU_ASSERT_EQUAL(s[i].done, 1);
        serve_reply_release(&r);
    }
}

/* In FP32, the streams of all layouts are those of one process. */
static void test_streams(void) {
    static const struct {
        const char *layout;
        int ranks; /* processes beside the server's */
    } cases[] = {{NULL, 0},      {"TP2", 1}, {"TP2/EP2", 1},
                 {"DP2/TP2", 2}, {"EP2", 1}, {"DP2/TP2/EP4", 3}};
    enum { kCases = sizeof cases / sizeof *cases };
    static serve_stream s[kCases][kStreams];
    serve_child c;
    pid_t ranks[SPLIT_RANKS_MOST];
    serve_child_make(&c);
    c.precision = "fp32";
    for (int i = 0; i < kCases; i++) {
        c.layout = cases[i].layout;
        serve_child_start(&c, &(serve_options){0}, kSequences);
        CU_ASSERT_EQUAL_FATAL(split_ranks_of(c.pid, ranks), cases[i].ranks);
        read_streams(&c, s[i]);
        serve_child_stop(&c);
        for (int k = 0; k < cases[i].ranks; k++)
            CU_ASSERT_TRUE(split_ranks_gone(ranks[k]));
    }
    for (int k = 0; k < kStreams; k++) {
        CU_ASSERT(s[0][k].text[0].len > 0);
        for (int i = 1; i < kCases; i++)
            CU_ASSERT_STRING_EQUAL(buf_str(&s[0][k].text[0]), buf_str(&s[i][k].text[0]));
    }
    for (int i = 0; i < kCases * kStreams; i++)
        serve_stream_release(&s[i / kStreams][i % kStreams]);
    serve_child_remove(&c);
}

/* Waits until the server has ended with an error, within 30 s of @begun_ns. */
static void expect_end(const serve_child *c, pid_t rank, int64_t begun_ns) {
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(c->pid, &status, 0), c->pid);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    CU_ASSERT((double)(clock_now_ns() - begun_ns) < 30e9);
    CU_ASSERT_TRUE(split_ranks_gone(rank));
}

/* An open request and an open stream get the error that names the rank. */
static void check_killed_rank(const char *layout) {
    serve_child c;
    serve_reply whole, stream;
    pid_t ranks[SPLIT_RANKS_MOST];
    serve_child_make(&c);
    c.layout = layout;
    serve_child_start(&c, &(serve_options){0}, kSequences);
    CU_ASSERT_EQUAL_FATAL(split_ranks_of(c.pid, ranks), 1);
    int one = serve_connect(&c), other = serve_connect(&c);
    CU_ASSERT_FATAL(one >= 0 && other >= 0);
    serve_send(one, "/v1/completions", NULL,
               "{\"prompt\":\"1\",\"ignore_eos\":true,\"max_tokens\":8000}");
    send_stream(other, 5, 8000);
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 2));
    int64_t begun_ns = clock_now_ns();
    CU_ASSERT_EQUAL(kill(ranks[0], SIGKILL), 0);
    serve_read(one, &whole);
    serve_read(other, &stream);
    CU_ASSERT_EQUAL(whole.status, 500);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&whole.body), "rank 1: its process has ended"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&stream.body), "rank 1: its process has ended"));
    CU_ASSERT_PTR_NULL(strstr(buf_str(&stream.body), "[DONE]"));
    serve_reply_release(&whole);
    serve_reply_release(&stream);
    expect_end(&c, ranks[0], begun_ns);
    serve_child_remove(&c);
}

static void test_a_killed_rank(void) {
    check_killed_rank("TP2");
    check_killed_rank("EP2");
}

/* Without a request, the server finds the failure, too. */
static void check_idle(const char *layout) {
    serve_child c;
    pid_t ranks[SPLIT_RANKS_MOST];
    serve_child_make(&c);
    c.layout = layout;
    serve_child_start(&c, &(serve_options){0}, kSequences);
    CU_ASSERT_EQUAL_FATAL(split_ranks_of(c.pid, ranks), 1);
    int64_t begun_ns = clock_now_ns();
    CU_ASSERT_EQUAL(kill(ranks[0], SIGKILL), 0);
    expect_end(&c, ranks[0], begun_ns);
    serve_child_remove(&c);
}

static void test_idle(void) {
    check_idle("TP2");
    check_idle("EP2");
}

/* Two replicas that divide the experts decode twice as many sequences as one, and the queue is
 * common. */
static void test_a_full_server(void) {
    serve_child c;
    serve_reply r;
    int fd[12];
    char body[200];
    serve_child_make(&c);
    c.layout = "EP2";
    serve_child_start(&c, &(serve_options){.max_queue = 8}, 2);
    for (int i = 0; i < 12; i++) {
        (void)snprintf(body, sizeof body,
                       "{\"prompt\":\"%d\",\"ignore_eos\":true,\"max_tokens\":8000%s}", i,
                       i % 2 ? "" : ",\"stream\":true");
        fd[i] = serve_connect(&c);
        serve_send(fd[i], "/v1/completions", NULL, body);
    }
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 4));
    CU_ASSERT_TRUE(serve_await(&c, "vllm:num_requests_waiting", 8));
    serve_ask(&c, "/v1/completions", NULL, "{\"prompt\":\"x\"}", &r);
    CU_ASSERT_EQUAL(r.status, 429);
    serve_reply_release(&r);
    for (int i = 0; i < 12; i++)
        (void)close(fd[i]);
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 0));
    CU_ASSERT_TRUE(serve_await(&c, "vllm:num_requests_waiting", 0));
    serve_child_stop(&c);
    serve_child_remove(&c);
}

CU_TestInfo tests_serve_split[] = {
    {"a rank of the tests below", test_rank}, /* must be the first one */
    {"several streams at once", test_streams},
    {"a killed rank ends requests with an error", test_a_killed_rank},
    {"a killed rank ends an idle server", test_idle},
    {"a full server queues for all replicas", test_a_full_server},
    CU_TEST_INFO_NULL,
};
