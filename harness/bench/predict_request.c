#include "harness/bench/predict_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/ranks/ranks.h"
#include "harness/bench/e2e.h"
#include "harness/bench/model_config.h"
#include "harness/record/provenance.h"

snap_status predict_request_layout(const predict_request *q, const char *text, predict_layout *l,
                                   snap_err *err) {
    snap_status st = predict_layout_parse(l, text, err);
    if (st == SNAP_OK && l->ranks.parts > PREDICT_WIDEST)
        st = err_set(err, SNAP_E_USAGE, "layout %s: TP is at most %d, the GPUs of one node", text,
                     PREDICT_WIDEST);
    return st == SNAP_OK ? predict_layout_check(l, &q->shape, err) : st;
}

static snap_status add_layout(void *ctx, const char *part, snap_err *err) {
    predict_request *q = ctx;
    if (q->n_layouts == PREDICT_LAYOUTS)
        return err_set(err, SNAP_E_USAGE, "--layout lists more than %d layouts", PREDICT_LAYOUTS);
    snap_status st = predict_request_layout(q, part, &q->layouts[q->n_layouts], err);
    q->n_layouts += st == SNAP_OK;
    return st;
}

static snap_status add_batch(void *ctx, const char *part, snap_err *err) {
    predict_request *q = ctx;
    int64_t v = 0;
    bool largest = strcmp(part, "max") == 0;
    if (!largest && (!text_to_int(part, &v) || v < 1 || v > (int64_t)E2E_MOST_BATCH * RANKS_MOST))
        return err_set(err, SNAP_E_USAGE, "--batch must list integers or 'max', got '%s'", part);
    if (largest && q->o->memory_gb <= 0)
        return err_set(err, SNAP_E_USAGE, "--batch max needs --gpu-memory with --predict");
    if (q->n_batches == GRID_AXIS)
        return err_set(err, SNAP_E_USAGE, "--batch lists more than %d numbers", GRID_AXIS);
    q->batches[q->n_batches++] = v;
    return SNAP_OK;
}

static snap_status add_arm(void *ctx, const char *part, snap_err *err) {
    predict_request *q = ctx;
    if (q->n_arms == 2)
        return err_set(err, SNAP_E_USAGE, "--arms lists more than 2 arms");
    kv_format *arm = &q->arms[q->n_arms++];
    snap_status st = kv_format_parse(part, arm, err);
    if (st == SNAP_OK && *arm != CACHE_BF16 && *arm != CACHE_FP8)
        st = err_set(err, SNAP_E_USAGE, "--predict knows the arms bf16 and fp8, got '%s'", part);
    return st;
}

static snap_status check_options(const predict_request *q, snap_err *err) {
    const predict_options *o = q->o;
    if (!o->model_config)
        return err_set(err, SNAP_E_USAGE, "bench model needs --model-config");
    if (o->against && (o->layouts || o->gpus))
        return err_set(err, SNAP_E_USAGE,
                       "--against takes the layouts of its files, without --layout and --gpus");
    if (o->layouts && o->gpus)
        return err_set(err, SNAP_E_USAGE, "--layout and --gpus exclude each other");
    if (strcmp(o->weights, "bf16") != 0 && strcmp(o->weights, "e4m3") != 0)
        return err_set(err, SNAP_E_USAGE, "--weights must be bf16 or e4m3, got '%s'", o->weights);
    return SNAP_OK;
}

snap_status predict_request_read(predict_request *q, const predict_options *o, snap_err *err) {
    snap_status st;
    q->o = o;
    TRY(check_options(q, err));
    TRY(model_config_open(&q->shape, o->model_config, err));
    q->e4m3 = strcmp(o->weights, "e4m3") == 0 || q->shape.fp8_block == 128;
    q->model = provenance_cut_folders(o->model_config);
    if (!q->model)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a prediction"));
    TRY(bench_parse_list(o->contexts, "--context", 1, q->shape.max_position_embeddings, q->contexts,
                         GRID_AXIS, &q->n_contexts, err));
    TRY(text_split(o->batches, ',', "--batch", add_batch, q, err));
    TRY(text_split(o->arms, ',', "--arms", add_arm, q, err));
    if (o->gpus)
        TRY(bench_parse_list(o->gpus, "--gpus", 1, RANKS_MOST, q->gpus, GRID_AXIS, &q->n_gpus,
                             err));
    else if (!o->against)
        TRY(text_split(o->layouts ? o->layouts : "DP1", ',', "--layout", add_layout, q, err));
cleanup:
    return st;
}

void predict_request_release(predict_request *q) {
    free(q->model);
}
