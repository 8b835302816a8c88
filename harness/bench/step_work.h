/* step_work.h - the bytes and the arithmetic of a measured step of a whole model (e2e.h), from its
 * shape. */
#ifndef SNAPMLA_HARNESS_BENCH_STEP_WORK_H
#define SNAPMLA_HARNESS_BENCH_STEP_WORK_H

#include "generator/local/checkpoint/shape.h"
#include "generator/local/ranks/layout.h"
#include "generator/local/ranks/ranks.h"

/* Bytes of weights that the products of a decode step read: 4 for each number of the routers and 2
 * for each of the others. If fp8_block is 128, numbers of all matrices but the routers, kv_b and
 * the logits have 1 byte and a share of their scale, as on a Hopper device. @experts: number of
 * routed experts that are read, summed over the layers. */
double step_work_bytes(const model_shape *s, double experts);

/* Floating-point operations of a prompt of @tokens tokens: dense products with the expected number
 * of routed experts, and attention over expanded heads. */
double step_work_flop(const model_shape *s, double tokens);

/* The part of step_work_flop() that multiplies e4m3 weights; 0 unless fp8_block is 128. */
double step_work_e4m3_flop(const model_shape *s, double tokens);

/* The three numbers above for one rank of a layout. @s is the shape of a rank
 * (rank_layout_shape()). @experts is the number of routed experts that this rank reads. With EP,
 * the FLOP are those of a prompt on each replica, if all experts are equally likely. */
double step_work_rank_bytes(const model_shape *s, const rank_layout *l, double experts);
double step_work_rank_flop(const model_shape *s, const rank_layout *l, double tokens);
double step_work_rank_e4m3_flop(const model_shape *s, const rank_layout *l, double tokens);

/* The experts that the rows of a step chose. */
typedef struct {
    const int32_t *experts; /* [rows][layers][each] */
    int rows, layers, each;
    int first, count; /* the routed experts of this rank */
    ranks *group;     /* with EP: all ranks, whose rows go to the experts, too; else NULL */
} chosen_rows;

/* *all = how many different experts of this rank were chosen, summed over the layers. With a group,
 * all ranks call it. SNAP_E_NOMEM, and the failure of the group. */
snap_status step_work_experts(const chosen_rows *c, double *all, snap_err *err) SNAP_CHECK_RESULT;

#endif
