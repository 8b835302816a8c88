/* gemm.h - products of activations with the weights of a checkpoint, read from its mapped files.
 *
 *   MAT_ROWS   y[i][j] = sum_k x[i][k] W[j][k]     a linear layer: W is [out][in]
 *   MAT_COLS   y[i][j] = sum_k x[i][k] W[k][j]     its transpose: W_UK absorbed into the queries
 *
 * There are two arithmetics. With GEMM_BF16, x and W are BF16, and sums are FP32. With GEMM_F32,
 * for the router and for debugging, all numbers are FP32. Weights of another type are converted
 * while they are used: for MAT_ROWS a few rows at a time, for MAT_COLS the matrix of the job.
 *
 * Each number of y is a sum over k, in an order that the other rows don't change. So a row does not
 * depend on how many other rows are computed with it, nor on the number of threads. A sequence's
 * tokens therefore stay the same, bit for bit, whatever else is in its batch. */
#ifndef SNAPMLA_GENERATOR_LOCAL_GEMM_GEMM_H
#define SNAPMLA_GENERATOR_LOCAL_GEMM_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/parallel.h"
#include "generator/local/checkpoint/tensor.h"

typedef enum { GEMM_BF16, GEMM_F32 } gemm_arith;

/* A matrix of a checkpoint, or some of its rows and columns. The tensors are borrowed. */
typedef struct {
    const tensor *w;     /* a whole matrix of the checkpoint */
    const tensor *scale; /* scales of its e4m3 blocks with @block rows and columns; else NULL. The
                            rows and columns of a mat may begin and end inside a block */
    int block;
    int64_t first_row, rows, first_col, cols;
} mat;

/* Elements from a row to the next one in memory. */
static inline int64_t mat_stride(const mat *m) {
    return m->w->shape[1];
}

/* The rows first .. first + count - 1 of @m. */
mat mat_rows(const mat *m, int64_t first, int64_t count);

/* Reads row @row as FP32 (tensor_read_f32()). */
void mat_read_row(const mat *m, int64_t row, float *out);

typedef enum { MAT_ROWS, MAT_COLS } mat_side;

typedef struct {
    mat w;
    mat_side side;
    const void *x; /* [m][..], rows ldx elements apart; bf16 or float, by the arithmetic */
    int64_t ldx, m;
    float *y; /* [m][..], rows ldy elements apart */
    int64_t ldy;
} gemm_job;

typedef struct gemm gemm;

/**
 * gemm_create - create the context of products
 *
 * @out:  caller owns it, release with gemm_free()
 * @pool: borrowed; its threads share the work of each call
 * @isa:  "portable", "avx2", "avx512f", "avx512bf16"; "auto" or NULL: the best of the machine
 *
 * SNAP_E_UNSUPPORTED if the machine lacks @isa, SNAP_E_USAGE for an unknown one, SNAP_E_NOMEM.
 */
snap_status gemm_create(gemm **out, parallel *pool, gemm_arith arith, const char *isa,
                        snap_err *err) SNAP_CHECK_RESULT;
void gemm_free(gemm *g); /* NULL is allowed */

size_t gemm_element(const gemm *g); /* bytes per number of x: 2 or 4 */

/* Runs all jobs. The threads share the tiles of all of them, unless there is too little work. No
 * job's y may be another's x. SNAP_E_NOMEM if weights must be converted and there is no memory for
 * it. */
snap_status gemm_run(gemm *g, const gemm_job *jobs, int count, snap_err *err) SNAP_CHECK_RESULT;

/* Converts @n numbers to the type of the arithmetic: rounded to nearest even, or copied. */
void gemm_pack(const gemm *g, void *out, const float *in, int64_t n);

/* x[i] = 2^(x[i] - largest), for x[i] <= largest; returns their sum. @n is a multiple of 16. */
float gemm_exp2(const gemm *g, float *x, int64_t n, float largest);

/* Small products on the calling thread, with x and w in the type of the arithmetic. gemm_rows():
 * y[i][j] = sum_k x[i][k] w[j][k]. gemm_cols(): y[i][j] = sum_k x[i][k] w[k][j]. */
typedef struct {
    const void *x, *w;
    float *y;
    int64_t ldx, ldw, ldy;
    int64_t m, n, k;
    bool add; /* gemm_rows: adds to y instead of overwriting it; gemm_cols ignores it */
} gemm_tile;
void gemm_rows(const gemm *g, const gemm_tile *t);
void gemm_cols(const gemm *g, const gemm_tile *t);

#endif
