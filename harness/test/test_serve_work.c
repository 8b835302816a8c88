/* Tests requests within the server, without HTTP and without its threads, so that each state can be
 * held. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "harness/serve/serve_parts.h"
#include "harness/test/serve_child.h"

/* A task that waits for a byte. */
static void wait_for_byte(serve_task *t) {
    char byte;
    if (read(*(const int *)t->user, &byte, 1) != 1)
        abort();
}

/* One exchange whose body is a large request for one answer. */
static void submit_large(server *s, exchange *x, unsigned char client) {
    *x = (exchange){.s = s, .client = {{client}}};
    (void)buf_printf(&x->body, "{\"prompt\":\"%0*d\"}", SERVE_LARGE, 0);
    serve_submit(x, OPENAI_COMPLETION);
}

/* While the worker is busy, a large request counts against the limit of sequences of its client.
 * It no longer counts when the client leaves. */
static void test_large_requests_of_one_client(void) {
    enum { kExchanges = 4 };
    serve_child c;
    local_model m;
    exchange x[kExchanges];
    int ends[2], wake = eventfd(0, EFD_CLOEXEC);
    serve_options o = {.max_per_client = 1, .max_queue = 100};
    server s = {.o = &o, .m = &m};
    serve_task busy = {.run = wait_for_byte, .user = &ends[0], .bytes = 1};
    serve_child_make(&c);
    CU_ASSERT_FATAL(pipe(ends) == 0 && wake >= 0);
    CU_ASSERT_FATAL(local_open(&m, c.dir, &(local_options){.context = 64, .threads = 1}, NULL) ==
                    SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(serve_worker_start(&s.worker, wake, 1 << 20, NULL), SNAP_OK);
    CU_ASSERT(serve_worker_put(s.worker, &busy));
    submit_large(&s, &x[0], 1);
    submit_large(&s, &x[1], 1);
    submit_large(&s, &x[2], 2);
    CU_ASSERT(!x[0].complete && !x[2].complete);
    CU_ASSERT(x[1].complete && x[1].status == 429);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&x[1].out), "client_limit"));
    serve_leave(&x[0]);
    submit_large(&s, &x[3], 1);
    CU_ASSERT(!x[3].complete);
    serve_leave(&x[2]);
    serve_leave(&x[3]);
    CU_ASSERT_PTR_NULL(s.work);
    CU_ASSERT_EQUAL(write(ends[1], "x", 1), 1);
    serve_worker_stop(s.worker);
    for (int i = 0; i < kExchanges; i++)
        buf_release(&x[i].out);
    local_close(&m);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(wake);
    serve_child_remove(&c);
}

CU_TestInfo tests_serve_work[] = {
    {"a large request counts against its client's limit", test_large_requests_of_one_client},
    CU_TEST_INFO_NULL,
};
