/* Tests checkpoints with weights that are NaN, infinite or too large. No token may be drawn from
 * what they compute, and sequences that are not affected must go on. The tests run on the CPU, on a
 * CUDA device if there is one, or on both. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "generator/local/engine/engine.h"
#include "generator/local/model/route.h"
#include "generator/test/random_model.h"

enum { kContext = 96, kPieces = 5, kMostVocab = 512 };

typedef enum { FROM_V3, FROM_V2_LITE, FROM_WIDE_V3, FROM_WIDE_V2 } origin;

/* The numbers of @n weights from number @first on become @x. */
typedef struct {
    const char *tensor;
    int64_t first, n;
    float x;
} damage;

/* The tensors of the second layer, which has experts. The first 64 numbers exist in every fixture's
 * rows. The rows of kv_a_proj_with_mqa after the first kv_lora_rank ones make the rotary part of a
 * key. */
#define LAYER "model.layers.1."
static const damage damages[] = {
    {"model.embed_tokens.weight", 0, 64 * 64, NAN},
    {"lm_head.weight", 64 * 7, 1, NAN},
    {"lm_head.weight", 64 * 7, 1, INFINITY},
    {LAYER "self_attn.kv_a_proj_with_mqa.weight", 0, 1, NAN},
    {LAYER "self_attn.kv_b_proj.weight", 64 * 3, 1, NAN},
    {LAYER "self_attn.o_proj.weight", 5, 1, NAN},
    {LAYER "self_attn.o_proj.weight", 0, 64, 3e38f},
    {LAYER "mlp.gate.weight", 64 * 3, 1, NAN},
    {LAYER "mlp.gate.weight", 64 * 3, 1, INFINITY},
    {LAYER "mlp.gate.weight", 64 * 3, 1, -INFINITY},
    {LAYER "mlp.shared_experts.down_proj.weight", 9, 1, NAN},
    {LAYER "mlp.shared_experts.down_proj.weight", 0, 64 * 32, 3e38f},
};

static void model_open(tiny_model *t, origin from) {
    if (from == FROM_V3 || from == FROM_V2_LITE)
        tiny_open(t, from == FROM_V3 ? "v3" : "v2-lite");
    else
        random_open(t, from == FROM_WIDE_V3 ? random_wide_v3 : random_wide_v2, 7);
}

static void spoil(tiny_model *t, const damage *d) {
    tiny_spoil(t->dir, d->tensor, d->first, d->n, d->x);
    tiny_reopen(t);
}

/* Makes one weight of the second layer NaN. It belongs to the first number of the rotary part of a
 * key. */
static void spoil_rotary_key(tiny_model *t) {
    damage d = {LAYER "self_attn.kv_a_proj_with_mqa.weight",
                (int64_t)t->shape.kv_lora_rank * t->shape.hidden_size, 1, NAN};
    spoil(t, &d);
}

/* The format of CACHE_ROUNDED. */
static const char kRounded[] = "A";

static runner *start(const tiny_model *t, const char *device, kv_format format, int decode) {
    runner *r = NULL;
    snap_err err = {0};
    runner_options opt = {.format = format,
                          .precision = kRounded,
                          .pages = 2 * decode,
                          .context = kContext,
                          .max_rows = decode + 24,
                          .max_decode = decode,
                          .device = device,
                          .threads = 1};
    if (runner_create(&r, &t->weights, &opt, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

/* ---- one sequence ---- */

static void expect_refused(snap_status st, const snap_err *err, kv_format format, int position) {
    char at[40], precision[40];
    (void)snprintf(at, sizeof at, "position %d ", position);
    (void)snprintf(precision, sizeof precision, "precision %s,",
                   format == CACHE_ROUNDED ? kRounded : kv_format_name(format));
    CU_ASSERT_EQUAL(st, SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err->text, at));
    CU_ASSERT_PTR_NOT_NULL(strstr(err->text, precision));
}

/* Runs a chunk of a prompt, and then a decode step. runner_step() and runner_step_greedy() must
 * refuse both, and runner_step_read() must return READ_NOT_FINITE. */
static void check_damaged(const tiny_model *t, const char *device, kv_format format) {
    static const int32_t tokens[] = {3, 1, 4, 15, 9, 2, 6, 5, 35}, pages[] = {1, 0};
    static float logits[kMostVocab];
    enum { CHUNK = 8 };
    runner *r = start(t, device, format, 1);
    for (int i = 0; i < 2; i++) {
        model_piece p = {.tokens = tokens, .count = CHUNK, .pages = pages, .logits = 1};
        p.chunk = i == 0;
        if (i)
            p = (model_piece){.tokens = tokens + CHUNK,
                              .count = 1,
                              .position = CHUNK,
                              .pages = pages,
                              .logits = 1};
        int last = CHUNK - 1 + i;
        int32_t next;
        reading best = {.kind = READ_BEST};
        reading_result got = {0};
        snap_err err = {0}, why = {0};
        expect_refused(runner_step(r, &p, 1, logits, &err), &err, format, last);
        expect_refused(runner_step_greedy(r, &p, 1, &next, &why), &why, format, last);
        CU_ASSERT_EQUAL(runner_step_read(r, &p, 1, &best, &got, logits, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(got.kind, READ_NOT_FINITE);
    }
    runner_free(r);
}

static void check_all(origin from, const char *device, const kv_format *format, int n) {
    enum { DAMAGES = sizeof damages / sizeof *damages };
    for (int d = 0; d <= DAMAGES; d++) {
        tiny_model t = {0};
        model_open(&t, from);
        if (d < DAMAGES)
            spoil(&t, &damages[d]);
        else
            spoil_rotary_key(&t);
        for (int f = 0; f < n; f++)
            check_damaged(&t, device, format[f]);
        tiny_close(&t);
    }
}

static void test_damaged_weights(void) {
    static const kv_format formats[] = {CACHE_BF16, CACHE_FP8, CACHE_F32, CACHE_NO_PV,
                                        CACHE_ROUNDED};
    check_all(FROM_V3, NULL, formats, kSanitized ? 2 : 5);
    check_all(FROM_V2_LITE, NULL, formats, kSanitized ? 1 : 2);
    if (!tiny_on_cuda())
        return;
    check_all(FROM_V3, "cuda", formats, 2);
    check_all(FROM_WIDE_V3, "cuda", formats, 2);
    check_all(FROM_WIDE_V2, "cuda", formats, 2); /* on Hopper, its steps of one row
                                                    use single_layer() */
}

/* A model whose sum of squares of a row overflows in FP32. On the CPU the sum is FP64, and the
 * model works. On a device the result must not be a row of zeros, which would give equal logits:
 * the step must fail. */
static void test_large_residual(void) {
    static float logits[kMostVocab];
    int32_t token = 3, page = 0;
    tiny_model t = {0};
    if (!tiny_on_cuda())
        return;
    for (origin from = FROM_WIDE_V3; from <= FROM_WIDE_V2; from++) {
        model_open(&t, from);
        spoil(&t, &(damage){"model.embed_tokens.weight", 0, 64 * 64, 1e30f});
        runner *r = start(&t, "cuda", CACHE_BF16, 1);
        model_piece p = {.tokens = &token, .count = 1, .pages = &page, .logits = 1};
        snap_err err = {0};
        expect_refused(runner_step(r, &p, 1, logits, &err), &err, CACHE_BF16, 0);
        runner_free(r);
        tiny_close(&t);
    }
}

static void test_vectors_are_checked_when_opened(void) {
    static const char *const names[] = {"model.norm.weight",
                                        LAYER "self_attn.kv_a_layernorm.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tiny_model t = {0};
        model_weights w;
        snap_err err = {0};
        tiny_open(&t, "v3");
        tiny_spoil(t.dir, names[i], 5, 1, i ? INFINITY : NAN);
        CU_ASSERT_EQUAL(weights_bind(&w, &t.shape, t.files, &err), SNAP_E_INPUT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, names[i]));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "at 5"));
        weights_release(&w);
        tiny_close(&t);
    }
}

/* A logit of the router that is not finite must give a weight that is NaN: with softmax, with
 * sigmoid, and with groups. */
static void test_router(void) {
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int way = 0; way < 3; way++)
        for (int i = 0; i < 3; i++) {
            router r = {.experts = 8,
                        .chosen = 2,
                        .groups = way == 2 ? 4 : 1,
                        .groups_kept = way == 2 ? 2 : 1,
                        .sigmoid = way > 0,
                        .by_two = way == 2,
                        .factor = 1};
            float logits[8] = {3, 2, -1, -4, 1, 0, -2, 2.5f}, weight[2];
            int32_t expert[2];
            logits[3] = bad[i];
            router_choose(&r, logits, NULL, expert, weight);
            CU_ASSERT(isnan(weight[0]) || isnan(weight[1]));
        }
}

/* ---- several sequences ---- */

/* The embedding of one token is damaged. Of the rows of a step, only the row of that token is not
 * finite, for each kind of reading. */
static void check_rows(origin from, const char *device, kv_format format) {
    static const reading kinds[] = {{.kind = READ_LOGITS},
                                    {.kind = READ_BEST},
                                    {READ_SHARE, 0.8, 0.5},
                                    {READ_NUCLEUS, 0.2, 0.9},
                                    {READ_TOP, 0.5, 4}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    static float logits[kPieces * kMostVocab];
    static const int32_t tokens[kPieces] = {5, 17, 40, 9, 21}, pages[kPieces] = {2, 0, 1, 4, 3};
    tiny_model t = {0};
    model_open(&t, from);
    spoil(&t, &(damage){"model.embed_tokens.weight", (int64_t)9 * t.shape.hidden_size, 1, NAN});
    runner *r = start(&t, device, format, kPieces);
    for (int k = 0; k < KINDS; k++) {
        model_piece p[kPieces];
        reading wanted[kPieces];
        reading_result got[kPieces];
        int32_t next[kPieces];
        snap_err err = {0};
        for (int i = 0; i < kPieces; i++) {
            wanted[i] = kinds[(k + i) % KINDS];
            p[i] = (model_piece){.tokens = &tokens[i], .count = 1, .pages = &pages[i], .logits = 1};
        }
        CU_ASSERT_EQUAL(runner_step_read(r, p, kPieces, wanted, got, logits, NULL), SNAP_OK);
        for (int i = 0; i < kPieces; i++) {
            reading_kind read = device ? wanted[i].kind : READ_LOGITS;
            CU_ASSERT_EQUAL(got[i].kind, tokens[i] == 9 ? READ_NOT_FINITE : read);
        }
        CU_ASSERT_EQUAL(runner_step_greedy(r, p, kPieces, next, &err), SNAP_E_INPUT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "sequence 4 of 5: "));
    }
    runner_free(r);
    tiny_close(&t);
}

static void test_rows_of_a_step(void) {
    check_rows(FROM_V3, NULL, CACHE_BF16);
    check_rows(FROM_V2_LITE, NULL, CACHE_FP8);
    if (!tiny_on_cuda())
        return;
    check_rows(FROM_WIDE_V3, "cuda", CACHE_FP8);
    check_rows(FROM_WIDE_V2, "cuda", CACHE_BF16);
}

/* ---- the engine ---- */

enum { kSamples = 24, kPrompt = 6, kTokens = 40 };

typedef struct {
    int32_t token[kPrompt + kTokens]; /* the prompt, then the drawn tokens */
    int n, done;
    finish_reason why;
} sample;

static bool take(void *user, int32_t token, float logprob) {
    (void)logprob;
    sample *s = user;
    s->token[s->n++] = token;
    return true;
}

static void note_done(void *user, finish_reason why) {
    sample *s = user;
    s->done++;
    s->why = why;
}

/* Runs all samples at once with a cache of few pages, which are used again and again. Three samples
 * share a prompt. */
static void run(const tiny_model *t, const char *device, kv_format format, sample *samples) {
    engine *e = NULL;
    runner *r = start(t, device, format, 4);
    CU_ASSERT_EQUAL_FATAL(engine_create(&e, r, NULL), SNAP_OK);
    for (int i = 0; i < kSamples; i++) {
        sample *s = &samples[i];
        *s = (sample){.n = kPrompt};
        for (int j = 0; j < kPrompt; j++)
            s->token[j] = (7 * (i / 3) + 11 * j + 2) % 64;
        engine_request req = {.prompt = s->token,
                              .n_prompt = kPrompt,
                              .sampling = {.temperature = i % 3 ? 0.7 : 0},
                              .seed = (uint64_t)i,
                              .max_tokens = kTokens,
                              .logprobs = i % 2,
                              .token = take,
                              .done = note_done,
                              .user = s};
        CU_ASSERT_EQUAL(engine_add(e, &req, NULL), SNAP_OK);
    }
    while (engine_pending(e))
        CU_ASSERT_EQUAL_FATAL(engine_step(e, NULL), SNAP_OK);
    engine_free(e);
    runner_free(r);
}

/* The index of the first @token of a sample that a step computes: the last token of a full sample
 * is drawn, but not computed. -1 if there is none. */
static int first_of(const sample *s, int32_t token) {
    for (int i = 0; i < s->n && i < kPrompt + kTokens - 1; i++)
        if (s->token[i] == token)
            return i;
    return -1;
}

/* A token that the first sample has drawn and that fewer than half of the samples have. */
static int32_t choose_token(const sample *s) {
    for (int i = kPrompt + 5; i < kPrompt + kTokens; i++) {
        int with = 0;
        for (int k = 0; k < kSamples; k++)
            with += first_of(&s[k], s[0].token[i]) >= 0;
        if (with < kSamples / 2)
            return s[0].token[i];
    }
    CU_FAIL("all samples have all tokens");
    return 0;
}

/* Makes the embedding of one token NaN. A sample that has the token ends there. On the CPU all
 * tokens up to there, and all other samples, are as without the damage; on a device the numbers
 * depend on the batch. */
static void check_engine(origin from, const char *device, kv_format format) {
    static sample sound[kSamples], damaged[kSamples];
    int ended = 0;
    tiny_model t = {0};
    model_open(&t, from);
    run(&t, device, format, sound);
    int32_t token = choose_token(sound);
    int64_t hidden = t.shape.hidden_size;
    spoil(&t, &(damage){"model.embed_tokens.weight", token * hidden, hidden, NAN});
    run(&t, device, format, damaged);
    for (int i = 0; i < kSamples; i++) {
        const sample *a = &sound[i], *b = &damaged[i];
        int at = first_of(b, token);
        CU_ASSERT_EQUAL(b->done, 1);
        CU_ASSERT_EQUAL(b->why, at < 0 ? FINISH_LENGTH : FINISH_NOT_FINITE);
        CU_ASSERT_EQUAL(b->n, at < 0 ? kPrompt + kTokens : at < kPrompt ? kPrompt : at + 1);
        if (!device)
            CU_ASSERT_EQUAL(memcmp(a->token, b->token, (size_t)b->n * sizeof *b->token), 0);
        ended += at >= 0;
    }
    CU_ASSERT(ended > 0 && ended < kSamples);
    tiny_close(&t);
}

static void test_only_the_sequence_ends(void) {
    check_engine(FROM_V3, NULL, CACHE_BF16);
    check_engine(FROM_V2_LITE, NULL, CACHE_FP8);
    if (!tiny_on_cuda())
        return;
    check_engine(FROM_V3, "cuda", CACHE_BF16);
    check_engine(FROM_WIDE_V3, "cuda", CACHE_FP8);
    check_engine(FROM_WIDE_V2, "cuda", CACHE_BF16);
}

CU_TestInfo tests_not_finite[] = {
    {"damaged weights", test_damaged_weights},
    {"a residual whose square overflows", test_large_residual},
    {"vectors are checked when a checkpoint is opened", test_vectors_are_checked_when_opened},
    {"logits of a router", test_router},
    {"rows of a step", test_rows_of_a_step},
    {"logits that are not finite end only their sequence", test_only_the_sequence_ends},
    CU_TEST_INFO_NULL};
