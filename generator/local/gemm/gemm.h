/* gemm.h - activations times the weights of a checkpoint, as they lie in its files.
 *
 *   MAT_ROWS   y[i][j] = sum_k x[i][k] W[j][k]     a linear layer: W is [out][in]
 *   MAT_COLS   y[i][j] = sum_k x[i][k] W[k][j]     its transpose: W_UK absorbed into the queries
 *
 * Two arithmetics. GEMM_BF16: x and W in BF16, sums in FP32. GEMM_F32, for debugging: both in FP32.
 * Weights of another type are brought to the arithmetic's, a tile at a time, on their way in; they are
 * never copied whole.
 *
 * A number of y is one chain of additions over k, in an order that depends on k alone: rows do not
 * depend on how many others are computed with them, nor on the number of threads. So a sequence's
 * tokens stay the same, bit for bit, whatever shares its batch. */
#ifndef SNAPMLA_GENERATOR_LOCAL_GEMM_GEMM_H
#define SNAPMLA_GENERATOR_LOCAL_GEMM_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/parallel.h"
#include "generator/local/checkpoint/tensor.h"

typedef enum { GEMM_BF16, GEMM_F32 } gemm_arith;

/* A matrix of a checkpoint, or some of its rows; tensors are borrowed. */
typedef struct {
    const tensor *w;     /* [.., cols] */
    const tensor *scale; /* of e4m3 blocks of @block rows and columns; else NULL */
    int block;
    int64_t first_row, rows, cols;
} mat;

/* Rows first .. first + count - 1. */
mat mat_rows(const mat *m, int64_t first, int64_t count);

/* Row @row as FP32 (tensor_read_f32()). */
void mat_read_row(const mat *m, int64_t row, float *out);

typedef enum { MAT_ROWS, MAT_COLS } mat_side;

typedef struct {
    mat w;
    mat_side side;
    const void *x; /* [m][..] at ldx elements a row: bf16 or float, by the arithmetic */
    int64_t ldx, m;
    float *y; /* [m][..] at ldy elements a row */
    int64_t ldy;
} gemm_job;

typedef struct gemm gemm;

/**
 * gemm_create - what products need
 *
 * @out:  caller owns it, release with gemm_free()
 * @pool: borrowed; its threads share each call's work
 * @isa:  "auto" or NULL; "portable", "avx2", "avx512f", "avx512bf16"
 *
 * SNAP_E_UNSUPPORTED where the machine lacks @isa, SNAP_E_USAGE for an unknown one, SNAP_E_NOMEM.
 */
snap_status gemm_create(gemm **out, parallel *pool, gemm_arith arith, const char *isa,
                        snap_err *err) SNAP_CHECK_RESULT;
void gemm_free(gemm *g); /* NULL is allowed */

const char *gemm_isa_name(const gemm *g);
size_t gemm_element(const gemm *g); /* bytes of an x: 2 or 4 */

/* Runs all jobs, their tiles shared out among the threads together; no job's y may be another's x.
 * SNAP_E_NOMEM where weights must be converted and there is no room for a tile. */
snap_status gemm_run(gemm *g, const gemm_job *jobs, int count, snap_err *err) SNAP_CHECK_RESULT;

/* @n numbers to the arithmetic's type: rounded to nearest even, or copied. */
void gemm_pack(const gemm *g, void *out, const float *in, int64_t n);

/* x[i] = 2^(x[i] - largest), for x[i] <= largest; gives their sum. @n: a multiple of 16. */
float gemm_exp2(const gemm *g, float *x, int64_t n, float largest);

/* Small products on the calling thread, all operands in the arithmetic's type:
 * y[i][j] = sum_k x[i][k] w[j][k], and y[i][j] = sum_k x[i][k] w[k][j]. */
typedef struct {
    const void *x, *w;
    float *y;
    int64_t ldx, ldw, ldy;
    int64_t m, n, k;
    bool add; /* gemm_rows: to what y holds */
} gemm_tile;
void gemm_rows(const gemm *g, const gemm_tile *t);
void gemm_cols(const gemm *g, const gemm_tile *t);

#endif
