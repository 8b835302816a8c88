#include "harness/bench/predict_rules.h"

#include <math.h>
#include <string.h>

/* ---- least squares ---- */

/* The terms are scaled to at most 1 before. A smaller pivot means that terms depend on each
 * other. */
static const double kSingular = 1e-9;

/* Solves the normal equations for the terms in the set of bits @used. False if they have no unique
 * solution. */
static bool solve(const predict_terms *x, const double *y, int n, unsigned used,
                  predict_terms *out) {
    double a[PREDICT_TERMS][PREDICT_TERMS + 1] = {{0}};
    int at[PREDICT_TERMS], m = 0;
    for (int t = 0; t < PREDICT_TERMS; t++)
        if (used >> t & 1)
            at[m++] = t;
    for (int i = 0; i < n; i++)
        for (int r = 0; r < m; r++) {
            for (int c = 0; c < m; c++)
                a[r][c] += x[i].of[at[r]] * x[i].of[at[c]] / (y[i] * y[i]);
            a[r][m] += x[i].of[at[r]] / y[i];
        }
    for (int p = 0; p < m; p++) {
        if (!(a[p][p] > kSingular * n))
            return false;
        for (int r = 0; r < m; r++) {
            double f = r == p ? 0 : a[r][p] / a[p][p];
            for (int c = p; c <= m; c++)
                a[r][c] -= f * a[p][c];
        }
    }
    *out = (predict_terms){{0}};
    for (int r = 0; r < m; r++)
        out->of[at[r]] = a[r][m] / a[r][r];
    return true;
}

static double residual(const predict_terms *x, const double *y, int n, const predict_terms *of) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double e = 1;
        for (int t = 0; t < PREDICT_TERMS; t++)
            e -= x[i].of[t] * of->of[t] / y[i];
        sum += e * e;
    }
    return sum;
}

bool fit_nonnegative(const predict_terms *x, const double *y, int n, predict_terms *out) {
    double best = (double)INFINITY, scale[PREDICT_TERMS];
    predict_terms scaled[PREDICT_ROWS];
    *out = (predict_terms){{0}};
    if (n < 1 || n > PREDICT_ROWS)
        return false;
    for (int t = 0; t < PREDICT_TERMS; t++) {
        scale[t] = 0;
        for (int i = 0; i < n; i++)
            scale[t] = fmax(scale[t], fabs(x[i].of[t] / y[i]));
        for (int i = 0; i < n; i++)
            scaled[i].of[t] = scale[t] > 0 ? x[i].of[t] / scale[t] : 0;
    }
    for (unsigned used = 1; used < 1U << PREDICT_TERMS; used++) {
        predict_terms of;
        bool good = solve(scaled, y, n, used, &of);
        for (int t = 0; t < PREDICT_TERMS && good; t++)
            good = of.of[t] >= 0;
        double r = good ? residual(scaled, y, n, &of) : (double)INFINITY;
        if (r < best) {
            best = r;
            for (int t = 0; t < PREDICT_TERMS; t++)
                out->of[t] = scale[t] > 0 ? of.of[t] / scale[t] : 0;
        }
    }
    return isfinite(best);
}

/* ---- the kernel's time for each cached token ---- */

double kernel_slope_at(const kernel_slopes *k, kv_format arm, double heads) {
    int a = arm == CACHE_FP8, n = k->n[a];
    const kernel_slope *s = k->of[a];
    if (!n)
        return (double)NAN;
    if (heads <= s[0].heads)
        return s[0].ns;
    for (int i = 1; i < n; i++)
        if (heads <= s[i].heads)
            return s[i - 1].ns + (s[i].ns - s[i - 1].ns) * (heads - s[i - 1].heads) /
                                     (s[i].heads - s[i - 1].heads);
    return s[n - 1].ns;
}

/* ---- terms ---- */

static void attention_terms(const rule_book *b, kv_format arm, const predict_work *w,
                            predict_terms *x) {
    x->of[0] = w->blocks;
    x->of[1] = w->blocks * w->rows * w->heads;
    x->of[2] = w->cached * kernel_slope_at(&b->slopes, arm, w->heads);
}

static double query_weights_ns(const rule_book *b, const predict_work *w) {
    return w->query_bytes / b->read_rate * 1e9;
}

/* Products of few rows read each weight once and are limited by that. */
static void expert_terms(const predict_work *w, predict_terms *x) {
    x->of[0] = w->moe_layers;
    x->of[1] = w->expert_bytes;
    x->of[2] = predict_range(w->rows) ? w->expert_flop : 0;
}

static void rest_terms(const predict_work *w, predict_terms *x) {
    x->of[0] = w->launches;
    x->of[1] = 0;
    x->of[2] = predict_range(w->rows) ? w->rest_flop : 0;
}

static double apply(const rule *r, const predict_terms *x) {
    double ns = 0;
    for (int t = 0; t < PREDICT_TERMS; t++)
        ns += r->per.of[t] * x->of[t];
    return r->n ? ns : (double)NAN;
}

/* ---- fitting ---- */

typedef struct {
    predict_terms x[PREDICT_ROWS];
    double y[PREDICT_ROWS];
    int n;
} sample;

static void add(sample *s, const predict_terms *x, double y) {
    if (!(y > 0) || s->n == PREDICT_ROWS)
        return;
    s->x[s->n] = *x;
    s->y[s->n++] = y;
}

static rule fit(const sample *s) {
    rule r = {0};
    r.n = fit_nonnegative(s->x, s->y, s->n, &r.per) ? s->n : 0;
    return r;
}

static bool uses(const measured_step *m, int range, const measured_step *without) {
    bool out = without && m->batch == without->batch && m->context == without->context;
    return predict_range(m->work.rows) == range && !out;
}

static rule fit_attention(const rule_book *b, int arm, int range, const measured_step *m, int n,
                          const measured_step *without) {
    sample s = {.n = 0};
    for (int i = 0; i < n; i++) {
        predict_terms x;
        if (!uses(&m[i], range, without) || (m[i].arm == CACHE_FP8) != arm)
            continue;
        attention_terms(b, m[i].arm, &m[i].work, &x);
        add(&s, &x, m[i].part_ns[STEP_ATTENTION] - query_weights_ns(b, &m[i].work));
    }
    return fit(&s);
}

static rule fit_experts(int range, const measured_step *m, int n, const measured_step *without) {
    sample s = {.n = 0};
    for (int i = 0; i < n; i++) {
        predict_terms x;
        expert_terms(&m[i].work, &x);
        if (uses(&m[i], range, without))
            add(&s, &x, m[i].part_ns[STEP_EXPERTS]);
    }
    return fit(&s);
}

static rule fit_rest(const rule *experts, int range, const measured_step *m, int n,
                     const measured_step *without) {
    sample s = {.n = 0};
    for (int i = 0; i < n; i++) {
        predict_terms x;
        rest_terms(&m[i].work, &x);
        if (uses(&m[i], range, without))
            add(&s, &x, m[i].part_ns[STEP_REST] - experts->per.of[1] * m[i].work.rest_bytes);
    }
    rule r = fit(&s);
    r.per.of[1] = experts->per.of[1];
    return r;
}

/* The mean of step / sum of the parts, for one row or for more; NAN without such steps. */
static double fit_share(bool one, int range, const measured_step *m, int n,
                        const measured_step *without) {
    double sum = 0;
    int of = 0;
    for (int i = 0; i < n; i++) {
        double parts = 0;
        for (int p = 0; p < STEP_PARTS; p++)
            parts += m[i].part_ns[p];
        if (!uses(&m[i], range, without) || (m[i].work.rows <= 1) != one)
            continue;
        sum += m[i].step_ns / parts;
        of++;
    }
    return of ? sum / of : (double)NAN;
}

static void fill_gap(double *a, double b) {
    *a = isnan(*a) ? b : *a;
}

/* A range or an arm without steps takes the rules of the other one. */
static void fill_rules(rule_book *b) {
    rules *few = &b->range[0], *many = &b->range[1];
    for (int r = 0; r < PREDICT_RANGES; r++) {
        rules *to = &b->range[r];
        const rules *from = r ? few : many;
        for (int a = 0; a < 2; a++)
            if (!to->attention[a].n)
                to->attention[a] = from->attention[a];
        if (!to->experts.n)
            to->experts = from->experts;
        if (!to->rest.n)
            to->rest = from->rest;
        fill_gap(&to->share[1], to->share[0]);
        fill_gap(&to->share[0], to->share[1]);
    }
    for (int s = 0; s < 2; s++) {
        fill_gap(&few->share[s], many->share[s]);
        fill_gap(&many->share[s], few->share[s]);
    }
}

void rules_fit(rule_book *b, const measured_step *steps, int n, const measured_step *without) {
    for (int r = 0; r < PREDICT_RANGES; r++) {
        rules *to = &b->range[r];
        for (int a = 0; a < 2; a++)
            to->attention[a] = fit_attention(b, a, r, steps, n, without);
        to->experts = fit_experts(r, steps, n, without);
        to->rest = fit_rest(&to->experts, r, steps, n, without);
        for (int s = 0; s < 2; s++)
            to->share[s] = fit_share(s == 0, r, steps, n, without);
    }
    fill_rules(b);
}

/* ---- predicting ---- */

void rules_apply(const rule_book *b, kv_format arm, const predict_work *w, double ns[STEP_PARTS]) {
    const rules *r = &b->range[predict_range(w->rows)];
    predict_terms x;
    attention_terms(b, arm, w, &x);
    ns[STEP_ATTENTION] = apply(&r->attention[arm == CACHE_FP8], &x) + query_weights_ns(b, w);
    expert_terms(w, &x);
    ns[STEP_EXPERTS] = w->moe_layers > 0 ? apply(&r->experts, &x) : 0;
    rest_terms(w, &x);
    x.of[1] = w->rest_bytes;
    ns[STEP_REST] = apply(&r->rest, &x);
}

double rules_step(const rule_book *b, const predict_work *w, const double ns[STEP_PARTS],
                  bool split) {
    const rules *r = &b->range[predict_range(w->rows)];
    bool one = w->rows <= 1 && !(split && b->single);
    double sum = 0;
    for (int p = 0; p < STEP_PARTS; p++)
        sum += ns[p];
    return sum * r->share[one ? 0 : 1];
}

/* ---- errors ---- */

static double larger_error(double so_far, double predicted, double measured) {
    double e = fabs(predicted / measured - 1);
    return measured > 0 && e > so_far ? e : so_far;
}

static void check_step(rule_book *to, const rule_book *b, const measured_step *m) {
    rules *r = &to->range[predict_range(m->work.rows)];
    double ns[STEP_PARTS] = {0};
    rules_apply(b, m->arm, &m->work, ns);
    for (int p = 0; p < STEP_PARTS; p++)
        if (p != STEP_EXCHANGE)
            r->error[p] = larger_error(r->error[p], ns[p], m->part_ns[p]);
    r->step_error = larger_error(r->step_error, rules_step(b, &m->work, ns, false), m->step_ns);
}

void rules_fit_and_check(rule_book *b, const measured_step *steps, int n) {
    for (int r = 0; r < PREDICT_RANGES; r++) {
        memset(b->range[r].error, 0, sizeof b->range[r].error);
        b->range[r].step_error = 0;
    }
    rule_book without = *b;
    for (int i = 0; i < n; i++) {
        rules_fit(&without, steps, n, &steps[i]);
        check_step(b, &without, &steps[i]);
    }
    rules_fit(b, steps, n, NULL);
}
