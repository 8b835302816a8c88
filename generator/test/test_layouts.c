/* Tests models on two or four ranks, which are processes of this test program. They are compared
 * with the whole model, on the CPU and, where there is one, on a CUDA device. All ranks use device
 * 0, unless LAYOUT_DEVICES is "0,1" or "0,1,2,3". With two devices, tests of four ranks use each
 * twice.
 *
 * On the CPU, the sums go through the control connection of the group. On GPUs, they go through
 * peer memory and, with two devices, also through NCCL. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "generator/local/cuda/sums.h"
#include "generator/local/model/runner.h"
#include "generator/local/ranks/launch.h"
#include "generator/local/ranks/layout.h"
#include "generator/local/ranks/ranks.h"
#include "generator/test/tiny_model.h"

enum { kMostRanks = 4, kPages = 2, kPiece = 37 };
static const double kRounding =
    2e-2; /* median distance of logits between two orders of BF16 sums */

/* ---- a run over the tokens of a fixture ------------------------------------------------------ */

typedef struct {
    char device[16]; /* "cpu", "cuda" */
    int format, piece;
    int ranks;          /* 2 or 4 */
    int parts;          /* TP: ranks of a replica */
    int experts;        /* EP: ranks, or 1 */
    int one_shot_bytes; /* of sums_options */
    char dir[64], out[80];
} plan;

static int32_t token_at(int i, const model_shape *s) {
    return (int32_t)((int64_t)i * 37 % s->vocab_size);
}

/* Writes the logits of all tokens to @logits [TINY_TOKENS][vocab]. @sums, @experts: as in
 * runner_options. @shift: added to each token. */
static snap_status run_tokens(const plan *p, const model_weights *w, comm *sums, comm *experts,
                              int shift, float *logits, snap_err *err) {
    static const int32_t pages[kPages] = {1, 0};
    const model_shape *s = &w->shape;
    int32_t tokens[TINY_TOKENS];
    runner *r = NULL;
    runner_options opt = {.format = (kv_format)p->format,
                          .pages = kPages,
                          .context = TINY_TOKENS,
                          .max_rows = TINY_TOKENS,
                          .max_decode = 1,
                          .threads = 1,
                          .device = p->device,
                          .comm = sums,
                          .experts = experts};
    snap_status st = runner_create(&r, w, &opt, err);
    for (int i = 0; i < TINY_TOKENS; i++)
        tokens[i] = token_at(i + shift, s);
    for (int at = 0; at < TINY_TOKENS && st == SNAP_OK; at += p->piece) {
        int n = TINY_TOKENS - at < p->piece ? TINY_TOKENS - at : p->piece;
        model_piece piece = {.tokens = tokens + at,
                             .count = n,
                             .position = at,
                             .pages = pages,
                             .logits = n,
                             .chunk = p->piece > 1};
        st = runner_step(r, &piece, 1, logits + (int64_t)at * s->vocab_size, err);
    }
    runner_free(r);
    return st;
}

/* ---- a rank ---------------------------------------------------------------------------------- */

static const char kPlan[] = "SNAPMLA_LAYOUT_TEST";

/* A communicator for the CPU: the control connection of the group. All ranks of the group exchange
 * numbers at the same time, each with its own ranks first, first + step, ... */
typedef struct {
    comm base;
    ranks *group;
    int first, step;
} host_comm;

static snap_status host_sum(comm *c, float *x, int64_t n, snap_err *err) {
    enum { kMost = RANKS_BLOB_MOST / sizeof(float) };
    host_comm *h = (host_comm *)c;
    float got[kMostRanks * kMost];
    snap_status st = SNAP_OK;
    for (int64_t at = 0; at < n && st == SNAP_OK; at += kMost) {
        size_t now = (size_t)(n - at < kMost ? n - at : kMost);
        st = ranks_all_gather(h->group, "a sum", x + at, now * sizeof *x, got, err);
        for (size_t i = 0; i < now && st == SNAP_OK; i++) {
            float sum = 0;
            for (int r = 0; r < c->size; r++)
                sum += got[(size_t)(h->first + r * h->step) * now + i];
            x[at + (int64_t)i] = sum;
        }
    }
    return st;
}

static snap_status host_gather(comm *c, const void *mine, void *all, int64_t bytes, snap_err *err) {
    host_comm *h = (host_comm *)c;
    char got[kMostRanks * RANKS_BLOB_MOST];
    snap_status st = SNAP_OK;
    for (int64_t at = 0; at < bytes && st == SNAP_OK; at += RANKS_BLOB_MOST) {
        size_t now = (size_t)(bytes - at < RANKS_BLOB_MOST ? bytes - at : RANKS_BLOB_MOST);
        st = ranks_all_gather(h->group, "the rows", (const char *)mine + at, now, got, err);
        for (int r = 0; r < c->size && st == SNAP_OK; r++)
            memcpy((char *)all + r * bytes + at, got + (size_t)(h->first + r * h->step) * now, now);
    }
    return st;
}

/* Connects @size ranks: @first, @first + @step, ... @gathers adds memory for all-gathers, which
 * rows of experts need. *out is NULL if @size is 1. */
static snap_status open_comm(const plan *p, ranks *g, host_comm *host, int first, int step,
                             int size, bool gathers, comm **out, snap_err *err) {
    enum { kMostRow = 128 }; /* the widest row of a fixture */
    int64_t row = kMostRow * (int64_t)sizeof(float);
    sums_options how = {.group = g,
                        .first = first,
                        .step = step,
                        .size = size,
                        .most_bytes = TINY_TOKENS * row,
                        .gather_bytes = gathers * TINY_TOKENS * row,
                        .one_shot_bytes = p->one_shot_bytes};
    *host = (host_comm){.base = {.rank = (ranks_rank(g) - first) / step,
                                 .size = size,
                                 .all_reduce = host_sum,
                                 .all_gather = host_gather},
                        .group = g,
                        .first = first,
                        .step = step};
    *out = size > 1 ? &host->base : NULL;
    return *out && strcmp(p->device, "cpu") != 0 ? sums_cuda_open(out, &how, err) : SNAP_OK;
}

static void close_comm(const host_comm *host, comm *c) {
    if (c && c != &host->base)
        sums_cuda_close(c);
}

/* Opens the share of a rank, without the assertions of tiny_read(), which need a running test. */
static snap_status open_share(const plan *p, int rank, checkpoint **files, model_weights *w,
                              snap_err *err) {
    model_shape shape;
    const weights_share share = {rank % p->parts, p->parts, p->experts > 1 ? rank : 0, p->experts};
    const rank_layout layout = {p->ranks / p->parts, p->parts, p->experts > 1};
    snap_status st = model_shape_open(&shape, p->dir, err);
    if (st == SNAP_OK)
        st = checkpoint_open(files, p->dir, err);
    if (st == SNAP_OK)
        st = rank_layout_shape(&shape, &layout, err);
    return st == SNAP_OK ? weights_bind_share(w, &shape, &share, *files, err) : st;
}

/* By how much the tokens of a rank are shifted. With EP, replicas exchange rows, so the test gives
 * each replica different tokens. */
static int shift_of(const plan *p, int rank) {
    return p->experts > 1 ? rank / p->parts : 0;
}

static snap_status run_rank(const plan *p, ranks *g, snap_err *err) {
    checkpoint *files = NULL;
    model_weights w = {0};
    host_comm of_sums, of_rows;
    comm *sums = NULL, *rows = NULL;
    char path[112];
    int rank = ranks_rank(g), parts = p->parts;
    snap_status st = open_share(p, rank, &files, &w, err);
    size_t n = (size_t)TINY_TOKENS * (size_t)w.shape.vocab_size;
    float *logits = calloc(n + 1, sizeof *logits);
    if (st == SNAP_OK && !logits)
        st = err_set(err, SNAP_E_NOMEM, "no memory for logits");
    if (st == SNAP_OK)
        st = open_comm(p, g, &of_sums, rank / parts * parts, 1, parts, false, &sums, err);
    if (st == SNAP_OK)
        st = open_comm(p, g, &of_rows, rank % parts, parts, p->experts / parts, true, &rows, err);
    if (st == SNAP_OK)
        st = run_tokens(p, &w, sums, rows, shift_of(p, rank), logits, err);
    (void)snprintf(path, sizeof path, "%s.%d", p->out, rank);
    if (st == SNAP_OK)
        st = fs_write_atomic(path, logits, n * sizeof *logits, err);
    if (st != SNAP_OK)
        ranks_fail(g, err);
    close_comm(&of_rows, rows);
    close_comm(&of_sums, sums);
    free(logits);
    weights_release(&w);
    checkpoint_close(files);
    return st;
}

static void end_rank(const snap_err *err) {
    if (err->code != SNAP_OK)
        (void)launch_report(err);
    _exit(err_exit_code(err->code));
}

/* The device of each rank. Returns how many different devices are used. */
static int read_devices(int of[kMostRanks]) {
    const char *list = getenv("LAYOUT_DEVICES");
    int n = list ? sscanf(list, "%d,%d,%d,%d", &of[0], &of[1], &of[2], &of[3]) : 0;
    if (n < 1)
        of[0] = 0;
    n = n < 1 ? 1 : n;
    for (int i = n; i < kMostRanks; i++)
        of[i] = of[i % n];
    return n;
}

static bool is_rank(void) {
    return getenv(kPlan) && getenv(RANKS_REPORT);
}

/* Rank 0 has the standard output of the test, which must not show this suite's output again. */
__attribute__((constructor)) static void silence_rank(void) {
    if (is_rank() && !freopen("/dev/null", "w", stdout))
        _exit(2);
}

/* The first test of the suite. In a process that launch() has started, it runs a rank and ends the
 * process. That must not happen before main(), where the kernels are not registered yet. */
static void test_rank(void) {
    const char *text = getenv(kPlan);
    plan p = {0};
    snap_err err = {0};
    rank_place place;
    ranks *g = NULL;
    int devices[kMostRanks];
    ranks_options opt = ranks_defaults;
    if (!is_rank())
        return;
    opt.on_stuck = end_rank;
    if (sscanf(text, "%15s %d %d %d %d %d %d %63s %79s", p.device, &p.format, &p.piece, &p.ranks,
               &p.parts, &p.experts, &p.one_shot_bytes, p.dir, p.out) != 9)
        _exit(2);
    snap_status st = rank_place_read(&place, &err);
    if (st == SNAP_OK)
        st = ranks_join(&g, &place, "test=layouts\n", &opt, &err);
    (void)read_devices(devices);
    if (st == SNAP_OK)
        st = rank_place_choose_device(&place, devices, kMostRanks, &err);
    if (st == SNAP_OK)
        st = run_rank(&p, g, &err);
    else if (g)
        ranks_fail(g, &err);
    if (ranks_close(g, &err) != st)
        (void)err_set(&err, SNAP_E_WRONG, "another failure when it was closed");
    end_rank(&err);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void launch(const plan *p) {
    char text[512];
    snap_err err = {0};
    char *argv[] = {(char[]){"generator"}, (char[]){"--suite"}, (char[]){"layouts"}, NULL};
    launch_options o = {.size = p->ranks, .grace_s = 10};
    (void)snprintf(text, sizeof text, "%s %d %d %d %d %d %d %s %s", p->device, p->format, p->piece,
                   p->ranks, p->parts, p->experts, p->one_shot_bytes, p->dir, p->out);
    CU_ASSERT_EQUAL_FATAL(setenv(kPlan, text, 1), 0);
    CU_ASSERT_EQUAL(launch_ranks(&o, "/proc/self/exe", argv, &err), SNAP_OK);
    if (err.code != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    (void)unsetenv(kPlan);
}

static void read_logits(const plan *p, int rank, buf *out) {
    char path[112];
    (void)snprintf(path, sizeof path, "%s.%d", p->out, rank);
    CU_ASSERT_EQUAL(fs_read(path, out, NULL), SNAP_OK);
    (void)unlink(path);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over the tokens of |a - b| / |b|; infinite if a number is not finite. The median
 * allows for tokens that choose another expert because of rounding. */
static double distance(const float *a, const float *b, int vocab) {
    double all[TINY_TOKENS];
    for (int i = 0; i < TINY_TOKENS; i++) {
        double diff = 0, size = 0;
        for (int j = i * vocab; j < (i + 1) * vocab; j++) {
            diff += pow((double)a[j] - (double)b[j], 2);
            size += pow((double)b[j], 2);
        }
        all[i] = isfinite(diff) && size > 0 ? sqrt(diff / size) : HUGE_VAL;
    }
    qsort(all, TINY_TOKENS, sizeof *all, by_size);
    return all[TINY_TOKENS / 2];
}

/* Compares the logits of a rank with those of the whole model on @device in this process. */
static void compare(const char *name, const plan *p, const tiny_model *whole, const char *device,
                    int rank, const float *got, double most) {
    plan here = *p;
    snap_err err = {0};
    int vocab = whole->shape.vocab_size;
    float *want = calloc((size_t)TINY_TOKENS * (size_t)vocab, sizeof *want);
    CU_ASSERT_PTR_NOT_NULL_FATAL(want);
    (void)snprintf(here.device, sizeof here.device, "%s", device);
    CU_ASSERT_EQUAL(run_tokens(&here, &whole->weights, NULL, NULL, shift_of(p, rank), want, &err),
                    SNAP_OK);
    double d = distance(got, want, vocab);
    if (getenv("SHOW_FIGURES"))
        (void)printf(
            "\n| %s | %s, DP%d, TP%d, EP%d, format %d, pieces of %d, one shot %d | rank %d against "
            "%s | %.1e |",
            name, p->device, p->ranks / p->parts, p->parts, p->experts, p->format, p->piece,
            p->one_shot_bytes, rank, device, d);
    CU_ASSERT(d <= most);
    free(want);
}

/* Checks the logits of all ranks: they are at most @most from those of the whole model on the same
 * device. On a CUDA device, the logits of a divided model are also at most kRounding from those on
 * the CPU. Ranks with the same tokens have the same bits. All ranks read the files of the whole
 * model. */
static void check_as(const char *name, tiny_flavour flavour, plan p, double most) {
    tiny_model whole;
    buf got[kMostRanks] = {0};
    tiny_open_as(&whole, name, flavour);
    (void)snprintf(p.dir, sizeof p.dir, "%s", whole.dir);
    (void)snprintf(p.out, sizeof p.out, "%s.logits", whole.dir);
    launch(&p);
    size_t bytes = (size_t)TINY_TOKENS * (size_t)whole.shape.vocab_size * sizeof(float);
    for (int i = 0; i < p.ranks; i++) {
        read_logits(&p, i, &got[i]);
        CU_ASSERT_EQUAL_FATAL(got[i].len, bytes);
    }
    for (int i = 0; i < p.ranks; i++) {
        const float *logits = (const float *)(const void *)got[i].data;
        bool same = i > 0 && memcmp(got[i].data, got[i - 1].data, bytes) == 0;
        CU_ASSERT_EQUAL(same, i > 0 && shift_of(&p, i) == shift_of(&p, i - 1));
        if (same)
            continue;
        compare(name, &p, &whole, p.device, i, logits, most);
        if ((p.parts > 1 || p.experts > 1) && strcmp(p.device, "cuda") == 0)
            compare(name, &p, &whole, "cpu", i, logits, kRounding);
    }
    for (int i = 0; i < p.ranks; i++)
        buf_release(&got[i]);
    tiny_close(&whole);
}

static void check(const char *name, plan p, double most) {
    check_as(name, TINY_PLAIN, p, most);
}

static plan plan_of(const char *device, kv_format format, int piece, int parts, int one_shot) {
    plan p = {.format = (int)format,
              .piece = piece,
              .ranks = 2,
              .parts = parts,
              .experts = 1,
              .one_shot_bytes = one_shot};
    (void)snprintf(p.device, sizeof p.device, "%s", device);
    return p;
}

/* The routed experts are divided over the ranks: DP2/EP2 or TP2/EP2. */
static plan with_experts(plan p) {
    p.experts = p.ranks;
    return p;
}

/* Four ranks with experts: DP4/EP4, DP2/TP2/EP4 or TP4/EP4. */
static plan of_four(plan p) {
    p.ranks = p.experts = 4;
    return p;
}

static void test_split_on_the_cpu(void) {
    check("v3", plan_of("cpu", CACHE_F32, kPiece, 2, -1), 1e-5);
    check("longcat", plan_of("cpu", CACHE_F32, kPiece, 2, -1), 1e-5);
    check("minicpm3", plan_of("cpu", CACHE_BF16, 1, 2, -1), kRounding);
    check_as("r1", TINY_E4M3, plan_of("cpu", CACHE_F32, kPiece, 2, -1), 1e-5);
}

static void test_replicas_on_the_cpu(void) {
    check("v2-lite", plan_of("cpu", CACHE_FP8, kPiece, 1, -1), 0);
}

static void test_experts_on_the_cpu(void) {
    static const char *const names[] = {"v2-lite", "v3", "longcat", NULL};
    for (int i = 0; names[i]; i++)
        for (int parts = 1; parts <= 2; parts++)
            check(names[i], with_experts(plan_of("cpu", CACHE_F32, kPiece, parts, -1)), 1e-5);
    check_as("r1", TINY_E4M3, with_experts(plan_of("cpu", CACHE_F32, kPiece, 1, -1)), 1e-5);
}

/* DP2/TP2/EP4, DP4/EP4 and TP4/EP4. */
static void test_four_ranks_on_the_cpu(void) {
    check("v3", of_four(plan_of("cpu", CACHE_F32, kPiece, 2, -1)), 1e-5);
    check("longcat", of_four(plan_of("cpu", CACHE_F32, kPiece, 2, -1)), 1e-5);
    check("v2-lite", of_four(plan_of("cpu", CACHE_F32, 1, 2, -1)), 1e-5);
    check("v3", of_four(plan_of("cpu", CACHE_F32, kPiece, 1, -1)), 1e-5);
    check("v3", of_four(plan_of("cpu", CACHE_F32, kPiece, 4, -1)), 1e-5);
    check("longcat", of_four(plan_of("cpu", CACHE_F32, kPiece, 4, -1)), 1e-5);
}

static bool two_devices(void) {
    int of[kMostRanks];
    return read_devices(of) > 1 && of[0] != of[1];
}

static void check_cuda(const char *name, int one_shot) {
    check(name, plan_of("cuda", CACHE_BF16, kPiece, 2, one_shot), kRounding);
    check(name, plan_of("cuda", CACHE_BF16, 1, 2, one_shot), kRounding);
}

static void test_split_on_cuda(void) {
    static const char *const names[] = {"v2-lite", "v3", "longcat", "minicpm3", NULL};
    for (int i = 0; names[i] && tiny_on_cuda(); i++)
        check_cuda(names[i], -1);
}

/* Sums of up to 4096 bytes in one kernel, and longer ones by NCCL. NCCL refuses two ranks on one
 * device. With one device, the test therefore hides NCCL, and longer sums take several kernels. */
static void test_long_sums_on_cuda(void) {
    if (!tiny_on_cuda())
        return;
    if (two_devices())
        check_cuda("v3", 0);
    else
        (void)setenv("SNAPMLA_NCCL", "/nonexistent/libnccl.so", 1);
    check_cuda("v3", 4096);
}

/* Steps of 1 and 37 rows on each rank: the experts of 2 rows are computed by other kernels than
 * those of 74 rows, and the choices of 74 rows are sorted by other kernels, too. Exchanges of up to
 * @one_shot bytes take one kernel over peer memory. */
static void check_experts_on_cuda(const char *name, int parts, int one_shot) {
    check(name, with_experts(plan_of("cuda", CACHE_BF16, kPiece, parts, one_shot)), kRounding);
    check(name, with_experts(plan_of("cuda", CACHE_BF16, 1, parts, one_shot)), kRounding);
}

static void test_experts_on_cuda(void) {
    static const char *const names[] = {"v2-lite", "v3", "longcat", NULL};
    for (int i = 0; names[i] && tiny_on_cuda(); i++)
        check_experts_on_cuda(names[i], 1, -1);
    if (tiny_on_cuda()) /* four rows: gemm_few() multiplies them, too */
        check("v3", with_experts(plan_of("cuda", CACHE_BF16, 4, 1, -1)), kRounding);
}

static void test_split_with_experts_on_cuda(void) {
    if (!tiny_on_cuda())
        return;
    check_experts_on_cuda("v3", 2, -1);
    check_experts_on_cuda("longcat", 2, -1);
}

static void test_four_ranks_on_cuda(void) {
    static const char *const names[] = {"v2-lite", "v3", "longcat", NULL};
    for (int i = 0; names[i] && tiny_on_cuda(); i++)
        for (int piece = 1; piece <= kPiece; piece += kPiece - 1)
            for (int parts = 1; parts <= 2; parts++)
                check(names[i], of_four(plan_of("cuda", CACHE_BF16, piece, parts, -1)), kRounding);
}

/* As in test_long_sums_on_cuda(). */
static void test_long_exchanges_on_cuda(void) {
    if (!tiny_on_cuda())
        return;
    if (two_devices())
        check_experts_on_cuda("v3", 1, 0);
    else
        (void)setenv("SNAPMLA_NCCL", "/nonexistent/libnccl.so", 1);
    check_experts_on_cuda("v3", 1, 4096);
    check_as("r1", TINY_E4M3, with_experts(plan_of("cuda", CACHE_FP8, kPiece, 1, -1)), kRounding);
}

static void test_fp8_on_cuda(void) {
    if (!tiny_on_cuda())
        return;
    check("v3", plan_of("cuda", CACHE_FP8, kPiece, 2, -1), kRounding);
    check("longcat", plan_of("cuda", CACHE_FP8, kPiece, 2, -1), kRounding);
}

static void test_e4m3_weights_on_cuda(void) {
    static const char *const names[] = {"v2-lite", "r1", "longcat", NULL};
    for (int i = 0; names[i] && tiny_on_cuda(); i++)
        check_as(names[i], TINY_E4M3, plan_of("cuda", CACHE_BF16, kPiece, 2, -1), kRounding);
}

/* Replicas give the bits of one GPU, because they exchange nothing. */
static void test_replicas_on_cuda(void) {
    if (!tiny_on_cuda())
        return;
    check("v3", plan_of("cuda", CACHE_BF16, 1, 1, -1), 0);
    check("v3", plan_of("cuda", CACHE_FP8, kPiece, 1, -1), 0);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static void expect_layout(const char *text, int replicas, int parts) {
    rank_layout l;
    CU_ASSERT_EQUAL(rank_layout_parse(&l, text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(l.replicas, replicas);
    CU_ASSERT_EQUAL(l.parts, parts);
}

/* Reads @text, and writes it again as @want. */
static void expect_experts(const char *text, const char *want) {
    rank_layout l;
    char out[RANK_LAYOUT_TEXT];
    CU_ASSERT_EQUAL(rank_layout_parse(&l, text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(l.whole_experts, strstr(want, "EP") != NULL);
    rank_layout_text(&l, out);
    CU_ASSERT_STRING_EQUAL(out, want);
}

static void test_parse(void) {
    static const char *const wrong[] = {
        "",    "2",        "DP0",     "TP",   "DP2/",    "/TP2",        "TP2/2",   "TP2/DP2",
        "dp2", "DP2/TP2x", "DP2 TP2", "DP-1", "TP257",   "DP16/TP17",   "DP2/DP2", "EP",
        "EP0", "/EP2",     "EP2/DP2", "EP2/", "DP2/EP3", "DP2/TP2/EP2", "EP257",   NULL};
    expect_layout("DP2", 2, 1);
    expect_layout("TP8", 1, 8);
    expect_layout("DP4/TP2", 4, 2);
    expect_layout("DP1/TP1", 1, 1);
    expect_layout("DP16/TP16", 16, 16);
    expect_experts("EP2", "DP2/TP1/EP2");
    expect_experts("DP2/EP2", "DP2/TP1/EP2");
    expect_experts("TP2/EP2", "DP1/TP2/EP2");
    expect_experts("DP4/TP2/EP8", "DP4/TP2/EP8");
    expect_experts("EP1", "DP1/TP1"); /* one rank has all experts */
    expect_experts("DP2", "DP2/TP1");
    for (int i = 0; wrong[i]; i++) {
        rank_layout l;
        CU_ASSERT_EQUAL(rank_layout_parse(&l, wrong[i], NULL), SNAP_E_USAGE);
    }
}

static void test_sequences(void) {
    for (int replicas = 1; replicas < 6; replicas++)
        for (int n = 0; n < 20; n++) {
            const rank_layout l = {replicas, 1, false};
            int64_t all = 0;
            for (int i = 0; i < replicas; i++) {
                int64_t share = rank_layout_share(&l, i, n);
                CU_ASSERT(share == n / replicas || share == n / replicas + 1);
                CU_ASSERT(i == 0 || share <= rank_layout_share(&l, i - 1, n));
                all += share;
            }
            CU_ASSERT_EQUAL(all, n);
        }
}

/* rank_layout_split() must give the shape that the checkpoint of one rank has. */
static void test_shape(void) {
    tiny_model whole, share;
    snap_err err = {0};
    tiny_open(&whole, "v3");
    tiny_open_share(&share, "v3", 1, 2);
    model_shape s = whole.shape;
    CU_ASSERT_EQUAL(rank_layout_split(&s, 2, &err), SNAP_OK);
    CU_ASSERT_EQUAL(s.num_attention_heads, share.shape.num_attention_heads);
    CU_ASSERT_EQUAL(s.intermediate_size, share.shape.intermediate_size);
    CU_ASSERT_EQUAL(s.moe_intermediate_size, share.shape.moe_intermediate_size);
    CU_ASSERT_EQUAL(s.hidden_size, share.shape.hidden_size);
    CU_ASSERT_EQUAL(rank_layout_split(&s, 4, &err), SNAP_E_UNSUPPORTED);
    CU_ASSERT_STRING_EQUAL(err.text, "4 ranks do not divide num_attention_heads 2");
    CU_ASSERT_EQUAL(s.intermediate_size, share.shape.intermediate_size);
    tiny_close(&whole);
    tiny_close(&share);
}

static void expect_refused(const model_shape *whole, const char *layout, const char *why) {
    model_shape s = *whole;
    rank_layout l;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(rank_layout_parse(&l, layout, &err), SNAP_OK);
    CU_ASSERT_EQUAL(rank_layout_shape(&s, &l, &err), SNAP_E_UNSUPPORTED);
    CU_ASSERT_STRING_EQUAL(err.text, why);
}

/* With EP, the router and the width of an expert are those of the whole model. */
static void test_shape_with_experts(void) {
    tiny_model whole, dense;
    const rank_layout dp = {2, 1, true}, tp = {1, 2, true};
    tiny_open(&whole, "v3");
    tiny_open(&dense, "minicpm3");
    model_shape s = whole.shape;
    CU_ASSERT_EQUAL(rank_layout_shape(&s, &dp, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(memcmp(&s, &whole.shape, sizeof s), 0);
    CU_ASSERT_EQUAL(rank_layout_shape(&s, &tp, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(s.num_attention_heads, whole.shape.num_attention_heads / 2);
    CU_ASSERT_EQUAL(s.intermediate_size, whole.shape.intermediate_size / 2);
    CU_ASSERT_EQUAL(s.moe_intermediate_size, whole.shape.moe_intermediate_size);
    CU_ASSERT_EQUAL(s.n_routed_experts, whole.shape.n_routed_experts);
    expect_refused(&dense.shape, "EP2", "EP divides experts, and this model has none");
    s = whole.shape;
    s.n_routed_experts = 7;
    expect_refused(&s, "EP2", "2 ranks do not divide n_routed_experts 7");
    s = whole.shape;
    s.moe_intermediate_size = 33;
    s.n_shared_experts = 1;
    expect_refused(&s, "TP2/EP2", "2 ranks do not divide the inner width 33 of the shared experts");
    tiny_close(&whole);
    tiny_close(&dense);
}

static void expect_visible(const char *before, int device, const char *want) {
    char got[RANKS_VISIBLE];
    CU_ASSERT_EQUAL(rank_visible_devices(got, before, device), want != NULL);
    if (want)
        CU_ASSERT_STRING_EQUAL(got, want);
}

static void test_visible_devices(void) {
    char got[RANKS_VISIBLE];
    expect_visible("0,1", 0, "0,1");
    expect_visible("0,1", 1, "1,0");
    expect_visible("4,5,6", 1, "5,4,6");
    expect_visible("GPU-a,GPU-b", 1, "GPU-b,GPU-a");
    expect_visible("7", 3, "7"); /* the launcher has made one GPU visible, and that one is used */
    expect_visible("0,1", 2, NULL);
    expect_visible("", 0, NULL);
    CU_ASSERT_TRUE(rank_visible_devices(got, NULL, 2));
    CU_ASSERT_EQUAL(strncmp(got, "2,0,1,3,4,", 10), 0);
    CU_ASSERT_FALSE(rank_visible_devices(got, NULL, 64));
}

static void test_paths(void) {
    CU_ASSERT_EQUAL(sums_path_of(4096, 4096, true), SUMS_BY_ONE_SHOT);
    CU_ASSERT_EQUAL(sums_path_of(4112, 4096, true), SUMS_BY_NCCL);
    CU_ASSERT_EQUAL(sums_path_of(4112, 4096, false), SUMS_BY_SEVERAL);
    CU_ASSERT_EQUAL(sums_path_of(16, 0, true), SUMS_BY_NCCL);
    CU_ASSERT_EQUAL(sums_one_shot(2), 2 << 20);
    CU_ASSERT_EQUAL(sums_one_shot(4), 699050); /* 512 KiB by one kernel, 1 MiB by NCCL */
}

CU_TestInfo tests_layouts[] = {
    {"a rank of the tests below", test_rank}, /* must be the first one */
    {"names of layouts", test_parse},
    {"sequences of a replica", test_sequences},
    {"the shape of a rank", test_shape},
    {"shape of a rank with whole experts", test_shape_with_experts},
    {"the GPU of a rank", test_visible_devices},
    {"how a sum is computed", test_paths},
    {"a split model on the CPU", test_split_on_the_cpu},
    {"replicas on the CPU", test_replicas_on_the_cpu},
    {"divided experts on the CPU", test_experts_on_the_cpu},
    {"four ranks on the CPU", test_four_ranks_on_the_cpu},
    {"a split model on CUDA", test_split_on_cuda},
    {"long sums on CUDA", test_long_sums_on_cuda},
    {"a split model with an FP8 cache on CUDA", test_fp8_on_cuda},
    {"a split model with e4m3 weights on CUDA", test_e4m3_weights_on_cuda},
    {"replicas on CUDA", test_replicas_on_cuda},
    {"divided experts on CUDA", test_experts_on_cuda},
    {"divided experts of a split model on CUDA", test_split_with_experts_on_cuda},
    {"four ranks on CUDA", test_four_ranks_on_cuda},
    {"divided experts with long exchanges on CUDA", test_long_exchanges_on_cuda},
    CU_TEST_INFO_NULL,
};
