/* Tests greedy answers of the shipped model, whole and split over two ranks (TP2). Both models get
 * the tokens that the whole one finds likeliest, so that one token of difference does not change
 * all that follow.
 *
 * On the CPU, the models give 3 answers of 20 tokens. If there is a CUDA device, they also give 20
 * answers of 50 tokens on it. Both ranks then use device 0, unless GREEDY_DEVICE names other
 * devices, such as "cuda:0,1". */
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
    kContext = 256, /* of a prompt and its answer */
    kPages = kContext / MLA_PAGE,
    kMostTokens = 1000,
};
static const char kShipped[] = "models/snapmla-10m";

static void test_rank(void) {
    split_ranks_follow();
    split_ranks_prepare("greedy");
}

typedef struct {
    local_model m;
    float *logits; /* [vocab] */
} model;

static void open_model(model *k, const char *device, const char *layout, const char *precision) {
    local_options how = {.precision = precision,
                         .context = kContext,
                         .sequences = 1,
                         .threads = 2,
                         .device = device,
                         .layout = layout};
    snap_err err = {0};
    if (local_open(&k->m, kShipped, &how, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s: %s\n", device, err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
    k->logits = calloc((size_t)k->m.shape.vocab_size, sizeof *k->logits);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k->logits);
}

static void close_model(model *k) {
    free(k->logits);
    local_close(&k->m);
}

/* Runs tokens from @position on. The logits are those after the last one. */
static void step(model *k, const int32_t *tokens, int count, int64_t position) {
    int32_t pages[kPages];
    snap_err err = {0};
    for (int i = 0; i < kPages; i++)
        pages[i] = i;
    model_piece piece = {.tokens = tokens,
                         .count = count,
                         .position = position,
                         .pages = pages,
                         .logits = 1,
                         .chunk = count > 1};
    CU_ASSERT_EQUAL_FATAL(runner_step(k->m.runner, &piece, 1, k->logits, &err), SNAP_OK);
}

static int32_t likeliest(const model *k) {
    int32_t best = 0;
    for (int32_t i = 1; i < k->m.shape.vocab_size; i++)
        if (k->logits[i] > k->logits[best])
            best = i;
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

/* Answers one prompt in both models. Adds to @o, and writes the distances to @all [tokens]. */
static void answer(model *whole, model *parts, int i, int tokens, outcome *o, double *all) {
    int vocab = whole->m.shape.vocab_size;
    tok_ids ids = {0};
    int before = prompt(whole, i, &ids);
    CU_ASSERT_FATAL(before > 0 && before + tokens <= kContext);
    step(whole, ids.v, before, 0);
    step(parts, ids.v, before, 0);
    for (int j = 0; j < tokens; j++) {
        int32_t a = likeliest(whole), b = likeliest(parts);
        o->differ += a != b;
        o->gap = fmax(o->gap, (double)whole->logits[a] - (double)whole->logits[b]);
        o->spread = fmax(o->spread, (double)whole->logits[a] - mean(whole->logits, vocab));
        all[j] = distance(whole->logits, parts->logits, vocab);
        step(whole, &a, 1, before + j);
        step(parts, &a, 1, before + j);
    }
    tok_ids_release(&ids);
}

static outcome answer_all(model *whole, model *parts, int answers, int tokens) {
    outcome o = {0};
    double all[kMostTokens];
    CU_ASSERT_FATAL(answers * tokens <= kMostTokens);
    for (int i = 0; i < answers; i++)
        answer(whole, parts, i, tokens, &o, all + i * tokens);
    qsort(all, (size_t)(answers * tokens), sizeof *all, by_size);
    o.distance = all[answers * tokens / 2];
    o.largest = all[answers * tokens - 1];
    return o;
}

/* @one, @two: the devices. @most: bound of the distance. */
static outcome check(const char *one, const char *two, const char *precision, int answers,
                     int tokens, double most) {
    model whole, parts;
    open_model(&whole, one, NULL, precision);
    open_model(&parts, two, "TP2", precision);
    outcome o = answer_all(&whole, &parts, answers, tokens);
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| %s | %s | %d of %d tokens differ | distance of logits: median %.1e, "
                     "largest %.1e | largest gap %.2g of %.3g |",
                     two, precision, o.differ, answers * tokens, o.distance, o.largest, o.gap,
                     o.spread);
    CU_ASSERT(o.distance <= most);
    /* Where the models do not agree, the two tokens are about equally likely. */
    CU_ASSERT(o.gap <= 0.01 * o.spread);
    close_model(&parts);
    close_model(&whole);
    return o;
}

static void test_on_the_cpu(void) {
    enum { kAnswers = kSanitized ? 1 : 3, kTokens = kThreadSanitized ? 8 : 20 };
    CU_ASSERT_EQUAL(check("cpu", "cpu", "fp32", kAnswers, kTokens, 1e-5).differ, 0);
    if (kThreadSanitized) { /* the precision does not change how threads synchronise */
        split_ranks_expect_none();
        return;
    }
    CU_ASSERT(check("cpu", "cpu", "bf16", kAnswers, kTokens, 2e-2).differ <= 1);
    CU_ASSERT(check("cpu", "cpu", "fp8", kAnswers, kTokens, 2e-2).differ <= 1);
    split_ranks_expect_none();
}

/* NCCL refuses two ranks on one device. */
static void test_on_cuda(void) {
    const char *device = getenv("GREEDY_DEVICE");
    if (!tiny_on_cuda())
        return;
    if (!device)
        (void)setenv("SNAPMLA_NCCL", "/nonexistent/libnccl.so", 1);
    device = device ? device : "cuda:0,0";
    CU_ASSERT(check("cuda", device, "bf16", 20, 50, 2e-2).differ <= 10);
    CU_ASSERT(check("cuda", device, "fp8", 20, 50, 2e-2).differ <= 10);
}

CU_TestInfo tests_greedy[] = {
    {"a rank of the tests below", test_rank}, /* must be the first one */
    {"tokens on the CPU", test_on_the_cpu},
    {"a thousand tokens on CUDA", test_on_cuda},
    CU_TEST_INFO_NULL,
};
