#include "harness/bench/sweep_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "harness/bench/interleave.h"
#include "harness/bench/sustained.h"

static const double kMemoryShare = 0.85; /* the share of the device's memory that the data of a
                                            shape may use */

static void note(const sweep *s, const char *what) {
    char shape[96], text[128];
    bench_shape_text(&s->shape, shape);
    (void)snprintf(text, sizeof text, "%s: %s", shape, what);
    if (s->opt->progress)
        s->opt->progress(s->opt->ctx, s->done, sweep_total(s->opt), text);
}

static bool cancelled(const sweep *s) {
    return s->opt->cancel && *s->opt->cancel;
}

static snap_status check_cancel(const sweep *s, snap_err *err) {
    return cancelled(s) ? err_set(err, SNAP_E_CANCELLED, "stopped by a signal") : SNAP_OK;
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

/* Whether two arms allocate from the same memory. */
static bool same_memory(const lane *a, const lane *b) {
    const mla_backend_info *x = &a->context.backend, *y = &b->context.backend;
    return x->host_memory == y->host_memory &&
           (x->host_memory || strcmp(x->device, y->device) == 0);
}

static int sets_of(const sweep *s, const lane *l) {
    bool one_set = s->flush || l->context.sustained;
    return bench_arm_sets(&s->shape, l->of.kind, l->of.format,
                          one_set ? 0 : l->context.backend.cache_bytes);
}

/* The bytes that the arms which allocate from the same memory as the arm @in need together. */
static double needed_bytes(const sweep *s, const lane *in) {
    double bytes = 0;
    for (int i = 0; i < s->n; i++) {
        const lane *l = &s->lanes[i];
        if (l->of.backend && same_memory(l, in))
            bytes += bench_arm_bytes(&s->shape, l->of.kind, l->of.format, sets_of(s, l));
    }
    return bytes;
}

void sweep_find_code(lane *l, const char *kernel) {
    kernel_code *code = &l->code;
    bool other = kernel && (!code->kernel || strcmp(kernel, code->kernel) != 0);
    if (other && l->of.code_is_file) {
        code->known = l->of.kernel_hash != NULL;
        (void)snprintf(code->hash, sizeof code->hash, "%s", code->known ? l->of.kernel_hash : "");
    } else if (other) {
        code->known = code_hash_device(kernel, code->hash, NULL) == SNAP_OK;
    }
    code->kernel = kernel;
}

static snap_status build_arm(sweep *s, lane *l, snap_err *err) {
    cell *c = &l->cell;
    double need = needed_bytes(s, l), have = (double)l->context.backend.memory_bytes;
    snap_err why = {0};
    snap_status st;
    if (have > 0 && need > kMemoryShare * have)
        st = err_set(&why, SNAP_E_NOMEM, "the shape needs %.1f GiB, the device has %.1f GiB",
                     need / 0x1p30, have / 0x1p30);
    else
        st = bench_arm_create(&c->arm, l->of.backend, &s->shape, l->of.kind, l->of.format, &l->from,
                              sets_of(s, l), s->flush, &why);
    if (st == SNAP_OK)
        sweep_find_code(l, bench_arm_kernel(c->arm));
    return settle(c, st, &why, err);
}

/* Whether the steps of an arm start with a cold cache, although no flush precedes them: because
 * they rotate through copies of the data, or because the one copy of a loop has at least four times
 * the size of the cache. */
static bool starts_cold(const sweep *s, const lane *l) {
    size_t cache = l->context.backend.cache_bytes;
    return l->context.sustained ? bench_arm_is_large(&s->shape, l->of.kind, l->of.format, cache)
                                : cache > 0;
}

/* How steps of the shape start with a cold cache: "flush"; "rotate", if no flush precedes them but
 * every arm starts cold; or "none": the cache may be warm. All arms get the same name, because
 * times are compared within a shape. An arm that could not be created has no times, so it does
 * not count. */
static const char *coldness(const sweep *s) {
    bool cold = true;
    for (int i = 0; i < s->n; i++)
        cold &= !s->lanes[i].cell.arm || starts_cold(s, &s->lanes[i]);
    if (s->flush)
        return "flush";
    return cold ? "rotate" : "none";
}

static snap_status build_arms(sweep *s, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < s->n && st == SNAP_OK; i++) {
        lane *l = &s->lanes[i];
        note(s, "filling the cache");
        st = check_cancel(s, err);
        if (st == SNAP_OK && l->of.backend)
            st = build_arm(s, l, err);
        else if (!l->of.backend)
            l->cell = (cell){.status = ROW_ERROR, .why = l->of.why};
    }
    s->cold = coldness(s);
    return st;
}

static void drop_arms(sweep *s) {
    for (int i = 0; i < s->n; i++) {
        cell *c = &s->lanes[i].cell;
        bench_arm_free(c->arm);
        verified_release(&c->verdict);
        stop_release(&c->timing);
        *c = (cell){0};
    }
    packed_references_release(&s->known);
}

/* ---- one scope ---- */

static bool takes_part(const lane *l, bench_scope scope) {
    return l->cell.arm && bench_kind_has(l->of.kind, scope);
}

/* A cell with a wrong result gets the status ROW_FAILED, so its row has no times. */
static void apply_verdict(cell *c) {
    if (c->status != ROW_PASSED || c->verdict.verdict == SNAP_OK)
        return;
    c->status = ROW_FAILED;
    c->why = c->verdict.why;
}

/* Removes what the scope before left in the arm's cell, except the verdict: verify_arm() keeps it
 * if the output is the same. */
static void clear_scope(lane *l) {
    cell *c = &l->cell;
    stop_release(&c->timing);
    *c = (cell){.arm = c->arm, .verdict = c->verdict};
    l->probes = (paired_probes){.device = l->device};
}

static snap_status check_arm(sweep *s, cell *c, bench_scope scope, snap_err *err) {
    snap_err why = {0};
    note(s, "checking against FP64");
    snap_status st = verify_arm(&c->verdict, c->arm, scope, &s->known, s->opt->seed, &why);
    if (st != SNAP_OK) /* the verdict of the scope before does not hold for this one */
        verified_release(&c->verdict);
    st = settle(c, st, &why, err);
    apply_verdict(c);
    return st;
}

/* The arms that take turns in one measurement. */
typedef struct {
    lane *lanes[SWEEP_ARMS];
    bench_arm *arms[SWEEP_ARMS];
    stop_rule rules[SWEEP_ARMS];
    paired_probes *probes[SWEEP_ARMS];
    energy_meter *meters[SWEEP_ARMS];
    double power_w[SWEEP_ARMS];
    int n, failed;
} turns;

static void collect(sweep *s, bench_scope scope, turns *t) {
    *t = (turns){.failed = -1};
    for (int i = 0; i < s->n; i++) {
        lane *l = &s->lanes[i];
        l->probes = (paired_probes){.device = l->device};
        if (!takes_part(l, scope) || l->cell.status != ROW_PASSED)
            continue;
        stop_init(&t->rules[t->n], &s->opt->limits);
        t->power_w[t->n] = (double)NAN;
        t->meters[t->n] = l->meter;
        t->lanes[t->n] = l;
        t->arms[t->n] = l->cell.arm;
        t->probes[t->n++] = &s->lanes[l->of.rates].probes;
    }
}

static snap_status time_turns(sweep *s, bench_scope scope, turns *t, snap_err *err) {
    bool sustained = s->opt->sustained_s > 0;
    if (sustained)
        return sustained_measure(t->arms, t->n, scope, s->opt->sustained_s, t->rules, t->meters,
                                 t->power_w, s->opt->cancel, &t->failed, err);
    return interleave_measure(t->arms, t->n, scope, t->rules, s->flush ? s->opt->rest : 0,
                              t->probes, s->opt->cancel, &t->failed, err);
}

/* Times the arms alternately. An arm with an error gets that status, and the others are timed again
 * from the beginning. An error that is not that of one arm becomes the status of all. */
static snap_status time_arms(sweep *s, bench_scope scope, snap_err *err) {
    snap_status out = SNAP_OK;
    for (bool again = true; again && out == SNAP_OK;) {
        turns t;
        snap_err why = {0};
        collect(s, scope, &t);
        if (!t.n)
            return SNAP_OK;
        note(s, bench_scope_name(scope));
        snap_status st = time_turns(s, scope, &t, &why);
        again = st != SNAP_OK && t.failed >= 0;
        for (int i = 0; i < t.n; i++) {
            cell *c = &t.lanes[i]->cell;
            c->power_w = t.power_w[i];
            c->host_limited = bench_arm_is_host_limited(t.arms[i]);
            if (again)
                stop_release(&t.rules[i]);
            else
                c->timing = t.rules[i];
            if (out == SNAP_OK && (!again || i == t.failed))
                out = settle(c, st, &why, err);
        }
    }
    return out;
}

static snap_status check_again(sweep *s, cell *c, bench_scope scope, snap_err *err) {
    snap_err why = {0};
    note(s, "checking the timed output");
    snap_status st = verify_timed(&c->verdict, c->arm, scope, &s->known, s->opt->seed, &why);
    st = settle(c, st, &why, err);
    apply_verdict(c);
    return st;
}

static snap_status run_scope(sweep *s, bench_scope scope, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < s->n; i++) {
        cell *c = &s->lanes[i].cell;
        if (!takes_part(&s->lanes[i], scope))
            continue;
        clear_scope(&s->lanes[i]);
        c->status = ROW_PASSED;
        TRY(check_cancel(s, err));
        TRY(check_arm(s, c, scope, err));
    }
    moment before, after;
    sweep_take_moment(s, &before);
    TRY(time_arms(s, scope, err));
    sweep_take_moment(s, &after);
    sweep_note_speed(s);
    for (int i = 0; i < s->n; i++)
        if (takes_part(&s->lanes[i], scope) && s->lanes[i].cell.status == ROW_PASSED) {
            TRY(check_cancel(s, err));
            TRY(check_again(s, &s->lanes[i].cell, scope, err));
        }
    for (int i = 0; i < s->n; i++)
        if (sweep_is_requested(&s->lanes[i], scope))
            TRY(sweep_add_row(s, i, scope, &before, &after, err));
cleanup:
    return st;
}

/* Adds the rows of a scope for which no time is left. */
static snap_status skip_scope(sweep *s, bench_scope scope, const snap_err *why, snap_err *err) {
    snap_status st = SNAP_OK;
    moment now;
    sweep_take_moment(s, &now);
    for (int i = 0; i < s->n && st == SNAP_OK; i++) {
        if (!sweep_is_requested(&s->lanes[i], scope))
            continue;
        lane *l = &s->lanes[i];
        verified_release(&l->cell.verdict);
        clear_scope(l);
        l->cell.status = l->of.backend ? ROW_SKIPPED : ROW_ERROR;
        l->cell.why = l->of.backend ? *why : l->of.why;
        st = sweep_add_row(s, i, scope, &now, &now, err);
    }
    return st;
}

/* ---- the grid ---- */

/* Rows that an earlier run has are also taken over after a cancellation. */
static snap_status run_shape(sweep *s, snap_err *err) {
    snap_status st = SNAP_OK;
    snap_err why = {0};
    bool built = false;
    s->cold = NULL;
    for (int scope = 0; scope < BENCH_SCOPES; scope++) {
        if (!s->opt->grid->scope[scope])
            continue;
        if (sweep_scope_found(s, (bench_scope)scope)) {
            TRY(sweep_take_over(s, (bench_scope)scope, err));
            continue;
        }
        TRY(check_cancel(s, err));
        if (sweep_is_late(s, &why)) {
            TRY(skip_scope(s, (bench_scope)scope, &why, err));
            continue;
        }
        if (!built)
            TRY(build_arms(s, err));
        built = true;
        TRY(run_scope(s, (bench_scope)scope, err));
    }
cleanup:
    drop_arms(s);
    return st;
}

static int rows_of_kind(const bench_grid *g, bench_kind k) {
    int rows = 0;
    for (int scope = 0; scope < BENCH_SCOPES; scope++)
        rows += g->scope[scope] && bench_kind_has(k, (bench_scope)scope);
    return rows;
}

int sweep_count(const bench_grid *g) {
    int rows = 0; /* rows of one shape */
    for (int k = 0; k < BENCH_ARMS; k++)
        rows += g->arm[k] ? rows_of_kind(g, (bench_kind)k) : 0;
    return bench_grid_shapes(g) * rows;
}

int sweep_total(const sweep_options *opt) {
    int rows = 0;
    for (int i = 0; i < opt->n_arms; i++)
        rows += rows_of_kind(opt->grid, opt->arms[i].kind);
    return opt->n_arms ? bench_grid_shapes(opt->grid) * rows : sweep_count(opt->grid);
}

/* ---- the arms ---- */

static int list_arms(const sweep_options *opt, sweep_arm out[SWEEP_ARMS]) {
    int n = 0;
    for (; n < opt->n_arms && n < SWEEP_ARMS; n++)
        out[n] = opt->arms[n];
    for (int k = 0; k < BENCH_ARMS && !opt->n_arms; k++)
        if (opt->grid->arm[k])
            out[n++] = (sweep_arm){.kind = (bench_kind)k,
                                   .backend = opt->backend,
                                   .kernel_hash = opt->kernel_hash,
                                   .code_is_file = opt->code_is_file};
    return n;
}

/* The first lane before @l on the same NVIDIA device, or NULL. */
static const lane *lane_of_device(const sweep *s, const lane *l) {
    for (const lane *k = s->lanes; k < l; k++)
        if (k->device && strcmp(k->context.backend.pci, l->context.backend.pci) == 0)
            return k->same_device ? k->same_device : k;
    return NULL;
}

/* Describes the backend of an arm and gives it the random numbers. */
static snap_status open_lane(lane *l, const sweep_arm *of, const sweep *s, snap_err *err) {
    l->of = *of;
    l->context = (row_context){.name = of->name,
                               .options = of->options,
                               .format = of->format,
                               .ceilings = s->opt->n_arms ? s->opt->arms[of->rates].name : NULL,
                               .kernel_hash = of->kernel_hash,
                               .challenge = s->opt->challenge,
                               .challenge_hash = s->opt->challenge_hash,
                               .distribution = numbers_kind_name(s->opt->distribution),
                               .sustained = s->opt->sustained_s > 0};
    numbers_share(&l->from, &s->from);
    if (!of->backend)
        return SNAP_OK;
    mla_backend_describe(of->backend, &l->context.backend);
    l->same_device = lane_of_device(s, l);
    l->device = l->same_device ? l->same_device->device : gpu_open(l->context.backend.pci);
    snap_status st = energy_open(&l->meter, "/sys", &l->context.backend, l->device, err);
    if (st != SNAP_OK)
        return st;
    return numbers_upload(&l->from, of->backend, err);
}

/* Arms in one memory use the same cache, but not every backend reports its size. The largest size
 * that one of them reports is used for all. */
static void share_cache_size(sweep *s) {
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->n; k++) {
            const lane *from = &s->lanes[k];
            size_t *size = &s->lanes[i].context.backend.cache_bytes;
            if (same_memory(&s->lanes[i], from) && *size < from->context.backend.cache_bytes)
                *size = from->context.backend.cache_bytes;
        }
}

/* All arms start with a cold cache in the same way, so their caches are flushed only if each
 * backend can do it. */
static bool can_flush(const sweep_arm *arms, int n) {
    bool can = true;
    for (int i = 0; i < n; i++)
        can &= !arms[i].backend || lab_can_flush(arms[i].backend);
    return can;
}

snap_status sweep_run(const sweep_options *opt, js *rows, snap_err *err) {
    const bench_grid *g = opt->grid;
    sweep_arm arms[SWEEP_ARMS] = {{0}};
    sweep s = {.opt = opt, .rows = rows, .n = list_arms(opt, arms)};
    snap_status st = SNAP_OK, stopped = SNAP_OK;
    s.flush = can_flush(arms, s.n) && !(opt->sustained_s > 0);
    s.started = clock_now_ns();
    s.lanes = calloc((size_t)s.n + 1, sizeof *s.lanes);
    if (!s.lanes)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %d arms", s.n);
    TRY(numbers_create(&s.from, opt->distribution, g->d_c, g->d_r, opt->seed, err));
    for (int i = 0; i < s.n; i++)
        TRY(open_lane(&s.lanes[i], &arms[i], &s, err));
    share_cache_size(&s);
    for (int i = 0; i < bench_grid_shapes(g); i++) {
        s.shape = bench_grid_shape(g, i);
        if (opt->lengths) {
            s.shape.context = lengths_draw(opt->lengths, opt->seed, s.shape.batch, s.lengths);
            s.shape.lengths = s.lengths;
            s.shape.lengths_text = opt->lengths->text;
        }
        st = run_shape(&s, err);
        if (st == SNAP_E_CANCELLED)
            stopped = st;
        else
            TRY(st);
    }
    st = stopped;
cleanup:
    for (int i = 0; i < s.n; i++) {
        numbers_release(&s.lanes[i].from);
        energy_close(s.lanes[i].meter);
    }
    for (int i = 0; i < s.n; i++)
        if (!s.lanes[i].same_device)
            gpu_close(s.lanes[i].device);
    numbers_release(&s.from);
    free(s.lanes);
    return st;
}
