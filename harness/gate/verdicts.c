#include "harness/gate/verdicts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

verdict_record verdict_start(const char *kind, const char *name, const char *verdict,
                             const char *reason, unsigned parts) {
    verdict_record v;
    record_init(&verdict_type, &v);
    v.parts = parts;
    v.kind = kind;
    v.name = name;
    v.verdict = verdict;
    v.reason = reason;
    return v;
}

js *verdict_new(const char *kind, const char *name, const char *verdict, const char *reason) {
    verdict_record v = verdict_start(kind, name, verdict, reason, 0);
    return record_write(&verdict_type, &v);
}

/* ---- a timed cell ---- */

static bool same_kernels(const gate_timed *t, const gate_side arms[2]) {
    const remote_cell *a = &t->about[0], *b = &t->about[1];
    return a->kernel_hash[0] && strcmp(a->kernel_hash, b->kernel_hash) == 0 &&
           strcmp(a->kernel, b->kernel) == 0 && t->precision[0] == t->precision[1] &&
           strcmp(arms[0].backend, arms[1].backend) == 0 && strcmp(arms[0].isa, arms[1].isa) == 0 &&
           arms[0].threads == arms[1].threads && !gate_slowing_any(&arms[0].slowing) &&
           !gate_slowing_any(&arms[1].slowing);
}

/* Whether both arms ran the same code. The program must match too: the host launches the kernels
 * and plans the split-KV work. A difference between two such arms is noise of the machine. */
static bool same_code(const gate_timed *t, const gate_side arms[2]) {
    const remote_cell *a = &t->about[0], *b = &t->about[1];
    return same_kernels(t, arms) && a->program_hash[0] &&
           strcmp(a->program_hash, b->program_hash) == 0;
}

static const char *blame(const gate_timed *t, const gate_side arms[2], char text[400]) {
    for (int i = 0; i < 2; i++)
        if (strcmp(t->about[i].status, "passed") != 0) {
            (void)snprintf(text, 400, "%s: %s", arms[i].name, t->about[i].reason);
            return strcmp(t->about[i].status, "failed") == 0 ? "wrong" : "missing";
        }
    return NULL;
}

static const char *judge(const gate_timed *t, const gate_test *c, bool tail,
                         const gate_side arms[2], const char **reason) {
    *reason = NULL;
    if (c->state == GATE_OK || (tail && c->state == GATE_INCONCLUSIVE))
        return "ok";
    if (t->throttled) {
        *reason = "the machine throttled during the measurement";
        return "invalid";
    }
    if (c->state == GATE_INCONCLUSIVE) {
        *reason = "not enough evidence for either slower or not slower: use more sessions or a "
                  "quieter machine";
        return "inconclusive";
    }
    if (!same_code(t, arms)) {
        *reason = same_kernels(t, arms) ? "the kernels' machine code is the same in both arms: the "
                                          "cause is the host's part of a step, or noise"
                                        : NULL;
        return "regressed";
    }
    *reason = "the machine code is the same in both arms";
    return "noise";
}

/* The statistic @s of an arm's times, in nanoseconds. */
static double time_of(const gate_timed *t, gate_statistic s, int arm) {
    return s == GATE_QUARTILE ? gate_timed_median(t, arm)
           : s == GATE_MEAN   ? t->mean[arm]
                              : t->p99[arm];
}

static js *row_of(const gate_timed *t, const gate_cell *c, gate_statistic s,
                  const gate_estimate *est, const gate_side arms[2]) {
    char few[120];
    const gate_test *test = &c->test[s];
    const char *reason = NULL, *flags[2];
    const char *verdict = test->x ? judge(t, test, s != GATE_QUARTILE, arms, &reason) : NULL;
    size_t n_flags = 0;
    if (!test->x) {
        tail_steps steps = gate_timed_steps(t);
        (void)snprintf(few, sizeof few, "not judged: %zu steps of each arm, of at least %d",
                       steps.sessions * steps.steps, TAIL_FEWEST);
        reason = few;
    }
    verdict_record v =
        verdict_start("speed", t->name, verdict, reason, VERDICT_COMPARED | VERDICT_TIMED);
    if (t->throttled)
        flags[n_flags++] = "throttled";
    if (t->shared)
        flags[n_flags++] = "shared";
    v.statistic = gate_statistic_name(s);
    v.baseline = arms[0].name;
    v.current = arms[1].name;
    v.baseline_ns = time_of(t, s, 0);
    v.current_ns = time_of(t, s, 1);
    v.ratio = s == GATE_P99 ? v.current_ns / v.baseline_ns : exp(est->ratio.centre);
    v.ci90[0] = exp(est->ratio.lo);
    v.ci90[1] = exp(est->ratio.hi);
    v.threshold = exp(t->limit[s]);
    if (s == GATE_P99)
        v.visible_pp = 100 * est->visible;
    else
        v.visible = exp(est->visible);
    v.sessions = (int64_t)t->n;
    v.p_slower = test->p_slower;
    v.p_holm = test->p_holm;
    v.p_within = s == GATE_QUARTILE ? c->p_within : (double)NAN;
    v.baseline_hash = t->about[0].kernel_hash;
    v.current_hash = t->about[1].kernel_hash;
    if (s == GATE_P99)
        v.slow_shares = (record_numbers){t->x[s], t->n};
    else
        v.log_ratios = (record_numbers){t->x[s], t->n};
    if (s == GATE_QUARTILE) {
        v.baseline_samples_ns = (record_numbers){t->ns[0], GATE_TURNS * t->n};
        v.current_samples_ns = (record_numbers){t->ns[1], GATE_TURNS * t->n};
    }
    v.flags = (record_texts){flags, n_flags};
    return record_write(&verdict_type, &v);
}

bool verdicts_of_cell(const gate_timed *t, const gate_cell *c,
                      const gate_estimate est[GATE_STATISTICS], const gate_side arms[2], js *rows) {
    char text[400];
    const char *fault = blame(t, arms, text);
    if (fault)
        return js_push_new(rows, verdict_new("speed", t->name, fault, text));
    bool ok = true;
    for (int s = 0; s < GATE_STATISTICS && ok; s++)
        ok = js_push_new(rows, row_of(t, c, (gate_statistic)s, &est[s], arms));
    return ok;
}

js *verdict_of_mean(const rank_estimate *cells, size_t n) {
    gate_mean mean = gate_mean_of(cells, n);
    verdict_record v = verdict_start("geomean", "geometric mean", NULL, NULL, VERDICT_MEAN);
    v.ratio = mean.ratio;
    v.ci90[0] = mean.lo;
    v.ci90[1] = mean.hi;
    v.cells = (int64_t)n;
    return record_write(&verdict_type, &v);
}

/* ---- the status of all verdicts ---- */

static bool is(const verdict_record *v, const char *kind, const char *verdict) {
    return (!kind || strcmp(v->kind, kind) == 0) && strcmp(v->verdict, verdict) == 0;
}

verdict_list verdict_read(const js *rows, arena *mem, bool *failed) {
    verdict_list all = {0};
    *failed |= !record_read_all(&verdict_type, rows, mem, &all.at, &all.n);
    return all;
}

size_t verdict_list_count(const verdict_list *all, const char *kind, const char *verdict) {
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        n += is(&all->at[i], kind, verdict);
    return n;
}

size_t verdict_count(const js *rows, const char *kind, const char *verdict) {
    arena mem = {0};
    bool failed = false;
    verdict_list all = verdict_read(rows, &mem, &failed);
    size_t n = verdict_list_count(&all, kind, verdict);
    arena_release(&mem);
    return n;
}

bool verdict_is_bad(const verdict_record *v) {
    return v->verdict[0] && !is(v, NULL, "ok") && !is(v, NULL, "noise");
}

typedef struct {
    const char *kind, *verdict; /* kind NULL = any kind */
    snap_status status;
    const char *text;
} outcome;

static const outcome kOutcomes[] = {
    {NULL, "wrong", SNAP_E_WRONG, "gave a wrong result"},
    {"environment", "invalid", SNAP_E_ENV, "can't be judged"},
    {"quality", "regressed", SNAP_E_WORSE, "regressed in quality"},
    {"forecast", "regressed", SNAP_E_WORSE, "predict a loss of accuracy"},
    {"fidelity", "regressed", SNAP_E_WORSE, "regressed in numerical error"},
    {"speed", "regressed", SNAP_E_SLOWER, "regressed in speed"},
    {"serving", "regressed", SNAP_E_SLOWER, "regressed under load"},
    {NULL, "invalid", SNAP_E_ENV, "can't be judged"},
    {NULL, "inconclusive", SNAP_E_OPEN, "are inconclusive"},
    {NULL, "missing", SNAP_E_OPEN, "are missing"},
};

static snap_status report(const verdict_list *all, const outcome *o, size_t n, snap_err *err) {
    const verdict_record *first = all->at;
    while (!is(first, o->kind, o->verdict))
        first++;
    char by[48] = "";
    if (!isnan(first->ratio))
        (void)snprintf(by, sizeof by, " (%+.1f %%)", 100 * (first->ratio - 1));
    else if (strcmp(o->verdict, "regressed") == 0 && !isnan(first->delta_pp))
        (void)snprintf(by, sizeof by, " (%+.1f pp)", first->delta_pp);
    return err_set(err, o->status, "%zu of %zu verdicts %s, first: %s%s%s%s%s%s", n,
                   all->n - verdict_list_count(all, NULL, ""), o->text, first->name,
                   first->statistic[0] ? ", " : "", first->statistic, by,
                   first->reason[0] ? ": " : "", first->reason);
}

snap_status verdict_status(const js *rows, snap_err *err) {
    arena mem = {0};
    bool failed = false;
    verdict_list all = verdict_read(rows, &mem, &failed);
    snap_status st = SNAP_OK;
    if (failed)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for verdicts");
    for (size_t i = 0; i < sizeof kOutcomes / sizeof *kOutcomes && st == SNAP_OK; i++) {
        size_t n = verdict_list_count(&all, kOutcomes[i].kind, kOutcomes[i].verdict);
        if (n)
            st = report(&all, &kOutcomes[i], n, err);
    }
    arena_release(&mem);
    return st;
}
