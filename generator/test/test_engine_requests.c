/* Tests what a server needs from the engine: scores of prompts, likeliest tokens, a least number of
 * tokens, removed requests. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/engine/engine.h"
#include "generator/test/score.h"
#include "generator/test/tiny_model.h"

enum { kTokens = 70, kTop = 5, kChunk = 24, kPrompt = 75 };

typedef struct {
    int32_t token[kTokens];
    float logprob[kTokens];
    token_logit top[kTokens][kTop];
    int n, n_top, done;
    finish_reason why;
    float score[kPrompt];
    int32_t best[kPrompt];
    int scored;
    int started, cached;
} sample;

static void take_start(void *user, int cached) {
    sample *s = user;
    CU_ASSERT_EQUAL(s->n, 0);
    s->started++;
    s->cached = cached;
}

static bool take(void *user, int32_t token, float logprob) {
    sample *s = user;
    CU_ASSERT_FATAL(s->n < kTokens);
    s->token[s->n] = token;
    s->logprob[s->n++] = logprob;
    return true;
}

static void take_top(void *user, const token_logit *top, int n) {
    sample *s = user;
    s->n_top = n;
    CU_ASSERT_FATAL(n <= kTop);
    memcpy(s->top[s->n], top, (size_t)n * sizeof *top);
}

static void take_score(void *user, int position, float logprob, const token_logit *top, int n) {
    sample *s = user;
    CU_ASSERT_FATAL(position > 0 && position < kPrompt && n == kTop);
    s->score[position] = logprob;
    s->best[position] = top[0].id;
    s->scored++;
}

static void note_done(void *user, finish_reason why) {
    sample *s = user;
    s->done++;
    s->why = why;
}

typedef struct {
    tiny_model t;
    runner *r;
    engine *e;
} machine;

static void open_machine(machine *m, int64_t pages, int decode) {
    runner_options opt = {.format = CACHE_BF16,
                          .pages = pages,
                          .context = 128,
                          .max_rows = decode + kChunk,
                          .max_decode = decode,
                          .threads = 1};
    tiny_open(&m->t, "v3");
    CU_ASSERT_EQUAL_FATAL(runner_create(&m->r, &m->t.weights, &opt, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(engine_create(&m->e, m->r, NULL), SNAP_OK);
}

static void close_machine(machine *m) {
    engine_free(m->e);
    runner_free(m->r);
    tiny_close(&m->t);
}

static engine_request greedy(const machine *m, int n_prompt, int tokens, sample *s) {
    *s = (sample){0};
    return (engine_request){.prompt = m->t.tokens,
                            .n_prompt = n_prompt,
                            .max_tokens = tokens,
                            .token = take,
                            .done = note_done,
                            .user = s};
}

static void run(machine *m) {
    while (engine_pending(m->e))
        CU_ASSERT_EQUAL_FATAL(engine_step(m->e, NULL), SNAP_OK);
}

static void test_scores_are_those_of_teacher_forcing(void) {
    machine m;
    static sample s[3];
    float expected[kPrompt];
    open_machine(&m, 12, 4);
    /* three requests with the same prompt run at the same time; two of them are scored */
    for (int i = 0; i < 3; i++) {
        engine_request req = greedy(&m, kPrompt, 20, &s[i]);
        req.logprobs = true;
        req.top = take_top;
        req.top_logprobs = kTop;
        req.score = i ? take_score : NULL;
        CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    }
    run(&m);
    CU_ASSERT_EQUAL_FATAL(score_text(m.r, m.t.tokens, kPrompt, kChunk, expected, NULL, NULL, NULL),
                          SNAP_OK);
    for (int i = 1; i < 3; i++) {
        CU_ASSERT_EQUAL(s[i].scored, kPrompt - 1);
        for (int k = 1; k < kPrompt; k++)
            CU_ASSERT_EQUAL(s[i].score[k], expected[k - 1]);
    }
    CU_ASSERT_EQUAL(s[0].scored, 0);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(s[i].n, 20);
        CU_ASSERT_EQUAL(memcmp(s[i].token, s[0].token, sizeof s[i].token), 0);
    }
    close_machine(&m);
}

static void test_a_scored_prompt_needs_no_answer(void) {
    machine m;
    static sample s;
    open_machine(&m, 12, 4);
    engine_request req = greedy(&m, kPrompt, 0, &s);
    req.top_logprobs = kTop;
    req.score = take_score;
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    run(&m);
    CU_ASSERT_EQUAL(s.scored, kPrompt - 1);
    CU_ASSERT_EQUAL(s.n, 0);
    CU_ASSERT_EQUAL(s.why, FINISH_LENGTH);
    CU_ASSERT_EQUAL(engine_load_of(m.e).pages_used, 0); /* such a prompt is not kept */
    close_machine(&m);
}

/* No step computes the first token of a prompt that is in the cache, so it comes before the step.
 * The tokens are the same. */
static void test_a_cached_prompt_starts_at_once(void) {
    machine m;
    static sample s[2];
    open_machine(&m, 12, 4);
    for (int i = 0; i < 2; i++) {
        engine_request req = greedy(&m, kPrompt, 20, &s[i]);
        req.start = take_start;
        CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
        int64_t steps = engine_stats_of(m.e).steps;
        CU_ASSERT_EQUAL(engine_admit(m.e, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(s[i].n, i);
        CU_ASSERT_EQUAL(engine_stats_of(m.e).steps, steps);
        CU_ASSERT_EQUAL(engine_step(m.e, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(s[i].n, 2 * i);
        run(&m);
        CU_ASSERT_EQUAL(s[i].n, 20);
        CU_ASSERT_EQUAL(s[i].started, 1);
        CU_ASSERT_EQUAL(s[i].cached, i * kPrompt);
    }
    CU_ASSERT_EQUAL(memcmp(s[1].token, s[0].token, sizeof s[0].token), 0);
    close_machine(&m);
}

/* Of the pages in use, those that are not only kept are the ones that requests need now. */
static void test_pages_of_kept_prompts(void) {
    machine m;
    static sample first, same[2], other;
    open_machine(&m, 12, 4);
    engine_request req = greedy(&m, kPrompt, 20, &first);
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    run(&m);
    CU_ASSERT_EQUAL(engine_load_of(m.e).pages_used, 2);
    CU_ASSERT_EQUAL(engine_load_of(m.e).pages_kept, 2);
    for (int i = 0; i < 2; i++) {
        req = greedy(&m, kPrompt, 10 + 20 * i, &same[i]);
        CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    }
    req = greedy(&m, 40, 20, &other); /* needs one page */
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    while (engine_pending(m.e)) {
        CU_ASSERT_EQUAL_FATAL(engine_step(m.e, NULL), SNAP_OK);
        engine_load now = engine_load_of(m.e);
        int running = !same[0].done + !same[1].done; /* they share the first of their two pages */
        CU_ASSERT_EQUAL(now.pages_used - now.pages_kept, (running > 0) + running + !other.done);
    }
    CU_ASSERT_EQUAL(engine_load_of(m.e).pages_used, 3);
    CU_ASSERT_EQUAL(engine_load_of(m.e).pages_kept, 3);
    close_machine(&m);
}

static void test_the_likeliest_tokens(void) {
    machine m;
    static sample s;
    open_machine(&m, 12, 4);
    engine_request req = greedy(&m, 40, 30, &s);
    req.logprobs = true;
    req.top = take_top;
    req.top_logprobs = kTop;
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    run(&m);
    CU_ASSERT_EQUAL(s.n_top, kTop);
    for (int i = 0; i < s.n; i++) {
        CU_ASSERT_EQUAL(s.top[i][0].id, s.token[i]); /* the draw is greedy */
        CU_ASSERT_EQUAL(s.top[i][0].logit, s.logprob[i]);
        for (int k = 1; k < kTop; k++)
            CU_ASSERT(s.top[i][k].logit <= s.top[i][k - 1].logit);
    }
    req.top_logprobs = ENGINE_TOP + 1;
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_E_SHAPE);
    close_machine(&m);
}

static void test_stop_ids_wait_for_the_least_number_of_tokens(void) {
    machine m;
    static sample open, stopped, longer;
    open_machine(&m, 12, 4);
    engine_request req = greedy(&m, 40, 30, &open);
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    run(&m);
    int32_t stop[2] = {open.token[4], m.t.shape.vocab_size - 1};
    int at = 0;
    while (open.token[at] != stop[0])
        at++;
    req = greedy(&m, 40, 30, &stopped);
    req.stop_ids = stop;
    req.n_stop_ids = 2;
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    req = greedy(&m, 40, 30, &longer);
    req.stop_ids = stop;
    req.n_stop_ids = 2;
    req.min_tokens = 12;
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    run(&m);
    CU_ASSERT_EQUAL(stopped.n, at);
    CU_ASSERT_EQUAL(stopped.why, FINISH_STOP);
    CU_ASSERT(longer.n >= 12);
    CU_ASSERT_EQUAL(memcmp(longer.token, open.token, (size_t)at * sizeof *open.token), 0);
    for (int i = 0; i < longer.n; i++)
        CU_ASSERT(longer.token[i] != stop[0] && longer.token[i] != stop[1]);
    close_machine(&m);
}

/* Removes requests that run, wait and are swapped out. The tokens of the others must not change. */
static void test_removed_requests_leave_no_pages(void) {
    enum { kAll = 9 };
    machine m;
    static sample s[kAll], alone;
    open_machine(&m, 9, 8);
    for (int i = 0; i < kAll; i++) {
        engine_request req = greedy(&m, 33 + 3 * i, 60, &s[i]);
        CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    }
    while (!engine_load_of(m.e).swapped)
        CU_ASSERT_EQUAL_FATAL(engine_step(m.e, NULL), SNAP_OK);
    int pending = engine_pending(m.e), removed = 0;
    for (int i = 1; i < kAll; i++)
        if (!s[i].done) {
            CU_ASSERT_TRUE(engine_remove(m.e, &s[i]));
            CU_ASSERT_FALSE(engine_remove(m.e, &s[i]));
            removed++;
        }
    CU_ASSERT(removed > 2);
    CU_ASSERT_EQUAL(engine_pending(m.e), pending - removed);
    run(&m);
    CU_ASSERT_EQUAL(s[0].n, 60);
    CU_ASSERT_EQUAL(s[0].done, 1);
    engine_clear(m.e);
    CU_ASSERT_EQUAL(engine_load_of(m.e).pages_used, 0);
    engine_request req = greedy(&m, 33, 60, &alone);
    CU_ASSERT_EQUAL(engine_add(m.e, &req, NULL), SNAP_OK);
    run(&m);
    CU_ASSERT_EQUAL(memcmp(alone.token, s[0].token, sizeof alone.token), 0);
    close_machine(&m);
}

CU_TestInfo tests_engine_requests[] = {
    {"scores of a prompt are those of teacher forcing", test_scores_are_those_of_teacher_forcing},
    {"a scored prompt needs no answer", test_a_scored_prompt_needs_no_answer},
    {"cached prompts start at once", test_a_cached_prompt_starts_at_once},
    {"pages of kept prompts", test_pages_of_kept_prompts},
    {"the likeliest tokens come with each token", test_the_likeliest_tokens},
    {"stop ids wait for the least number of tokens",
     test_stop_ids_wait_for_the_least_number_of_tokens},
    {"removed requests leave no pages", test_removed_requests_leave_no_pages},
    CU_TEST_INFO_NULL,
};
