#include <CUnit/CUnit.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "generator/local/engine/block_sums.h"
#include "generator/local/engine/sampler.h"

enum { kVocab = 40, kDraws = 20000 };

static float logits[kVocab];

static void make_logits(void) {
    rng r = rng_make(3, 0);
    for (int i = 0; i < kVocab; i++)
        logits[i] = (float)(2 * rng_normal(&r));
}

/* Applies the definitions of temperature, top_k, top_p and min_p one after the other, to all
 * tokens. */
static void expected(const sampling *how, double *p) {
    double sum = 0, best = 0;
    for (int i = 0; i < kVocab; i++)
        sum += p[i] = exp((double)logits[i] / how->temperature);
    for (int i = 0; i < kVocab; i++) {
        int above = 0;
        for (int j = 0; j < kVocab; j++)
            above += logits[j] > logits[i];
        if (how->top_k && above >= how->top_k)
            p[i] = 0;
    }
    sum = 0;
    for (int i = 0; i < kVocab; i++)
        sum += p[i];
    double kept[kVocab];
    for (int i = 0; i < kVocab; i++) {
        double above = 0;
        for (int j = 0; j < kVocab; j++)
            above += p[j] > p[i] ? p[j] : 0;
        kept[i] = above < how->top_p * sum ? p[i] : 0;
        best = fmax(best, p[i]);
    }
    sum = 0;
    for (int i = 0; i < kVocab; i++)
        sum += p[i] = kept[i] >= how->min_p * best ? kept[i] : 0;
    for (int i = 0; i < kVocab; i++)
        p[i] /= sum;
}

static void test_draws_follow_the_definitions(void) {
    static const sampling hows[] = {
        {.temperature = 1, .top_p = 1},
        {.temperature = 0.6, .top_p = 0.9},
        {.temperature = 1.5, .top_p = 1, .top_k = 5},
        {.temperature = 1, .top_p = 0.8, .top_k = 6},
        {.temperature = 1, .top_p = 1, .min_p = 0.1},
        {.temperature = 0.8, .top_p = 0.95, .top_k = 12, .min_p = 0.02},
    };
    sampler *s;
    make_logits();
    CU_ASSERT_EQUAL_FATAL(sampler_create(&s, kVocab, NULL), SNAP_OK);
    for (size_t h = 0; h < sizeof hows / sizeof *hows; h++) {
        double p[kVocab], stated[kVocab], chi = 0;
        int count[kVocab] = {0}, cells = 0;
        rng r = rng_make(17, h);
        expected(&hows[h], p);
        sampler_distribution(s, &hows[h], logits, stated);
        for (int i = 0; i < kVocab; i++)
            CU_ASSERT_DOUBLE_EQUAL(stated[i], p[i], 1e-12);
        for (int i = 0; i < kDraws; i++)
            count[sampler_draw(s, &hows[h], logits, NULL, 0, &r, NULL)]++;
        for (int i = 0; i < kVocab; i++) {
            double want = p[i] * kDraws;
            if (p[i] == 0) {
                CU_ASSERT_EQUAL(count[i], 0);
            } else if (want >= 5) {
                chi += pow(count[i] - want, 2) / want;
                cells++;
            }
        }
        /* the mean is about cells - 1, the variance about twice that: five standard deviations */
        CU_ASSERT(chi < cells - 1 + 5 * sqrt(2.0 * cells));
        CU_ASSERT(cells > 2);
    }
    sampler_free(s);
}

static void test_greedy_and_penalty(void) {
    sampler *s;
    int32_t seen[] = {2, 3, 2};
    float logprob;
    rng r = rng_make(1, 0);
    sampling greedy = {.top_p = 1}, penalty = {.top_p = 1, .repetition_penalty = 2};
    CU_ASSERT_EQUAL_FATAL(sampler_create(&s, 5, NULL), SNAP_OK);
    float x[5] = {1.0f, 0.8f, 1.5f, -0.1f, 1.5f};
    CU_ASSERT_EQUAL(sampler_draw(s, &greedy, x, seen, 3, &r, &logprob), 2);
    double sum = exp(1.0) + exp((double)0.8f) + 2 * exp(1.5) + exp((double)-0.1f);
    CU_ASSERT_DOUBLE_EQUAL((double)logprob, 1.5 - log(sum), 1e-6);
    /* token 2 is penalised */
    CU_ASSERT_EQUAL(sampler_draw(s, &penalty, x, seen, 3, &r, &logprob), 4);
    float y[5] = {0.5f, 0.8f, 1.5f, -0.1f, -3.0f};
    CU_ASSERT_EQUAL(sampler_draw(s, &penalty, y, seen, 3, &r, &logprob), 1);
    CU_ASSERT_DOUBLE_EQUAL((double)logprob, token_logprob(y, 5, 1), 1e-6);
    float negative[5] = {-1.5f, -2.0f, -1.0f, -1.2f, -2.0f};
    CU_ASSERT_EQUAL(sampler_draw(s, &penalty, negative, seen, 3, &r, NULL), 0);
    sampler_free(s);
}

static void test_odd_logits(void) {
    sampler *s;
    rng r = rng_make(1, 0);
    sampling how = {.temperature = 1, .top_p = 0.9, .top_k = 3};
    CU_ASSERT_EQUAL_FATAL(sampler_create(&s, 4, NULL), SNAP_OK);
    float nan[4] = {NAN, 1, NAN, 0}, all_nan[4] = {NAN, NAN, NAN, NAN},
          huge[4] = {-INFINITY, INFINITY, 0, 1}, flat[4] = {-INFINITY, -INFINITY, 3e38f, -3e38f};
    for (int i = 0; i < 100; i++) {
        CU_ASSERT_EQUAL(sampler_draw(s, &how, nan, NULL, 0, &r, NULL) % 2, 1);
        int32_t any = sampler_draw(s, &how, all_nan, NULL, 0, &r, NULL);
        CU_ASSERT(any >= 0 && any < 4);
        CU_ASSERT_EQUAL(sampler_draw(s, &how, huge, NULL, 0, &r, NULL), 1);
        CU_ASSERT_EQUAL(sampler_draw(s, &how, flat, NULL, 0, &r, NULL), 2);
    }
    sampler_free(s);
}

static void test_one_number_a_draw(void) {
    sampler *s;
    sampling how = {.temperature = 1, .top_p = 0.9};
    rng a = rng_make(9, 0), b = a;
    make_logits();
    CU_ASSERT_EQUAL_FATAL(sampler_create(&s, kVocab, NULL), SNAP_OK);
    for (int i = 0; i < 10; i++) {
        (void)sampler_draw(s, &how, logits, NULL, 0, &a, NULL);
        (void)rng_uniform(&b);
    }
    CU_ASSERT_EQUAL(rng_u32(&a), rng_u32(&b));
    sampler_free(s);
}

/* Lists the tokens with p > @least, from the last id to the first. */
static reading_result list_tokens(const sampling *how, double least, token_logit *list) {
    reading_result a = {.kind = READ_NUCLEUS, .list = list, .largest = -INFINITY};
    for (int i = 0; i < kVocab; i++)
        a.largest = fmaxf(a.largest, logits[i]);
    for (int i = kVocab - 1; i >= 0; i--) {
        double p = exp(((double)logits[i] - (double)a.largest) / how->temperature);
        a.sum += p;
        if (p > least)
            list[a.n++] = (token_logit){i, logits[i]};
    }
    return a;
}

/* A draw needs only the tokens that can be drawn. They may be listed in any order, with others. */
static void test_a_list_is_enough(void) {
    static const sampling hows[] = {
        {.temperature = 0.7, .top_p = 0.8},
        {.temperature = 0.7, .top_k = 3},
        {.temperature = 0.7, .top_k = 4, .top_p = 0.9, .min_p = 0.2},
    };
    sampler *s;
    token_logit list[kVocab];
    make_logits();
    CU_ASSERT_EQUAL_FATAL(sampler_create(&s, kVocab, NULL), SNAP_OK);
    for (uint64_t i = 0; i < 3000; i++) {
        const sampling *how = &hows[i % 3];
        reading_result a = list_tokens(how, 0.01, list);
        rng x = rng_make(i, 3), y = x;
        CU_ASSERT(a.n < kVocab);
        CU_ASSERT_EQUAL(sampler_draw_read(s, how, &a, &x),
                        sampler_draw(s, how, logits, NULL, 0, &y, NULL));
        CU_ASSERT_EQUAL(rng_u32(&x), rng_u32(&y));
    }
    sampler_free(s);
}

enum { kWide = 700 }; /* three blocks, of which the last is not full */

static void make_wide(float *wide, uint64_t seed) {
    rng r = rng_make(seed, 0);
    for (int i = 0; i < kWide; i++)
        wide[i] = i >= 256 && i < 512 ? -5000 : (float)(2 * rng_normal(&r));
}

/* The sums of blocks give the tokens of the sampler, also after the temperature or the logits have
 * changed. Nothing is drawn from the second block, in which all tokens have the weight 0. */
static void test_block_sums(void) {
    sampler *s;
    block_sums b;
    float wide[kWide];
    int last = 0;
    CU_ASSERT_EQUAL_FATAL(sampler_create(&s, kWide, NULL), SNAP_OK);
    CU_ASSERT_FATAL(block_sums_make(&b, kWide));
    for (uint64_t i = 0; i < 4000; i++) {
        sampling how = {.temperature = i / 100 % 2 ? 0.7 : 1.6, .top_p = 1};
        rng x = rng_make(i, 5), y = x;
        if (i % 1000 == 0) {
            make_wide(wide, i);
            block_sums_clear(&b);
        }
        int32_t token = block_sums_draw(&b, wide, kWide, how.temperature, rng_uniform(&x));
        CU_ASSERT_EQUAL(token, sampler_draw(s, &how, wide, NULL, 0, &y, NULL));
        last += token >= 512;
    }
    CU_ASSERT(last > 1000 && last < 3000);
    CU_ASSERT_EQUAL(block_sums_draw(&b, wide, kWide, 1, 0), 0);
    CU_ASSERT_EQUAL(block_sums_draw(&b, wide, kWide, 1, 1), kWide - 1);
    make_wide(wide, 1);
    for (int i = 512; i < kWide; i++)
        wide[i] = -5000;
    block_sums_clear(&b);
    CU_ASSERT_EQUAL(block_sums_draw(&b, wide, kWide, 1, 1), 255);
    block_sums_release(&b);
    sampler_free(s);
}

static void test_what_is_to_be_read(void) {
    static const struct {
        sampling how;
        reading_kind kind;
    } cases[] = {{{.temperature = 0}, READ_BEST},
                 {{.temperature = 2}, READ_SHARE},
                 {{.temperature = 1, .top_k = kVocab}, READ_SHARE},
                 {{.temperature = 1, .top_p = 0.9}, READ_NUCLEUS},
                 {{.temperature = 1, .top_k = 5, .top_p = 0.9, .min_p = 0.1}, READ_TOP},
                 {{.temperature = 1, .min_p = 0.1}, READ_LOGITS},
                 {{.repetition_penalty = 1.1}, READ_LOGITS}};
    rng r = rng_make(2, 0), ahead = r;
    sampler *s;
    CU_ASSERT_EQUAL_FATAL(sampler_create(&s, kVocab, NULL), SNAP_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CU_ASSERT_EQUAL(sampler_reading(s, &cases[i].how, &r).kind, cases[i].kind);
    CU_ASSERT_EQUAL(sampler_reading(s, &cases[1].how, &r).share, rng_uniform(&ahead));
    sampler_free(s);
}

/* Greedy draws show which logit is the largest after the penalties. */
static void test_penalties_of_the_answer(void) {
    static const float x[4] = {3.0f, 2.5f, 2.2f, 0};
    static const int32_t seen[] = {1, 0, 0, 1}; /* the first token belongs to the prompt */
    static const struct {
        double presence, frequency;
        int32_t expected;
    } cases[] = {
        {0, 0, 0},       {0.4, 0, 0}, /* 2.6, 2.1, 2.2 */
        {0, 0.3, 0},                  /* 2.4, 2.2, 2.2 */
        {0.9, 0, 2},                  /* 2.1, 1.6, 2.2 */
        {0, 0.41, 2},                 /* 2.18, 2.09, 2.2 */
        {0.5, -0.5, 0},               /* 3.5, 2.5, 2.2 */
        {-0.1, 0.8, 2},               /* 1.5, 1.8, 2.2 */
        {-0.1, 0.35, 0},              /* 2.4, 2.25, 2.2 */
    };
    sampler *s;
    rng r = rng_make(1, 0);
    CU_ASSERT_EQUAL_FATAL(sampler_create(&s, 4, NULL), SNAP_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sampling how = {.presence_penalty = cases[i].presence,
                        .frequency_penalty = cases[i].frequency,
                        .n_prompt = 1};
        float logprob, plain;
        bool off = i == 0;
        CU_ASSERT_EQUAL(sampler_draw(s, &how, x, seen, 4, &r, &logprob), cases[i].expected);
        plain = (float)token_logprob(x, 4, cases[i].expected);
        CU_ASSERT_EQUAL(logprob, plain); /* the model's own, without penalties */
        CU_ASSERT_EQUAL(sampler_reading(s, &how, &r).kind, off ? READ_BEST : READ_LOGITS);
    }
    sampler_free(s);
}

static void test_top_logprobs(void) {
    token_logit top[kVocab];
    make_logits();
    for (int k = 0; k <= kVocab + 3; k += 7) {
        int n = top_logprobs(logits, kVocab, top, k < kVocab ? k : kVocab);
        CU_ASSERT_EQUAL(n, k < kVocab ? k : kVocab);
        for (int i = 0; i < n; i++) {
            int above = 0;
            for (int j = 0; j < kVocab; j++)
                above += logits[j] > logits[top[i].id];
            CU_ASSERT_EQUAL(above, i);
            CU_ASSERT_EQUAL(top[i].logit, (float)token_logprob(logits, kVocab, top[i].id));
        }
    }
    static const float equal[5] = {1, 2, 2, 2, 0};
    CU_ASSERT_EQUAL(top_logprobs(equal, 5, top, 2), 2);
    CU_ASSERT(top[0].id == 1 && top[1].id == 2);
    CU_ASSERT_EQUAL(top_logprobs(equal, 5, top, 9), 5);
}

CU_TestInfo tests_sampler[] = {
    {"draws follow the definitions", test_draws_follow_the_definitions},
    {"greedy, repetition penalty, log-probability", test_greedy_and_penalty},
    {"logits that are NaN or infinite", test_odd_logits},
    {"a draw takes one random number", test_one_number_a_draw},
    {"a list of the tokens that can be drawn is enough", test_a_list_is_enough},
    {"sums over blocks of tokens do not change the draws", test_block_sums},
    {"what a draw needs of the logits", test_what_is_to_be_read},
    {"presence and frequency penalties", test_penalties_of_the_answer},
    {"the likeliest tokens", test_top_logprobs},
    CU_TEST_INFO_NULL,
};
