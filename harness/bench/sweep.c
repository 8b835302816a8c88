#include "harness/bench/sweep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "harness/bench/interleave.h"
#include "harness/bench/sustained.h"
#include "harness/measure/code_hash.h"

static const double kMemoryShare = 0.85; /* the share of the device's memory that the data of a
                                            shape may use */

/* ---- one shape ---- */

typedef struct {
    bench_arm *arm; /* NULL if the arm cannot run */
    verified verdict;
    stop_rule timing;
    row_status status; /* of the current scope; without an arm, of all scopes */
    snap_err why;
    const char *cold;
    double power_w;
} cell;

/* The kernel that an arm runs, and the hash of its machine code. The hash is kept for the next
 * shapes, because computing it reads the whole program file. */
typedef struct {
    const char *kernel; /* NULL = lab_plan_kernel() names none */
    char hash[HASH_HEX];
    bool known;
} kernel_code;

typedef struct {
    const sweep_options *opt;
    row_context context;
    numbers from;
    js *rows;
    bench_shape shape;
    cell cells[BENCH_ARMS];
    paired_probes probes; /* of the current scope */
    kernel_code code[BENCH_ARMS];
    gpu *device;
    bool flush; /* the backend's caches are flushed before each step */
    int done;
} sweep;

static void note(const sweep *s, const char *what) {
    char shape[96], text[128];
    bench_shape_text(&s->shape, shape);
    (void)snprintf(text, sizeof text, "%s: %s", shape, what);
    if (s->opt->progress)
        s->opt->progress(s->opt->ctx, s->done, sweep_count(s->opt->grid), text);
}

static bool cancelled(const sweep *s) {
    return s->opt->cancel && *s->opt->cancel;
}

/* Turns the error of one cell into its status, so that the sweep continues. Only a cancellation and
 * a noted fault are returned as errors. */
static snap_status settle(cell *c, snap_status st, snap_err *why, snap_err *err) {
    if (st == SNAP_OK)
        return SNAP_OK;
    if (st == SNAP_E_CANCELLED)
        return err_set(err, st, "%s", why->text);
    snap_status fault = fault_of_process(SNAP_OK, err);
    if (fault != SNAP_OK)
        return fault;
    bool beyond = st == SNAP_E_UNSUPPORTED || st == SNAP_E_NOMEM;
    c->status = beyond ? ROW_SKIPPED : ROW_ERROR;
    c->why = *why;
    return SNAP_OK;
}

static double needed_bytes(const sweep *s, int sets[BENCH_ARMS]) {
    double bytes = 0;
    bool one_set = s->flush || s->context.sustained;
    for (int p = 0; p < BENCH_ARMS; p++) {
        sets[p] =
            bench_arm_sets(&s->shape, (bench_kind)p, one_set ? 0 : s->context.backend.cache_bytes);
        if (s->opt->grid->arm[p])
            bytes += bench_arm_bytes(&s->shape, (bench_kind)p, sets[p]);
    }
    return bytes;
}

static void find_code(kernel_code *code, const char *kernel) {
    if (kernel && (!code->kernel || strcmp(kernel, code->kernel) != 0))
        code->known = code_hash_device(kernel, code->hash, NULL) == SNAP_OK;
    code->kernel = kernel;
}

/* How steps of the arm start with a cold cache: "flush"; "rotate", also for loops over one set of
 * at least four times the cache's size; or "none": the cache may be warm. */
static const char *coldness(const sweep *s, int p) {
    size_t cache = s->context.backend.cache_bytes;
    if (s->flush)
        return "flush";
    bool large = bench_arm_is_large(&s->shape, (bench_kind)p, cache);
    return cache && (!s->context.sustained || large) ? "rotate" : "none";
}

static snap_status build_arm(sweep *s, int p, int sets, snap_err *err) {
    cell *c = &s->cells[p];
    snap_err why = {0};
    c->cold = coldness(s, p);
    snap_status st = bench_arm_create(&c->arm, s->opt->backend, &s->shape, (bench_kind)p, &s->from,
                                      sets, s->flush, &why);
    if (st == SNAP_OK)
        find_code(&s->code[p], bench_arm_kernel(c->arm));
    return settle(c, st, &why, err);
}

static snap_status build_arms(sweep *s, snap_err *err) {
    int sets[BENCH_ARMS];
    double need = needed_bytes(s, sets), have = (double)s->context.backend.memory_bytes;
    bool fits = !(have > 0) || need <= kMemoryShare * have;
    snap_status st = SNAP_OK;
    for (int p = 0; p < BENCH_ARMS && st == SNAP_OK; p++) {
        snap_err why = {0};
        if (!s->opt->grid->arm[p])
            continue;
        note(s, "filling the cache");
        if (fits)
            st = build_arm(s, p, sets[p], err);
        else
            st = settle(&s->cells[p],
                        err_set(&why, SNAP_E_NOMEM,
                                "the shape needs %.1f GiB, the device has %.1f GiB", need / 0x1p30,
                                have / 0x1p30),
                        &why, err);
        if (!fits)
            s->cells[p].cold = coldness(s, p);
    }
    return st;
}

static void drop_arms(sweep *s) {
    for (int p = 0; p < BENCH_ARMS; p++) {
        cell *c = &s->cells[p];
        bench_arm_free(c->arm);
        verified_release(&c->verdict);
        stop_release(&c->timing);
        *c = (cell){0};
    }
}

/* ---- one scope ---- */

static bool is_requested(const sweep *s, int p, bench_scope scope) {
    return s->opt->grid->arm[p] && bench_kind_has((bench_kind)p, scope);
}

static bool takes_part(const sweep *s, int p, bench_scope scope) {
    return s->cells[p].arm && bench_kind_has((bench_kind)p, scope);
}

/* A cell with a wrong result gets the status ROW_FAILED, so its row has no times. */
static void apply_verdict(cell *c) {
    if (c->status != ROW_PASSED || c->verdict.verdict == SNAP_OK)
        return;
    c->status = ROW_FAILED;
    c->why = c->verdict.why;
}

static snap_status check_arm(sweep *s, cell *c, bench_scope scope, snap_err *err) {
    snap_err why = {0};
    note(s, "checking against FP64");
    snap_status st = verify_arm(&c->verdict, c->arm, scope, s->opt->seed, &why);
    st = settle(c, st, &why, err);
    apply_verdict(c);
    return st;
}

/* Times the arms alternately. An error may come from any of them, so it becomes the status of all
 * of them. */
static snap_status time_arms(sweep *s, bench_scope scope, snap_err *err) {
    bench_arm *arms[BENCH_ARMS];
    cell *turns[BENCH_ARMS];
    stop_rule rules[BENCH_ARMS];
    int n = 0;
    for (int p = 0; p < BENCH_ARMS; p++)
        if (takes_part(s, p, scope) && s->cells[p].status == ROW_PASSED) {
            turns[n] = &s->cells[p];
            stop_init(&rules[n], &s->opt->limits);
            arms[n++] = s->cells[p].arm;
        }
    if (!n)
        return SNAP_OK;
    note(s, bench_scope_name(scope));
    snap_err why = {0};
    s->probes = (paired_probes){0};
    double power_w[BENCH_ARMS];
    for (int i = 0; i < BENCH_ARMS; i++)
        power_w[i] = (double)NAN;
    snap_status st = s->context.sustained
                         ? sustained_measure(arms, n, scope, s->opt->sustained_s, rules, s->device,
                                             power_w, s->opt->cancel, &why)
                         : interleave_measure(arms, n, scope, rules, s->flush ? s->opt->rest : 0,
                                              &s->probes, s->opt->cancel, &why);
    snap_status out = SNAP_OK;
    for (int i = 0; i < n; i++) {
        turns[i]->timing = rules[i];
        turns[i]->power_w = power_w[i];
        if (out == SNAP_OK)
            out = settle(turns[i], st, &why, err);
    }
    return out;
}

static snap_status check_again(sweep *s, cell *c, bench_scope scope, snap_err *err) {
    snap_err why = {0};
    note(s, "checking the timed output");
    snap_status st = verify_timed(&c->verdict, c->arm, scope, s->opt->seed, &why);
    st = settle(c, st, &why, err);
    apply_verdict(c);
    return st;
}

/* The state of the machine and of the device at one moment. */
typedef struct {
    env_state env;
    gpu_state gpu;
} moment;

static moment moment_now(const sweep *s) {
    return (moment){.env = env_now(), .gpu = gpu_now(s->device)};
}

static snap_status add_row(sweep *s, int p, bench_scope scope, const moment *before,
                           const moment *after, snap_err *err) {
    const cell *c = &s->cells[p];
    row_measured m = {.shape = s->shape,
                      .kind = (bench_kind)p,
                      .scope = scope,
                      .status = c->status,
                      .reason = c->why.text,
                      .kernel = s->code[p].kernel,
                      .kernel_hash = s->code[p].known ? s->code[p].hash : NULL,
                      .cold = c->cold,
                      .verdict = &c->verdict,
                      .timing = &c->timing,
                      .probes = &s->probes,
                      .before = before->env,
                      .after = after->env,
                      .gpu_before = before->gpu,
                      .gpu_after = after->gpu,
                      .power_w = c->power_w};
    char key[ROW_KEY];
    row_key(&s->context, &s->shape, m.kind, scope, key);
    js *row = row_json(&s->context, &m);
    if (!row)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a row");
    bool final = c->status == ROW_PASSED || c->status == ROW_FAILED;
    snap_status st = SNAP_OK;
    if (s->opt->keep && final) /* cells that were skipped or had an error are tried again by a
                                  resumed run */
        st = s->opt->keep(s->opt->ctx, key, row, err);
    if (!js_push_new(s->rows, row) && st == SNAP_OK)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a row");
    s->done++;
    return st;
}

static snap_status run_scope(sweep *s, bench_scope scope, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int p = 0; p < BENCH_ARMS; p++) {
        cell *c = &s->cells[p];
        if (!takes_part(s, p, scope))
            continue;
        c->status = ROW_PASSED;
        c->why = (snap_err){0};
        stop_release(&c->timing);
        TRY(check_arm(s, c, scope, err));
    }
    moment before = moment_now(s);
    TRY(time_arms(s, scope, err));
    moment after = moment_now(s);
    for (int p = 0; p < BENCH_ARMS; p++)
        if (takes_part(s, p, scope) && s->cells[p].status == ROW_PASSED)
            TRY(check_again(s, &s->cells[p], scope, err));
    for (int p = 0; p < BENCH_ARMS; p++)
        if (is_requested(s, p, scope))
            TRY(add_row(s, p, scope, &before, &after, err));
cleanup:
    return st;
}

/* ---- what an earlier run has finished ---- */

static const js *found(const sweep *s, int p, bench_scope scope) {
    char key[ROW_KEY];
    row_key(&s->context, &s->shape, (bench_kind)p, scope, key);
    return s->opt->find ? s->opt->find(s->opt->ctx, key) : NULL;
}

/* Arms are timed alternately. So the rows of a scope are either all reused or all measured
 * again. */
static bool scope_found(const sweep *s, bench_scope scope) {
    for (int p = 0; p < BENCH_ARMS; p++)
        if (is_requested(s, p, scope) && !found(s, p, scope))
            return false;
    return true;
}

static snap_status take_over(sweep *s, bench_scope scope, snap_err *err) {
    for (int p = 0; p < BENCH_ARMS; p++) {
        if (!is_requested(s, p, scope))
            continue;
        if (!js_push_new(s->rows, js_copy(found(s, p, scope))))
            return err_set(err, SNAP_E_NOMEM, "out of memory for a row");
        s->done++;
    }
    return SNAP_OK;
}

static bool shape_found(const sweep *s) {
    for (int scope = 0; scope < BENCH_SCOPES; scope++)
        if (s->opt->grid->scope[scope] && !scope_found(s, (bench_scope)scope))
            return false;
    return true;
}

/* ---- the grid ---- */

static snap_status run_shape(sweep *s, snap_err *err) {
    snap_status st = SNAP_OK;
    if (!shape_found(s))
        TRY(build_arms(s, err));
    for (int scope = 0; scope < BENCH_SCOPES; scope++) {
        if (!s->opt->grid->scope[scope])
            continue;
        if (cancelled(s))
            TRY(err_set(err, SNAP_E_CANCELLED, "stopped by a signal"));
        if (scope_found(s, (bench_scope)scope))
            TRY(take_over(s, (bench_scope)scope, err));
        else
            TRY(run_scope(s, (bench_scope)scope, err));
    }
cleanup:
    drop_arms(s);
    return st;
}

int sweep_count(const bench_grid *g) {
    int rows = 0; /* rows of one shape */
    for (int k = 0; k < BENCH_ARMS; k++)
        for (int scope = 0; scope < BENCH_SCOPES; scope++)
            rows +=
                g->arm[k] && g->scope[scope] && bench_kind_has((bench_kind)k, (bench_scope)scope);
    return bench_grid_shapes(g) * rows;
}

snap_status sweep_run(const sweep_options *opt, js *rows, snap_err *err) {
    const bench_grid *g = opt->grid;
    sweep s = {.opt = opt,
               .rows = rows,
               .flush = lab_can_flush(opt->backend) && !(opt->sustained_s > 0),
               .context = {.kernel_hash = opt->kernel_hash,
                           .distribution = numbers_kind_name(opt->distribution),
                           .sustained = opt->sustained_s > 0}};
    mla_backend_describe(opt->backend, &s.context.backend);
    s.device = gpu_open(s.context.backend.pci);
    snap_status st = numbers_create(&s.from, opt->distribution, g->d_c, g->d_r, opt->seed, err);
    if (st == SNAP_OK)
        st = numbers_upload(&s.from, opt->backend, err);
    for (int i = 0; i < bench_grid_shapes(g) && st == SNAP_OK; i++) {
        s.shape = bench_grid_shape(g, i);
        st = run_shape(&s, err);
    }
    numbers_release(&s.from);
    gpu_close(s.device);
    return st;
}

/* ---- after the sweep ---- */

/* The BF16 row that an FP8 row is compared with, directly before it; NULL if there is none. */
static const cell_record *baseline_of(const cell_list *rows, size_t i) {
    const cell_record *c = &rows->at[i], *before = c - 1;
    if (i == 0 || strcmp(c->arm, "fp8") != 0)
        return NULL;
    bool same = record_equal(&cell_shape_type, &before->shape, &c->shape) &&
                strcmp(before->scope, c->scope) == 0;
    return same ? before : NULL;
}

double sweep_speedup(const cell_list *rows, size_t i) {
    const cell_record *base = baseline_of(rows, i);
    return base ? cell_speedup(base, &rows->at[i]) : (double)NAN;
}

static snap_status read_rows(cell_list *out, const js *rows, arena *mem, snap_err *err) {
    return record_read_all(&cell_type, rows, mem, &out->at, &out->n)
               ? SNAP_OK
               : err_set(err, SNAP_E_NOMEM, "out of memory for the rows of a sweep");
}

snap_status sweep_derive(js *rows, const mla_ceilings *c, snap_err *err) {
    arena mem = {0};
    cell_list all;
    snap_status st = SNAP_OK;
    TRY(read_rows(&all, rows, &mem, err));
    for (size_t i = 0; i < all.n; i++) {
        cell_record *row = &all.at[i];
        const cell_record *base = baseline_of(&all, i);
        if (!row->performance.exists)
            continue;
        TRY(cell_derive(row, c, &mem, err));
        bool ok = !base || cell_flag_baseline(base, row, &mem);
        ok = ok && row_store(js_at(rows, i), row);
        TRY(ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a row"));
    }
cleanup:
    arena_release(&mem);
    return st;
}

snap_status sweep_raise(const js *rows, mla_ceilings *to, snap_err *err) {
    arena mem = {0};
    cell_list all = {0};
    snap_status st = read_rows(&all, rows, &mem, err);
    for (size_t i = 0; i < all.n; i++)
        cell_raise(&all.at[i], to);
    arena_release(&mem);
    return st;
}

size_t sweep_count_flag(const js *rows, const char *flag) {
    arena mem = {0};
    cell_list all = {0};
    size_t n = 0;
    (void)read_rows(&all, rows, &mem, NULL);
    for (size_t i = 0; i < all.n; i++)
        n += cell_has_flag(&all.at[i], flag);
    arena_release(&mem);
    return n;
}

typedef bool (*cell_test)(const cell_record *c);

static bool has_error(const cell_record *c) {
    return strcmp(c->status, "error") == 0;
}

static bool has_failed(const cell_record *c) {
    return strcmp(c->status, "failed") == 0;
}

static bool undercuts(const cell_record *c) {
    return cell_has_flag(c, "below_floor");
}

static size_t count(const cell_list *rows, cell_test test, const cell_record **first) {
    size_t n = 0;
    *first = NULL;
    for (size_t i = 0; i < rows->n; i++)
        if (test(&rows->at[i]))
            *first = n++ ? *first : &rows->at[i];
    return n;
}

static snap_status verdict(const cell_list *rows, cell_test test, snap_status code,
                           const char *what, snap_err *err) {
    const cell_record *c;
    size_t n = count(rows, test, &c);
    if (!n)
        return SNAP_OK;
    return err_set(err, code,
                   "%zu of %zu cells %s, first: %s %s, H %lld, s_q %lld, batch %lld, context "
                   "%lld%s%s",
                   n, rows->n, what, c->arm, c->scope, (long long)c->shape.heads,
                   (long long)c->shape.s_q, (long long)c->shape.batch, (long long)c->shape.context,
                   c->reason[0] ? ": " : "", c->reason);
}

snap_status sweep_verdict(const js *rows, snap_err *err) {
    arena mem = {0};
    cell_list all;
    snap_status st = SNAP_OK;
    TRY(read_rows(&all, rows, &mem, err));
    TRY(verdict(&all, has_error, SNAP_E_DEVICE, "could not be run", err));
    TRY(verdict(&all, has_failed, SNAP_E_WRONG, "failed the correctness check", err));
    TRY(verdict(&all, undercuts, SNAP_E_WRONG,
                "took less time than the ceilings allow, a measuring error", err));
cleanup:
    arena_release(&mem);
    return st;
}
