/* against_onednn.c - compares our BF16 products with oneDNN's, in turn, on the same number of
 * threads and on the same matrices.
 *
 *     make && cc -std=c17 -O2 -D_GNU_SOURCE -I. -o /tmp/against_onednn \
 *         generator/test/speed/onednn/against_onednn.c build/libgenerator.a build/libkernels.a \
 *         build/libbase.a $(pkg-config --libs jansson) -ldnnl -lpthread -lm
 *     OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive /tmp/against_onednn
 *
 * Development only. It prints one line per shape: y [m][n] = x [m][k] W [n][k]^T, in GFLOP/s of
 * the median of kRounds, and the relative difference of the results. "As stored" gives oneDNN the
 * weights in the layout of a checkpoint. "Packed" lets it first copy them into the layout that it
 * prefers; the copy needs as much memory as the weights. */
#include <dnnl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "generator/local/gemm/gemm.h"
#include "kernels/formats.h"

enum { kRounds = 9, kThreads = 2, kMatrices = 8 /* so that weights come from memory */ };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != dnnl_success) {                                                              \
            (void)fprintf(stderr, "%s failed\n", #call);                                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef struct {
    int64_t m, n, k;
    uint16_t *x, *w[kMatrices];
    float *y, *theirs;
} problem;

typedef struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t product;
    dnnl_memory_t x, y, w[kMatrices];
} peer;

static uint16_t *draw(int64_t n) {
    uint16_t *x = aligned_alloc(64, (size_t)(2 * n + 63) / 64 * 64);
    for (int64_t i = 0; i < n; i++)
        x[i] = bf16_from_f32((float)rand() / (float)RAND_MAX - 0.5f);
    return x;
}

static dnnl_memory_t memory(peer *p, const dnnl_memory_desc_t *d, void *data) {
    dnnl_memory_t m;
    CHECK(dnnl_memory_create(&m, d, p->engine, data));
    return m;
}

static void peer_open(peer *p, const problem *q, bool packed) {
    dnnl_dims_t x = {q->m, q->k}, w = {q->k, q->n}, y = {q->m, q->n};
    dnnl_memory_desc_t dx, dw, stored, dy;
    dnnl_matmul_desc_t d;
    dnnl_primitive_desc_t pd;
    CHECK(dnnl_engine_create(&p->engine, dnnl_cpu, 0));
    CHECK(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags));
    CHECK(dnnl_memory_desc_init_by_tag(&dx, 2, x, dnnl_bf16, dnnl_ab));
    CHECK(dnnl_memory_desc_init_by_tag(&stored, 2, w, dnnl_bf16, dnnl_ba));
    CHECK(
        dnnl_memory_desc_init_by_tag(&dw, 2, w, dnnl_bf16, packed ? dnnl_format_tag_any : dnnl_ba));
    CHECK(dnnl_memory_desc_init_by_tag(&dy, 2, y, dnnl_f32, dnnl_ab));
    CHECK(dnnl_matmul_desc_init(&d, &dx, &dw, NULL, &dy));
    CHECK(dnnl_primitive_desc_create(&pd, &d, NULL, p->engine, NULL));
    CHECK(dnnl_primitive_create(&p->product, pd));
    const dnnl_memory_desc_t *want = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    p->x = memory(p, &dx, q->x);
    p->y = memory(p, &dy, q->theirs);
    for (int i = 0; i < kMatrices; i++) {
        dnnl_memory_t from = memory(p, &stored, q->w[i]);
        dnnl_primitive_desc_t copy;
        dnnl_primitive_t run;
        p->w[i] = memory(p, want, packed ? DNNL_MEMORY_ALLOCATE : q->w[i]);
        if (!packed)
            continue;
        CHECK(dnnl_reorder_primitive_desc_create(&copy, &stored, p->engine, want, p->engine, NULL));
        CHECK(dnnl_primitive_create(&run, copy));
        dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, p->w[i]}};
        CHECK(dnnl_primitive_execute(run, p->stream, 2, args));
        CHECK(dnnl_stream_wait(p->stream));
    }
}

static double run_peer(peer *p, int i) {
    dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, p->x}, {DNNL_ARG_WEIGHTS, p->w[i]}, {DNNL_ARG_DST, p->y}};
    int64_t start = clock_now_ns();
    CHECK(dnnl_primitive_execute(p->product, p->stream, 3, args));
    CHECK(dnnl_stream_wait(p->stream));
    return (double)(clock_now_ns() - start);
}

static double run_ours(gemm *g, const problem *q, int i) {
    tensor t = {.dtype = DTYPE_BF16, .n_dims = 2, .shape = {q->n, q->k}, .data = q->w[i]};
    gemm_job job = {.w = {.w = &t, .rows = q->n, .cols = q->k},
                    .x = q->x,
                    .ldx = q->k,
                    .m = q->m,
                    .y = q->y,
                    .ldy = q->n};
    int64_t start = clock_now_ns();
    if (gemm_run(g, &job, 1, NULL) != SNAP_OK)
        exit(1);
    return (double)(clock_now_ns() - start);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double rate(const problem *q, double *ns) {
    qsort(ns, kRounds, sizeof *ns, by_size);
    return 2.0 * (double)q->m * (double)q->n * (double)q->k / ns[kRounds / 2];
}

static void compare(gemm *g, int64_t m, int64_t n, int64_t k) {
    problem q = {.m = m, .n = n, .k = k, .x = draw(m * k)};
    peer stored, packed;
    double ns[3][kRounds], apart = 0, size = 0;
    for (int i = 0; i < kMatrices; i++)
        q.w[i] = draw(n * k);
    q.y = calloc((size_t)(m * n), sizeof *q.y);
    q.theirs = calloc((size_t)(m * n), sizeof *q.theirs);
    peer_open(&stored, &q, false);
    peer_open(&packed, &q, true);
    for (int i = -1; i < kRounds; i++) {
        int j = i < 0 ? 0 : i;
        ns[0][j] = run_ours(g, &q, j % kMatrices);
        ns[1][j] = run_peer(&stored, j % kMatrices);
        ns[2][j] = run_peer(&packed, j % kMatrices);
    }
    for (int64_t i = 0; i < m * n; i++) {
        apart += pow((double)(q.y[i] - q.theirs[i]), 2);
        size += pow((double)q.theirs[i], 2);
    }
    (void)printf("| %lld | %lld x %lld | %.0f | %.0f | %.0f | %.0e |\n", (long long)m, (long long)n,
                 (long long)k, rate(&q, ns[0]), rate(&q, ns[1]), rate(&q, ns[2]),
                 sqrt(apart / size));
    (void)fflush(stdout);
    for (int i = 0; i < kMatrices; i++)
        free(q.w[i]);
    free(q.x);
    free(q.y);
    free(q.theirs);
}

int main(void) {
    static const int64_t rows[] = {1, 4, 16, 64, 256},
                         sizes[][2] = {{2048, 2048}, {1408, 2048}, {2048, 10944}};
    parallel *pool = NULL;
    gemm *g = NULL;
    if (parallel_create(&pool, kThreads, NULL) != SNAP_OK ||
        gemm_create(&g, pool, GEMM_BF16, NULL, NULL) != SNAP_OK)
        return 1;
    const dnnl_version_t *v = dnnl_version();
    (void)printf("oneDNN %d.%d.%d\n| m | n x k | ours | oneDNN, as stored | oneDNN, "
                 "packed | apart |\n|---|---|---|---|---|---|\n",
                 v->major, v->minor, v->patch);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            compare(g, rows[i], sizes[s][0], sizes[s][1]);
    gemm_free(g);
    parallel_free(pool);
    return 0;
}
