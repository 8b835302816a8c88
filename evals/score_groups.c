#include "evals/score_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The values of one field, in their order. */
typedef struct {
    int field;
    const char *at[GROUP_VALUES];
    size_t n;
} values;

typedef struct {
    const eval_plan *plan;
    const sample_outcome *all;
    size_t task;
    const task_score *scores;
    arena *mem;
    double *a, *b; /* [problems] */
    group_score *out;
    size_t n, cap;
} grouping;

/* ---- values ---- */

static bool before(const char *x, const char *y) {
    double a, b;
    return text_to_double(x, &a) && text_to_double(y, &b) && a < b;
}

static bool has(const values *v, const char *text) {
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->at[i], text) == 0)
            return true;
    return false;
}

/* Collects the values of a field. It has none if there are too many. */
static values collect(const task_set *set, int field) {
    values v = {.field = field};
    for (size_t i = 0; i < set->n; i++) {
        const char *text = set->problems[i].groups[field];
        if (!text[0] || has(&v, text))
            continue;
        if (v.n == GROUP_VALUES)
            return (values){.field = field};
        size_t k = v.n++;
        for (; k > 0 && before(text, v.at[k - 1]); k--)
            v.at[k] = v.at[k - 1];
        v.at[k] = text;
    }
    return v;
}

/* ---- one group ---- */

static bool in_group(const group_score *s, const task_spec *t, const task_problem *p) {
    for (size_t i = 0; i < s->fields; i++)
        for (int f = 0; t->groups[f]; f++)
            if (t->groups[f] == s->by[i] && strcmp(p->groups[f], s->at[i]) != 0)
                return false;
    return true;
}

/* The mean score of one problem in one arm; NAN without scored samples. Adds to @counts if it is
 * not NULL. */
static double score_of(const grouping *g, size_t arm, size_t problem, group_arm *counts) {
    const eval_task *t = &g->plan->tasks[g->task];
    const plan_cell c = {.task = g->task, .arm = arm, .problem = problem};
    const sample_outcome *o = g->all + plan_index(g->plan, c);
    double sum = 0, n = 0;
    for (int k = 0; k < t->samples; k++) {
        if (!o[k].present || o[k].failed || o[k].unjudged)
            continue;
        sum += o[k].verdict == GRADE_CORRECT;
        n++;
        if (counts && o[k].prompt_tokens >= 0) {
            counts->prompt_tokens += (double)o[k].prompt_tokens; /* a sum; score_arm() divides it */
            counts->ci95.lo += 1;                                /* the number of addends, until
                                                                    score_arm() sets it */
        }
    }
    if (counts) {
        counts->scored += (size_t)n;
        counts->problems += n > 0;
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* The problems of a group that belong to one conversation: a is their mean score in an arm, and n
 * their number. If two arms are compared, b is the mean score in the other arm, and only problems
 * with scored samples in both arms count. */
typedef struct {
    double a, b, n;
} unit;

static unit unit_of(const grouping *g, const group_score *s, size_t first, size_t arm, bool paired,
                    group_arm *counts) {
    const task_set *set = &g->plan->tasks[g->task].set;
    unit u = {0, 0, 0};
    for (size_t i = first; i < first + task_span(set, first); i++) {
        if (!in_group(s, set->task, &set->problems[i]))
            continue;
        double a = score_of(g, paired ? 0 : arm, i, counts);
        double b = paired ? score_of(g, arm, i, NULL) : 0;
        if (isnan(a) || isnan(b))
            continue;
        u.a += a;
        u.b += b;
        u.n++;
    }
    u.a /= u.n;
    u.b /= u.n;
    return u;
}

/* Stores the means of all conversations with a value in g->a and g->b. Returns their number. */
static size_t gather(grouping *g, const group_score *s, size_t arm, bool paired,
                     group_arm *counts) {
    const task_set *set = &g->plan->tasks[g->task].set;
    size_t n = 0;
    for (size_t i = 0; i < set->n; i += task_span(set, i)) {
        unit u = unit_of(g, s, i, arm, paired, counts);
        if (u.n < 1)
            continue;
        g->a[n] = u.a;
        g->b[n++] = u.b;
    }
    return n;
}

static group_arm score_arm(grouping *g, const group_score *s, size_t arm) {
    group_arm a = {0};
    size_t n = gather(g, s, arm, false, &a);
    a.prompt_tokens /= a.ci95.lo;
    a.accuracy = stats_mean_of(g->a, n);
    a.ci95 = stats_mean_interval(a.accuracy, 0.95);
    if (n && !(a.accuracy.se > 0))
        a.ci95 = stats_wilson_share(a.accuracy.mean, (double)n, 0.95);
    a.ci95.lo = fmax(a.ci95.lo, 0);
    a.ci95.hi = fmin(a.ci95.hi, 1);
    return a;
}

static stats_paired score_pair(grouping *g, const group_score *s, size_t arm) {
    const pair_score *whole = &g->scores->pairs[arm - 1];
    if (whole->refused[0])
        return (stats_paired){.p_tost = NAN};
    size_t n = gather(g, s, arm, true, NULL);
    stats_paired d =
        stats_compare(g->a, g->b, n, score_step(&g->plan->tasks[g->task]), g->plan->margin);
    if (whole->withheld[0] && d.verdict == STATS_EQUIVALENT)
        d.verdict = STATS_NOT_SHOWN;
    return d;
}

static snap_status add(grouping *g, group_score s, snap_err *err) {
    const eval_plan *p = g->plan;
    const task_set *set = &p->tasks[g->task].set;
    for (size_t i = 0; i < set->n; i++)
        s.problems += in_group(&s, set->task, &set->problems[i]);
    if (!s.problems)
        return SNAP_OK;
    s.arms = arena_alloc(g->mem, p->n_arms, sizeof *s.arms);
    s.pairs = arena_alloc(g->mem, p->n_arms, sizeof *s.pairs);
    s.p_holm = arena_alloc(g->mem, p->n_arms, sizeof *s.p_holm);
    if (!s.arms || !s.pairs || !s.p_holm)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the scores");
    for (size_t a = 0; a < p->n_arms; a++)
        s.arms[a] = score_arm(g, &s, a);
    for (size_t a = 1; a < p->n_arms; a++)
        s.pairs[a - 1] = score_pair(g, &s, a);
    g->out[g->n++] = s;
    return SNAP_OK;
}

/* ---- families ---- */

/* Holm's adjustment over the groups from @first on. */
static void adjust(grouping *g, size_t first) {
    double p[GROUP_VALUES * GROUP_VALUES];
    for (size_t pair = 0; pair + 1 < g->plan->n_arms; pair++) {
        for (size_t i = first; i < g->n; i++)
            p[i - first] = g->out[i].pairs[pair].p_tost;
        stats_holm(p, g->n - first);
        for (size_t i = first; i < g->n; i++)
            g->out[i].p_holm[pair] = p[i - first];
    }
}

static snap_status add_all(grouping *g, const values *x, const values *y, snap_err *err) {
    const char *const *by = g->plan->tasks[g->task].set.task->groups;
    size_t first = g->n;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < (y ? y->n : 1) && st == SNAP_OK; k++)
            st = add(g,
                     (group_score){.by = {by[x->field], y ? by[y->field] : NULL},
                                   .at = {x->at[i], y ? y->at[k] : NULL},
                                   .fields = y ? 2 : 1},
                     err);
    adjust(g, first);
    return st;
}

static snap_status group_task(grouping *g, snap_err *err) {
    const task_set *set = &g->plan->tasks[g->task].set;
    values v[TASK_GROUPS] = {{0}};
    size_t fields = 0;
    snap_status st = SNAP_OK;
    for (; set->task->groups[fields]; fields++) {
        v[fields] = collect(set, (int)fields);
        g->cap += v[fields].n;
    }
    g->cap += fields > 1 ? v[0].n * v[1].n : 0;
    g->a = arena_alloc(g->mem, set->n, sizeof *g->a);
    g->b = arena_alloc(g->mem, set->n, sizeof *g->b);
    g->out = arena_alloc(g->mem, g->cap + 1, sizeof *g->out);
    if (!g->a || !g->b || !g->out)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the scores");
    for (size_t i = 0; i < fields; i++)
        TRY(add_all(g, &v[i], NULL, err));
    if (fields > 1)
        TRY(add_all(g, &v[0], &v[1], err));
cleanup:
    return st;
}

snap_status score_groups(const eval_plan *p, const sample_outcome *all, size_t task,
                         const task_score *scores, arena *mem, group_score **out, size_t *n,
                         snap_err *err) {
    grouping g = {.plan = p, .all = all, .task = task, .scores = scores, .mem = mem};
    snap_status st = group_task(&g, err);
    *out = g.out;
    *n = g.n;
    return st;
}
