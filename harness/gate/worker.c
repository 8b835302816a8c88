#include "harness/gate/worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "harness/bench/sweep.h"
#include "harness/gate/side.h"
#include "harness/measure/code_hash.h"
#include "harness/measure/device.h"
#include "harness/record/results.h"

enum { kWarmUp = 5 };

typedef struct {
    FILE *out;
    mla_backend *be;
    mla_backend_info info;
    gate_slowing slowing;
    int64_t steps,
        turns;   /* numbers of the steps and turns so far. They begin at random numbers, so that the
                    periods of slow steps do not begin at the same step in each session */
    bool rotate; /* use copies of the data in turn, so that each step starts cold */
    int64_t seed;
    numbers_kind kind;
    char backend[GATE_SIDE_TEXT]; /* name of the backend, as given by the gate */
    char hash[HASH_HEX];          /* hash of this program; "" = unknown */

    numbers from; /* random numbers for the widths of the last cell */
    bench_arm *arm;
    bench_scope scope;
    verified verdict;
    double step_ns; /* time of a step; 0 before it is known, and then no step is slowed */
} worker;

static void release_cell(worker *w) {
    bench_arm_free(w->arm);
    w->arm = NULL;
    verified_release(&w->verdict);
    w->verdict = (verified){0};
    w->step_ns = 0;
}

/* Writes a line and frees the object. */
static snap_status send_line(worker *w, js *o, bool complete, snap_err *err) {
    buf text = {0};
    snap_status st = o && complete ? js_write(o, JS_COMPACT, &text, err)
                                   : err_set(err, SNAP_E_NOMEM, "out of memory for an answer");
    if (st == SNAP_OK) {
        (void)fprintf(w->out, "%s\n", buf_str(&text));
        if (fflush(w->out) != 0)
            st = err_set_errno(err, "cannot answer the gate");
    }
    buf_release(&text);
    js_free(o);
    return st;
}

/* Writes the answer and frees it. After a noted fault the answer may be wrong, and is not sent. */
static snap_status answer(worker *w, js *o, bool complete, snap_err *err) {
    snap_status st = fault_of_process(SNAP_OK, err);
    if (st == SNAP_OK)
        return send_line(w, o, complete, err);
    js_free(o);
    return st;
}

/* ---- the first message ---- */

static snap_status start(worker *w, const js *in, snap_err *err) {
    const char *backend = js_get_str(in, "backend"), *isa = js_get_str(in, "isa");
    const char *kind = js_get_str(in, "distribution");
    device_options wanted = {
        .backend = backend, .isa = isa ? isa : "auto", .threads = js_get_int(in, "threads", 0)};
    if (w->be || js_get_int(in, "protocol", 0) != GATE_PROTOCOL || !backend || !kind)
        return err_set(err, SNAP_E_INPUT, "the gate and this arm use different protocols");
    snap_status st = SNAP_OK;
    TRY(numbers_kind_parse(kind, &w->kind, err));
    (void)snprintf(w->backend, sizeof w->backend, "%s", backend);
    TRY(device_open(&w->be, &wanted, err));
    mla_backend_describe(w->be, &w->info);
    w->slowing = (gate_slowing){.delay_pct = js_get_num(in, "delay_pct", 0),
                                .spike_ms = js_get_num(in, "spike_ms", 0),
                                .slow_pct = js_get_num(in, "slow_pct", 0),
                                .spike_every = js_get_int(in, "spike_every", 0),
                                .slow_every = js_get_int(in, "slow_every", 0)};
    rng random = rng_make((uint64_t)clock_now_ns(), 0);
    w->steps = rng_below(&random, UINT32_MAX);
    w->turns = rng_below(&random, UINT32_MAX);
    w->seed = js_get_int(in, "seed", 1);
    w->rotate = js_get_bool(in, "cold", false) && !lab_can_flush(w->be) && w->info.cache_bytes;
    if (code_hash_self(w->hash, NULL) != SNAP_OK)
        w->hash[0] = '\0';
    js *o = js_new_object();
    bool ok = o && js_set_int(o, "protocol", GATE_PROTOCOL) &&
              js_set_str(o, "version", results_program_version()) &&
              js_set_str(o, "commit", results_program_commit()) &&
              js_set_str(o, "device", w->info.device) && js_set_str(o, "backend", w->info.name) &&
              js_set_str(o, "kernel", w->info.kernel);
    st = answer(w, o, ok, err);
cleanup:
    return st;
}

/* ---- one cell ---- */

static snap_status parse_cell(const js *in, bench_shape *s, bench_kind *p, bench_scope *scope,
                              snap_err *err) {
    const char *precision = js_get_str(in, "precision"), *name = js_get_str(in, "scope");
    *s = (bench_shape){.heads = (int)js_get_int(in, "heads", 0),
                       .s_q = (int)js_get_int(in, "s_q", 0),
                       .batch = (int)js_get_int(in, "batch", 0),
                       .context = js_get_int(in, "context", 0),
                       .d_c = (int)js_get_int(in, "d_c", 0),
                       .d_r = (int)js_get_int(in, "d_r", 0)};
    bool known = precision && bench_kind_parse(precision, p);
    *scope = text_equal(name, "served") ? BENCH_SERVED : BENCH_KERNEL;
    bool fits = s->heads >= 1 && s->heads <= MLA_MAX_HEADS && s->s_q >= 1 && s->s_q <= MLA_MAX_SQ &&
                s->batch >= 1 && s->batch <= BENCH_MAX_BATCH && s->context >= 1 &&
                s->context <= MLA_MAX_CONTEXT && s->d_c >= 1 && s->d_c <= MLA_MAX_CONTENT &&
                s->d_r >= 1 && s->d_r <= MLA_MAX_ROPE;
    return known && name && fits ? SNAP_OK : err_set(err, SNAP_E_INPUT, "a cell is malformed");
}

/* Runs one step and then waits as long as this arm shall be slower. Both count as time. */
static snap_status step(worker *w, double *ns, snap_err *err) {
    snap_status st = bench_arm_sample(w->arm, w->scope, ns, err);
    if (st != SNAP_OK || !(w->step_ns > 0))
        return st;
    double wait_ns = gate_slowing_ns(&w->slowing, w->step_ns, w->steps++, w->turns);
    int64_t from = clock_now_ns(), now = from;
    while ((double)(now - from) < wait_ns)
        now = clock_now_ns();
    *ns += (double)(now - from);
    return st;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Runs some steps that are not reported. *ns is their median time, from which it follows how much
 * later steps are slowed. */
static snap_status warm_up(worker *w, double *ns, snap_err *err) {
    double times[kWarmUp];
    for (int i = 0; i < kWarmUp; i++) {
        snap_status st = step(w, &times[i], err);
        if (st != SNAP_OK)
            return st;
    }
    qsort(times, kWarmUp, sizeof *times, by_value);
    *ns = times[kWarmUp / 2];
    w->step_ns = *ns;
    return SNAP_OK;
}

static snap_status build(worker *w, const bench_shape *s, bench_kind p, double *ns, snap_err *err) {
    bool flush = lab_can_flush(w->be);
    int sets = bench_arm_sets(s, p, NULL, w->rotate ? w->info.cache_bytes : 0);
    double bytes = bench_arm_bytes(s, p, NULL, sets), have = (double)w->info.memory_bytes;
    snap_status st = SNAP_OK;
    if (have > 0 && bytes > 0.4 * have) /* the other arm needs memory, too */
        return err_set(err, SNAP_E_NOMEM, "the shape needs %.1f GiB twice, the device has %.1f GiB",
                       bytes / 0x1p30, have / 0x1p30);
    if (w->from.d_c != s->d_c || w->from.d_r != s->d_r) {
        numbers_release(&w->from);
        w->from = (numbers){0};
        TRY(numbers_create(&w->from, w->kind, s->d_c, s->d_r, (uint64_t)w->seed, err));
        TRY(numbers_upload(&w->from, w->be, err));
    }
    TRY(bench_arm_create(&w->arm, w->be, s, p, NULL, &w->from, sets, flush, err));
    TRY(verify_arm(&w->verdict, w->arm, w->scope, NULL, (uint64_t)w->seed, err));
    if (w->verdict.verdict == SNAP_OK)
        TRY(warm_up(w, ns, err));
cleanup:
    return st;
}

static const char *cold_method(const worker *w) {
    return lab_can_flush(w->be) ? "flush" : w->rotate ? "rotate" : "none";
}

/* Hashes the machine code that runs the cell. The hash is "" if it is unknown. */
static void code_of(const worker *w, const char *kernel, char hash[HASH_HEX]) {
    if (code_hash_of(w->backend, kernel, hash, NULL) != SNAP_OK)
        hash[0] = '\0';
}

/* Cells that do not fit the backend or the memory are skipped. Any other error ends the worker: it
 * says nothing about the cell. */
static bool may_continue(snap_status built) {
    return built == SNAP_OK || built == SNAP_E_NOMEM || built == SNAP_E_SHAPE ||
           built == SNAP_E_UNSUPPORTED;
}

static snap_status begin_cell(worker *w, const js *in, snap_err *err) {
    bench_shape s = {0};
    bench_kind p = BENCH_BF16;
    snap_err why = {0};
    double ns = (double)NAN;
    char hash[HASH_HEX] = "";
    if (!w->be)
        return err_set(err, SNAP_E_INPUT, "a cell was requested before a backend");
    snap_status st = parse_cell(in, &s, &p, &w->scope, err);
    if (st != SNAP_OK)
        return st;
    release_cell(w);
    snap_status built = build(w, &s, p, &ns, &why);
    if (!may_continue(built))
        return err_set(err, built, "%s", why.text);
    const char *kernel = w->arm ? bench_arm_kernel(w->arm) : NULL;
    code_of(w, kernel, hash);
    bool wrong = built == SNAP_OK && w->verdict.verdict != SNAP_OK;
    const char *reason = wrong ? w->verdict.why.text : built != SNAP_OK ? why.text : NULL;
    js *o = js_new_object();
    bool ok = o &&
              js_set_str(o, "status",
                         built != SNAP_OK ? "skipped"
                         : wrong          ? "failed"
                                          : "passed") &&
              js_set_new(o, "reason", js_new_str(reason)) &&
              js_set_str(o, "kernel", kernel ? kernel : w->info.kernel) &&
              js_set_new(o, "kernel_hash", js_new_str(hash[0] ? hash : NULL)) &&
              js_set_new(o, "program_hash", js_new_str(w->hash[0] ? w->hash : NULL)) &&
              js_set_str(o, "cold", cold_method(w)) &&
              js_set_num(o, "error", w->verdict.error.out_rel) &&
              js_set_num(o, "tolerance", w->verdict.bound.out_rel) &&
              js_set_int(o, "rows_checked", w->verdict.error.rows) &&
              js_set_num(o, "step_ns", ns) && js_set_num(o, "cpu_s", env_now().own_s);
    return answer(w, o, ok, err);
}

static snap_status take_steps(worker *w, int64_t n, snap_err *err) {
    js *times = js_new_array();
    double ns = 0;
    w->turns++;
    bool ok = times != NULL;
    snap_status st =
        w->arm && n >= 1 && n <= GATE_STEPS
            ? step(w, &ns, err) /* untimed: wakes threads after the other arm's turn */
            : err_set(err, SNAP_E_INPUT, "steps were requested without a cell, or too many");
    for (int64_t i = 0; i < n && st == SNAP_OK; i++) {
        st = step(w, &ns, err);
        ok = ok && js_push_new(times, js_new_num(ns));
    }
    js *o = js_new_object();
    ok = js_set_new(o, "ns", times) && ok;
    if (st == SNAP_OK)
        return answer(w, o, ok, err);
    js_free(o);
    return st;
}

static snap_status end_cell(worker *w, snap_err *err) {
    snap_status st = SNAP_OK;
    if (!w->arm)
        return err_set(err, SNAP_E_INPUT, "the end of a cell was requested without a cell");
    TRY(verify_timed(&w->verdict, w->arm, w->scope, NULL, (uint64_t)w->seed, err));
    bool good = w->verdict.verdict == SNAP_OK;
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "status", good ? "passed" : "failed") &&
              js_set_new(o, "reason", js_new_str(good ? NULL : w->verdict.why.text)) &&
              js_set_num(o, "cpu_s", env_now().own_s);
    st = answer(w, o, ok, err);
cleanup:
    release_cell(w);
    return st;
}

/* ---- lines ---- */

static snap_status serve_line(worker *w, const js *in, snap_err *err) {
    const js *cell = js_get_object(in, "cell");
    if (cell)
        return begin_cell(w, cell, err);
    if (js_get(in, "steps"))
        return take_steps(w, js_get_int(in, "steps", 0), err);
    if (js_get_bool(in, "end", false))
        return end_cell(w, err);
    return start(w, in, err);
}

static snap_status serve(worker *w, FILE *in, char *line, snap_err *err) {
    snap_status st = SNAP_OK;
    while (st == SNAP_OK && fgets(line, GATE_LINE, in)) {
        js *request = js_parse(line, strlen(line), "the gate", err);
        st = request ? serve_line(w, request, err) : SNAP_E_INPUT;
        js_free(request);
    }
    return st;
}

static void write_fatal(worker *w, const snap_err *err) {
    js *o = js_new_object();
    snap_err unused = {0};
    if (send_line(w, o, o && js_set_str(o, "fatal", err->text), &unused) != SNAP_OK)
        return; /* the gate has exited */
}

snap_status gate_worker_run(FILE *in, FILE *out, snap_err *err) {
    worker w = {.out = out};
    snap_err why = {0};
    char *line = malloc(GATE_LINE);
    if (!line)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a line");
    if (serve(&w, in, line, &why) != SNAP_OK)
        write_fatal(&w, &why);
    release_cell(&w);
    numbers_release(&w.from);
    mla_backend_close(w.be);
    free(line);
    return SNAP_OK;
}
