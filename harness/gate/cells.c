#include "harness/gate/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "harness/measure/env.h"
#include "harness/measure/stats.h"

enum { kFewestSteps = 3, kEnoughSteps = 48, kMostSteps = 256 };
static const double kTurnNs = 4e6; /* long compared with one exchange with the child process */
static const double kQuantile = 0.25;

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

/* The precision of arm @i, or else that of the other arm. NULL if neither arm names one. */
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

void gate_timed_free(gate_timed *cells, size_t n) {
    for (size_t i = 0; cells && i < n; i++) {
        free(cells[i].x);
        free(cells[i].ns[0]);
        free(cells[i].ns[1]);
    }
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

/* ---- measuring ---- */

static bool grow(double **array, size_t n) {
    double *more = realloc(*array, n * sizeof *more);
    if (more)
        *array = more;
    return more != NULL;
}

static snap_status make_room(gate_timed *c, snap_err *err) {
    size_t n = c->n + 1;
    if (n > RANK_MAX)
        return err_set(err, SNAP_E_USAGE, "a cell may have %d sessions at most", RANK_MAX);
    if (!grow(&c->x, n) || !grow(&c->ns[0], GATE_TURNS * n) || !grow(&c->ns[1], GATE_TURNS * n))
        return err_set(err, SNAP_E_NOMEM, "out of memory for %zu sessions", n);
    return SNAP_OK;
}

static int steps_of_turn(double step_ns) {
    double steps = ceil(kTurnNs / step_ns);
    return (int)fmin(fmax(steps, kFewestSteps), kMostSteps);
}

/* Flushing the caches before a step takes time that step_ns does not contain. So a turn of short
 * steps lasts longer than kTurnNs. Lowers the number of steps to what fits, but not below
 * kEnoughSteps. @elapsed_ns is the duration of the shortest
 * of several turns of @steps steps. */
static int steps_that_fit(int steps, double elapsed_ns) {
    double fit = ceil(steps * kTurnNs / fmax(elapsed_ns, 1));
    return (int)fmin(steps, fmax(fit, kEnoughSteps));
}

static snap_status turn(gate_remote *arm, int steps, double *ns, snap_err *err) {
    double times[kMostSteps];
    snap_status st = remote_steps(arm, steps, times, err);
    if (st != SNAP_OK)
        return st;
    qsort(times, (size_t)steps, sizeof *times, by_value);
    *ns = stats_quantile(times, (size_t)steps, kQuantile);
    return SNAP_OK;
}

/* Times the four turns of block @b of the current session. */
static snap_status block(gate_timed *c, gate_remote *const arms[2], size_t b, snap_err *err) {
    static const int order[] = {0, 1, 1, 0};
    size_t at[2] = {GATE_TURNS * c->n + 2 * b, GATE_TURNS * c->n + 2 * b};
    int first = (int)((c->n + b) % 2);
    double elapsed_ns = INFINITY;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        int arm = order[i] ^ first;
        int64_t begun = clock_now_ns();
        snap_status st = turn(arms[arm], c->steps, &c->ns[arm][at[arm]++], err);
        if (st != SNAP_OK)
            return st;
        elapsed_ns = fmin(elapsed_ns, (double)(clock_now_ns() - begun));
    }
    if (c->n == 0 && b == 0)
        c->steps = steps_that_fit(c->steps, elapsed_ns);
    return SNAP_OK;
}

/* The time of an arm in the current session: a quantile of its turns. */
static double session_time(const gate_timed *c, int arm) {
    double sorted[GATE_TURNS];
    memcpy(sorted, c->ns[arm] + GATE_TURNS * c->n, sizeof sorted);
    qsort(sorted, GATE_TURNS, sizeof *sorted, by_value);
    return stats_quantile(sorted, GATE_TURNS, kQuantile);
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
    TRY(make_room(c, err));
    TRY(begin(c, arms, err));
    double cpu_s = cpu_of(c);
    env_state before = env_now();
    bool timed = gate_timed_passed(c);
    for (size_t b = 0; b < GATE_BLOCKS && timed; b++)
        TRY(block(c, arms, b, err));
    env_state after = env_now();
    TRY(end(c, arms, err));
    after.own_s += cpu_of(c) - cpu_s; /* the arms' own time is not load by others */
    env_flags flags = env_between(&before, &after);
    c->throttled |= flags.throttled;
    c->shared |= flags.shared;
    if (timed) {
        c->x[c->n] = log(session_time(c, 1)) - log(session_time(c, 0));
        c->n++;
    }
cleanup:
    return st;
}
