#include "harness/bench/model_layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/model/rope.h"
#include "harness/bench/layer_bound.h"
#include "harness/bench/layer_values.h"
#include "kernels/formats.h"

/* What was copied while one model decoded the studied token. */
typedef struct {
    const model_shape *shape;
    local_model *model;
    const char *name;
    float *absorbed; /* [blocks][heads][d_c + d_r] absorbed queries; only in the source */
    double *nope;    /* [blocks][heads] norms of the queries without RoPE; only in the source */
    float *x;        /* [blocks][hidden] residual stream after each block */
} watched;

struct model_layers {
    watched *run; /* [n] */
    int n, source, blocks;
    arena mem; /* owns `run` and its arrays */
    parallel *pool;
};

static int width_of(const model_shape *s) {
    return s->kv_lora_rank + s->qk_rope_head_dim;
}

/* ---- copying ---- */

static void take_query(watched *w, const runner_block_view *v) {
    const model_shape *s = w->shape;
    int heads = s->num_attention_heads, qk = s->qk_nope_head_dim + s->qk_rope_head_dim;
    int64_t n = (int64_t)heads * width_of(s);
    memcpy(w->absorbed + v->block * n, v->absorbed, (size_t)n * sizeof *w->absorbed);
    for (int h = 0; h < heads; h++) {
        double sum = 0;
        for (int d = 0; d < s->qk_nope_head_dim; d++)
            sum += pow((double)v->query[h * qk + d], 2);
        w->nope[v->block * heads + h] = sqrt(sum);
    }
}

static void take_block(void *ctx, const runner_block_view *v) {
    watched *w = ctx;
    int64_t n = w->shape->hidden_size;
    if (w->absorbed && v->absorbed)
        take_query(w, v);
    memcpy(w->x + v->block * n, v->x, (size_t)n * sizeof *w->x);
}

void model_layers_start(model_layers *l) {
    for (int i = 0; i < l->n; i++)
        runner_watch_blocks(l->run[i].model->runner, take_block, &l->run[i]);
}

void model_layers_stop(model_layers *l) {
    for (int i = 0; i < l->n; i++)
        runner_watch_blocks(l->run[i].model->runner, NULL, NULL);
}

/* ---- creating and freeing ---- */

static snap_status watch(arena *mem, watched *w, local_model *m, const char *name, bool source,
                         snap_err *err) {
    const model_shape *s = &m->shape;
    size_t blocks = (size_t)m->weights.blocks, heads = (size_t)s->num_attention_heads;
    *w = (watched){.shape = s, .model = m, .name = name};
    w->x = arena_alloc(mem, blocks * (size_t)s->hidden_size, sizeof *w->x);
    if (source) {
        w->absorbed = arena_alloc(mem, blocks * heads * (size_t)width_of(s), sizeof *w->absorbed);
        w->nope = arena_alloc(mem, blocks * heads, sizeof *w->nope);
    }
    return w->x && (!source || (w->absorbed && w->nope))
               ? SNAP_OK
               : err_set(err, SNAP_E_NOMEM, "out of memory for watching %zu layers", blocks);
}

snap_status model_layers_create(model_layers **out, local_model *models, const char *const *names,
                                int n, int source, int threads, snap_err *err) {
    snap_status st = SNAP_OK;
    *out = NULL;
    model_layers *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, SNAP_E_NOMEM, "out of memory for watching layers");
    l->source = source;
    l->blocks = models[0].weights.blocks;
    l->run = arena_alloc(&l->mem, (size_t)n, sizeof *l->run);
    if (!l->run) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for watching layers");
        goto cleanup;
    }
    for (; l->n < n; l->n++)
        TRY(watch(&l->mem, &l->run[l->n], &models[l->n], names[l->n], l->n == source, err));
    TRY(parallel_create(&l->pool, threads, err));
    *out = l;
    l = NULL;
cleanup:
    model_layers_free(l);
    return st;
}

void model_layers_free(model_layers *l) {
    if (!l)
        return;
    model_layers_stop(l);
    parallel_free(l->pool);
    arena_release(&l->mem);
    free(l);
}

/* ---- rows ---- */

typedef struct {
    const model_layers *l;
    int layer;
    oracle_step step;
    const uint16_t *rows; /* bf16 [context][d_c + d_r] */
    float *q, *kv;        /* owned */
    oracle_result truth, now;
    layer_values *values;
    model_fidelity_emit emit;
    void *ctx;
} study;

static const char *const formats[MODEL_LAYERS_FORMATS] = {"bf16", "snapmla", "A", "B",   "C",
                                                          "D",    "E",       "F", "noPV"};

static model_record row_of(const study *t, const char *kind) {
    model_record row = model_record_new(kind);
    row.reference = t->l->run[0].name;
    row.layer = t->layer;
    row.context = t->step.context;
    return row;
}

static snap_status emit_configs(study *t, snap_err *err) {
    snap_status st = SNAP_OK;
    const oracle_step *s = &t->step;
    TRY(oracle_exact(s, &t->truth, err));
    for (int i = 0; i < MODEL_LAYERS_FORMATS; i++) {
        cache_format f;
        snap_err unfit = {0};
        st = cache_format_load(&f, formats[i], s->d_c, s->d_r, &unfit);
        if (st == SNAP_E_SHAPE)
            continue; /* the scales of D and E cover 128 columns */
        if (st != SNAP_OK)
            TRY(err_set(err, st, "%s", unfit.text));
        TRY(oracle_attend(s, &f, &t->now, err));
        oracle_errors e = oracle_compare(&t->now, &t->truth, s->heads, s->d_c);
        model_record row = row_of(t, "layer");
        row.config = f.name;
        row.rmse = e.rmse;
        row.cosine_diff = e.cosine_diff;
        row.rel_l2 = e.rel_l2;
        row.lse_error = e.lse_error;
        row.max_abs = e.max_abs;
        TRY(t->emit(t->ctx, &row, err));
    }
cleanup:
    return st;
}

static snap_status emit_values(const study *t, const char *part, int first, int width,
                               snap_err *err) {
    const oracle_step *s = &t->step;
    model_record row = row_of(t, "values");
    arena mem = {0};
    memset(t->values, 0, sizeof *t->values);
    layer_values_count(t->values, t->rows, s->context, s->d_c + s->d_r, first, width);
    row.part = part;
    snap_status st = layer_values_fill(t->values, &mem, &row)
                         ? t->emit(t->ctx, &row, err)
                         : err_set(err, SNAP_E_NOMEM, "out of memory for a row");
    arena_release(&mem);
    return st;
}

static snap_status emit_bound(const study *t, snap_err *err) {
    layer_bound b;
    const watched *w = &t->l->run[t->l->source];
    const attention_weights *a = &w->model->weights.block[t->layer].attention;
    snap_status st = layer_bound_measure(&b, &t->step, w->nope + (int64_t)t->layer * t->step.heads,
                                         a, w->shape, &t->truth, err);
    if (st != SNAP_OK)
        return st;
    model_record row = row_of(t, "bound");
    row.logit_error = b.logit_error;
    row.logit_bound = b.logit_bound;
    row.value_error = b.value_error;
    row.value_bound = b.value_bound;
    return t->emit(t->ctx, &row, err);
}

static snap_status emit_depth(const study *t, snap_err *err) {
    snap_status st = SNAP_OK;
    const model_layers *l = t->l;
    int64_t n = l->run[0].shape->hidden_size;
    const float *first = l->run[0].x + t->layer * n;
    for (int i = 1; i < l->n && st == SNAP_OK; i++) {
        const float *x = l->run[i].x + t->layer * n;
        double apart = 0, size = 0;
        for (int64_t d = 0; d < n; d++) {
            apart += pow((double)x[d] - (double)first[d], 2);
            size += pow((double)first[d], 2);
        }
        model_record row = row_of(t, "depth");
        row.precision = l->run[i].name;
        row.rel_l2 = sqrt(apart / size);
        st = t->emit(t->ctx, &row, err);
    }
    return st;
}

/* ---- the layers at one token ---- */

static snap_status study_init(study *t, snap_err *err) {
    oracle_step *s = &t->step;
    const watched *w = &t->l->run[t->l->source];
    const model_shape *shape = w->shape;
    s->pool = t->l->pool;
    s->heads = shape->num_attention_heads;
    s->d_c = shape->kv_lora_rank;
    s->d_r = shape->qk_rope_head_dim;
    s->softmax_scale = rope_softmax_scale(shape);
    size_t width = (size_t)width_of(shape);
    t->q = calloc((size_t)s->heads * width, sizeof *t->q);
    t->kv = calloc((size_t)s->context * width, sizeof *t->kv);
    t->values = malloc(sizeof *t->values);
    s->q = t->q;
    s->kv = t->kv;
    if (!t->q || !t->kv || !t->values)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld tokens of a layer",
                       (long long)s->context);
    snap_status st = oracle_result_init(&t->truth, s->heads, s->d_c, err);
    return st == SNAP_OK ? oracle_result_init(&t->now, s->heads, s->d_c, err) : st;
}

static void study_release(study *t) {
    free(t->q);
    free(t->kv);
    free(t->values);
    oracle_result_release(&t->truth);
    oracle_result_release(&t->now);
}

/* Copies the query of the layer, rounded to BF16 as an arm gets it, and the layer's cached rows,
 * which lie in the pages 0, 1, 2, ... */
static void take_numbers(study *t) {
    const watched *w = &t->l->run[t->l->source];
    int64_t width = width_of(w->shape), n = t->step.heads * width;
    const float *query = w->absorbed + t->layer * n;
    for (int64_t i = 0; i < n; i++)
        t->q[i] = bf16_to_f32(bf16_from_f32(query[i]));
    t->rows = kv_cache_layer(runner_cache(w->model->runner), t->layer)->content;
    for (int64_t i = 0; i < t->step.context * width; i++)
        t->kv[i] = bf16_to_f32(t->rows[i]);
}

static snap_status emit_layer(study *t, snap_err *err) {
    snap_status st;
    TRY(emit_depth(t, err));
    if (t->l->source < 0)
        return SNAP_OK;
    take_numbers(t);
    TRY(emit_configs(t, err));
    TRY(emit_values(t, "content", 0, t->step.d_c, err));
    TRY(emit_values(t, "rope", t->step.d_c, t->step.d_r, err));
    TRY(emit_bound(t, err));
cleanup:
    return st;
}

snap_status model_layers_emit(const model_layers *l, int64_t context, model_fidelity_emit emit,
                              void *ctx, const volatile sig_atomic_t *cancel, snap_err *err) {
    snap_status st = SNAP_OK;
    study t = {.l = l, .step = {.context = context}, .emit = emit, .ctx = ctx};
    if (l->source >= 0)
        TRY(study_init(&t, err));
    for (; t.layer < l->blocks; t.layer++) {
        if (cancel && *cancel)
            TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
        TRY(emit_layer(&t, err));
    }
cleanup:
    study_release(&t);
    return st;
}
