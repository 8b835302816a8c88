/* grid.h - the cells of a sweep: arm x shape x scope. */
#ifndef SNAPMLA_HARNESS_BENCH_GRID_H
#define SNAPMLA_HARNESS_BENCH_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "harness/bench/kind.h"

enum { BENCH_MAX_BATCH = 4096, GRID_AXIS = 32, GRID_LIST = 512 };

typedef struct {
    int heads, s_q, batch;
    int64_t context; /* tokens in the cache of the longest sequence, including those of the step */
    int d_c, d_r;
    const int32_t *lengths;   /* [batch] tokens in the cache of each sequence, borrowed; NULL = each
                                 has `context` tokens */
    const char *lengths_text; /* distribution of the lengths (lengths.h), borrowed */
} bench_shape;

/* The number of tokens of sequence @b, and of all sequences together. */
int64_t bench_shape_length(const bench_shape *s, int b);
int64_t bench_shape_tokens(const bench_shape *s);

/* "H 16, s_q 1, batch 8, context 8192" */
void bench_shape_text(const bench_shape *s, char out[96]);

typedef struct {
    bool arm[BENCH_ARMS]; /* index: bench_kind */
    bool scope[BENCH_SCOPES];
    int heads[GRID_AXIS], s_q[GRID_AXIS], batch[GRID_AXIS];
    int64_t context[GRID_AXIS];
    int n_heads, n_s_q, n_batch, n_context;
    int d_c, d_r;
    bench_shape list[GRID_LIST]; /* shapes given one by one; they replace the axes */
    int n_list;
} bench_grid;

/* The options of a sweep. Each text is a list separated by commas: "bf16,fp8", "kernel,served",
 * "1,16", ... Shapes are written as "H/s_q/batch/context". With `shapes` NULL or "", the sweep
 * takes every combination of the axes. */
typedef struct {
    const char *arms, *scopes, *heads, *s_q, *batch, *context, *shapes;
    int64_t d_c, d_r;
    bool ablation; /* add the arms of the ablation */
} bench_grid_text;

/* SNAP_E_USAGE, naming the option: a part of a list is unknown or out of range, a number of an axis
 * is given twice, an axis has more than GRID_AXIS numbers, there are more than GRID_LIST shapes, or
 * d_c or d_r is not a multiple of 32 within its range. */
snap_status bench_grid_parse(bench_grid *out, const bench_grid_text *text,
                             snap_err *err) SNAP_CHECK_RESULT;

int bench_grid_shapes(const bench_grid *g);
bench_shape bench_grid_shape(const bench_grid *g, int i); /* shape @i; of the axes, heads change
                                                             slowest and context fastest */

/* Parses a list of up to @max different integers within [low, high], separated by commas. *n is
 * their number. SNAP_E_USAGE. */
snap_status bench_parse_list(const char *list, const char *option, int64_t low, int64_t high,
                             int64_t *out, int max, int *n, snap_err *err) SNAP_CHECK_RESULT;

#endif
