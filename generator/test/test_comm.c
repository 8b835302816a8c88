/* Tests a model that is divided over ranks, which are threads of one process: the exchanges between
 * ranks (generator/local/comm.h) must be made in the right places. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "generator/local/model/runner.h"
#include "generator/local/ranks/layout.h"
#include "generator/test/tiny_model.h"

enum { kRanks = 2, kMost = TINY_TOKENS * 512 };

/* Shared by the ranks: each stores its numbers, and reads those of all ranks, in order. */
typedef struct {
    pthread_barrier_t all;
    float *x[kRanks];
} shared_sums;

typedef struct {
    comm base;
    shared_sums *with;
    int64_t sums, gathers;
} rank_comm;

static snap_status all_reduce(comm *c, float *x, int64_t n, snap_err *err) {
    rank_comm *r = (rank_comm *)c;
    shared_sums *m = r->with;
    if (n > kMost)
        return err_set(err, SNAP_E_SHAPE, "more numbers than this test has room for");
    memcpy(m->x[c->rank], x, (size_t)n * sizeof *x);
    (void)pthread_barrier_wait(&m->all);
    for (int64_t i = 0; i < n; i++)
        x[i] = m->x[0][i] + m->x[1][i];
    (void)pthread_barrier_wait(&m->all);
    r->sums++;
    return SNAP_OK;
}

static snap_status all_gather(comm *c, const void *mine, void *all, int64_t bytes, snap_err *err) {
    rank_comm *r = (rank_comm *)c;
    shared_sums *m = r->with;
    if (bytes > kMost * (int64_t)sizeof(float))
        return err_set(err, SNAP_E_SHAPE, "more bytes than this test has room for");
    memcpy(m->x[c->rank], mine, (size_t)bytes);
    (void)pthread_barrier_wait(&m->all);
    for (int i = 0; i < kRanks; i++)
        memcpy((char *)all + i * bytes, m->x[i], (size_t)bytes);
    (void)pthread_barrier_wait(&m->all);
    r->gathers++;
    return SNAP_OK;
}

/* A whole model or a rank's share of it. part_run() may run in a thread, so it makes no
 * assertions. */
typedef struct {
    tiny_model t;
    kv_format format;
    int piece; /* tokens per step */
    comm *comm, *experts;
    runner *r;
    float *logits; /* [TINY_TOKENS][vocab] */
    snap_status st;
} part;

static void part_start(part *k) {
    snap_err err = {0};
    runner_options opt = {.format = k->format,
                          .pages = 2,
                          .context = TINY_TOKENS,
                          .max_rows = TINY_TOKENS,
                          .max_decode = 1,
                          .threads = 1,
                          .comm = k->comm,
                          .experts = k->experts};
    k->logits = calloc((size_t)TINY_TOKENS * (size_t)k->t.shape.vocab_size, sizeof *k->logits);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k->logits);
    CU_ASSERT_EQUAL_FATAL(runner_create(&k->r, &k->t.weights, &opt, &err), SNAP_OK);
}

static void *part_run(void *arg) {
    static const int32_t pages[] = {1, 0};
    part *k = arg;
    for (int at = 0; at < TINY_TOKENS && k->st == SNAP_OK; at += k->piece) {
        model_piece p = {.tokens = k->t.tokens + at,
                         .count = k->piece,
                         .position = at,
                         .pages = pages,
                         .logits = k->piece,
                         .chunk = k->piece > 1};
        k->st = runner_step(k->r, &p, 1, k->logits + (int64_t)at * k->t.shape.vocab_size, NULL);
    }
    return NULL;
}

static void part_end(part *k) {
    CU_ASSERT_EQUAL(k->st, SNAP_OK);
    runner_free(k->r);
    free(k->logits);
    tiny_close(&k->t);
}

static void run_together(part *ranks, shared_sums *m) {
    pthread_t other;
    CU_ASSERT_EQUAL_FATAL(pthread_barrier_init(&m->all, NULL, kRanks), 0);
    for (int i = 0; i < kRanks; i++) {
        m->x[i] = calloc(kMost, sizeof *m->x[i]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(m->x[i]);
    }
    CU_ASSERT_EQUAL_FATAL(pthread_create(&other, NULL, part_run, &ranks[1]), 0);
    (void)part_run(&ranks[0]);
    CU_ASSERT_EQUAL(pthread_join(other, NULL), 0);
    for (int i = 0; i < kRanks; i++)
        free(m->x[i]);
    (void)pthread_barrier_destroy(&m->all);
}

/* |a - b| / |b| over all logits. */
static double distance(const float *a, const float *b, int64_t n) {
    double diff = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        diff += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)b[i], 2);
    }
    return sqrt(diff / size);
}

static void check(const char *name, kv_format format, int piece, double most) {
    shared_sums m = {0};
    rank_comm comms[kRanks];
    part ranks[kRanks], whole = {.format = format, .piece = piece};
    for (int i = 0; i < kRanks; i++) {
        comms[i] =
            (rank_comm){.base = {.rank = i, .size = kRanks, .all_reduce = all_reduce}, .with = &m};
        ranks[i] = (part){.format = format, .piece = piece, .comm = &comms[i].base};
        tiny_open_share(&ranks[i].t, name, i, kRanks);
        part_start(&ranks[i]);
    }
    run_together(ranks, &m);
    tiny_open(&whole.t, name);
    part_start(&whole);
    (void)part_run(&whole);
    int64_t n = (int64_t)TINY_TOKENS * whole.t.shape.vocab_size;
    CU_ASSERT_EQUAL(memcmp(ranks[0].logits, ranks[1].logits, (size_t)n * sizeof(float)), 0);
    CU_ASSERT(distance(ranks[0].logits, whole.logits, n) < most);
    CU_ASSERT(comms[0].sums >= 2 * whole.t.weights.blocks * (TINY_TOKENS / piece));
    for (int i = 0; i < kRanks; i++)
        part_end(&ranks[i]);
    part_end(&whole);
}

/* The threads of all models exchange the same way, so the thread sanitizer runs two models only. */
static void test_two_ranks_are_the_whole(void) {
    for (int i = 0; tiny_names[i] && !(kThreadSanitized && i >= 2); i++) {
        check(tiny_names[i], CACHE_F32, TINY_TOKENS, 1e-5);
        check(tiny_names[i], CACHE_F32, 1, 1e-5);
    }
}

/* ---- experts divided over the ranks (EP) ---- */

/* Binds the weights of one rank from the whole checkpoint in t->files. */
static void take_experts(tiny_model *t, const weights_share *share) {
    const rank_layout l = {share->expert_ranks / share->parts, share->parts, true};
    model_shape shape = t->shape;
    snap_err err = {0};
    weights_release(&t->weights);
    CU_ASSERT_EQUAL_FATAL(rank_layout_shape(&shape, &l, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(weights_bind_share(&t->weights, &shape, share, t->files, &err), SNAP_OK);
}

/* Adds @by to all tokens, so that the second rank decodes other tokens than the first. */
static void shift_tokens(tiny_model *t, int by) {
    for (int i = 0; i < TINY_TOKENS; i++)
        t->tokens[i] = (t->tokens[i] + by) % t->shape.vocab_size;
}

/* @splits: TP2/EP2, in which both ranks have the same tokens; else DP2/EP2. */
static void open_rank(part *k, const char *name, int rank, bool splits) {
    const weights_share share = {splits ? rank : 0, splits ? kRanks : 1, rank, kRanks};
    tiny_open(&k->t, name);
    take_experts(&k->t, &share);
    shift_tokens(&k->t, splits ? 0 : rank);
    part_start(k);
}

static void check_rank(const part *rank, const char *name, int shift, double most) {
    part whole = {.format = rank->format, .piece = rank->piece};
    int64_t n = (int64_t)TINY_TOKENS * rank->t.shape.vocab_size;
    tiny_open(&whole.t, name);
    shift_tokens(&whole.t, shift);
    part_start(&whole);
    (void)part_run(&whole);
    CU_ASSERT(distance(rank->logits, whole.logits, n) < most);
    part_end(&whole);
}

static void check_experts(const char *name, bool splits, kv_format format, int piece, double most) {
    shared_sums m = {0};
    rank_comm comms[kRanks];
    part ranks[kRanks];
    for (int i = 0; i < kRanks; i++) {
        comms[i] = (rank_comm){
            .base = {.rank = i, .size = kRanks, .all_reduce = all_reduce, .all_gather = all_gather},
            .with = &m};
        ranks[i] = (part){.format = format, .piece = piece};
        *(splits ? &ranks[i].comm : &ranks[i].experts) = &comms[i].base;
        open_rank(&ranks[i], name, i, splits);
    }
    run_together(ranks, &m);
    for (int i = 0; i < kRanks; i++)
        check_rank(&ranks[i], name, splits ? 0 : i, most);
    CU_ASSERT_EQUAL(comms[0].gathers > 0, !splits);
    CU_ASSERT(comms[0].sums > 0);
    for (int i = 0; i < kRanks; i++)
        part_end(&ranks[i]);
}

/* Each of two ranks has half of the routed experts. In DP2/EP2, the ranks have different sequences.
 * In TP2/EP2, they have the same sequences, and each has half of the heads. */
static void test_divided_experts(void) {
    static const char *const names[] = {"v2", "v2-lite", "v3", "longcat", NULL};
    /* The thread sanitizer runs longcat only. */
    for (int i = kThreadSanitized ? 3 : 0; names[i]; i++)
        for (int splits = 0; splits < 2; splits++) {
            check_experts(names[i], splits, CACHE_F32, TINY_TOKENS, 1e-5);
            check_experts(names[i], splits, CACHE_F32, 1, 1e-5);
        }
}

static void test_other_communicators(void) {
    tiny_model t;
    runner *r = NULL;
    snap_err err = {0};
    comm two = {.size = 2, .all_reduce = all_reduce, .all_gather = all_gather}, other = two;
    runner_options opt = {.pages = 2, .context = 8, .max_rows = 1, .max_decode = 1};
    tiny_open(&t, "v3");
    opt.experts = &two;
    CU_ASSERT_EQUAL(runner_create(&r, &t.weights, &opt, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "the weights have the experts of rank 0 of 1, and the "
                                     "communicators are those of rank 0 of 2");
    take_experts(&t, &(weights_share){0, 1, 1, 2});
    CU_ASSERT_EQUAL(runner_create(&r, &t.weights, &opt, NULL), SNAP_E_USAGE);
    opt.comm = &other; /* the first of four ranks */
    err = (snap_err){0};
    CU_ASSERT_EQUAL(runner_create(&r, &t.weights, &opt, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "the weights have the experts of rank 1 of 2, and the "
                                     "communicators are those of rank 0 of 4");
    opt.comm = NULL;
    two.all_gather = NULL;
    take_experts(&t, &(weights_share){0, 1, 0, 2});
    CU_ASSERT_EQUAL(runner_create(&r, &t.weights, &opt, NULL), SNAP_E_UNSUPPORTED);
    tiny_close(&t);
}

/* Decodes with the kernels of the arms. The model has no experts, because rounding could change
 * their choice. */
static void test_arms(void) {
    check("minicpm3", CACHE_BF16, 1, 5e-3);
    check("minicpm3", CACHE_FP8, 1, 2e-2);
}

static snap_status refuse(comm *c, float *x, int64_t n, snap_err *err) {
    (void)c, (void)x, (void)n;
    return err_set(err, SNAP_E_IO, "a rank has gone");
}

static void test_a_rank_that_has_gone(void) {
    static const int32_t pages[] = {0, 1};
    tiny_model t;
    runner *r = NULL;
    snap_err err = {0};
    comm c = {.size = kRanks, .all_reduce = refuse};
    runner_options opt = {.pages = 2, .context = 8, .max_rows = 1, .max_decode = 1, .comm = &c};
    tiny_open_share(&t, "v3", 0, kRanks);
    float *logits = calloc((size_t)t.shape.vocab_size, sizeof *logits);
    model_piece p = {.tokens = t.tokens, .count = 1, .pages = pages, .logits = 1};
    CU_ASSERT_EQUAL_FATAL(runner_create(&r, &t.weights, &opt, &err), SNAP_OK);
    CU_ASSERT_EQUAL(runner_step(r, &p, 1, logits, &err), SNAP_E_IO);
    CU_ASSERT_STRING_EQUAL(err.text, "a rank has gone");
    free(logits);
    runner_free(r);
    tiny_close(&t);
}

CU_TestInfo tests_comm[] = {
    {"two ranks give the logits of the whole model", test_two_ranks_are_the_whole},
    {"two ranks with the attention kernels of either arm", test_arms},
    {"experts divided over ranks", test_divided_experts},
    {"communicators for other ranks or devices are refused", test_other_communicators},
    {"a step fails if another rank has ended", test_a_rank_that_has_gone},
    CU_TEST_INFO_NULL,
};
