/* Tests an engine with several replicas that take all steps together (EP with DP). Here, each
 * replica is a whole model in this process, so replicas exchange nothing, and the tokens must be
 * those of one replica. The calls of the second replica's remote runner go to a runner that answers
 * them. The tests of the suite `split` run ranks that divide the experts. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/test/sanitized.h"
#include "generator/local/engine/engine.h"
#include "generator/test/tiny_model.h"

enum { kSamples = 12, kTokens = 70, kAnswers = 200 };

/* ---- a connection to a runner in this process ------------------------------------------------ */

/* Counts the rows of each step of a replica. Of the second replica, also runs the calls. */
typedef struct {
    call_link link;
    runner *far;          /* answers the calls; NULL for the first replica */
    buf answer[kAnswers]; /* a queue */
    int first, n;
    buf given;        /* the answer that was received last */
    buf sent;         /* the last step */
    int rows, chunks; /* in the last step */
    int steps;
    int read, written; /* pages: swapped out, and in */
    int failed;
} loop;

/* Counts the rows and the chunks in a message of a step. */
static void count(loop *l, const int32_t *words) {
    const int32_t *at = words + 2;
    l->rows = l->chunks = 0;
    for (int i = 0; i < words[1]; i++) {
        int pages = (at[1] + at[0] - 1) / MLA_PAGE + 1;
        l->rows += at[0];
        l->chunks += at[3] & 1;
        at += 4 + at[0] + pages;
    }
}

static snap_status keep_answer(void *ctx, const void *bytes, size_t n, snap_err *err) {
    loop *l = ctx;
    CU_ASSERT_FATAL(l->n < kAnswers);
    buf *to = &l->answer[(l->first + l->n++) % kAnswers];
    buf_clear(to);
    (void)buf_append(to, bytes, n);
    return buf_check(to, "an answer", err);
}

static snap_status send(call_sender *s, const void *bytes, size_t n, snap_err *err) {
    loop *l = (loop *)(void *)s;
    int32_t kind;
    memcpy(&kind, bytes, sizeof kind);
    if (kind == CALL_STEP || kind == REMOTE_STEP) {
        buf_clear(&l->sent);
        (void)buf_append(&l->sent, bytes, n);
        count(l, (const int32_t *)(const void *)l->sent.data);
        l->steps++;
    }
    l->read += kind == REMOTE_READ_PAGE;
    l->written += kind == CALL_WRITE_PAGE;
    return l->far ? runner_answer(l->far, bytes, n, keep_answer, l, err) : SNAP_OK;
}

static void fail(call_sender *s, snap_err *err) {
    (void)err;
    ((loop *)(void *)s)->failed++;
}

static snap_status receive(call_link *c, const void **bytes, size_t *n, snap_err *err) {
    loop *l = (loop *)(void *)c;
    CU_ASSERT_FATAL(l->n > 0);
    buf next = l->answer[l->first];
    l->answer[l->first] = l->given;
    l->given = next;
    l->first = (l->first + 1) % kAnswers;
    l->n--;
    *bytes = next.data;
    *n = next.len;
    return buf_check(&next, "an answer", err);
}

static void loop_open(loop *l, runner *far) {
    *l = (loop){.link = {.sender = {.send = send, .fail = fail}, .receive = receive}, .far = far};
}

static void loop_close(loop *l) {
    for (int i = 0; i < kAnswers; i++)
        buf_release(&l->answer[i]);
    buf_release(&l->given);
    buf_release(&l->sent);
}

/* ---- an engine with two replicas ------------------------------------------------------------- */

typedef struct {
    loop near, far;
    runner *first, *answering, *remote;
    engine *e;
} machine;

/* @pages: of each replica, without those for padding. @context: most tokens of a sequence. */
static void open_machine(machine *m, const tiny_model *t, kv_format format, int64_t pages,
                         int decode, int context) {
    runner_options opt = {.format = format,
                          .context = context,
                          .max_rows = decode + 24,
                          .max_decode = decode,
                          .threads = 1};
    opt.pages = pages + engine_padding_pages(&opt);
    *m = (machine){0};
    CU_ASSERT_EQUAL_FATAL(runner_create(&m->answering, &t->weights, &opt, NULL), SNAP_OK);
    loop_open(&m->near, NULL);
    loop_open(&m->far, m->answering);
    opt.calls = &m->near.link.sender;
    CU_ASSERT_EQUAL_FATAL(runner_create(&m->first, &t->weights, &opt, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(runner_create_remote(&m->remote, m->first, &m->far.link, NULL), SNAP_OK);
    runner *both[] = {m->first, m->remote};
    CU_ASSERT_EQUAL_FATAL(engine_create_together(&m->e, both, 2, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(engine_most_running(m->e), 2 * decode);
    CU_ASSERT_EQUAL(engine_longest(m->e), pages * MLA_PAGE);
}

static void close_machine(machine *m) {
    CU_ASSERT_EQUAL(m->near.steps, m->far.steps);
    CU_ASSERT_EQUAL(m->near.failed + m->far.failed, 0);
    CU_ASSERT_EQUAL(m->far.n, 0);
    engine_free(m->e);
    runner_free(m->remote);
    runner_free(m->first);
    runner_free(m->answering);
    loop_close(&m->near);
    loop_close(&m->far);
}

/* Both replicas have the same number of rows in each step, and chunks if one of them has. */
static void step(machine *m) {
    CU_ASSERT_EQUAL_FATAL(engine_step(m->e, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(m->near.rows, m->far.rows);
    CU_ASSERT_EQUAL(m->near.chunks > 0, m->far.chunks > 0);
}

/* ---- samples --------------------------------------------------------------------------------- */

typedef struct {
    int32_t token[kTokens];
    float logprob[kTokens], score[kTokens];
    int n, done;
    finish_reason why;
} sample;

static bool take(void *user, int32_t token, float logprob) {
    sample *s = user;
    CU_ASSERT_FATAL(s->n < kTokens);
    s->token[s->n] = token;
    s->logprob[s->n++] = logprob;
    return true;
}

static void note_done(void *user, finish_reason why) {
    sample *s = user;
    s->done++;
    s->why = why;
}

static void take_score(void *user, int position, float logprob, const token_logit *top, int n) {
    (void)top;
    (void)n;
    ((sample *)user)->score[position] = logprob;
}

/* Three samples in a row have the same prompt. Every fifth one is scored. */
static engine_request request(const tiny_model *t, int i, sample *s) {
    static const int lengths[] = {50, 64, 33, 40};
    *s = (sample){0};
    return (engine_request){.prompt = t->tokens + i / 3,
                            .n_prompt = lengths[i / 3 % 4],
                            .sampling = {.temperature = 1.0, .top_p = 0.95},
                            .seed = 100 + (uint64_t)i,
                            .max_tokens = i % 2 ? 60 : 25,
                            .logprobs = i % 3 == 0,
                            .score = i % 5 == 4 ? take_score : NULL,
                            .token = take,
                            .done = note_done,
                            .user = s};
}

static void run_on(engine *e, machine *m, const tiny_model *t, sample *samples) {
    for (int i = 0; i < kSamples; i++) {
        engine_request req = request(t, i, &samples[i]);
        CU_ASSERT_EQUAL_FATAL(engine_add(e, &req, NULL), SNAP_OK);
    }
    while (engine_pending(e))
        if (m)
            step(m);
        else
            CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
}

/* The samples of one replica that has a large cache. */
static void run_one(const tiny_model *t, kv_format format, sample *samples) {
    engine *e = NULL;
    runner *r = NULL;
    runner_options opt = {.format = format,
                          .pages = 60,
                          .context = 128,
                          .max_rows = 6 + 24,
                          .max_decode = 6,
                          .threads = 1};
    CU_ASSERT_EQUAL_FATAL(runner_create(&r, &t->weights, &opt, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(engine_most_running(e), 6);
    run_on(e, NULL, t, samples);
    engine_free(e);
    runner_free(r);
}

static void same(const sample *a, const sample *b, int n) {
    for (int i = 0; i < n; i++) {
        CU_ASSERT(a[i].done == 1 && b[i].done == 1);
        CU_ASSERT(a[i].why == FINISH_LENGTH && b[i].why == FINISH_LENGTH);
        CU_ASSERT_EQUAL(a[i].n, b[i].n);
        CU_ASSERT_EQUAL(memcmp(a[i].token, b[i].token, sizeof a[i].token), 0);
        CU_ASSERT_EQUAL(memcmp(a[i].logprob, b[i].logprob, sizeof a[i].logprob), 0);
        CU_ASSERT_EQUAL(memcmp(a[i].score, b[i].score, sizeof a[i].score), 0);
    }
}

/* Shared prompts, scores, swapping, computing again, and a queue. The bits are those of one
 * replica. */
static void test_two_replicas_give_the_samples_of_one(void) {
    static const kv_format formats[] = {CACHE_BF16, CACHE_FP8, CACHE_F32};
    static sample one[kSamples], two[kSamples];
    for (int f = 0; f < (kSanitized ? 1 : 3); f++)
        for (int tight = 0; tight < 2; tight++) {
            tiny_model t;
            machine m;
            tiny_open(&t, "v3");
            run_one(&t, formats[f], one);
            open_machine(&m, &t, formats[f], tight ? 5 : 40, tight ? 6 : 4, 128);
            run_on(m.e, &m, &t, two);
            same(one, two, kSamples);
            engine_stats s = engine_stats_of(m.e);
            CU_ASSERT_EQUAL(s.preemptions > 0, tight);
            CU_ASSERT(s.shared > 0);
            CU_ASSERT_EQUAL(s.steps, m.near.steps); /* not twice as many */
            CU_ASSERT(runner_stats_of(m.remote).experts > 0);
            close_machine(&m);
            tiny_close(&t);
        }
}

/* Computing a sequence again changes roundings, but it must end. */
static void test_recomputing(void) {
    static sample two[kSamples];
    tiny_model t;
    machine m;
    tiny_open(&t, "v3");
    open_machine(&m, &t, CACHE_BF16, 5, 6, 128);
    engine_recompute(m.e, true);
    run_on(m.e, &m, &t, two);
    for (int i = 0; i < kSamples; i++)
        CU_ASSERT(two[i].done == 1 && two[i].why == FINISH_LENGTH);
    CU_ASSERT(engine_stats_of(m.e).recomputed > 0);
    close_machine(&m);
    tiny_close(&t);
}

/* The second replica has padding rows only. A context that is shorter than a step makes several
 * padding pieces of them. */
static void test_one_request(void) {
    static sample one[kSamples], two;
    static const int contexts[] = {128, 75, 20};
    tiny_model t;
    tiny_open(&t, "v3");
    run_one(&t, CACHE_BF16, one);
    for (int i = 0; i < 3; i++) {
        machine m;
        open_machine(&m, &t, CACHE_BF16, 4, 6, contexts[i]);
        engine_request req = request(&t, 0, &two);
        req.n_prompt = contexts[i] == 20 ? 17 : req.n_prompt;
        CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
        while (engine_pending(m.e)) {
            step(&m);
            CU_ASSERT(m.far.rows > 0);
        }
        engine_stats s = engine_stats_of(m.e);
        CU_ASSERT_EQUAL(s.prefilled, req.n_prompt);
        CU_ASSERT_EQUAL(s.decoded, two.n - 1);
        CU_ASSERT_EQUAL(runner_stats_of(m.first).layers, runner_stats_of(m.remote).layers);
        CU_ASSERT_EQUAL(runner_stats_of(m.remote).experts, 0); /* none for padding */
        if (contexts[i] > 20)
            same(one, &two, 1);
        close_machine(&m);
    }
    tiny_close(&t);
}

/* ---- which replica gets a request ------------------------------------------------------------ */

/* Adds a request whose prompt has @n_prompt tokens and begins at token @prompt of the fixture. */
static void add(machine *m, const tiny_model *t, int prompt, int n_prompt, int tokens, sample *s) {
    engine_request req = request(t, 0, s);
    req.prompt = t->tokens + prompt;
    req.n_prompt = n_prompt;
    req.max_tokens = tokens;
    CU_ASSERT_EQUAL_FATAL(engine_add(m->e, &req, NULL), SNAP_OK);
}

static void steps(machine *m, int n) {
    for (int i = 0; i < n; i++)
        step(m);
}

/* The number of pieces in the last step of a replica that are not padding. */
static int sequences_of(const loop *l) {
    const int32_t *words = (const int32_t *)(const void *)l->sent.data, *at = words + 2;
    int n = 0;
    for (int i = 0; i < words[1]; i++) {
        n += at[3] < 2;
        at += 4 + at[0] + (at[1] + at[0] - 1) / MLA_PAGE + 1;
    }
    return n;
}

/* Runs the request of add() alone in an engine with one replica. */
static void run_alone(const tiny_model *t, kv_format format, int prompt, int n_prompt, int tokens,
                      sample *s) {
    engine *e = NULL;
    runner *r = NULL;
    runner_options opt = {.format = format,
                          .pages = 4,
                          .context = 128,
                          .max_rows = 6 + 24,
                          .max_decode = 6,
                          .threads = 1};
    engine_request req = request(t, 0, s);
    req.prompt = t->tokens + prompt;
    req.n_prompt = n_prompt;
    req.max_tokens = tokens;
    CU_ASSERT_EQUAL_FATAL(runner_create(&r, &t->weights, &opt, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(engine_add(e, &req, NULL), SNAP_OK);
    while (engine_pending(e))
        CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
    engine_free(e);
    runner_free(r);
}

static void expect_alone(const tiny_model *t, int prompt, int n_prompt, int tokens,
                         const sample *s) {
    static sample alone;
    run_alone(t, CACHE_BF16, prompt, n_prompt, tokens, &alone);
    same(&alone, s, 1);
}

/* Each replica decodes two sequences. Equal requests join the replicas in turn. When those of one
 * replica have left, a request that waits for the other one moves. */
static void test_waiting_requests_move(void) {
    static sample s[6];
    tiny_model t;
    machine m;
    tiny_open(&t, "v3");
    open_machine(&m, &t, CACHE_BF16, 5, 2, 128);
    for (int i = 0; i < 6; i++) /* 0, 2, 4 join the first replica, and 1, 3, 5 the second one */
        add(&m, &t, i, 20, 60, &s[i]);
    steps(&m, 4);
    CU_ASSERT_EQUAL(sequences_of(&m.near), 2);
    CU_ASSERT_EQUAL(sequences_of(&m.far), 2);
    CU_ASSERT(engine_remove(m.e, &s[0]) && engine_remove(m.e, &s[2]));
    steps(&m, 8);
    CU_ASSERT_EQUAL(sequences_of(&m.near), 2); /* 4 and 5 */
    CU_ASSERT_EQUAL(sequences_of(&m.far), 2);
    CU_ASSERT_EQUAL(engine_load_of(m.e).running, 4);
    CU_ASSERT_TRUE(engine_remove(m.e, &s[1]));
    CU_ASSERT_FALSE(engine_remove(m.e, &s[1]));
    CU_ASSERT_EQUAL(engine_pending(m.e), 3);
    step(&m);
    CU_ASSERT_EQUAL(sequences_of(&m.far), 1);
    engine_clear(m.e);
    CU_ASSERT_EQUAL(engine_pending(m.e), 0);
    CU_ASSERT_EQUAL(engine_load_of(m.e).pages_used, 0);
    close_machine(&m);
    tiny_close(&t);
}

/* A request with a long answer counts as much as four with short ones. Requests that have ended do
 * not count. */
static void test_cache_use_decides(void) {
    static sample s[9];
    tiny_model t;
    machine m;
    tiny_open(&t, "v3");
    open_machine(&m, &t, CACHE_BF16, 20, 8, 128);
    for (int i = 0; i < 6; i++)
        add(&m, &t, i, 20, i == 0 ? 100 : 10, &s[i]);
    steps(&m, 6);
    CU_ASSERT_EQUAL(sequences_of(&m.near), 2); /* 0 and 5 */
    CU_ASSERT_EQUAL(sequences_of(&m.far), 4);
    while (engine_pending(m.e) > 1)
        step(&m);
    add(&m, &t, 6, 20, 100, &s[6]); /* to the second replica, which is empty */
    add(&m, &t, 7, 20, 10, &s[7]);  /* to the first one: both need equally much, and it has received
                                       fewer */
    add(&m, &t, 8, 20, 100, &s[8]); /* to the second one */
    steps(&m, 4);
    CU_ASSERT_EQUAL(sequences_of(&m.near), 2);
    CU_ASSERT_EQUAL(sequences_of(&m.far), 2);
    engine_clear(m.e);
    close_machine(&m);
    tiny_close(&t);
}

/* The cache of each replica has five pages, and a prompt needs two. So two sequences run, although
 * six could be decoded. When those of the second replica have left, the request that waits for
 * pages of the first one moves. */
static void test_requests_move_to_free_pages(void) {
    static sample s[6];
    tiny_model t;
    machine m;
    tiny_open(&t, "v3");
    open_machine(&m, &t, CACHE_BF16, 5, 6, 128);
    for (int i = 0; i < 6; i++)
        add(&m, &t, i, 70, 50, &s[i]);
    steps(&m, 12);
    CU_ASSERT_EQUAL(engine_load_of(m.e).running, 4);
    CU_ASSERT_EQUAL(engine_load_of(m.e).queued, 2);
    CU_ASSERT(engine_remove(m.e, &s[1]) && engine_remove(m.e, &s[3]));
    steps(&m, 9);
    CU_ASSERT_EQUAL(engine_load_of(m.e).queued, 0);
    CU_ASSERT_EQUAL(sequences_of(&m.near), 2);
    CU_ASSERT_EQUAL(sequences_of(&m.far), 2); /* 4 and 5 */
    while (engine_pending(m.e))
        step(&m);
    CU_ASSERT_EQUAL(engine_stats_of(m.e).preemptions, 0);
    expect_alone(&t, 4, 70, 50, &s[4]);
    close_machine(&m);
    tiny_close(&t);
}

/* Three sequences of the first replica need six pages of its five. The second replica has room, so
 * the one that is swapped out goes on there. */
static void test_preempted_sequences_move(void) {
    static sample s[6];
    tiny_model t;
    tiny_open(&t, "v3");
    for (int recompute = 0; recompute < 2; recompute++) {
        machine m;
        open_machine(&m, &t, CACHE_BF16, 5, 6, 128);
        engine_recompute(m.e, recompute);
        for (int i = 0; i < 6; i++)
            add(&m, &t, i, 20, 60, &s[i]);
        steps(&m, 4);
        CU_ASSERT(engine_remove(m.e, &s[1]) && engine_remove(m.e, &s[3]));
        while (engine_stats_of(m.e).preemptions == 0)
            step(&m);
        CU_ASSERT_EQUAL(engine_load_of(m.e).running, 3);
        steps(&m, recompute ? 4 : 1); /* its tokens are three chunks */
        CU_ASSERT_EQUAL(engine_load_of(m.e).running, 4);
        CU_ASSERT_EQUAL(sequences_of(&m.near), 2);
        CU_ASSERT_EQUAL(sequences_of(&m.far), 2); /* 4 and 5 */
        CU_ASSERT_EQUAL(m.far.written, !recompute);
        while (engine_pending(m.e))
            step(&m);
        CU_ASSERT_EQUAL(engine_stats_of(m.e).preemptions, 1);
        if (!recompute)
            expect_alone(&t, 4, 20, 60, &s[4]);
        close_machine(&m);
    }
    tiny_close(&t);
}

/* Both replicas have three sequences, which need six pages of five. So each preempts one. In FP32,
 * the tokens are those of a sequence that was not preempted. If pages are swapped, so are the bits
 * of all numbers. */
static void test_both_replicas_preempt(void) {
    static sample s[6], alone;
    tiny_model t;
    tiny_open(&t, "v3");
    for (int recompute = 0; recompute < 2; recompute++) {
        machine m;
        open_machine(&m, &t, CACHE_F32, 5, 6, 128);
        engine_recompute(m.e, recompute);
        for (int i = 0; i < 6; i++)
            add(&m, &t, i, 20, 60, &s[i]);
        while (engine_stats_of(m.e).preemptions < 2)
            step(&m);
        CU_ASSERT_EQUAL(engine_load_of(m.e).running, 4);
        CU_ASSERT_EQUAL(sequences_of(&m.near), 2);
        CU_ASSERT_EQUAL(sequences_of(&m.far), 2);
        CU_ASSERT_EQUAL(m.far.read, !recompute);
        while (engine_pending(m.e))
            step(&m);
        CU_ASSERT_EQUAL(engine_stats_of(m.e).preemptions, 2);
        CU_ASSERT_EQUAL(m.near.written + m.far.written, recompute ? 0 : 2);
        for (int i = 0; i < 6; i++) {
            run_alone(&t, CACHE_F32, i, 20, 60, &alone);
            CU_ASSERT(alone.n == 60 && s[i].n == 60);
            CU_ASSERT_EQUAL(memcmp(alone.token, s[i].token, sizeof alone.token), 0);
            if (!recompute)
                same(&alone, &s[i], 1);
        }
        close_machine(&m);
    }
    tiny_close(&t);
}

/* Requests join the replica that has their prompt, until it has ENGINE_AHEAD requests more. */
static void test_prompts_stay_together(void) {
    static sample s[2 * ENGINE_AHEAD];
    tiny_model t;
    machine m;
    tiny_open(&t, "v3");
    open_machine(&m, &t, CACHE_BF16, 20, 8, 128);
    for (int i = 0; i < ENGINE_AHEAD; i++)
        add(&m, &t, 1, 20, 60, &s[i]);
    steps(&m, 4);
    CU_ASSERT_EQUAL(sequences_of(&m.near), ENGINE_AHEAD);
    CU_ASSERT_EQUAL(sequences_of(&m.far), 0);
    CU_ASSERT_EQUAL(engine_stats_of(m.e).prefilled, 20);
    add(&m, &t, 1, 20, 60, &s[ENGINE_AHEAD]);
    steps(&m, 4);
    CU_ASSERT_EQUAL(sequences_of(&m.near), ENGINE_AHEAD);
    CU_ASSERT_EQUAL(sequences_of(&m.far), 1);
    engine_clear(m.e);
    close_machine(&m);
    tiny_close(&t);
}

/* Asserts that the last step of a replica decoded @n sequences that have the first page in common
 * and second pages of their own. */
static void expect_shared_pages(const loop *l, int n) {
    const int32_t *words = (const int32_t *)(const void *)l->sent.data, *at = words + 2;
    int32_t shared = -1, own[8];
    int found = 0;
    for (int i = 0; i < words[1]; i++) {
        const int32_t *pages = at + 4 + at[0];
        int count = (at[1] + at[0] - 1) / MLA_PAGE + 1;
        if (at[3] == 0) { /* neither a chunk nor padding */
            CU_ASSERT_FATAL(count == 2 && found < 8);
            CU_ASSERT(found == 0 || pages[0] == shared);
            shared = pages[0];
            for (int k = 0; k < found; k++)
                CU_ASSERT_NOT_EQUAL(own[k], pages[1]);
            own[found++] = pages[1];
        }
        at = pages + count;
    }
    CU_ASSERT_EQUAL(found, n);
}

/* Four requests with one prompt of 70 tokens on the first replica, and four with another one on the
 * second replica. Each prompt is computed once, and its full page is in the cache once. */
static void test_prompts_share_pages(void) {
    static sample s[2 * ENGINE_AHEAD];
    tiny_model t;
    machine m;
    tiny_open(&t, "v3");
    open_machine(&m, &t, CACHE_BF16, 20, 8, 128);
    for (int i = 0; i < 2 * ENGINE_AHEAD; i++)
        add(&m, &t, i / ENGINE_AHEAD, 70, 50, &s[i]);
    steps(&m, 4); /* three chunks, then tokens */
    expect_shared_pages(&m.near, ENGINE_AHEAD);
    expect_shared_pages(&m.far, ENGINE_AHEAD);
    CU_ASSERT_EQUAL(engine_load_of(m.e).pages_used, 2 * (1 + ENGINE_AHEAD));
    CU_ASSERT_EQUAL(engine_stats_of(m.e).prefilled, 2 * 70);
    CU_ASSERT_EQUAL(engine_stats_of(m.e).shared, 2 * (ENGINE_AHEAD - 1) * 70);
    while (engine_pending(m.e))
        step(&m);
    for (int i = 0; i < 2 * ENGINE_AHEAD; i++)
        expect_alone(&t, i / ENGINE_AHEAD, 70, 50, &s[i]);
    close_machine(&m);
    tiny_close(&t);
}

/* ---- refusals and malformed messages --------------------------------------------------------- */

static void test_refusals(void) {
    tiny_model t;
    machine m;
    snap_err err = {0};
    engine *e = NULL;
    runner_options opt = {
        .context = 128, .max_rows = 70, .max_decode = 6, .threads = 1, .pages = 2};
    runner *r = NULL;
    tiny_open(&t, "v3");
    CU_ASSERT_EQUAL(engine_padding_pages(&opt), 2);
    CU_ASSERT_EQUAL_FATAL(runner_create(&r, &t.weights, &opt, NULL), SNAP_OK);
    runner *both[] = {r, r};
    CU_ASSERT_EQUAL(engine_create_together(&e, both, 2, &err), SNAP_E_NOMEM);
    CU_ASSERT_STRING_EQUAL(err.text, "a cache of 2 pages has no page beside 2 for padding");
    CU_ASSERT_PTR_NULL(e);
    runner_free(r);
    open_machine(&m, &t, CACHE_BF16, 4, 2, 128);
    static sample s;
    engine_request req = request(&t, 0, &s);
    req.n_prompt = 128;
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_E_SHAPE);
    req.n_prompt = 0;
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_E_SHAPE);
    close_machine(&m);
    tiny_close(&t);
}

/* A step that fails on one replica ends all ranks. */
static void test_a_step_that_fails(void) {
    static sample s[2];
    tiny_model t;
    machine m;
    tiny_open(&t, "v3");
    open_machine(&m, &t, CACHE_BF16, 4, 2, 128);
    for (int i = 0; i < 2; i++)
        add(&m, &t, i, 20, 10, &s[i]);
    t.weights.shape.vocab_size = 1; /* the runners refuse the tokens */
    CU_ASSERT_EQUAL(engine_step(m.e, NULL), SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(m.near.failed, 1);
    m.near.failed = 0;
    t.weights.shape.vocab_size = t.shape.vocab_size;
    close_machine(&m);
    tiny_close(&t);
}

/* Lets the remote runner @r run a step of two rows, whose answers are @bytes and then @row. */
static snap_status answered(machine *m, const buf *head, size_t head_n, size_t row_n,
                            reading_result got[2], float *logits, snap_err *err) {
    static const int32_t pages[] = {0}, tokens[] = {1, 2};
    static const float row[4096] = {1};
    const reading wanted[2] = {{.kind = READ_TOP, .share = 2}, {.kind = READ_LOGITS}};
    model_piece p = {.tokens = tokens, .count = 2, .pages = pages, .logits = 2, .chunk = true};
    m->far.far = NULL;
    m->far.n = 0;
    CU_ASSERT_EQUAL(keep_answer(&m->far, head->data, head_n, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(keep_answer(&m->far, row, row_n, NULL), SNAP_OK);
    snap_status st = runner_step_read(m->remote, &p, 1, wanted, got, logits, err);
    m->far.n = 0;
    return st;
}

/* The results that a rank sends: a list of two tokens, and a row of logits. */
static void test_answers(void) {
    tiny_model t;
    machine m;
    buf head = {0};
    reading_result got[2] = {{.kind = READ_TOP, .n = 2, .largest = 3}, {.kind = READ_LOGITS}};
    const token_logit list[2] = {{7, 3}, {5, 2}};
    runner_stats stats = {.layers = 11, .launch_ns = 7};
    snap_err err = {0};
    tiny_open(&t, "v3");
    size_t row = (size_t)t.shape.vocab_size * sizeof(float);
    float *logits = calloc(2, row);
    CU_ASSERT_FATAL(logits && t.shape.vocab_size <= 4096);
    open_machine(&m, &t, CACHE_BF16, 4, 2, 128);
    (void)buf_append(&head, &stats, sizeof stats);
    (void)buf_append(&head, got, sizeof got);
    (void)buf_append(&head, list, sizeof list);
    CU_ASSERT_EQUAL(answered(&m, &head, head.len, row, got, logits, &err), SNAP_OK);
    CU_ASSERT(got[0].kind == READ_TOP && got[0].n == 2 && got[0].list[1].id == 5);
    CU_ASSERT(got[1].kind == READ_LOGITS && logits[t.shape.vocab_size] > 0);
    CU_ASSERT_EQUAL(runner_stats_of(m.remote).layers, 11);
    CU_ASSERT_EQUAL(engine_stats_of(m.e).model.layers, 11);
    CU_ASSERT_EQUAL(engine_stats_of(m.e).model.launch_ns, 0); /* only that of the first replica */
    for (size_t n = 0; n < head.len; n++)
        CU_ASSERT_EQUAL(answered(&m, &head, n, row, got, logits, &err), SNAP_E_NET);
    CU_ASSERT_EQUAL(answered(&m, &head, head.len, row - 4, got, logits, &err), SNAP_E_NET);
    CU_ASSERT_STRING_EQUAL(err.text, "a rank has sent a malformed answer");
    int32_t many = -1;
    memcpy(head.data + sizeof stats + offsetof(reading_result, n), &many, sizeof many);
    CU_ASSERT_EQUAL(answered(&m, &head, head.len, row, got, logits, &err), SNAP_E_NET);
    many = 3;
    memcpy(head.data + sizeof stats + offsetof(reading_result, n), &many, sizeof many);
    CU_ASSERT_EQUAL(answered(&m, &head, head.len, row, got, logits, &err), SNAP_E_NET);
    m.near.steps = m.far.steps;
    m.far.failed = 0;
    close_machine(&m);
    buf_release(&head);
    free(logits);
    tiny_close(&t);
}

/* Results that answer no reading, or name a token that does not exist. */
static void test_impossible_answers(void) {
    const struct {
        reading_kind kind;
        int n;
        int32_t token; /* the token of READ_BEST, or a token of the list */
    } bad[] = {{READ_BEST, 0, 1}, {(reading_kind)99, 0, 1}, {READ_TOP, 0, 1},
               {READ_TOP, 1, -1}, {READ_TOP, 1, INT32_MAX}, {READ_NUCLEUS, 1, 1}};
    tiny_model t;
    machine m;
    buf head = {0};
    const runner_stats stats = {0};
    tiny_open(&t, "v3");
    size_t row = (size_t)t.shape.vocab_size * sizeof(float);
    float *logits = calloc(2, row);
    CU_ASSERT_FATAL(logits && t.shape.vocab_size <= 4096);
    open_machine(&m, &t, CACHE_BF16, 4, 2, 128);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        reading_result got[2] = {{.kind = bad[i].kind, .n = bad[i].n, .token = bad[i].token},
                                 {.kind = READ_LOGITS}};
        const token_logit list = {bad[i].token, 3};
        buf_clear(&head);
        (void)buf_append(&head, &stats, sizeof stats);
        (void)buf_append(&head, got, sizeof got);
        (void)buf_append(&head, &list, (size_t)bad[i].n * sizeof list);
        CU_ASSERT_EQUAL(answered(&m, &head, head.len, row, got, logits, NULL), SNAP_E_NET);
    }
    m.near.steps = m.far.steps;
    m.far.failed = 0;
    close_machine(&m);
    buf_release(&head);
    free(logits);
    tiny_close(&t);
}

static void expect_input(machine *m, const void *bytes, size_t n) {
    CU_ASSERT_EQUAL(runner_answer(m->answering, bytes, n, keep_answer, &m->far, NULL),
                    SNAP_E_INPUT);
    CU_ASSERT_EQUAL(m->far.n, 0);
}

/* Calls that are cut or too long are refused. */
static void test_malformed_calls(void) {
    static sample s[2];
    tiny_model t;
    machine m;
    int32_t page[] = {REMOTE_READ_PAGE, 0, 0};
    tiny_open(&t, "v3");
    open_machine(&m, &t, CACHE_BF16, 4, 2, 128);
    for (int i = 0; i < 2; i++)
        add(&m, &t, i, 20, 10, &s[i]);
    step(&m);
    buf step = {0};
    (void)buf_append(&step, m.far.sent.data, m.far.sent.len);
    for (size_t n = 0; n < step.len; n++)
        expect_input(&m, step.data, n);
    CU_ASSERT_TRUE(buf_append(&step, "\0\0\0", 4));
    expect_input(&m, step.data, step.len);
    step.len -= 4;
    int32_t kind = READ_NOT_FINITE; /* of a reading */
    memcpy(step.data + step.len - sizeof(reading), &kind, sizeof kind);
    expect_input(&m, step.data, step.len);
    expect_input(&m, page, 4);
    expect_input(&m, page, 12);
    page[1] = -1;
    expect_input(&m, page, 8);
    page[1] = (int32_t)runner_limits(m.answering)->pages;
    expect_input(&m, page, 8);
    page[1]--;
    CU_ASSERT_EQUAL(runner_answer(m.answering, page, 8, keep_answer, &m.far, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(m.far.n, 1);
    m.far.n = 0;
    engine_clear(m.e);
    close_machine(&m);
    buf_release(&step);
    tiny_close(&t);
}

CU_TestInfo tests_together[] = {
    {"two replicas give the samples of one", test_two_replicas_give_the_samples_of_one},
    {"recomputing", test_recomputing},
    {"one request, and replicas without one", test_one_request},
    {"waiting requests move", test_waiting_requests_move},
    {"cache use decides", test_cache_use_decides},
    {"requests move to free pages", test_requests_move_to_free_pages},
    {"preempted sequences move", test_preempted_sequences_move},
    {"both replicas preempt", test_both_replicas_preempt},
    {"prompts stay together", test_prompts_stay_together},
    {"prompts share pages", test_prompts_share_pages},
    {"refusals", test_refusals},
    {"a step that fails", test_a_step_that_fails},
    {"answers", test_answers},
    {"impossible answers", test_impossible_answers},
    {"malformed calls", test_malformed_calls},
    CU_TEST_INFO_NULL,
};
