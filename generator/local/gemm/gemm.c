/* gemm.c - products of activations and weights on the CPU: the choice of an instruction set, and
 * the division of a product into parallel tasks. */
#include "generator/local/gemm/gemm.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/gemm/isa.h"

enum {
    kRowTile = 32,     /* weight rows per task */
    kColTile = 128,    /* output columns per task of MAT_COLS (gemm.h), if no weight is converted */
    kDepth = 2048,     /* most k at a time in MAT_ROWS, so that a block of x and a tile of weights
                          fit in the caches */
    kConvertRows = 16, /* weight rows that are converted at a time in MAT_ROWS */
    kSerialProducts = 1 << 17, /* up to this many multiplications, no other thread is used */
};

struct gemm {
    const gemm_isa *isa;
    gemm_arith arith;
    parallel *pool; /* borrowed */
    char *scratch;  /* [threads][scratch_bytes]: a row as FP32, then converted weights */
    size_t scratch_bytes;
};

static const gemm_isa *const isas[] = {
#if defined __x86_64__
    &gemm_avx512bf16, &gemm_avx512f, &gemm_avx2,
#endif
    &gemm_portable,   NULL,
};

static snap_status pick(const gemm_isa **out, const char *name, snap_err *err) {
    bool any = !name || text_equal(name, "auto");
    for (size_t i = 0; isas[i]; i++) {
        if (!any && !text_equal(name, isas[i]->name))
            continue;
        *out = isas[i];
        if (isas[i]->usable())
            return SNAP_OK;
        if (!any)
            return err_set(err, SNAP_E_UNSUPPORTED, "this machine does not support '%s'", name);
    }
    return err_set(err, SNAP_E_USAGE, "unknown instruction set '%s'", name);
}

snap_status gemm_create(gemm **out, parallel *pool, gemm_arith arith, const char *isa,
                        snap_err *err) {
    *out = NULL;
    const gemm_isa *chosen = NULL;
    snap_status st = pick(&chosen, isa, err);
    if (st != SNAP_OK)
        return st;
    gemm *g = calloc(1, sizeof *g);
    if (!g)
        return err_set(err, SNAP_E_NOMEM, "out of memory for products");
    *g = (gemm){.isa = chosen, .arith = arith, .pool = pool};
    *out = g;
    return SNAP_OK;
}

void gemm_free(gemm *g) {
    if (!g)
        return;
    free(g->scratch);
    free(g);
}

size_t gemm_element(const gemm *g) {
    return g->arith == GEMM_BF16 ? sizeof(uint16_t) : sizeof(float);
}

void gemm_pack(const gemm *g, void *out, const float *in, int64_t n) {
    if (g->arith == GEMM_BF16)
        g->isa->to_bf16(out, in, n);
    else
        memcpy(out, in, (size_t)n * sizeof *in);
}

float gemm_exp2(const gemm *g, float *x, int64_t n, float largest) {
    return g->isa->exp2(x, n, largest);
}

void gemm_rows(const gemm *g, const gemm_tile *t) {
    (g->arith == GEMM_BF16 ? g->isa->rows_bf16 : g->isa->rows_f32)(t);
}

void gemm_cols(const gemm *g, const gemm_tile *t) {
    (g->arith == GEMM_BF16 ? g->isa->cols_bf16 : g->isa->cols_f32)(t);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

mat mat_rows(const mat *m, int64_t first, int64_t count) {
    mat part = *m;
    part.first_row += first;
    part.rows = count;
    return part;
}

void mat_read_row(const mat *m, int64_t row, float *out) {
    tensor_read_f32(m->w, m->scale, m->block, m->first_row + row, m->first_col, m->cols, out);
}

/* The address of a number of a matrix that is used in place. */
static const void *address(const gemm *g, const mat *m, int64_t row, int64_t col) {
    int64_t at = (m->first_row + row) * mat_stride(m) + m->first_col + col;
    return (const char *)m->w->data + (size_t)at * gemm_element(g);
}

/* Whether the weights can be used in place: they have the type of the arithmetic and are
 * aligned. */
static bool direct(const gemm *g, const mat *m) {
    return m->w->dtype == (g->arith == GEMM_BF16 ? DTYPE_BF16 : DTYPE_F32) &&
           (uintptr_t)m->w->data % gemm_element(g) == 0;
}

/* Outputs per task. A converted transpose is one task, so that each of its rows is read once. */
static int64_t tile_of(const gemm *g, const gemm_job *job) {
    if (job->side == MAT_ROWS)
        return kRowTile;
    return direct(g, &job->w) ? kColTile : job->w.cols;
}

static int64_t outputs_of(const gemm_job *job) {
    return job->side == MAT_ROWS ? job->w.rows : job->w.cols;
}

static int64_t tiles_of(const gemm *g, const gemm_job *job) {
    int64_t tile = tile_of(g, job);
    return job->m ? (outputs_of(job) + tile - 1) / tile : 0;
}

static size_t convert_bytes(const gemm *g, const gemm_job *job) {
    if (direct(g, &job->w))
        return 0;
    int64_t rows = job->side == MAT_ROWS ? kConvertRows : job->w.rows;
    return (size_t)job->w.cols * (sizeof(float) + (size_t)rows * gemm_element(g));
}

static snap_status reserve(gemm *g, const gemm_job *jobs, int count, snap_err *err) {
    size_t need = 1;
    for (int i = 0; i < count; i++) {
        size_t bytes = convert_bytes(g, &jobs[i]);
        need = bytes > need ? bytes : need;
    }
    need = (need + 63) / 64 * 64;
    if (need <= g->scratch_bytes)
        return SNAP_OK;
    free(g->scratch);
    g->scratch_bytes = 0;
    g->scratch = aligned_alloc(64, need * (size_t)parallel_threads(g->pool));
    if (!g->scratch)
        return err_set(err, SNAP_E_NOMEM, "out of memory for converting weights");
    g->scratch_bytes = need;
    return SNAP_OK;
}

typedef struct {
    const gemm *g;
    const gemm_job *jobs;
    int count;
} gemm_call;

/* Converts the rows first .. first + count - 1 of @w to the type of the arithmetic. */
static void convert(const gemm *g, const mat *w, int64_t first, int64_t count, float *row,
                    char *out) {
    for (int64_t i = 0; i < count; i++) {
        mat_read_row(w, first + i, row);
        gemm_pack(g, out + (size_t)(i * w->cols) * gemm_element(g), row, w->cols);
    }
}

/* Computes a tile in pieces of kDepth numbers of k, in order. */
static void deep_rows(const gemm *g, const gemm_tile *t) {
    size_t element = gemm_element(g);
    for (int64_t k = 0; k < t->k; k += kDepth) {
        gemm_tile piece = *t;
        piece.x = (const char *)t->x + (size_t)k * element;
        piece.w = (const char *)t->w + (size_t)k * element;
        piece.k = t->k - k < kDepth ? t->k - k : kDepth;
        piece.add = k > 0;
        gemm_rows(g, &piece);
    }
}

static void rows_tile(const gemm *g, const gemm_job *job, int64_t first, int64_t n, char *scratch) {
    const mat *w = &job->w;
    gemm_tile t = {
        .x = job->x, .ldx = job->ldx, .ldw = w->cols, .ldy = job->ldy, .m = job->m, .k = w->cols};
    if (direct(g, w)) {
        t.w = address(g, w, first, 0);
        t.ldw = mat_stride(w);
        t.y = job->y + first;
        t.n = n;
        deep_rows(g, &t);
        return;
    }
    char *converted = scratch + (size_t)w->cols * sizeof(float);
    for (int64_t j = 0; j < n; j += kConvertRows) {
        t.n = n - j < kConvertRows ? n - j : kConvertRows;
        convert(g, w, first + j, t.n, (float *)(void *)scratch, converted);
        t.w = converted;
        t.y = job->y + first + j;
        deep_rows(g, &t);
    }
}

static void cols_tile(const gemm *g, const gemm_job *job, int64_t first, int64_t n, char *scratch) {
    const mat *w = &job->w;
    gemm_tile t = {.x = job->x,
                   .ldx = job->ldx,
                   .ldw = w->cols,
                   .y = job->y + first,
                   .ldy = job->ldy,
                   .m = job->m,
                   .n = n,
                   .k = w->rows};
    if (direct(g, w)) {
        t.w = address(g, w, 0, first);
        t.ldw = mat_stride(w);
    } else {
        char *converted = scratch + (size_t)w->cols * sizeof(float);
        convert(g, w, 0, w->rows, (float *)(void *)scratch, converted);
        t.w = converted;
    }
    gemm_cols(g, &t);
}

static void run_tile(void *ctx, int worker, int64_t index) {
    const gemm_call *call = ctx;
    const gemm *g = call->g;
    const gemm_job *job = call->jobs;
    for (int64_t tiles; index >= (tiles = tiles_of(g, job)); job++)
        index -= tiles;
    int64_t tile = tile_of(g, job), first = index * tile, left = outputs_of(job) - first;
    char *scratch = g->scratch + (size_t)worker * g->scratch_bytes;
    (job->side == MAT_ROWS ? rows_tile : cols_tile)(g, job, first, left < tile ? left : tile,
                                                    scratch);
}

snap_status gemm_run(gemm *g, const gemm_job *jobs, int count, snap_err *err) {
    snap_status st = reserve(g, jobs, count, err);
    if (st != SNAP_OK)
        return st;
    gemm_call call = {g, jobs, count};
    int64_t tiles = 0, products = 0;
    for (int i = 0; i < count; i++) {
        tiles += tiles_of(g, &jobs[i]);
        products += jobs[i].m * jobs[i].w.rows * jobs[i].w.cols;
    }
    if (products > kSerialProducts)
        parallel_for(g->pool, tiles, run_tile, &call);
    else
        for (int64_t i = 0; i < tiles; i++)
            run_tile(&call, 0, i);
    return SNAP_OK;
}
