#include "harness/gate/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "harness/measure/env.h"
#include "harness/measure/stats.h"

enum { kFewestSteps = 3, kEnoughSteps = 48, kMostSteps = 256 };
static const double kTurnNs = 4e6; /* wanted duration of a turn; long compared with one exchange
                                      with the child process */
static const double kQuantile = 0.25;
static const double kInterval = 0.05; /* share beyond each end of the reported interval */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- the list of cells ---- */

static void put_name(gate_timed *c) {
    bool same = c->precision[0] == c->precision[1];
    (void)snprintf(c->name, sizeof c->name, "%s%s%s %s H%d s%d b%d c%lld", c->precision[0],
                   same ? "" : ":", same ? "" : c->precision[1], bench_scope_name(c->scope),
                   c->shape.heads, c->shape.s_q, c->shape.batch, (long long)c->shape.context);
}

/* The precision that arm @i names, or else the one that the other arm names. NULL if neither arm
 * names one. */
static const char *named_precision(const gate_side arms[2], int i) {
    bench_kind k;
    for (int turn = 0; turn < 2; turn++)
        if (bench_kind_parse(arms[(i + turn) % 2].precision, &k))
            return bench_kind_name(k);
    return NULL;
}

/* If an arm names its precision, there is one pair for each shape and scope. Otherwise there is one
 * pair for each precision of the grid. */
static int precisions_of(const bench_grid *g, const gate_side arms[2],
                         const char *pairs[BENCH_ARMS][2]) {
    int n = 0;
    if (named_precision(arms, 0)) {
        pairs[n][0] = named_precision(arms, 0);
        pairs[n++][1] = named_precision(arms, 1);
        return n;
    }
    for (int p = 0; p < BENCH_ARMS; p++)
        if (g->arm[p]) {
            pairs[n][0] = pairs[n][1] = bench_kind_name((bench_kind)p);
            n++;
        }
    return n;
}

snap_status gate_timed_new(gate_timed **out, size_t *n, const bench_grid *grid,
                           const gate_side arms[2], snap_err *err) {
    const char *pairs[BENCH_ARMS][2];
    int precisions = precisions_of(grid, arms, pairs), shapes = bench_grid_shapes(grid);
    size_t all = (size_t)shapes * (size_t)precisions * (size_t)(grid->scope[0] + grid->scope[1]);
    *out = NULL;
    *n = 0;
    if (all > GATE_CELLS)
        return err_set(err, SNAP_E_USAGE, "%zu cells are too many for a gate (at most %d)", all,
                       GATE_CELLS);
    gate_timed *cells = calloc(all + 1, sizeof *cells);
    if (!cells)
        return err_set(err, SNAP_E_NOMEM, "out of memory for cells");
    for (int i = 0; i < shapes; i++)
        for (int scope = 0; scope < BENCH_SCOPES; scope++)
            for (int p = 0; p < precisions && grid->scope[scope]; p++) {
                gate_timed *c = &cells[(*n)++];
                *c = (gate_timed){.shape = bench_grid_shape(grid, i),
                                  .scope = (bench_scope)scope,
                                  .precision = {pairs[p][0], pairs[p][1]}};
                put_name(c);
            }
    *out = cells;
    return SNAP_OK;
}

void gate_timed_free_one(gate_timed *c) {
    for (int s = 0; s < GATE_STATISTICS; s++)
        free(c->x[s]);
    for (int arm = 0; arm < 2; arm++) {
        free(c->ns[arm]);
        free(c->steps_ns[arm]);
    }
}

void gate_timed_free(gate_timed *cells, size_t n) {
    for (size_t i = 0; cells && i < n; i++)
        gate_timed_free_one(&cells[i]);
    free(cells);
}

bool gate_timed_passed(const gate_timed *c) {
    return strcmp(c->about[0].status, "passed") == 0 && strcmp(c->about[1].status, "passed") == 0;
}

double gate_timed_median(const gate_timed *c, int arm) {
    double sorted[GATE_TURNS * RANK_MAX];
    size_t n = GATE_TURNS * c->n;
    if (!n)
        return (double)NAN;
    memcpy(sorted, c->ns[arm], n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return stats_quantile(sorted, n, 0.5);
}

/* ---- tests ---- */

tail_steps gate_timed_steps(const gate_timed *c) {
    return (tail_steps){{c->steps_ns[0], c->steps_ns[1]}, c->n, (size_t)(GATE_TURNS * c->steps)};
}

static double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

static void set_mean(gate_timed *c, const tail_steps *steps) {
    double each[2][RANK_MAX];
    for (int arm = 0; arm < 2; arm++) {
        tail_means(steps, arm, each[arm]);
        c->mean[arm] = mean_of(each[arm], c->n);
    }
    for (size_t k = 0; k < c->n; k++)
        c->x[GATE_MEAN][k] = log(each[1][k] / each[0][k]);
    c->limit[GATE_MEAN] = fmax(c->limit[GATE_QUARTILE], tail_wander(each[0], c->n));
}

static snap_status set_p99(gate_timed *c, const tail_steps *steps, snap_err *err) {
    double each[RANK_MAX];
    snap_status st = SNAP_OK;
    TRY(tail_p99(steps, 0, &c->p99[0], each, err));
    TRY(tail_p99(steps, 1, &c->p99[1], NULL, err));
    c->limit[GATE_P99] = fmax(c->limit[GATE_QUARTILE], tail_wander(each, c->n));
    TRY(tail_shares(steps, c->limit[GATE_P99], c->x[GATE_P99], err));
cleanup:
    return st;
}

snap_status gate_timed_tests(gate_timed *c, const gate_limits *l, gate_cell *out, snap_err *err) {
    tail_steps steps = gate_timed_steps(c);
    c->limit[GATE_QUARTILE] = gate_threshold(l, gate_timed_median(c, 0));
    set_mean(c, &steps);
    snap_status st = set_p99(c, &steps, err);
    out->n = c->n;
    for (int s = 0; s < GATE_STATISTICS; s++) {
        bool enough = s != GATE_P99 || steps.sessions * steps.steps >= TAIL_FEWEST;
        out->test[s].x = enough ? c->x[s] : NULL;
        /* for p99, tail_shares() has applied the threshold already */
        out->test[s].threshold = s == GATE_P99 ? 0 : c->limit[s];
    }
    return st;
}

snap_status gate_timed_estimate(const gate_cell *c, double level,
                                gate_estimate out[GATE_STATISTICS], snap_err *err) {
    snap_status st = SNAP_OK;
    for (int s = 0; s < GATE_STATISTICS; s++) {
        const gate_test *t = &c->test[s];
        size_t n = t->x ? c->n : 0;
        rank_estimate strict, interval;
        TRY(rank_centre(t->x, n, level, &strict, err));
        TRY(rank_centre(t->x, n, kInterval, &interval, err));
        out[s].visible = t->threshold + strict.centre - strict.lo;
        out[s].ratio =
            s == GATE_P99 ? (rank_estimate){(double)NAN, (double)NAN, (double)NAN} : interval;
    }
cleanup:
    return st;
}

/* ---- measuring ---- */

/* The array with room for @bytes. If memory is short, it is unchanged and *ok false. */
static void *grown(void *array, size_t bytes, bool *ok) {
    void *more = realloc(array, bytes);
    *ok = *ok && more;
    return more ? more : array;
}

/* Makes room for one more session, whose turns have c->steps steps. */
static snap_status make_room(gate_timed *c, snap_err *err) {
    size_t n = c->n + 1, turns = GATE_TURNS * n, steps = turns * (size_t)c->steps;
    bool ok = true;
    if (n > RANK_MAX)
        return err_set(err, SNAP_E_USAGE, "a cell may have %d sessions at most", RANK_MAX);
    for (int s = 0; s < GATE_STATISTICS; s++)
        c->x[s] = grown(c->x[s], n * sizeof *c->x[s], &ok);
    for (int arm = 0; arm < 2; arm++) {
        c->ns[arm] = grown(c->ns[arm], turns * sizeof *c->ns[arm], &ok);
        c->steps_ns[arm] = grown(c->steps_ns[arm], steps * sizeof *c->steps_ns[arm], &ok);
    }
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for %zu sessions", n);
}

static int steps_of_turn(double step_ns) {
    double steps = ceil(kTurnNs / step_ns);
    return (int)fmin(fmax(steps, kFewestSteps), kMostSteps);
}

/* Flushing the caches before a step takes time that step_ns does not contain. So a turn of short
 * steps can last longer than kTurnNs. Lowers the number of steps to what fits, but not below
 * kEnoughSteps. @elapsed_ns is the duration of the shortest of several turns of @steps steps. */
static int steps_that_fit(int steps, double elapsed_ns) {
    double fit = ceil(steps * kTurnNs / fmax(elapsed_ns, 1));
    return (int)fmin(steps, fmax(fit, kEnoughSteps));
}

/* Stores the times of the steps of turn @at, counted over all sessions, of an arm. Sorts them. */
static void keep_turn(gate_timed *c, int arm, size_t at, double times[kMostSteps]) {
    size_t n = (size_t)c->steps;
    for (size_t i = 0; i < n; i++)
        c->steps_ns[arm][n * at + i] = (float)times[i];
    qsort(times, n, sizeof *times, by_value);
    c->ns[arm][at] = stats_quantile(times, n, kQuantile);
}

static snap_status turn(gate_timed *c, gate_remote *const arms[2], int arm, size_t at,
                        snap_err *err) {
    double times[kMostSteps];
    snap_status st = remote_steps(arms[arm], c->steps, times, err);
    if (st == SNAP_OK)
        keep_turn(c, arm, at, times);
    return st;
}

/* Times the four turns of block @b of the current session. *elapsed_ns is the duration of the
 * shortest one. */
static snap_status block(gate_timed *c, gate_remote *const arms[2], size_t b, double *elapsed_ns,
                         snap_err *err) {
    static const int order[] = {0, 1, 1, 0};
    size_t at[2] = {GATE_TURNS * c->n + 2 * b, GATE_TURNS * c->n + 2 * b};
    int first = (int)((c->n + b) % 2);
    *elapsed_ns = INFINITY;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        int arm = order[i] ^ first;
        int64_t begun = clock_now_ns();
        snap_status st = turn(c, arms, arm, at[arm]++, err);
        if (st != SNAP_OK)
            return st;
        *elapsed_ns = fmin(*elapsed_ns, (double)(clock_now_ns() - begun));
    }
    return SNAP_OK;
}

/* Times the blocks of a session. If the first block of a cell shows that its turns last too long,
 * it is timed again with fewer steps, because all turns of a cell have the same number of steps. */
static snap_status blocks(gate_timed *c, gate_remote *const arms[2], snap_err *err) {
    double elapsed_ns;
    snap_status st = make_room(c, err);
    for (size_t b = 0; b < GATE_BLOCKS && st == SNAP_OK; b++) {
        int steps = c->steps;
        st = block(c, arms, b, &elapsed_ns, err);
        if (st != SNAP_OK || c->n || b)
            continue;
        c->steps = steps_that_fit(steps, elapsed_ns);
        if (c->steps < steps)
            st = block(c, arms, b, &elapsed_ns, err);
    }
    return st;
}

/* The time of an arm in the current session: a quantile of its turns. */
static double session_time(const gate_timed *c, int arm) {
    double sorted[GATE_TURNS];
    memcpy(sorted, c->ns[arm] + GATE_TURNS * c->n, sizeof sorted);
    qsort(sorted, GATE_TURNS, sizeof *sorted, by_value);
    return stats_quantile(sorted, GATE_TURNS, kQuantile);
}

/* Stores the log-ratio of the current session, all of whose turns were timed, and counts the
 * session. */
static void count_session(gate_timed *c) {
    c->x[GATE_QUARTILE][c->n] = log(session_time(c, 1)) - log(session_time(c, 0));
    c->n++;
}

/* Builds the cell in both arms. The arm that builds first gets the first choice of the device's
 * memory, and this can make it faster or slower throughout. So the arms alternate in building
 * first, with a period of four sessions; the order in which they are started has a period of
 * two. */
static snap_status begin(gate_timed *c, gate_remote *const arms[2], snap_err *err) {
    for (size_t turn = 0; turn < 2; turn++) {
        size_t i = (turn + c->n / 2) % 2;
        snap_status st =
            remote_begin(arms[i], &c->shape, c->precision[i], c->scope, &c->about[i], err);
        if (st != SNAP_OK)
            return st;
    }
    if (gate_timed_passed(c) && !c->steps)
        c->steps = steps_of_turn(fmin(c->about[0].step_ns, c->about[1].step_ns));
    return SNAP_OK;
}

static double cpu_of(const gate_timed *c) {
    return c->about[0].cpu_s + c->about[1].cpu_s;
}

static snap_status end(gate_timed *c, gate_remote *const arms[2], snap_err *err) {
    for (int i = 0; i < 2; i++) {
        if (strcmp(c->about[i].status, "skipped") == 0)
            continue;
        snap_status st = remote_end(arms[i], &c->about[i], err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

snap_status gate_timed_extend(gate_timed *c, gate_remote *const arms[2], snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(begin(c, arms, err));
    double cpu_s = cpu_of(c);
    env_state before = env_now();
    bool timed = gate_timed_passed(c);
    if (timed)
        TRY(blocks(c, arms, err));
    env_state after = env_now();
    TRY(end(c, arms, err));
    after.own_s += cpu_of(c) - cpu_s; /* the arms' own time is not load by others */
    env_flags flags = env_between(&before, &after);
    c->throttled |= flags.throttled;
    c->shared |= flags.shared;
    if (timed)
        count_session(c);
    if (!gate_timed_passed(c))
        c->n = 0;
cleanup:
    return st;
}

/* ---- what a slower arm would have shown ---- */

snap_status gate_timed_slowed(const gate_timed *c, bool swap, const gate_slowing *slowing,
                              uint64_t seed, gate_timed *out, snap_err *err) {
    rng random = rng_make(seed, 0);
    size_t n = (size_t)c->steps;
    snap_status st = SNAP_OK;
    *out = (gate_timed){.steps = c->steps};
    while (out->n < c->n && st == SNAP_OK) {
        int64_t step = rng_below(&random, UINT32_MAX), begun = rng_below(&random, UINT32_MAX);
        st = make_room(out, err);
        for (size_t t = 0; t < GATE_TURNS && st == SNAP_OK; t++)
            for (int arm = 0; arm < 2; arm++) {
                size_t at = GATE_TURNS * out->n + t;
                const float *from = c->steps_ns[arm ^ (int)swap] + n * at;
                double times[kMostSteps] = {0}, step_ns = c->ns[arm ^ (int)swap][at];
                for (size_t i = 0; i < n; i++) {
                    times[i] = (double)from[i];
                    if (arm == 1)
                        times[i] += gate_slowing_ns(slowing, step_ns, step++, begun + (int64_t)t);
                }
                keep_turn(out, arm, at, times);
            }
        if (st == SNAP_OK)
            count_session(out);
    }
    return st;
}
