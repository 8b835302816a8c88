#include "harness/bench/model_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/cuda/sums.h"
#include "harness/bench/grid.h"
#include "harness/bench/model_config.h"
#include "harness/record/device_results.h"
#include "harness/record/provenance.h"
#include "harness/record/step.h"

enum { kProbeRounds = 3 };
static const double kProbeSeconds = 0.3;

/* ---- from options to a request ---- */

typedef struct {
    e2e_options run;
    model_shape shape; /* of a rank */
    gpu *gpu;          /* for the energy; NULL = none */
    energy_meter *meter;
    int64_t contexts[GRID_AXIS], batches[GRID_AXIS];
    results *results;
} request;

static snap_status add_batch(void *ctx, const char *part, snap_err *err) {
    request *r = ctx;
    int64_t v = 0;
    bool largest = strcmp(part, "max") == 0;
    if (!largest && (!text_to_int(part, &v) || v < 1 || v > E2E_MOST_BATCH))
        return err_set(err, SNAP_E_USAGE,
                       "--batch must list integers within 1..%d or 'max', got '%s'", E2E_MOST_BATCH,
                       part);
    if (r->run.n_batches == GRID_AXIS)
        return err_set(err, SNAP_E_USAGE, "--batch lists more than %d numbers", GRID_AXIS);
    r->batches[r->run.n_batches++] = v;
    return SNAP_OK;
}

static snap_status add_arm(void *ctx, const char *part, snap_err *err) {
    request *r = ctx;
    if (r->run.n_arms == 2)
        return err_set(err, SNAP_E_USAGE, "--arms lists more than 2 arms");
    kv_format *arm = &r->run.arms[r->run.n_arms++];
    snap_status st = kv_format_parse(part, arm, err);
    if (st == SNAP_OK && *arm == CACHE_ROUNDED)
        return err_set(err, SNAP_E_USAGE,
                       "--arms: '%s' is a format that is stored as bf16, so its time would be that "
                       "of bf16 (bf16, fp8)",
                       part);
    return st;
}

static snap_status read_request(request *r, const model_bench_options *o, model_bench *m,
                                snap_err *err) {
    snap_status st;
    if (!o->model_config)
        return err_set(err, SNAP_E_USAGE, "bench model needs --model-config");
    TRY(model_config_open(&r->shape, o->model_config, err));
    if (o->energy_s != 0 && o->energy_s < STEP_ENERGY_LEAST_S)
        TRY(err_set(err, SNAP_E_USAGE,
                    "--energy must be 0 or at least %g seconds, because the energy counter moves "
                    "only about ten times a second",
                    STEP_ENERGY_LEAST_S));
    TRY(bench_parse_list(o->contexts, "--context", 1, r->shape.max_position_embeddings, r->contexts,
                         GRID_AXIS, &r->run.n_contexts, err));
    TRY(text_split(o->batches, ',', "--batch", add_batch, r, err));
    TRY(text_split(o->arms, ',', "--arms", add_arm, r, err));
    r->run.shape = &r->shape;
    r->run.contexts = r->contexts;
    r->run.batches = r->batches;
    r->run.prompt = o->prompt;
    r->run.cache_bytes = (int64_t)(o->memory_gb * 1e9);
    r->run.seconds = o->seconds;
    r->run.ceilings = &m->ceilings.best;
    r->run.cancel = o->cancel;
    r->run.parts = o->parts;
    r->run.energy_s = o->energy_s;
    r->run.group = o->group;
    r->run.layout = (rank_layout){1, 1, false};
    if (o->layout)
        TRY(rank_layout_parse(&r->run.layout, o->layout, err));
    TRY(rank_layout_shape(&r->shape, &r->run.layout, err));
    m->layout = r->run.layout;
    m->ranks = o->group ? ranks_size(o->group) : 1;
cleanup:
    return st;
}

/* ---- rows ---- */

double model_bench_tokens(const e2e_row *r) {
    return r->prompt ? (double)r->context * r->batch : r->batch;
}

double model_bench_tokens_s(const e2e_row *r) {
    return model_bench_tokens(r) / r->median_ns * 1e9;
}

double model_bench_joules(const e2e_row *r) {
    return r->energy.steps ? r->energy.joules / model_bench_tokens(r) : (double)NAN;
}

double model_bench_gain(const e2e_row *rows, int n, int at) {
    const e2e_row *r = &rows[at];
    for (int i = 0; i < n && r->arm == CACHE_FP8; i++)
        if (rows[i].arm == CACHE_BF16 && rows[i].context == r->context &&
            rows[i].prompt == r->prompt && rows[i].largest == r->largest &&
            (r->largest || rows[i].batch == r->batch) && rows[i].batch && r->batch)
            return model_bench_tokens_s(r) / model_bench_tokens_s(&rows[i]);
    return (double)NAN;
}

static void set_parts(step_record *s, const e2e_row *r) {
    if (!r->has_parts)
        return;
    s->attention_ns = r->part_ns[STEP_ATTENTION];
    s->exchange_ns = r->part_ns[STEP_EXCHANGE];
    s->experts_ns = r->part_ns[STEP_EXPERTS];
    s->rest_ns = r->part_ns[STEP_REST];
    if (r->part_ns[STEP_EXCHANGE] != 0)
        s->waiting_ns = r->waiting_ns;
}

static void set_energy(step_record *s, const e2e_row *r, int n) {
    if (!r->energy.steps || isnan(r->energy.joules))
        return;
    s->energy_steps = r->energy.steps;
    s->energy_s = r->energy.seconds;
    s->joules_step = r->energy.joules;
    s->joules_token = model_bench_joules(r);
    if (n > 1)
        s->rank_joules = (record_numbers){r->energy.rank, (size_t)n};
}

static js *row_json(const model_bench *m, int i) {
    const e2e_row *r = &m->rows[i];
    char layout[RANK_LAYOUT_TEXT];
    step_record s;
    record_init(&step_type, &s);
    if (m->ranks > 1) {
        rank_layout_text(&m->layout, layout);
        s.layout = layout;
        s.rank_median_ns = (record_numbers){r->rank_ns, (size_t)m->ranks};
    }
    s.arm = kv_format_name(r->arm);
    s.step = r->prompt ? "prompt" : "decode";
    s.context = r->context;
    s.batch = r->batch;
    s.fp8_over_bf16 = model_bench_gain(m->rows, m->n, i);
    if (r->batch) {
        s.parts = STEP_TIMED;
        s.samples = r->samples;
        s.median_ns = r->median_ns;
        s.best_ns = r->best_ns;
        s.worst_ns = r->worst_ns;
        s.tokens_s = model_bench_tokens_s(r);
        s.weight_bytes = r->weight_bytes;
        s.cache_bytes = r->cache_bytes;
        s.flop = r->flop;
        s.cublaslt = r->cublaslt;
        s.roofline_pct = 100 * r->floor_ns / r->median_ns;
        set_parts(&s, r);
        set_energy(&s, r, m->ranks);
    }
    return record_write(&step_type, &s);
}

js *model_bench_json(const model_bench *m, const model_bench_options *o) {
    js *all = js_new_object(), *list = js_new_array();
    bool ok = all && list && js_set_str(all, "what", "e2e") &&
              js_set_str(all, "model_config", o->model_config) &&
              js_set_str(all, "device", m->device) &&
              js_set_num(all, "read_bytes_s", m->ceilings.best.read.rate) &&
              js_set_num(all, "bf16_flop_s", m->ceilings.best.bf16.rate);
    for (int i = 0; i < m->n && ok; i++)
        ok = js_push_new(list, row_json(m, i));
    ok = js_set_new(all, "rows", list) && ok;
    if (ok)
        return all;
    js_free(all);
    return NULL;
}

static snap_status save(request *q, const model_bench_options *o, const model_bench *m,
                        snap_err *err) {
    snap_status st;
    TRY(results_add_all(q->results, "ceilings", ceilings_json(&m->ceilings), err));
    for (int i = 0; i < m->n; i++) {
        js *row = row_json(m, i);
        if (row && !provenance_set_path(row, "model_config", o->model_config)) {
            js_free(row);
            row = NULL;
        }
        TRY(results_add(q->results, "e2e", row, err));
    }
    TRY(results_save_run(q->results, o->out, err));
cleanup:
    return st;
}

/* ---- a run of the benchmark ---- */

/* Opens the device, starts the result file and measures the ceilings. The backend is closed again,
 * so its memory is free afterwards. */
static snap_status probe_device(request *r, const model_bench_options *o, const js *config,
                                model_bench *m, snap_err *err) {
    snap_status st;
    mla_backend *be = NULL;
    mla_backend_info info;
    TRY(device_open(&be, &o->device, err));
    mla_backend_describe(be, &info);
    if (info.host_memory)
        TRY(err_set(err, SNAP_E_UNSUPPORTED,
                    "whole models with random weights need a CUDA device"));
    (void)snprintf(m->device, sizeof m->device, "%s", info.device);
    r->run.device = "cuda";
    r->run.isa = o->device.isa;
    TRY(results_of_device(&r->results, be, &o->device, "bench", config, 0, err));
    TRY(ceilings_measure(&m->ceilings, be, kProbeRounds, kProbeSeconds, err));
    if (o->energy_s > 0) {
        r->gpu = gpu_open(info.pci);
        TRY(energy_open(&r->meter, "/sys", &info, r->gpu, err));
        r->run.meter = r->meter;
    }
cleanup:
    mla_backend_close(be);
    return st;
}

/* What the ranks of a replica exchange: sums. */
static sums_options sums_of_replica(const request *r, const model_bench_options *o) {
    int parts = r->run.layout.parts, rank = ranks_rank(o->group);
    return (sums_options){.group = o->group,
                          .first = rank / parts * parts,
                          .size = parts,
                          .most_bytes = e2e_most_rows(&r->run) * r->shape.hidden_size * 4,
                          .one_shot_bytes = o->one_shot_kib < 0 ? -1 : o->one_shot_kib << 10};
}

/* What ranks of different replicas exchange: rows of experts, and their outputs. */
static sums_options rows_of_experts(const request *r, const model_bench_options *o) {
    const rank_layout *l = &r->run.layout;
    /* at most 16 bytes more than message_row() in generator/local/cuda/rows.h */
    int64_t row = 2 * r->shape.hidden_size + 8 * (int64_t)r->shape.num_experts_per_tok + 16;
    sums_options how = sums_of_replica(r, o);
    how.first = ranks_rank(o->group) % l->parts;
    how.step = l->parts;
    how.size = l->replicas;
    how.gather_bytes = e2e_most_rows(&r->run) * row;
    return how;
}

static snap_status connect(comm **out, const sums_options *how, model_bench *m, snap_err *err) {
    const char *why_not = "";
    snap_status st = sums_cuda_open(out, how, err);
    if (st != SNAP_OK)
        return st;
    m->one_shot_bytes = sums_cuda_one_shot(*out, &why_not);
    (void)snprintf(m->why_not, sizeof m->why_not, "%s", why_not);
    return SNAP_OK;
}

/* Connects the GPUs of the ranks, unless they exchange nothing. */
static snap_status connect_ranks(request *r, const model_bench_options *o, model_bench *m,
                                 snap_err *err) {
    snap_status st = SNAP_OK;
    const rank_layout *l = &r->run.layout;
    if (o->group && l->parts > 1) {
        sums_options sums = sums_of_replica(r, o);
        st = connect(&r->run.comm, &sums, m, err);
    }
    if (o->group && l->whole_experts && l->replicas > 1 && st == SNAP_OK) {
        sums_options rows = rows_of_experts(r, o);
        st = connect(&r->run.experts, &rows, m, err);
    }
    return st;
}

/* After an error, ends the group, so that closing does not wait for the other ranks. */
static void disconnect_ranks(request *r, snap_status st, snap_err *err) {
    if (st != SNAP_OK && r->run.group && err)
        ranks_fail(r->run.group, err);
    sums_cuda_close(r->run.experts);
    sums_cuda_close(r->run.comm);
}

snap_status model_bench_run(const model_bench_options *o, const js *config, model_bench *out,
                            snap_err *err) {
    snap_status st;
    request *r = calloc(1, sizeof *r);
    *out = (model_bench){0};
    if (!r)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    TRY(read_request(r, o, out, err));
    TRY(connect_ranks(r, o, out, err));
    TRY(probe_device(r, o, config, out, err));
    TRY(e2e_run(&r->run, out->rows, &out->n, err));
    if (r->meter && energy_missing(r->meter))
        (void)snprintf(out->no_energy, sizeof out->no_energy, "%s", energy_missing(r->meter));
    if (o->out && (!o->group || ranks_rank(o->group) == 0))
        TRY(save(r, o, out, err));
cleanup:
    disconnect_ranks(r, st, err);
    energy_close(r->meter);
    gpu_close(r->gpu);
    results_free(r->results);
    free(r);
    return st;
}
