/* Tests the replicas of a server, without HTTP. */
#include <CUnit/CUnit.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/text.h"
#include "harness/serve/serve_replicas.h"
#include "harness/test/serve_child.h"

enum { kMost = 2, kPrompt = 3, kTokens = 20 };

/* Two replicas that decode up to kMost sequences each, without HTTP. Nothing is collected before
 * take_all(), so the choice of a replica depends on the order of the jobs only. */
typedef struct {
    serve_child c;
    local_model m;
    serve_replicas *r;
    int wake;
    int32_t tokens[64][kPrompt];
    tok_ids prompt[64];
    serve_job job[64];
    int n;
    serve_totals totals;
} machine;

static void open_machine(machine *m) {
    local_options how = {.context = 64, .threads = 1, .sequences = kMost, .layout = "DP2"};
    *m = (machine){.wake = eventfd(0, EFD_CLOEXEC)};
    serve_child_make(&m->c);
    CU_ASSERT_FATAL(m->wake >= 0);
    CU_ASSERT_EQUAL_FATAL(local_open(&m->m, m->c.dir, &how, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(m->m.replicas, 2);
}

static void start(machine *m) {
    CU_ASSERT_EQUAL_FATAL(serve_replicas_start(&m->r, &m->m, m->wake, NULL), SNAP_OK);
}

static void close_machine(machine *m) {
    serve_replicas_stop(m->r);
    for (int i = 0; i < m->n; i++)
        serve_job_release(&m->job[i]);
    local_close(&m->m);
    serve_child_remove(&m->c);
    (void)close(m->wake);
}

/* Submits a job with the prompt number @prompt. Returns its engine; NULL: it is in the queue. */
static serve_engine *submit(machine *m, int prompt, int tokens) {
    serve_job *j = &m->job[m->n];
    int32_t *ids = m->tokens[m->n];
    for (int i = 0; i < kPrompt; i++)
        ids[i] = i == 1 ? prompt : 5;
    m->prompt[m->n] = (tok_ids){ids, kPrompt, kPrompt};
    *j = (serve_job){.prompts = &m->prompt[m->n],
                     .n_prompts = 1,
                     .n = 1,
                     .how = {.sampling = {.temperature = 1, .top_p = 1, .repetition_penalty = 1},
                             .seed = 3,
                             .max_tokens = tokens}};
    m->n++;
    CU_ASSERT_FATAL(serve_job_prepare(j));
    serve_replicas_submit(m->r, j);
    return j->engine;
}

/* Collects until @left jobs are released. */
static void take(machine *m, int left) {
    while (left) {
        struct pollfd p = {m->wake, POLLIN, 0};
        uint64_t count;
        CU_ASSERT_EQUAL_FATAL(poll(&p, 1, 60000), 1);
        CU_ASSERT_FATAL(read(m->wake, &count, sizeof count) > 0);
        for (serve_job *j = serve_replicas_collect(m->r, &m->totals); j; j = j->next_news)
            left -= j->released;
    }
}

static void take_all(machine *m) {
    take(m, m->n);
}

static void same_tokens(const serve_job *a, const serve_job *b) {
    CU_ASSERT_EQUAL_FATAL(a->news.n, b->news.n);
    CU_ASSERT_EQUAL(a->news.n, kTokens + 1);
    for (size_t i = 0; i < a->news.n; i++)
        CU_ASSERT(a->news.v[i].kind == b->news.v[i].kind &&
                  a->news.v[i].token == b->news.v[i].token);
}

static void test_the_choice_of_a_replica(void) {
    static machine m;
    open_machine(&m);
    start(&m);
    serve_engine *first = submit(&m, 1, kTokens), *other = submit(&m, 2, kTokens);
    CU_ASSERT(first && other && first != other);
    CU_ASSERT_PTR_EQUAL(submit(&m, 2, kTokens), other); /* the prompt decides */
    CU_ASSERT_PTR_EQUAL(submit(&m, 3, kTokens), first); /* the number of sequences decides */
    CU_ASSERT_PTR_EQUAL(submit(&m, 2, kTokens), first); /* `other` has no room to decode it */
    CU_ASSERT_PTR_EQUAL(submit(&m, 4, kTokens), other);
    CU_ASSERT_PTR_EQUAL(submit(&m, 5, kTokens), first);
    CU_ASSERT_PTR_EQUAL(submit(&m, 6, kTokens), other);
    CU_ASSERT_PTR_NULL(submit(&m, 7, kTokens)); /* both hold 2 kMost sequences */
    CU_ASSERT_PTR_NULL(submit(&m, 8, kTokens));
    CU_ASSERT_PTR_NULL(submit(&m, 9, kTokens));
    serve_replicas_cancel(m.r, &m.job[m.n - 2]); /* from the middle of the queue */
    take_all(&m);
    same_tokens(&m.job[1], &m.job[2]);
    same_tokens(&m.job[1], &m.job[4]); /* on the other replica */
    CU_ASSERT_EQUAL(m.job[m.n - 2].news.n, 0);
    CU_ASSERT_EQUAL(m.job[m.n - 1].news.n, kTokens + 1);
    CU_ASSERT_EQUAL(m.totals.replicas, 2);
    CU_ASSERT_EQUAL(m.totals.begun[0] + m.totals.begun[1], m.n);
    CU_ASSERT_EQUAL(m.totals.all.now.running + m.totals.all.now.queued, 0);
    CU_ASSERT_FALSE(m.totals.all.broken);
    close_machine(&m);
}

/* A job with long answers counts as much as several jobs with short ones. */
static void test_cache_use_decides(void) {
    static machine m;
    open_machine(&m);
    start(&m);
    serve_engine *first = submit(&m, 1, 60), *other = submit(&m, 2, 5);
    CU_ASSERT(first && other && first != other);
    CU_ASSERT_PTR_EQUAL(submit(&m, 3, 5), other);
    CU_ASSERT_PTR_EQUAL(submit(&m, 4, 5), other);
    CU_ASSERT_PTR_EQUAL(submit(&m, 5, 5), other);
    CU_ASSERT_PTR_EQUAL(submit(&m, 6, 5), first); /* `other` holds 2 kMost sequences */
    take_all(&m);
    CU_ASSERT_EQUAL(m.totals.begun[0] + m.totals.begun[1], m.n);
    serve_engine *next = submit(&m, 7, 60); /* jobs that have ended do not count */
    CU_ASSERT_PTR_EQUAL(next, first);
    CU_ASSERT_PTR_EQUAL(submit(&m, 8, 5), other);
    take(&m, 2);
    close_machine(&m);
}

/* A replica that had the prompt gets further jobs only while it can decode them at once. */
static void test_one_prompt_uses_both_replicas(void) {
    static machine m;
    open_machine(&m);
    start(&m);
    for (int i = 0; i < 2 * kMost; i++)
        (void)submit(&m, 1, kTokens);
    take_all(&m);
    CU_ASSERT_EQUAL(m.totals.begun[0], kMost);
    CU_ASSERT_EQUAL(m.totals.begun[1], kMost);
    close_machine(&m);
}

static void test_a_replica_that_fails(void) {
    static machine m;
    open_machine(&m);
    m.m.more[0].weights.shape.vocab_size = 1; /* a step of this replica refuses its tokens */
    start(&m);
    serve_engine *sound = submit(&m, 1, kTokens), *damaged = submit(&m, 2, kTokens);
    CU_ASSERT(sound != damaged);
    take_all(&m);
    CU_ASSERT_EQUAL(m.job[0].news.n, kTokens + 1);
    CU_ASSERT_EQUAL(m.job[0].news.v[kTokens].kind, PIECE_LENGTH);
    CU_ASSERT_EQUAL_FATAL(m.job[1].news.n, 1);
    CU_ASSERT_EQUAL(m.job[1].news.v[0].kind, PIECE_FAILED);
    CU_ASSERT(text_starts(m.job[1].error, "replica 1 (cpu): "));
    CU_ASSERT_TRUE(m.totals.all.broken);
    CU_ASSERT_EQUAL(m.totals.all.reason.code, SNAP_E_SHAPE);
    CU_ASSERT(text_starts(m.totals.all.reason.text, "replica 1 (cpu): "));
    close_machine(&m);
}

CU_TestInfo tests_serve_replicas[] = {
    {"the choice of a replica", test_the_choice_of_a_replica},
    {"cache use decides", test_cache_use_decides},
    {"one prompt uses both replicas", test_one_prompt_uses_both_replicas},
    {"a replica that fails", test_a_replica_that_fails},
    CU_TEST_INFO_NULL,
};
