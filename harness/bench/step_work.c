#include "harness/bench/step_work.h"

#include <math.h>
#include <stdlib.h>

#include "generator/local/model/route.h"
#include "harness/bench/predict_work.h"

static double attention_numbers(const model_shape *s) {
    double hidden = s->hidden_size, heads = s->num_attention_heads, rank = s->kv_lora_rank,
           queries = heads * (s->qk_nope_head_dim + s->qk_rope_head_dim),
           q = s->q_lora_rank ? s->q_lora_rank * (hidden + queries) : hidden * queries;
    return q + hidden * (rank + s->qk_rope_head_dim) +
           rank * heads * (s->qk_nope_head_dim + s->v_head_dim) + heads * s->v_head_dim * hidden;
}

typedef struct {
    double attention, dense, sparse; /* number of blocks of each kind in the model */
} block_counts;

static block_counts count_blocks(const model_shape *s) {
    block_counts c = {0};
    bool longcat = s->arch == ARCH_LONGCAT_FLASH;
    for (int i = 0; i < s->num_hidden_layers; i++) {
        bool sparse = longcat || shape_is_sparse(s, i);
        c.attention += longcat ? 2 : 1;
        c.dense += longcat ? 2 : !sparse;
        c.sparse += sparse;
    }
    return c;
}

static double expert_numbers(const model_shape *s) {
    return 3.0 * s->hidden_size * s->moe_intermediate_size;
}

/* Weights of the dense products outside the routed experts and the router. */
static double fixed_numbers(const model_shape *s) {
    block_counts c = count_blocks(s);
    return c.attention * attention_numbers(s) +
           c.dense * 3.0 * s->hidden_size * s->intermediate_size +
           c.sparse * s->n_shared_experts * expert_numbers(s) +
           (double)s->vocab_size * s->hidden_size;
}

static bool is_e4m3(const model_shape *s) {
    return s->fp8_block == 128; /* generator/local/cuda/cuda_weights.h */
}

/* How many of the numbers that fixed_numbers() counts are never e4m3. */
static double bf16_numbers(const model_shape *s) {
    return (double)s->vocab_size * s->hidden_size + count_blocks(s).attention * s->kv_lora_rank *
                                                        (double)s->num_attention_heads *
                                                        (s->qk_nope_head_dim + s->v_head_dim);
}

double step_work_bytes(const model_shape *s, double experts) {
    double routers = count_blocks(s).sparse * s->hidden_size *
                     (double)(s->n_routed_experts + s->zero_expert_num),
           number = is_e4m3(s) ? predict_number_bytes(true) : 2,
           others = fixed_numbers(s) - bf16_numbers(s) + experts * expert_numbers(s);
    return 2 * bf16_numbers(s) + number * others + 4 * routers;
}

/* The expected number of experts with weights among those that a token chooses. Zero-computation
 * experts have no weights. */
static double chosen_with_weights(const model_shape *s) {
    return s->num_experts_per_tok * (double)s->n_routed_experts /
           fmax(1, s->n_routed_experts + s->zero_expert_num);
}

double step_work_flop(const model_shape *s, double tokens) {
    block_counts c = count_blocks(s);
    double head = (double)s->vocab_size * s->hidden_size,
           products =
               fixed_numbers(s) - head + c.sparse * chosen_with_weights(s) * expert_numbers(s),
           pairs = tokens * (tokens + 1) / 2 * s->num_attention_heads,
           widths = s->qk_nope_head_dim + s->qk_rope_head_dim + s->v_head_dim;
    return 2 * (tokens * products + head + c.attention * pairs * widths);
}

double step_work_e4m3_flop(const model_shape *s, double tokens) {
    double numbers = fixed_numbers(s) - bf16_numbers(s) +
                     count_blocks(s).sparse * chosen_with_weights(s) * expert_numbers(s);
    return is_e4m3(s) ? 2 * tokens * numbers : 0;
}

/* ---- on one rank ---- */

/* With TP and EP, a rank has whole routed experts and its part of the shared ones. Their work is
 * that of parts times as many experts of a part of the width. */
static model_shape narrow_experts(const model_shape *s, const rank_layout *l) {
    model_shape narrow = *s;
    if (l->whole_experts)
        narrow.moe_intermediate_size /= l->parts;
    return narrow;
}

double step_work_rank_bytes(const model_shape *s, const rank_layout *l, double experts) {
    model_shape narrow = narrow_experts(s, l);
    return step_work_bytes(&narrow, experts * (l->whole_experts ? l->parts : 1));
}

double step_work_rank_flop(const model_shape *s, const rank_layout *l, double tokens) {
    model_shape narrow = narrow_experts(s, l);
    return step_work_flop(&narrow, tokens);
}

double step_work_rank_e4m3_flop(const model_shape *s, const rank_layout *l, double tokens) {
    model_shape narrow = narrow_experts(s, l);
    return step_work_e4m3_flop(&narrow, tokens);
}

typedef struct {
    bool used[ROUTE_MAX_EXPERTS];
} used_experts;

/* Adds the experts that the rows of other ranks chose. */
static snap_status join_used(ranks *group, used_experts *u, snap_err *err) {
    int n = group ? ranks_size(group) : 0;
    if (!group)
        return SNAP_OK;
    used_experts *all = calloc((size_t)n, sizeof *all);
    if (!all)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the chosen experts");
    snap_status st = ranks_all_gather(group, "the chosen experts", u, sizeof *u, all, err);
    for (int r = 0; r < n && st == SNAP_OK; r++)
        for (int e = 0; e < ROUTE_MAX_EXPERTS; e++)
            u->used[e] |= all[r].used[e];
    free(all);
    return st;
}

snap_status step_work_experts(const chosen_rows *c, double *all, snap_err *err) {
    *all = 0;
    for (int l = 0; l < c->layers; l++) {
        used_experts u = {0};
        for (int i = 0; i < c->rows * c->each; i++)
            u.used[c->experts[((int64_t)(i / c->each) * c->layers + l) * c->each + i % c->each]] =
                true;
        snap_status st = join_used(c->group, &u, err);
        if (st != SNAP_OK)
            return st;
        for (int e = c->first; e < c->first + c->count; e++)
            *all += u.used[e];
    }
    return SNAP_OK;
}
