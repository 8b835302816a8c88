#include "harness/bench/predict_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/model/reading.h"
#include "harness/bench/predict_routing.h"

enum {
    kScaleRows = 8, /* rows and columns of a block of e4m3 numbers on the device */
    kScaleBlock = 128,
    kMostChunks = 64, /* this and the next three constants equal those in
                         generator/local/cuda/model.h */
    kLogitRows = 256,
    kGatedRows = 512,
    kFewRows = 8,
    kPartialSums = (132 * 128 * 256 + 132) * 4, /* bytes, with e4m3 weights: a tile of FP32 sums and
                                                   a mark for each SM (cuda_gemm.h) */
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

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Whether a rank computes its experts for the rows of other replicas, too. */
static bool gathers_rows(const predict_layout *l) {
    return l->ranks.whole_experts && l->ranks.replicas > 1;
}

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

/* Numbers of the products of one attention on a rank with @heads heads. W_UK is not included. */
static double attention_numbers(const model_shape *s, double heads) {
    double hidden = s->hidden_size, queries = heads * (s->qk_nope_head_dim + s->qk_rope_head_dim),
           q = s->q_lora_rank ? s->q_lora_rank * (hidden + queries) : hidden * queries;
    return q + hidden * (s->kv_lora_rank + s->qk_rope_head_dim) +
           (double)s->kv_lora_rank * heads * s->v_head_dim + heads * s->v_head_dim * hidden;
}

/* Launches of the two products of a feed-forward. With more than kFewRows rows, the operands of
 * e4m3 weights are quantised first, and the gate of BF16 weights is a launch of its own. */
static double feed_forward_launches(bool e4m3, double rows) {
    if (rows <= kFewRows)
        return 2;
    return e4m3 ? 4 : 3;
}

/* The launches of kernels that belong neither to attention nor to experts: norm, input, values and
 * output of each block; norm and product of q_lora; norm and products of a dense feed-forward;
 * embedding, last norm, logits and choice of a token. Values and logits are products of BF16
 * weights. */
static double rest_launches(const model_shape *s, const counts *c, bool e4m3, double rows) {
    double block = s->q_lora_rank ? 6 : 4;
    if (e4m3 && rows > kFewRows)
        block += s->q_lora_rank ? 3 : 2;
    return c->blocks * block + c->dense * (1 + feed_forward_launches(e4m3, rows)) + 4;
}

/* Launches of attention in each block: projection with append, and the attention kernel. Launches
 * of a layer with experts: choice and two products; with more than kFewRows rows, a gather of the
 * rows. */
static double shared_launches(const counts *c, double rows) {
    return 2 * c->blocks + (rows > kFewRows ? 4 : 3) * c->moe;
}

/* The launches of a layer with experts that one GPU does not have
 * (generator/local/cuda/experts.cu). A rank joins the outputs of experts in a launch of its own.
 * With EP, it also sorts the rows that it gets, and the shared experts have products like a dense
 * feed-forward. If these rows come from other replicas and the replicas are split, a buffer is set
 * to zero first. */
static double expert_launches(const model_shape *s, const predict_layout *l, bool e4m3,
                              double rows) {
    double shared = s->n_shared_experts ? feed_forward_launches(e4m3, rows) : 0;
    if (l->ranks.whole_experts)
        return 2 + shared + (gathers_rows(l) && l->ranks.parts > 1);
    return l->ranks.parts > 1;
}

typedef struct {
    double all, routed; /* number of experts of a layer; how many of the experts that a row chooses
                           have weights, on average */
    double one, number; /* count of the numbers in an expert's weights; bytes of one number */
    double router;      /* bytes of the router's weights */
} expert_sizes;

/* The experts of a rank of a layout with EP. Shared experts are a feed-forward of their own, for
 * the rows of the replica. */
static void set_whole_experts(predict_work *w, const model_shape *s, const predict_layout *l,
                              const expert_sizes *e) {
    double parts = l->ranks.parts, gpus = predict_gpus(l), shared = s->n_shared_experts,
           read = predict_experts(s->n_routed_experts / gpus, e->all, s->num_experts_per_tok,
                                  w->expert_rows),
           pairs = w->expert_rows * e->routed / gpus;
    w->experts = w->moe_layers * (read + shared);
    w->expert_bytes = w->moe_layers * (e->router + e->number * e->one * (read + shared / parts));
    w->expert_flop = w->moe_layers * 2 * e->one * (pairs + w->rows * shared / parts);
    w->expert_moved = w->moe_layers * pairs * s->hidden_size;
    w->more_experts = w->moe_layers * predict_busiest_rank(s, predict_gpus(l), w->expert_rows);
    w->more_bytes = w->more_experts * e->number * e->one;
}

static void set_experts(predict_work *w, const model_shape *s, const predict_layout *l, bool e4m3,
                        double experts) {
    double all = s->n_routed_experts + s->zero_expert_num, parts = l->ranks.parts,
           shared = s->n_shared_experts;
    const expert_sizes e = {.all = all,
                            .routed = s->num_experts_per_tok * s->n_routed_experts / fmax(all, 1),
                            .one = 3.0 * s->hidden_size * s->moe_intermediate_size,
                            .number = predict_number_bytes(e4m3),
                            .router = 4.0 * s->hidden_size * all};
    w->expert_launches = w->moe_layers * expert_launches(s, l, e4m3, w->rows);
    w->expert_rows = w->rows * (l->ranks.whole_experts ? l->ranks.replicas : 1);
    if (l->ranks.whole_experts) {
        set_whole_experts(w, s, l, &e);
        return;
    }
    if (isnan(experts))
        experts = predict_experts(s->n_routed_experts, all, s->num_experts_per_tok, w->rows);
    w->experts = w->moe_layers * (experts + shared);
    w->expert_bytes = w->moe_layers * e.router + w->experts * e.number * e.one / parts;
    w->missing_bytes = w->experts * e.number * e.one * (1 - 1 / parts);
    w->expert_flop = w->moe_layers * 2 * e.one / parts * w->rows * (e.routed + shared);
    w->expert_moved = w->moe_layers * w->rows * (e.routed + shared) * s->hidden_size;
}

/* Bytes of a row that goes to experts: BF16 numbers, then a number and a weight for each chosen
 * expert, in units of 16 bytes (message_row() in generator/local/cuda/rows.h). */
static int64_t message_bytes(const model_shape *s) {
    return (2 * (int64_t)s->hidden_size + 8 * s->num_experts_per_tok + 15) / 16 * 16;
}

static void set_exchange(predict_work *w, const model_shape *s, const predict_layout *l,
                         const counts *c) {
    int64_t near = smaller(l->ranks.replicas, PREDICT_NODE / l->ranks.parts);
    double here = (double)s->n_routed_experts / predict_gpus(l);
    w->sum_bytes = w->scatter_bytes = w->rows * s->hidden_size * 4;
    w->sums = l->ranks.parts > 1 ? c->blocks + c->dense + c->moe : 0;
    w->gathers = gathers_rows(l) ? c->moe : 0;
    w->gather_bytes = w->rows * (double)message_bytes(s);
    w->reach = w->gathers > 0 ? predict_reach(s, here) : 1;
    w->node_reach = w->gathers > 0 ? predict_reach(s, here * (double)near) : 1;
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
                      .e4m3 = e4m3,
                      .heads = (int)heads,
                      .blocks = c.blocks,
                      .moe_layers = c.moe,
                      .launches = rest_launches(s, &c, e4m3, rows),
                      .cached = c.blocks * rows * (double)context};
    w.query_bytes = c.blocks * 2 * heads * s->qk_nope_head_dim * s->kv_lora_rank;
    w.rest_bytes = number * (rest - values) + 2 * (values + head);
    w.rest_flop = 2 * rows * (rest + head);
    set_experts(&w, s, l, e4m3, experts);
    w.all_launches = w.launches + shared_launches(&c, rows) + w.expert_launches;
    set_exchange(&w, s, l, &c);
    return w;
}

/* ---- memory ---- */

/* What a rank holds of a model. */
typedef struct {
    model_shape shape;  /* the model's shape with the rank's heads and inner widths */
    bool e4m3, divided; /* weights; whether experts are divided over ranks (EP) */
    int64_t moe_layers;
    int64_t experts;      /* number of experts on the rank, with the shared ones unless experts are
                             divided */
    int64_t slots;        /* choices that a row makes among these experts */
    int64_t shared_inner; /* if experts are divided: the rank's inner width of the shared ones */
    int64_t gathered;     /* number of replicas whose rows go to the experts */
    int64_t outputs;      /* rows of outputs that are added up over ranks, for each row */
} rank_model;

static rank_model rank_model_of(const model_shape *s, const predict_layout *l, bool e4m3) {
    int parts = l->ranks.parts;
    bool divided = l->ranks.whole_experts;
    int64_t shared = divided ? 0 : s->n_shared_experts;
    rank_model r = {.shape = *s,
                    .e4m3 = e4m3,
                    .divided = divided,
                    .moe_layers = (int64_t)count_layers(s).moe,
                    .experts = s->n_routed_experts / (divided ? predict_gpus(l) : 1) + shared,
                    .slots = s->num_experts_per_tok + shared,
                    .gathered = gathers_rows(l) ? l->ranks.replicas : 1};
    if (parts > 1 || divided)
        r.outputs = r.gathered + (parts > 1 && r.gathered > 1);
    if (divided)
        r.shared_inner = (int64_t)s->n_shared_experts * s->moe_intermediate_size / parts;
    r.shape.num_attention_heads /= parts;
    r.shape.intermediate_size /= parts;
    r.shape.moe_intermediate_size /= divided ? 1 : parts;
    return r;
}

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

/* Gate, up and down projections of a feed-forward. */
static int64_t feed_forward_bytes(int64_t hidden, int64_t inner, bool e4m3) {
    return matrix_bytes(2 * inner, hidden, e4m3) + matrix_bytes(hidden, inner, e4m3);
}

static int64_t expert_bytes(const rank_model *r) {
    const model_shape *s = &r->shape;
    int64_t hidden = s->hidden_size, all = s->n_routed_experts + s->zero_expert_num;
    return 4 * all * hidden + (shape_has_router_bias(s) ? 4 * all : 0) +
           r->experts * feed_forward_bytes(hidden, s->moe_intermediate_size, r->e4m3) +
           (r->shared_inner ? feed_forward_bytes(hidden, r->shared_inner, r->e4m3) : 0);
}

static int64_t weight_bytes(const rank_model *r) {
    const model_shape *s = &r->shape;
    counts c = count_layers(s);
    int64_t hidden = s->hidden_size, table = 2 * (int64_t)s->vocab_size * hidden,
            dense = feed_forward_bytes(hidden, s->intermediate_size, r->e4m3);
    return table * (s->tie_word_embeddings ? 1 : 2) + 4 * hidden +
           (int64_t)c.blocks * attention_bytes(s, r->e4m3) + (int64_t)c.dense * dense +
           (int64_t)c.moe * expert_bytes(r);
}

static int64_t blocks_of(int64_t cols) {
    return (cols + kScaleBlock - 1) / kScaleBlock;
}

static int64_t pages_of(int64_t tokens) {
    return (tokens + MLA_PAGE - 1) / MLA_PAGE;
}

/* The widest operand of the feed-forward layers outside the routed experts. */
static int64_t widest_inner(const rank_model *r) {
    return larger(r->shape.intermediate_size, r->shared_inner);
}

/* The buffers of the rows outside the experts, and the outputs that are added up over ranks. */
static int64_t row_bytes(const rank_model *r, int64_t rows, int64_t context) {
    const model_shape *s = &r->shape;
    int64_t hidden = s->hidden_size, heads = s->num_attention_heads, inner = widest_inner(r),
            queries = heads * (s->qk_nope_head_dim + s->qk_rope_head_dim),
            values = heads * s->v_head_dim, first = s->q_lora_rank ? s->q_lora_rank : queries,
            logits = larger(kLogitRows, rows);
    return rows *
               (4 * hidden + 2 * larger(hidden, s->q_lora_rank) +
                4 * (first + s->kv_lora_rank + s->qk_rope_head_dim) +
                (s->q_lora_rank ? 4 * queries : 0) + 2 * queries + 2 * values + 2 * inner + 8 + 4) +
           4 * r->outputs * rows * hidden + smaller(rows, kGatedRows) * 8 * inner +
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

/* The largest number of pairs of a row and an expert on the rank. */
static int64_t most_pairs(const rank_model *r, int64_t rows) {
    return r->moe_layers ? r->gathered * rows * smaller(r->slots, r->experts) : 0;
}

/* The operand of a product of e4m3 weights. It has a code for each number and a scale for each
 * kScaleBlock numbers, or, in products of few rows, two bytes for each number and a factor for each
 * row. */
static int64_t operand_bytes(const rank_model *r, int64_t rows) {
    const model_shape *s = &r->shape;
    int64_t pairs = most_pairs(r, rows), values = (int64_t)s->num_attention_heads * s->v_head_dim,
            widest =
                larger(larger(s->hidden_size, s->q_lora_rank), larger(widest_inner(r), values)),
            of_pairs = larger(s->hidden_size, s->moe_intermediate_size),
            few = smaller(r->gathered * rows, kFewRows),
            few_pairs = r->moe_layers ? few * smaller(r->slots, r->experts) : 0;
    if (!r->e4m3)
        return 0;
    return kPartialSums +
           larger(larger(rows * widest, pairs * of_pairs),
                  2 * larger(few * widest, few_pairs * s->moe_intermediate_size)) +
           4 * larger(larger(rows * blocks_of(widest), pairs * blocks_of(of_pairs)),
                      larger(few, few_pairs));
}

/* The rows of the experts. If they are divided over ranks, the rows on their way to them, too. */
static int64_t expert_buffers(const rank_model *r, int64_t rows) {
    const model_shape *s = &r->shape;
    int64_t pairs = most_pairs(r, rows), choices = r->gathered * rows * r->slots,
            all = s->n_routed_experts + s->zero_expert_num,
            messages = r->divided ? 1 + (r->gathered > 1 ? r->gathered : 0) : 0;
    if (!r->moe_layers)
        return 0;
    return pairs * ((r->e4m3 ? 0 : 2 * (int64_t)s->hidden_size) + 2 * s->moe_intermediate_size +
                    4 * (int64_t)s->hidden_size + 4) +
           12 * choices + messages * rows * message_bytes(s) +
           rows * (4 * all + 4 * r->moe_layers * s->num_experts_per_tok + 4) +
           (s->zero_expert_num ? 4 * rows * s->hidden_size : 0) + 4 * (3 * r->experts + 3);
}

predict_memory predict_memory_of(const model_shape *s, const predict_layout *l, bool e4m3,
                                 kv_format arm, int64_t rows, int64_t context) {
    const rank_model r = rank_model_of(s, l, e4m3);
    int64_t words = kMostChunks + rows + rows + 1, tables = rows + kMostChunks,
            readings = rows + kMostChunks; /* the results of reading.h: 24 bytes and a list */
    mla_page_bytes page =
        mla_cache_page_bytes(cache_precision(arm), s->kv_lora_rank, s->qk_rope_head_dim);
    return (predict_memory){
        .weights = weight_bytes(&r),
        .buffers = 4 * (words + tables * pages_of(context)) + row_bytes(&r, rows + 1, context) +
                   decode_bytes(&r.shape, arm, rows) + chunk_bytes(&r.shape, context) +
                   expert_buffers(&r, rows + 1) + operand_bytes(&r, rows + 1) +
                   readings * (READING_MOST * 8 + 24 + (int64_t)sizeof(reading)),
        .cache = rows * pages_of(context) * (int64_t)count_layers(s).blocks *
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
