#include "harness/cmd/bench_e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/term.h"
#include "base/text.h"
#include "harness/bench/e2e.h"
#include "harness/bench/grid.h"
#include "harness/measure/ceilings.h"
#include "harness/record/provenance.h"
#include "harness/share.h"

enum { kProbeRounds = 3 };
static const double kProbeSeconds = 0.3;

/* ---- what is asked ------------------------------------------------------------------------------- */

typedef struct {
    e2e_options run;
    model_shape shape;
    int64_t contexts[GRID_AXIS], batches[GRID_AXIS];
    ceilings ceilings;
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
    return cache_format_parse(part, &r->run.arms[r->run.n_arms++], err);
}

/* FILE as it is, else configs/models/NAME.json as shipped. */
static snap_status open_model(request *r, const char *name, snap_err *err) {
    snap_status st;
    buf path = {0}, text = {0};
    char *shipped = NULL;
    if (!name)
        return err_set(err, SNAP_E_USAGE, "--what e2e needs --model-config");
    (void)buf_printf(&path, "configs/models/%s.json", name);
    TRY(buf_check(&path, "a path", err));
    if (!fs_exists(name))
        shipped = share_find(buf_str(&path));
    TRY(fs_read(shipped ? shipped : name, &text, err));
    TRY(model_shape_parse(&r->shape, text.data, text.len, name, err));
cleanup:
    free(shipped);
    buf_release(&path);
    buf_release(&text);
    return st;
}

static snap_status read_request(request *r, const bench_e2e_options *o, snap_err *err) {
    snap_status st;
    TRY(open_model(r, o->model_config, err));
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
    r->run.ceilings = &r->ceilings.best;
    r->run.cancel = &cmd_cancelled;
cleanup:
    return st;
}

/* ---- what came out ------------------------------------------------------------------------------- */

static double tokens_per_second(const e2e_row *r) {
    return (r->prompt ? (double)r->context : r->batch) / r->median_ns * 1e9;
}

/* BF16's time a token over this one's, of the row that asked the same of the other arm. */
static double gain(const e2e_row *rows, int n, int at) {
    const e2e_row *r = &rows[at];
    for (int i = 0; i < n && r->arm == CACHE_FP8; i++)
        if (rows[i].arm == CACHE_BF16 && rows[i].context == r->context &&
            rows[i].prompt == r->prompt && rows[i].largest == r->largest &&
            (r->largest || rows[i].batch == r->batch) && rows[i].batch && r->batch)
            return tokens_per_second(r) / tokens_per_second(&rows[i]);
    return (double)NAN;
}

static void fill_row(table *t, const e2e_row *rows, int n, int i) {
    const e2e_row *r = &rows[i];
    double times = gain(rows, n, i);
    table_cell(t, "%s", cache_format_name(r->arm));
    table_cell(t, "%s", r->prompt ? "prompt" : "decode");
    table_cell(t, "%lld", (long long)r->context);
    table_cell(t, "%d%s", r->batch, r->largest ? " (max)" : "");
    table_number(t, r->batch ? r->median_ns / 1e6 : (double)NAN, 3);
    table_number(t, r->batch ? tokens_per_second(r) : (double)NAN, 1);
    table_number(t, r->prompt ? (double)NAN : r->weight_bytes / 1e9, 2);
    table_number(t, r->prompt ? (double)NAN : r->cache_bytes / 1e9, 2);
    table_number(t, r->prompt ? r->flop / r->median_ns / 1e3 : (double)NAN, 1);
    table_number(t, r->batch ? 100 * r->floor_ns / r->median_ns : (double)NAN, 1);
    table_cell(t, isnan(times) ? "" : "%.2fx", times);
}

static snap_status print_table(const e2e_row *rows, int n, snap_err *err) {
    static const char *const heads[] = {"arm",    "what",     "context",    "batch",
                                        "ms",     "tokens/s", "weights GB", "cache GB",
                                        "TFLOPS", "% roof",   "FP8/BF16"};
    table t = table_new(heads, 11);
    buf text = {0};
    for (int i = 0; i < n; i++)
        fill_row(&t, rows, n, i);
    snap_status st = write_text(&t, term_use_color(1), &text, err);
    (void)fputs(buf_str(&text), stdout);
    table_release(&t);
    buf_release(&text);
    return st;
}

static js *row_json(const e2e_row *r, const e2e_row *rows, int n, int i) {
    js *o = js_new_object();
    double times = gain(rows, n, i);
    bool ok = o && js_set_str(o, "arm", cache_format_name(r->arm)) &&
              js_set_str(o, "step", r->prompt ? "prompt" : "decode") &&
              js_set_int(o, "context", r->context) && js_set_int(o, "batch", r->batch);
    if (ok && r->batch)
        ok = js_set_int(o, "samples", r->samples) && js_set_num(o, "median_ns", r->median_ns) &&
             js_set_num(o, "best_ns", r->best_ns) && js_set_num(o, "worst_ns", r->worst_ns) &&
             js_set_num(o, "tokens_s", tokens_per_second(r)) &&
             js_set_num(o, "weight_bytes", r->weight_bytes) &&
             js_set_num(o, "cache_bytes", r->cache_bytes) && js_set_num(o, "flop", r->flop) &&
             js_set_int(o, "cublaslt", r->cublaslt) &&
             js_set_num(o, "roofline_pct", 100 * r->floor_ns / r->median_ns);
    if (ok && !isnan(times))
        ok = js_set_num(o, "fp8_over_bf16", times);
    if (!ok) {
        js_free(o);
        return NULL;
    }
    return o;
}

static snap_status print_json(const request *q, const bench_e2e_options *o, const char *device,
                              const e2e_row *rows, int n, snap_err *err) {
    buf text = {0};
    js *all = js_new_object(), *list = js_new_array();
    bool ok = all && list && js_set_str(all, "what", "e2e") &&
              js_set_str(all, "model_config", o->model_config) &&
              js_set_str(all, "device", device) &&
              js_set_num(all, "read_bytes_s", q->ceilings.best.read.rate) &&
              js_set_num(all, "bf16_flop_s", q->ceilings.best.bf16.rate);
    for (int i = 0; i < n && ok; i++)
        ok = js_push_new(list, row_json(&rows[i], rows, n, i));
    ok = ok && js_set_new(all, "rows", list);
    list = ok ? NULL : list; /* taken */
    snap_status st = ok ? js_write(all, JS_PRETTY, &text, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the result");
    if (st == SNAP_OK)
        (void)puts(buf_str(&text));
    js_free(all);
    js_free(list);
    buf_release(&text);
    return st;
}

static snap_status save(request *q, const bench_e2e_options *o, const e2e_row *rows, int n,
                        snap_err *err) {
    snap_status st;
    TRY(results_add_all(q->results, "ceilings", ceilings_json(&q->ceilings), err));
    for (int i = 0; i < n; i++) {
        js *row = row_json(&rows[i], rows, n, i);
        if (row && !provenance_set_path(row, "model_config", o->model_config)) {
            js_free(row);
            row = NULL;
        }
        TRY(results_add(q->results, "e2e", row, err));
    }
    TRY(device_save(q->results, o->out, err));
cleanup:
    return st;
}

/* The device's own ceilings; its memory is free again when this returns. */
static snap_status look(request *r, const device_options *device, const opt_shared *shared,
                        char name[128], snap_err *err) {
    snap_status st;
    mla_backend *be = NULL;
    mla_backend_info info;
    TRY(device_open(&be, device, err));
    mla_backend_describe(be, &info);
    if (info.host_memory)
        TRY(err_set(err, SNAP_E_UNSUPPORTED,
                    "whole models with random weights need a CUDA device"));
    (void)snprintf(name, 128, "%s", info.device);
    r->run.device = "cuda";
    r->run.isa = device->isa;
    TRY(device_results(&r->results, be, device, "bench", shared, 0, err));
    TRY(ceilings_measure(&r->ceilings, be, kProbeRounds, kProbeSeconds, err));
cleanup:
    mla_backend_close(be);
    return st;
}

snap_status bench_e2e(const bench_e2e_options *o, const device_options *device,
                      const opt_shared *shared, snap_err *err) {
    snap_status st;
    e2e_row rows[E2E_ROWS];
    int n = 0;
    char name[128];
    request *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    TRY(read_request(r, o, err));
    TRY(look(r, device, shared, name, err));
    TRY(e2e_run(&r->run, rows, &n, err));
    TRY(o->out ? save(r, o, rows, n, err) : SNAP_OK);
    TRY(shared->json ? print_json(r, o, name, rows, n, err) : print_table(rows, n, err));
cleanup:
    results_free(r->results);
    free(r);
    return st;
}
