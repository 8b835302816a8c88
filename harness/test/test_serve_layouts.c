/* Tests a server with several replicas of its model, over HTTP. */
#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test/serve_answers.h"

#define COMPLETIONS "/v1/completions"
#define RUNNING     "vllm:num_requests_running"
#define WAITING     "vllm:num_requests_waiting"
#define GOT(i)      "snapmla:replica_sequences_total{replica=\"" #i "\""

enum { kMost = 2 }; /* sequences that each replica decodes at once */

static void test_a_full_server(void) {
    serve_child c;
    serve_reply r;
    int fd[12];
    char body[200];
    serve_child_make(&c);
    c.layout = "DP2";
    serve_child_start(&c, &(serve_options){.max_queue = 8}, kMost);
    for (int i = 0; i < 12; i++) {
        (void)snprintf(body, sizeof body,
                       "{\"prompt\":\"%d\",\"ignore_eos\":true,\"max_tokens\":8000%s}", i,
                       i % 2 ? "" : ",\"stream\":true");
        fd[i] = serve_connect(&c);
        serve_send(fd[i], COMPLETIONS, NULL, body);
    }
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 4));
    CU_ASSERT_TRUE(serve_await(&c, WAITING, 8));
    CU_ASSERT_EQUAL(serve_metric(&c, GOT(0)), 4);
    CU_ASSERT_EQUAL(serve_metric(&c, GOT(1)), 4);
    serve_ask(&c, COMPLETIONS, NULL, "{\"prompt\":\"x\"}", &r);
    CU_ASSERT_EQUAL(r.status, 429);
    serve_reply_release(&r);
    for (int i = 0; i < 12; i++)
        (void)close(fd[i]);
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 0));
    CU_ASSERT_TRUE(serve_await(&c, WAITING, 0));
    serve_child_stop(&c);
    serve_child_remove(&c);
}

/* Eight requests with the same seed, on two replicas. A signal comes while four of them wait. */
static void test_seeds_and_the_end(void) {
    serve_child c;
    serve_reply r;
    serve_stream s[8];
    int fd[8], status = 0;
    serve_child_make(&c);
    c.layout = "DP2";
    serve_child_start(&c, &(serve_options){.drain_s = 600}, kMost);
    for (int i = 0; i < 8; i++) {
        fd[i] = serve_connect(&c);
        serve_send(fd[i], "/v1/chat/completions", NULL,
                   "{\"messages\":[{\"role\":\"user\",\"content\":\"2 + 2\"}],\"seed\":5,"
                   "\"ignore_eos\":true,\"max_tokens\":1000,\"stream\":true}");
    }
    CU_ASSERT_TRUE(serve_await(&c, RUNNING, 4));
    CU_ASSERT_TRUE(serve_await(&c, WAITING, 4));
    CU_ASSERT_EQUAL(serve_metric(&c, GOT(0)), 4);
    CU_ASSERT_EQUAL(serve_metric(&c, GOT(1)), 4);
    CU_ASSERT_EQUAL(kill(c.pid, SIGTERM), 0);
    for (int i = 0; i < 8; i++) {
        serve_read(fd[i], &r);
        s[i] = serve_stream_read(&r);
        CU_ASSERT_EQUAL(s[i].done, 1);
        CU_ASSERT(s[i].text[0].len > 0);
        CU_ASSERT_STRING_EQUAL(buf_str(&s[i].text[0]), buf_str(&s[0].text[0]));
        serve_reply_release(&r);
        (void)close(fd[i]);
    }
    for (int i = 0; i < 8; i++)
        serve_stream_release(&s[i]);
    CU_ASSERT_EQUAL(waitpid(c.pid, &status, 0), c.pid);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    serve_child_remove(&c);
}

CU_TestInfo tests_serve_layouts[] = {
    {"a full server refuses a further request", test_a_full_server},
    {"seeds, and the end of a server", test_seeds_and_the_end},
    CU_TEST_INFO_NULL,
};
