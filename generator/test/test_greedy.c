/* Tests greedy answers of the shipped model, whole and divided over two ranks (TP2, EP2, TP2/EP2).
 * Both models get the tokens that the whole one finds likeliest, so that one token of difference
 * does not change all that follow. Two answers are made at a time. With EP2, each replica makes one
 * of them.
 *
 * On the CPU, the models give 2 or 4 answers of 20 tokens. If there is a CUDA device, they also
 * give 20 answers of 50 tokens on it. Both ranks then use device 0, unless GREEDY_DEVICE names
 * other devices, such as "cuda:0,1", or "cpu". */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "generator/local/local.h"
#include "generator/test/split_ranks.h"
#include "generator/test/tiny_model.h"

enum {
    kContext = 256, /* most tokens of a prompt and its answer */
    kPages = kContext / MLA_PAGE,
    kTogether = 2, /* answers at a time */
    kMostTokens = 1000,
};
static const char kShipped[] = "models/snapmla-10m";

static void test_rank(void) {
    split_ranks_follow();
    split_ranks_prepare("greedy");
}

typedef struct {
    local_model m;
    float *logits; /* [kTogether][vocab] */
} model;

static void open_model(model *k, const char *device, const char *layout, const char *precision) {
    local_options how = {.precision = precision,
                         .context = kContext,
                         .sequences = kTogether,
                         .threads = 2,
                         .device = device,
                         .layout = layout};
    snap_err err = {0};
    if (local_open(&k->m, kShipped, &how, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s %s: %s\n", device, layout ? layout : "", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
    k->logits = calloc((size_t)(kTogether * k->m.shape.vocab_size), sizeof *k->logits);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k->logits);
}

static void close_model(model *k) {
    free(k->logits);
    local_close(&k->m);
}

/* Runs tokens of all answers from @position on: those of answer i are the @count at tokens[i]. The
 * logits are those after the last one. */
static void step(model *k, const int32_t *const tokens[kTogether], int count, int64_t position) {
    int32_t pages[kTogether][kPages];
    model_piece piece[kTogether];
    reading wanted[kTogether] = {{.kind = READ_LOGITS}, {.kind = READ_LOGITS}};
    reading_result got[kTogether];
    runner_batch batch[kTogether];
    int replicas = k->m.remotes + 1, each = kTogether / replicas;
    snap_err err = {0};
    for (int i = 0; i < kTogether; i++) {
        for (int j = 0; j < kPages; j++)
            pages[i][j] = i * kPages + j;
        piece[i] = (model_piece){.tokens = tokens[i],
                                 .count = count,
                                 .position = position,
                                 .pages = pages[i],
                                 .logits = 1,
                                 .chunk = count > 1};
    }
    for (int i = 0; i < replicas; i++)
        batch[i] = (runner_batch){.r = i ? k->m.remote[i - 1] : k->m.runner,
                                  .pieces = piece + i * each,
                                  .count = each,
                                  .wanted = wanted + i * each,
                                  .got = got + i * each,
                                  .logits = k->logits + i * each * k->m.shape.vocab_size};
    CU_ASSERT_EQUAL_FATAL(runner_step_together(batch, replicas, &err), SNAP_OK);
}

static const float *logits_of(const model *k, int i) {
    return k->logits + i * k->m.shape.vocab_size;
}

/* The likeliest token of answer @i. */
static int32_t likeliest(const model *k, int i) {
    const float *logits = logits_of(k, i);
    int32_t best = 0;
    for (int32_t t = 1; t < k->m.shape.vocab_size; t++)
        if (logits[t] > logits[best])
            best = t;
    return best;
}

typedef struct {
    int differ;      /* tokens that the two models do not agree on */
    double distance; /* median over the tokens of |a - b| / |a|, the distance of the logits. A few
                        tokens choose another expert because of rounding, and have a larger one */
    double largest;  /* the largest such distance */
    double gap;      /* largest difference, in the whole model, between the logits of its own choice
                        and of the other model's */
    double spread;   /* largest (largest logit - mean logit) of a token */
} outcome;

static double mean(const float *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)x[i];
    return sum / n;
}

static double distance(const float *a, const float *b, int n) {
    double diff = 0, size = 0;
    for (int i = 0; i < n; i++) {
        diff += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)a[i], 2);
    }
    return sqrt(diff / size);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The tokens of prompt @i. Returns their number. */
static int prompt(const model *k, int i, tok_ids *ids) {
    char text[64];
    gen_message message = {"user", text};
    buf rendered = {0};
    (void)snprintf(text, sizeof text, "What is %d * %d?", 13 + 4 * i, 91 - 3 * i);
    CU_ASSERT_EQUAL_FATAL(chat_render(&k->m.style, &message, 1, &rendered, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(tok_encode(k->m.encoder, rendered.data, rendered.len, 0, ids, NULL),
                          SNAP_OK);
    buf_release(&rendered);
    return (int)ids->n;
}

/* Compares the logits of answer @i. Returns the token that the whole model finds likeliest. */
static int32_t compare(const model *whole, const model *parts, int i, outcome *o, double *apart) {
    const float *x = logits_of(whole, i), *y = logits_of(parts, i);
    int vocab = whole->m.shape.vocab_size;
    int32_t a = likeliest(whole, i), b = likeliest(parts, i);
    o->differ += a != b;
    o->gap = fmax(o->gap, (double)x[a] - (double)x[b]);
    o->spread = fmax(o->spread, (double)x[a] - mean(x, vocab));
    *apart = distance(x, y, vocab);
    return a;
}

/* Answers the prompts from @first on in both models. Adds to @o, and writes the distances to
 * @all [kTogether * tokens]. */
static void answer(model *whole, model *parts, int first, int tokens, outcome *o, double *all) {
    tok_ids ids[kTogether] = {0};
    int32_t next[kTogether];
    int before = prompt(whole, first, &ids[0]);
    for (int i = 1; i < kTogether; i++)
        CU_ASSERT_EQUAL_FATAL(prompt(whole, first + i, &ids[i]), before);
    CU_ASSERT_FATAL(before > 0 && before + tokens <= kContext);
    const int32_t *prompts[kTogether] = {ids[0].v, ids[1].v}, *chosen[] = {&next[0], &next[1]};
    step(whole, prompts, before, 0);
    step(parts, prompts, before, 0);
    for (int j = 0; j < tokens; j++) {
        for (int i = 0; i < kTogether; i++)
            next[i] = compare(whole, parts, i, o, all + i * tokens + j);
        step(whole, chosen, 1, before + j);
        step(parts, chosen, 1, before + j);
    }
    for (int i = 0; i < kTogether; i++)
        tok_ids_release(&ids[i]);
}

static outcome answer_all(model *whole, model *parts, int answers, int tokens) {
    outcome o = {0};
    double all[kMostTokens];
    CU_ASSERT_FATAL(answers % kTogether == 0 && answers * tokens <= kMostTokens);
    for (int i = 0; i < answers; i += kTogether)
        answer(whole, parts, i, tokens, &o, all + i * tokens);
    qsort(all, (size_t)(answers * tokens), sizeof *all, by_size);
    o.distance = all[answers * tokens / 2];
    o.largest = all[answers * tokens - 1];
    return o;
}

typedef struct {
    const char *one, *two; /* the devices of the whole and of the divided model */
    const char *layout, *precision;
    int answers, tokens;
    double most; /* bound of the distance */
} comparison;

static outcome check(const comparison *c) {
    model whole, parts;
    int answers = c->answers, tokens = c->tokens;
    open_model(&whole, c->one, NULL, c->precision);
    open_model(&parts, c->two, c->layout, c->precision);
    outcome o = answer_all(&whole, &parts, answers, tokens);
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| %s | %s | %s | %d of %d tokens differ | distance of logits: median %.1e, "
                     "largest %.1e | largest gap %.2g of %.3g |",
                     c->two, c->layout, c->precision, o.differ, answers * tokens, o.distance,
                     o.largest, o.gap, o.spread);
    CU_ASSERT(o.distance <= c->most);
    /* Where the models do not agree, the two tokens are about equally likely. */
    CU_ASSERT(o.gap <= 0.01 * o.spread);
    close_model(&parts);
    close_model(&whole);
    return o;
}

static const char *const kLayouts[] = {"TP2", "EP2", "TP2/EP2"};
enum { kLayoutCount = sizeof kLayouts / sizeof *kLayouts };

/* In FP32, no token differs. In BF16 and FP8, at most one may. These two are tested with TP2 only,
 * to save processor time. */
static void test_on_the_cpu(void) {
    comparison c = {.one = "cpu",
                    .two = "cpu",
                    .precision = "fp32",
                    .answers = 2,
                    .tokens = kThreadSanitized ? 4
                              : kSanitized     ? 10
                                               : 20,
                    .most = 1e-5};
    for (int i = 0; i < kLayoutCount; i++) {
        c.layout = kLayouts[i];
        CU_ASSERT_EQUAL(check(&c).differ, 0);
    }
    c.layout = "TP2";
    c.answers = kSanitized ? 2 : 4;
    c.most = 2e-2;
    for (int i = 0; i < 2 && !kThreadSanitized; i++) { /* threads synchronise as in FP32 */
        c.precision = i ? "fp8" : "bf16";
        CU_ASSERT(check(&c).differ <= 1);
    }
    split_ranks_expect_none();
}

/* NCCL refuses two ranks on one device. */
static void test_a_thousand(void) {
    const char *device = getenv("GREEDY_DEVICE");
    bool on_cpu = device && strcmp(device, "cpu") == 0;
    if (!on_cpu && !tiny_on_cuda())
        return;
    if (!device)
        (void)setenv("SNAPMLA_NCCL", "/nonexistent/libnccl.so", 1);
    comparison c = {.one = on_cpu ? "cpu" : "cuda",
                    .two = device ? device : "cuda:0,0",
                    .answers = 20,
                    .tokens = 50,
                    .most = 2e-2};
    for (int i = 0; i < 2 * kLayoutCount; i++) {
        c.layout = kLayouts[i / 2];
        c.precision = i % 2 ? "fp8" : "bf16";
        CU_ASSERT(check(&c).differ <= 10);
    }
}

CU_TestInfo tests_greedy[] = {
    {"a rank of the tests below", test_rank}, /* must be the first one */
    {"tokens on the CPU", test_on_the_cpu},
    {"a thousand tokens", test_a_thousand},
    CU_TEST_INFO_NULL,
};
