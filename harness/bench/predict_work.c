#include "harness/bench/predict_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/model/reading.h"

enum {
    kScaleRows = 8, /* rows and columns of a block of e4m3 numbers on the device */
    kScaleBlock = 128,
    kMostChunks = 64, /* these four are those of generator/local/cuda/model.h */
    kLogitRows = 256,
    kGatedRows = 512,
    kFewRows = 8
};
static const int64_t kExpanded = (int64_t)1 << 30; /* limit for the expanded keys and values */

/* ---- layouts ---- */

snap_status predict_layout_parse(predict_layout *out, const char *text, snap_err *err) {
    return rank_layout_parse(&out->ranks, text, err);
}

void predict_layout_text(const predict_layout *l, char out[32]) {
    rank_layout_text(&l->ranks, out);
}

snap_status predict_layout_check(const predict_layout *l, const model_shape *s, snap_err *err) {
    model_shape part = *s;
    return rank_layout_shape(&part, &l->ranks, err);
}

/* ---- the work ---- */

typedef struct {
    double blocks, dense, moe;
} counts;

static counts count_layers(const model_shape *s) {
    counts c = {0};
    bool longcat = s->arch == ARCH_LONGCAT_FLASH;
    for (int i = 0; i < s->num_hidden_layers; i++) {
        bool sparse = longcat || shape_is_sparse(s, i);
        c.blocks += longcat ? 2 : 1;
        c.dense += longcat ? 2 : !sparse;
        c.moe += sparse;
    }
    return c;
}

double predict_number_bytes(bool e4m3) {
    return e4m3 ? 1 + 4.0 / (kScaleRows * kScaleBlock) : 2;
}

double predict_experts(double here, double all, double chosen, double rows) {
    return all > 0 ? here * (1 - pow(1 - chosen / all, rows)) : 0;
}

/* Numbers of the products of one attention on a rank with @heads heads. W_UK is not included. */
static double attention_numbers(const model_shape *s, double heads) {
    double hidden = s->hidden_size, queries = heads * (s->qk_nope_head_dim + s->qk_rope_head_dim),
           q = s->q_lora_rank ? s->q_lora_rank * (hidden + queries) : hidden * queries;
    return q + hidden * (s->kv_lora_rank + s->qk_rope_head_dim) +
           (double)s->kv_lora_rank * heads * s->v_head_dim + heads * s->v_head_dim * hidden;
}

/* The launches of kernels that belong neither to attention nor to experts: norm, input, values and
 * output of each block; norm and product of q_lora; norm, gate and output of a dense feed-forward,
 * and one more with more than kFewRows rows; embedding, last norm, logits and choice of a token. */
static double rest_launches(const model_shape *s, const counts *c, double rows) {
    return c->blocks * (s->q_lora_rank ? 6 : 4) + c->dense * (rows > kFewRows ? 4 : 3) + 4;
}

static void set_experts(predict_work *w, const model_shape *s, const predict_layout *l, bool e4m3,
                        double experts) {
    double all = s->n_routed_experts + s->zero_expert_num, parts = l->ranks.parts,
           gpus = predict_gpus(l), one = 3.0 * s->hidden_size * s->moe_intermediate_size,
           shared = s->n_shared_experts, router = 4.0 * s->hidden_size * all,
           routed = s->num_experts_per_tok * s->n_routed_experts / fmax(all, 1),
           number = predict_number_bytes(e4m3);
    if (l->ranks.whole_experts) {
        double here = s->n_routed_experts / gpus, rows = w->rows * l->ranks.replicas,
               read = predict_experts(here, all, s->num_experts_per_tok, rows);
        w->experts = w->moe_layers * (read + shared);
        w->expert_bytes = w->moe_layers * router + w->experts * number * one;
        double pairs = rows * routed / gpus + w->rows / parts * shared;
        w->expert_flop = w->moe_layers * 2 * one * pairs;
        w->expert_moved = w->moe_layers * pairs * s->hidden_size;
        w->expert_rows = pairs / fmax(1, routed + shared);
        return;
    }
    if (isnan(experts))
        experts = predict_experts(s->n_routed_experts, all, s->num_experts_per_tok, w->rows);
    w->experts = w->moe_layers * (experts + shared);
    w->expert_bytes = w->moe_layers * router + w->experts * number * one / parts;
    w->expert_flop = w->moe_layers * 2 * one / parts * w->rows * (routed + shared);
    w->expert_moved = w->moe_layers * w->rows * (routed + shared) * s->hidden_size;
    w->expert_rows = w->rows;
}

/* How many different ranks the experts of a row are on, without the rank that sends the row. */
static double other_ranks(double gpus, double routed) {
    return (gpus - 1) * (1 - pow(1 - 1 / gpus, routed));
}

static void set_exchange(predict_work *w, const model_shape *s, const predict_layout *l,
                         const counts *c, bool e4m3) {
    double parts = l->ranks.parts, gpus = predict_gpus(l), hidden = s->hidden_size,
           all = s->n_routed_experts + s->zero_expert_num,
           routed = s->num_experts_per_tok * s->n_routed_experts / fmax(all, 1);
    bool moved = l->ranks.whole_experts && l->ranks.replicas > 1;
    w->sum_bytes = w->rows * hidden * 4;
    w->sums = parts > 1 ? c->blocks + c->dense + (moved ? 0 : c->moe) : 0;
    if (!moved)
        return;
    double sent = w->rows / parts * hidden * other_ranks(gpus, routed);
    w->moves = c->moe;
    w->out_bytes = sent * (e4m3 ? 1 + 4.0 / kScaleBlock : 2);
    w->back_bytes = sent * 2;
    w->gathers = parts > 1 ? c->moe : 0;
    w->gather_bytes = w->rows * hidden * 4;
}

predict_work predict_work_of(const model_shape *s, const predict_layout *l, bool e4m3, double rows,
                             int64_t context, double experts) {
    counts c = count_layers(s);
    int parts = l->ranks.parts;
    double heads = (double)s->num_attention_heads / parts, number = predict_number_bytes(e4m3),
           head = (double)s->vocab_size * s->hidden_size,
           dense = 3.0 * s->hidden_size * s->intermediate_size / parts,
           values = c.blocks * s->kv_lora_rank * heads * s->v_head_dim,
           rest = c.blocks * attention_numbers(s, heads) + c.dense * dense;
    predict_work w = {.rows = rows,
                      .heads = (int)heads,
                      .blocks = c.blocks,
                      .moe_layers = c.moe,
                      .launches = rest_launches(s, &c, rows),
                      .cached = c.blocks * rows * (double)context};
    w.query_bytes = c.blocks * 2 * heads * s->qk_nope_head_dim * s->kv_lora_rank;
    w.rest_bytes = number * (rest - values) + 2 * (values + head);
    w.rest_flop = 2 * rows * (rest + head);
    set_experts(&w, s, l, e4m3, experts);
    set_exchange(&w, s, l, &c, e4m3);
    return w;
}

/* ---- memory ---- */

static int64_t matrix_bytes(int64_t rows, int64_t cols, bool e4m3) {
    int64_t down = (rows + 15) / 16, across = (cols + 2 * kScaleBlock - 1) / (2 * kScaleBlock);
    return e4m3 ? rows * cols + 4 * 4 * down * across : 2 * rows * cols;
}

static int64_t attention_bytes(const model_shape *s, bool e4m3) {
    int64_t hidden = s->hidden_size, heads = s->num_attention_heads, rank = s->kv_lora_rank,
            queries = heads * (s->qk_nope_head_dim + s->qk_rope_head_dim),
            first = s->q_lora_rank ? s->q_lora_rank : queries,
            norms = 4 * (2 * hidden + (s->plain_latent ? 0 : rank) + s->q_lora_rank);
    return norms + matrix_bytes(first + rank + s->qk_rope_head_dim, hidden, e4m3) +
           (s->q_lora_rank ? matrix_bytes(queries, s->q_lora_rank, e4m3) : 0) +
           matrix_bytes(heads * (s->qk_nope_head_dim + s->v_head_dim), rank, false) +
           2 * heads * rank * s->qk_nope_head_dim + /* W_UK again, transposed */
           matrix_bytes(hidden, heads * s->v_head_dim, e4m3);
}

static int64_t expert_bytes(const model_shape *s, int64_t experts, bool e4m3) {
    int64_t hidden = s->hidden_size, inner = s->moe_intermediate_size,
            all = s->n_routed_experts + s->zero_expert_num;
    return 4 * all * hidden + (shape_has_router_bias(s) ? 4 * all : 0) +
           (experts + s->n_shared_experts) *
               (matrix_bytes(2 * inner, hidden, e4m3) + matrix_bytes(hidden, inner, e4m3));
}

static int64_t weight_bytes(const model_shape *s, int64_t experts, bool e4m3) {
    counts c = count_layers(s);
    int64_t hidden = s->hidden_size, table = 2 * (int64_t)s->vocab_size * hidden,
            dense = matrix_bytes(2 * (int64_t)s->intermediate_size, hidden, e4m3) +
                    matrix_bytes(hidden, s->intermediate_size, e4m3);
    return table * (s->tie_word_embeddings ? 1 : 2) + 4 * hidden +
           (int64_t)c.blocks * attention_bytes(s, e4m3) + (int64_t)c.dense * dense +
           (int64_t)c.moe * expert_bytes(s, experts, e4m3);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t blocks_of(int64_t cols) {
    return (cols + kScaleBlock - 1) / kScaleBlock;
}

static int64_t pages_of(int64_t tokens) {
    return (tokens + MLA_PAGE - 1) / MLA_PAGE;
}

/* The buffers of the rows outside the experts. */
static int64_t row_bytes(const model_shape *s, bool split, int64_t rows, int64_t context) {
    int64_t hidden = s->hidden_size, heads = s->num_attention_heads,
            queries = heads * (s->qk_nope_head_dim + s->qk_rope_head_dim),
            values = heads * s->v_head_dim, first = s->q_lora_rank ? s->q_lora_rank : queries,
            logits = larger(kLogitRows, rows);
    return rows * (4 * hidden + 2 * larger(hidden, s->q_lora_rank) +
                   4 * (first + s->kv_lora_rank + s->qk_rope_head_dim) +
                   (s->q_lora_rank ? 4 * queries : 0) + 2 * queries + 2 * values +
                   (split ? 4 * hidden : 0) + 2 * (int64_t)s->intermediate_size + 8 + 4) +
           smaller(rows, kGatedRows) * 8 * (int64_t)s->intermediate_size +
           4 * logits * s->vocab_size + 8 * context * (s->rope_period / 2);
}

static int64_t decode_bytes(const model_shape *s, kv_format arm, int64_t batch) {
    int64_t rows = batch * s->num_attention_heads, rank = s->kv_lora_rank,
            rope = s->qk_rope_head_dim;
    return rows * ((arm == CACHE_FP8 ? rank + 2 * rope + 4 : 2 * (rank + rope)) + 2 * rank);
}

static int64_t chunk_bytes(const model_shape *s, int64_t context) {
    int64_t kv = s->qk_nope_head_dim + s->v_head_dim,
            at_once = smaller(larger(kExpanded / (context * kv * 2), 1), s->num_attention_heads);
    return 2 * context * (s->kv_lora_rank + s->qk_rope_head_dim + kv * at_once);
}

/* The quantised operand of a product of e4m3 weights: a code for each number, and a scale for each
 * kScaleBlock numbers. */
static int64_t operand_bytes(const model_shape *s, int64_t layers, int64_t rows) {
    int64_t pairs = layers ? rows * (s->num_experts_per_tok + s->n_shared_experts) : 0,
            values = (int64_t)s->num_attention_heads * s->v_head_dim,
            widest = larger(larger(s->hidden_size, s->q_lora_rank),
                            larger(s->intermediate_size, values)),
            of_pairs = larger(s->hidden_size, s->moe_intermediate_size);
    return rows <= kFewRows ? 0
                            : larger(rows * widest, pairs * of_pairs) +
                                  4 * larger(rows * blocks_of(widest), pairs * blocks_of(of_pairs));
}

static int64_t expert_buffers(const model_shape *s, bool e4m3, int64_t layers, int64_t rows) {
    int64_t slots = s->num_experts_per_tok + s->n_shared_experts, pairs = rows * slots,
            all = s->n_routed_experts + s->zero_expert_num,
            experts = s->n_routed_experts + s->n_shared_experts;
    if (!layers)
        return 0;
    return pairs * ((e4m3 ? 0 : 2 * (int64_t)s->hidden_size) + 2 * s->moe_intermediate_size +
                    4 * (int64_t)s->hidden_size + 16) +
           rows * (4 * all + 4 * layers * s->num_experts_per_tok + 4) +
           (s->zero_expert_num ? 4 * rows * s->hidden_size : 0) + 4 * (3 * experts + 3);
}

predict_memory predict_memory_of(const model_shape *s, const predict_layout *l, bool e4m3,
                                 kv_format arm, int64_t rows, int64_t context) {
    counts c = count_layers(s);
    model_shape rank = *s;
    int parts = l->ranks.parts;
    int64_t words = kMostChunks + rows + rows + 1, tables = rows + kMostChunks,
            experts = l->ranks.whole_experts ? s->n_routed_experts / predict_gpus(l)
                                             : s->n_routed_experts;
    rank.num_attention_heads /= parts;
    rank.intermediate_size /= parts;
    rank.moe_intermediate_size /= l->ranks.whole_experts ? 1 : parts;
    mla_page_bytes page =
        mla_cache_page_bytes(cache_precision(arm), s->kv_lora_rank, s->qk_rope_head_dim);
    int64_t readings = rows + kMostChunks; /* the results of reading.h: 24 bytes and a list */
    return (predict_memory){.weights = weight_bytes(&rank, experts, e4m3),
                            .buffers =
                                4 * (words + tables * pages_of(context)) +
                                row_bytes(&rank, parts > 1, rows + 1, context) +
                                decode_bytes(&rank, arm, rows) + chunk_bytes(&rank, context) +
                                expert_buffers(&rank, e4m3, (int64_t)c.moe, rows + 1) +
                                (e4m3 ? operand_bytes(&rank, (int64_t)c.moe, rows + 1) : 0) +
                                readings * (READING_MOST * 8 + 24 + (int64_t)sizeof(reading)),
                            .cache = rows * pages_of(context) * (int64_t)c.blocks *
                                     (int64_t)(page.content + page.rope + page.scale)};
}

int64_t predict_largest(const model_shape *s, const predict_layout *l, bool e4m3, kv_format arm,
                        int64_t context, int64_t bytes, int64_t most) {
    int64_t fits = 0, over = most + 1;
    while (over - fits > 1) {
        int64_t rows = fits + (over - fits) / 2;
        predict_memory m = predict_memory_of(s, l, e4m3, arm, rows, context);
        if (predict_memory_sum(&m) <= bytes)
            fits = rows;
        else
            over = rows;
    }
    return fits;
}
