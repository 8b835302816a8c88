#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "generator/local/engine/engine.h"
#include "generator/test/score.h"
#include "generator/test/tiny_model.h"

enum { kSamples = 12, kTokens = 70, kNoStop = -1, kFormats = kSanitized ? 1 : 3 };

typedef struct {
    int32_t token[kTokens];
    float logprob[kTokens];
    int n, done;
    finish_reason why;
    int32_t stop_at; /* the callback stops the sequence after this token */
} sample;

static bool take(void *user, int32_t token, float logprob) {
    sample *s = user;
    if (s->n < kTokens) {
        s->token[s->n] = token;
        s->logprob[s->n] = logprob;
    }
    s->n++;
    return token != s->stop_at;
}

static void note_done(void *user, finish_reason why) {
    sample *s = user;
    s->done++;
    s->why = why;
}

static runner *start(const tiny_model *t, kv_format format, int64_t pages, int decode) {
    runner *r = NULL;
    runner_options opt = {.format = format,
                          .pages = pages,
                          .context = 128,
                          .max_rows = decode + 24,
                          .max_decode = decode,
                          .threads = 1};
    CU_ASSERT_EQUAL_FATAL(runner_create(&r, &t->weights, &opt, NULL), SNAP_OK);
    return r;
}

/* The request of sample @i. There are prompts of four lengths, one of which is exactly one page.
 * Three samples in a row have the same prompt. */
static engine_request request(const tiny_model *t, int i, sample *s) {
    static const int lengths[] = {50, 64, 33, 40};
    *s = (sample){.stop_at = kNoStop};
    return (engine_request){.prompt = t->tokens + i / 3,
                            .n_prompt = lengths[i / 3 % 4],
                            .sampling = {.temperature = 1.0, .top_p = 0.95},
                            .seed = 100 + (uint64_t)i,
                            .max_tokens = i % 2 ? 60 : 25,
                            .logprobs = true,
                            .token = take,
                            .done = note_done,
                            .user = s};
}

static void add(engine_stats *sum, const engine *e) {
    engine_stats s = engine_stats_of(e);
    sum->steps += s.steps;
    sum->decoded += s.decoded;
    sum->prefilled += s.prefilled;
    sum->shared += s.shared;
    sum->preemptions += s.preemptions;
    sum->recomputed += s.recomputed;
    sum->most_running = s.most_running > sum->most_running ? s.most_running : sum->most_running;
    sum->most_pages = s.most_pages > sum->most_pages ? s.most_pages : sum->most_pages;
}

/* Runs all samples, at most @together at the same time. If @together is 1, each sample has its own
 * engine. @pages and @decode limit the cache and the sequences of a step. */
static engine_stats run_all(const tiny_model *t, kv_format format, int64_t pages, int decode,
                            int together, bool recompute, sample *samples) {
    engine *e = NULL;
    engine_stats sum = {0};
    runner *r = start(t, format, pages, decode);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    engine_recompute(e, recompute);
    for (int i = 0; i < kSamples; i++) {
        engine_request req = request(t, i, &samples[i]);
        CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
        while (engine_pending(e) >= together || (i == kSamples - 1 && engine_pending(e)))
            CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
        if (together == 1) {
            add(&sum, e);
            engine_free(e);
            CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
        }
    }
    add(&sum, e);
    engine_free(e);
    runner_free(r);
    return sum;
}

static engine_stats run(const tiny_model *t, kv_format format, int64_t pages, int decode,
                        int together, sample *samples) {
    return run_all(t, format, pages, decode, together, false, samples);
}

static void same(const sample *a, const sample *b) {
    for (int i = 0; i < kSamples; i++) {
        CU_ASSERT_EQUAL(a[i].done, 1);
        CU_ASSERT_EQUAL(b[i].done, 1);
        CU_ASSERT_EQUAL(a[i].n, i % 2 ? 60 : 25);
        CU_ASSERT_EQUAL(a[i].why, FINISH_LENGTH);
        CU_ASSERT_EQUAL(a[i].n, b[i].n);
        CU_ASSERT_EQUAL(memcmp(a[i].token, b[i].token, sizeof a[i].token), 0);
        CU_ASSERT_EQUAL(memcmp(a[i].logprob, b[i].logprob, sizeof a[i].logprob), 0);
    }
}

static void test_a_sample_does_not_depend_on_its_neighbours(void) {
    static const kv_format formats[] = {CACHE_BF16, CACHE_FP8, CACHE_F32};
    static sample alone[kSamples], together[kSamples], tight[kSamples], few[kSamples];
    for (int f = 0; f < kFormats; f++) {
        tiny_model t;
        tiny_open(&t, "v3");
        engine_stats one = run(&t, formats[f], 40, 4, 1, alone),
                     all = run(&t, formats[f], 40, 12, kSamples, together),
                     swapped = run(&t, formats[f], 7, 12, kSamples, tight),
                     queued = run(&t, formats[f], 40, 12, 2, few);
        same(alone, together);
        same(alone, tight);
        same(alone, few);
        CU_ASSERT_EQUAL(one.most_running, 1);
        CU_ASSERT_EQUAL(one.shared, 0);
        CU_ASSERT(all.most_running > 6);
        CU_ASSERT_EQUAL(all.preemptions, 0);
        CU_ASSERT(all.shared > 0);
        CU_ASSERT(all.prefilled < one.prefilled);
        CU_ASSERT_EQUAL(all.prefilled + all.shared, one.prefilled);
        CU_ASSERT_EQUAL(queued.prefilled, all.prefilled); /* the pages of a prompt are kept for its
                                                             later samples */
        CU_ASSERT(swapped.preemptions > 0);
        CU_ASSERT_EQUAL(swapped.most_pages, 7);
        CU_ASSERT(all.steps * 3 < one.steps);
        tiny_close(&t);
    }
}

/* Preempted sequences are computed again. Every sample must finish; in FP32, where chunks and steps
 * round alike, with the same tokens. */
static void test_recomputation(void) {
    static const kv_format formats[] = {CACHE_F32, CACHE_BF16, CACHE_FP8};
    static sample alone[kSamples], again[kSamples];
    for (int f = 0; f < kFormats; f++) {
        tiny_model t;
        tiny_open(&t, "v3");
        (void)run(&t, formats[f], 40, 4, 1, alone);
        engine_stats s = run_all(&t, formats[f], 7, 12, kSamples, true, again);
        CU_ASSERT(s.preemptions > 0);
        CU_ASSERT(s.recomputed > s.preemptions);
        CU_ASSERT_EQUAL(s.most_pages, 7);
        if (formats[f] == CACHE_F32)
            same(alone, again);
        for (int i = 0; i < kSamples; i++) {
            CU_ASSERT_EQUAL(again[i].done, 1);
            CU_ASSERT_EQUAL(again[i].n, alone[i].n);
            CU_ASSERT_EQUAL(again[i].why, FINISH_LENGTH);
        }
        tiny_close(&t);
    }
}

/* Runs forty sequences at once, from four prompts. The first chunks of all prompts fit into one
 * step, and @threads threads draw the tokens. */
static engine_stats run_wide(const tiny_model *t, int threads, sample *samples) {
    enum { kWide = 40 };
    engine *e = NULL;
    runner *r = NULL;
    runner_options opt = {.format = CACHE_FP8,
                          .pages = 120,
                          .context = 128,
                          .max_rows = kWide + 300,
                          .max_decode = kWide,
                          .threads = threads};
    CU_ASSERT_EQUAL_FATAL(runner_create(&r, &t->weights, &opt, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    for (int i = 0; i < kWide; i++) {
        engine_request req = request(t, i % kSamples, &samples[i]);
        req.seed = (uint64_t)i;
        req.max_tokens = 8;
        CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
    }
    while (engine_pending(e))
        CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
    engine_stats stats = engine_stats_of(e);
    engine_free(e);
    runner_free(r);
    return stats;
}

static void test_many_at_once(void) {
    static sample one[40], three[40];
    tiny_model t;
    tiny_open(&t, "v2-lite");
    engine_stats a = run_wide(&t, 1, one), b = run_wide(&t, 3, three);
    for (int i = 0; i < 40; i++) {
        CU_ASSERT_EQUAL(one[i].n, 8);
        CU_ASSERT_EQUAL(memcmp(&one[i], &three[i], sizeof one[i]), 0);
    }
    CU_ASSERT_EQUAL(a.most_running, 40);
    CU_ASSERT_EQUAL(a.prefilled, 50 + 64 + 33 + 40);
    CU_ASSERT_EQUAL(a.steps, 1 + 7); /* one for the prompts, one for each token after the first */
    CU_ASSERT_EQUAL(b.steps, a.steps);
    tiny_close(&t);
}

/* Several samples of one prompt hold its full pages only once. */
static void test_samples_share_pages(void) {
    tiny_model t;
    engine *e = NULL;
    sample s[4];
    tiny_open(&t, "v2-lite");
    runner *r = start(&t, CACHE_BF16, 40, 8);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    for (int i = 0; i < 4; i++) {
        engine_request req = request(&t, i, &s[i]);
        req.prompt = t.tokens;
        req.n_prompt = 70;
        req.max_tokens = 20;
        CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
    }
    while (engine_pending(e))
        CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
    engine_stats stats = engine_stats_of(e);
    CU_ASSERT_EQUAL(stats.prefilled, 70);
    CU_ASSERT_EQUAL(stats.shared, 3 * 70);
    CU_ASSERT(stats.most_pages <= 1 + 4 + 1); /* it would be 8 without sharing */
    CU_ASSERT_EQUAL(stats.decoded, 4 * 19);
    engine_free(e);
    runner_free(r);
    tiny_close(&t);
}

/* Runs prompt @i, which fills exactly one page, and draws one token. Returns whether the prompt was
 * in the cache before. */
static bool was_cached(engine *e, const tiny_model *t, int i) {
    sample s;
    engine_request req = request(t, 0, &s);
    int64_t shared = engine_stats_of(e).shared;
    req.prompt = t->tokens + i;
    req.n_prompt = 64;
    req.max_tokens = 1;
    CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
    while (engine_pending(e))
        CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
    return engine_stats_of(e).shared > shared;
}

/* Prompts stay in the cache until their pages are needed. Then the least recently used ones are
 * dropped first. */
static void test_prompts_stay_in_the_cache(void) {
    tiny_model t;
    engine *e = NULL;
    tiny_open(&t, "v2-lite");
    runner *r = start(&t, CACHE_BF16, 8, 4);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    for (int i = 0; i < 8; i++)
        CU_ASSERT(!was_cached(e, &t, i));
    for (int i = 0; i < 8; i++)
        CU_ASSERT(was_cached(e, &t, i));
    CU_ASSERT(was_cached(e, &t, 0));
    CU_ASSERT(!was_cached(e, &t, 8)); /* takes the page of prompt 1 */
    CU_ASSERT(was_cached(e, &t, 0));
    CU_ASSERT(was_cached(e, &t, 2));
    CU_ASSERT(!was_cached(e, &t, 1));
    engine_free(e);
    runner_free(r);
    tiny_close(&t);
}

typedef struct {
    int32_t best[128];
    int vocab;
} argmaxes;

static void note_best(void *ctx, int64_t position, const float *logits) {
    argmaxes *a = ctx;
    int at = 0;
    for (int i = 1; i < a->vocab; i++)
        at = logits[i] > logits[at] ? i : at;
    a->best[position] = at;
}

static void test_greedy_is_what_scoring_expects(void) {
    tiny_model t;
    engine *e = NULL;
    sample s;
    float logprobs[128];
    int32_t text[128] = {0};
    tiny_open(&t, "longcat");
    argmaxes best = {.vocab = t.shape.vocab_size};
    runner *r = start(&t, CACHE_F32, 8, 4);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    engine_request req = request(&t, 3, &s);
    req.sampling.temperature = 0;
    CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
    while (engine_pending(e))
        CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
    int n = req.n_prompt + s.n;
    memcpy(text, req.prompt, (size_t)req.n_prompt * sizeof *text);
    memcpy(text + req.n_prompt, s.token, (size_t)s.n * sizeof *text);
    CU_ASSERT_EQUAL(score_text(r, text, n, 20, logprobs, note_best, &best, NULL), SNAP_OK);
    for (int i = 0; i < s.n; i++) {
        CU_ASSERT_EQUAL(best.best[req.n_prompt + i - 1], s.token[i]);
        CU_ASSERT_DOUBLE_EQUAL((double)logprobs[req.n_prompt + i - 1], (double)s.logprob[i], 1e-5);
    }
    CU_ASSERT_EQUAL(score_text(r, text, 128, 1, logprobs, NULL, NULL, NULL), SNAP_OK);
    text[127] = t.shape.vocab_size;
    CU_ASSERT_EQUAL(score_text(r, text, 128, 1, logprobs, NULL, NULL, NULL), SNAP_E_SHAPE);
    engine_free(e);
    runner_free(r);
    tiny_close(&t);
}

static void test_stops(void) {
    tiny_model t;
    engine *e = NULL;
    sample s[4], whole;
    tiny_open(&t, "minicpm3");
    runner *r = start(&t, CACHE_BF16, 8, 4);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    engine_request req = request(&t, 1, &whole);
    CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
    while (engine_pending(e))
        CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
    int32_t stop = whole.token[10];
    int at = 0;
    while (whole.token[at] != stop)
        at++;
    for (int i = 0; i < 4; i++) {
        req = request(&t, 1, &s[i]);
        if (i == 0) {
            req.stop_ids = &stop;
            req.n_stop_ids = 1;
        } else if (i == 1) {
            s[i].stop_at = stop;
        } else if (i == 2) {
            req.max_tokens = 0;
        } else {
            req.max_tokens = 1 << 30; /* the context limits it: 128 - 50 */
        }
        CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
    }
    while (engine_pending(e))
        CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(s[0].n, at);
    CU_ASSERT_EQUAL(s[0].why, FINISH_STOP);
    CU_ASSERT_EQUAL(s[1].n, at + 1);
    CU_ASSERT_EQUAL(s[1].why, FINISH_STOP);
    CU_ASSERT_EQUAL(s[2].n, 0);
    CU_ASSERT_EQUAL(s[2].why, FINISH_LENGTH);
    CU_ASSERT_EQUAL(s[3].n, 128 - 50);
    CU_ASSERT_EQUAL(s[3].why, FINISH_LENGTH);
    engine_free(e);
    runner_free(r);
    tiny_close(&t);
}

/* A prompt of 50 tokens takes three steps of 24. Its first token comes with the third one, and each
 * further step gives one token. */
static void test_first_token_comes_with_its_prompt(void) {
    tiny_model t;
    engine *e = NULL;
    sample s;
    tiny_open(&t, "minicpm3");
    runner *r = start(&t, CACHE_BF16, 8, 4);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    engine_request req = request(&t, 0, &s);
    CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
    for (int step = 1; step <= 8; step++) {
        CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(s.n, step < 3 ? 0 : step - 2);
    }
    engine_free(e);
    runner_free(r);
    tiny_close(&t);
}

static void test_refusals(void) {
    tiny_model t;
    engine *e = NULL;
    sample s, big;
    snap_err err = {0};
    int32_t wrong[2] = {0, 64};
    tiny_open(&t, "v2-lite");
    runner *r = start(&t, CACHE_FP8, 1, 4);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    engine_request req = request(&t, 0, &s);
    req.n_prompt = 0;
    CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_E_SHAPE);
    req.n_prompt = 128;
    CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_E_SHAPE);
    req.prompt = wrong;
    req.n_prompt = 2;
    CU_ASSERT_EQUAL(engine_add(e, &req, &err), SNAP_E_SHAPE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "token 64"));
    /* With one page, a prompt of two pages never fits, and a sequence ends when it grows beyond the
     * page. */
    req = request(&t, 0, &big);
    req.n_prompt = 70;
    CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
    req = request(&t, 0, &s);
    req.max_tokens = 100;
    CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
    while (engine_pending(e))
        CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(big.why, FINISH_NO_PAGES);
    CU_ASSERT_EQUAL(s.why, FINISH_NO_PAGES);
    CU_ASSERT_EQUAL(s.n, 64 - 50 + 1);
    engine_free(e);
    runner_free(r);
    tiny_close(&t);
}

/* In FP8 the same number of bytes holds more sequences: 132 instead of 192 bytes per token and
 * layer at these widths. */
static void test_one_budget_admits_more_in_fp8(void) {
    static sample s[kSamples];
    tiny_model t;
    tiny_open(&t, "v3");
    size_t bf16 = mla_cache_token_bytes(MLA_BF16, t.shape.kv_lora_rank, t.shape.qk_rope_head_dim),
           fp8 = mla_cache_token_bytes(MLA_FP8, t.shape.kv_lora_rank, t.shape.qk_rope_head_dim);
    int64_t budget = 10;
    engine_stats a = run(&t, CACHE_BF16, budget, 12, kSamples, s),
                 b = run(&t, CACHE_FP8, budget * (int64_t)bf16 / (int64_t)fp8, 12, kSamples, s);
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| one budget | at once bf16 %d, fp8 %d | steps %lld, %lld | preemptions "
                     "%lld, %lld |",
                     a.most_running, b.most_running, (long long)a.steps, (long long)b.steps,
                     (long long)a.preemptions, (long long)b.preemptions);
    CU_ASSERT(b.most_running > a.most_running);
    CU_ASSERT(b.steps < a.steps);
    tiny_close(&t);
}

CU_TestInfo tests_engine[] = {
    {"a sample does not depend on its neighbours, nor on swapping",
     test_a_sample_does_not_depend_on_its_neighbours},
    {"recomputation in place of swapping", test_recomputation},
    {"samples of a prompt share its pages", test_samples_share_pages},
    {"prompts stay in the cache", test_prompts_stay_in_the_cache},
    {"many sequences at once, on one thread or three", test_many_at_once},
    {"greedy tokens are the likeliest ones in scoring", test_greedy_is_what_scoring_expects},
    {"stop ids, callbacks, max_tokens and the context end a sequence", test_stops},
    {"the first token comes with the last chunk of its prompt",
     test_first_token_comes_with_its_prompt},
    {"requests that do not fit are refused", test_refusals},
    {"one budget admits more in FP8", test_one_budget_admits_more_in_fp8},
    CU_TEST_INFO_NULL,
};
