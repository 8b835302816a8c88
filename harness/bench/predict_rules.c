#include "harness/bench/predict_rules.h"

#include <math.h>
#include <string.h>

/* ---- least squares ---- */

/* The terms are scaled to at most 1 before. A smaller pivot means that terms depend on each
 * other. */
static const double kSingular = 1e-9;

/* Solves the normal equations for the terms in the set of bits @used. False if they have no unique
 * solution. */
static bool solve(const predict_terms *x, const double *y, const double *size, int n, unsigned used,
                  predict_terms *out) {
    double a[PREDICT_TERMS][PREDICT_TERMS + 1] = {{0}};
    int at[PREDICT_TERMS], m = 0;
    for (int t = 0; t < PREDICT_TERMS; t++)
        if (used >> t & 1)
            at[m++] = t;
    for (int i = 0; i < n; i++)
        for (int r = 0; r < m; r++) {
            for (int c = 0; c < m; c++)
                a[r][c] += x[i].of[at[r]] * x[i].of[at[c]] / (size[i] * size[i]);
            a[r][m] += x[i].of[at[r]] * y[i] / (size[i] * size[i]);
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

static double residual(const predict_terms *x, const double *y, const double *size, int n,
                       const predict_terms *of) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double e = y[i] / size[i];
        for (int t = 0; t < PREDICT_TERMS; t++)
            e -= x[i].of[t] * of->of[t] / size[i];
        sum += e * e;
    }
    return sum;
}

bool fit_nonnegative(const predict_terms *x, const double *y, const double *size, int n,
                     predict_terms *out) {
    double best = (double)INFINITY, scale[PREDICT_TERMS];
    predict_terms scaled[PREDICT_ROWS];
    *out = (predict_terms){{0}};
    if (n < 1 || n > PREDICT_ROWS)
        return false;
    for (int t = 0; t < PREDICT_TERMS; t++) {
        scale[t] = 0;
        for (int i = 0; i < n; i++)
            scale[t] = fmax(scale[t], fabs(x[i].of[t] / size[i]));
        for (int i = 0; i < n; i++)
            scaled[i].of[t] = scale[t] > 0 ? x[i].of[t] / scale[t] : 0;
    }
    for (unsigned used = 1; used < 1U << PREDICT_TERMS; used++) {
        predict_terms of;
        bool good = solve(scaled, y, size, n, used, &of);
        for (int t = 0; t < PREDICT_TERMS && good; t++)
            good = of.of[t] >= 0;
        double r = good ? residual(scaled, y, size, n, &of) : (double)INFINITY;
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
    x->of[3] = 0;
}

static double query_weights_ns(const rule_book *b, const predict_work *w) {
    return w->query_bytes / b->read_rate * 1e9;
}

static int byte_term(const predict_work *w) {
    return w->e4m3 ? TERM_E4M3 : TERM_BF16;
}

static void expert_terms(const predict_work *w, predict_terms *x) {
    bool many = predict_range(w->expert_rows) == 2;
    *x = (predict_terms){{0}};
    x->of[TERM_EACH] = many ? w->experts : w->moe_layers;
    x->of[byte_term(w)] = w->expert_bytes;
    x->of[TERM_MORE] = many ? w->expert_moved : 0;
}

static double apply(const rule *r, const predict_terms *x) {
    double ns = 0;
    for (int t = 0; t < PREDICT_TERMS; t++)
        ns += r->per.of[t] * x->of[t];
    return r->n ? ns : (double)NAN;
}

/* The kernel's time for the cached tokens. A factor above 1 means that the clock of the GPU is
 * lower in a step than in a benchmark of the kernel. This lengthens arithmetic, whose time is
 * proportional to the number of heads, but not reads of memory. Reads limit a rank with few heads,
 * so it does not get all of the factor. */
static double kernel_ns(const rule_book *b, kv_format arm, double factor, const predict_work *w) {
    double at = kernel_slope_at(&b->slopes, arm, w->heads);
    if (w->heads >= b->heads || !(factor > 1))
        return factor * at * w->cached;
    double computed = factor * kernel_slope_at(&b->slopes, arm, b->heads) * w->heads / b->heads;
    return fmax(at, computed) * w->cached;
}

static double attention_ns(const rule_book *b, kv_format arm, const predict_work *w) {
    const rule *r = &b->range[predict_range(w->rows)].attention[arm == CACHE_FP8];
    predict_terms x;
    attention_terms(b, arm, w, &x);
    x.of[2] = 0;
    return apply(r, &x) + kernel_ns(b, arm, r->per.of[2], w) + query_weights_ns(b, w);
}

/* ---- fitting ---- */

typedef struct {
    predict_terms x[PREDICT_ROWS];
    double y[PREDICT_ROWS], size[PREDICT_ROWS];
    int n;
} sample;

/* @known: the part of the measured time @ns that no coefficient of the fit explains. */
static void add(sample *s, const predict_terms *x, double ns, double known) {
    if (!(ns > 0) || s->n == PREDICT_ROWS)
        return;
    s->x[s->n] = *x;
    s->y[s->n] = ns - known;
    s->size[s->n++] = ns;
}

static rule fit(const sample *s) {
    rule r = {0};
    r.n = fit_nonnegative(s->x, s->y, s->size, s->n, &r.per) ? s->n : 0;
    return r;
}

/* The steps that a rule is fitted to. */
typedef struct {
    const measured_step *at;
    left_out_cell without;
    int n, first, last; /* ranges */
} fitted_steps;

static bool uses(const fitted_steps *f, const measured_step *m) {
    bool out = m->batch == f->without.batch &&
               (f->without.context == 0 || m->context == f->without.context);
    int range = predict_range(m->work.rows);
    return range >= f->first && range <= f->last && !out;
}

/* The time of a part to which a rule is fitted. The parts of a step were timed in fewer replays
 * than the step. With many rows, the limit of power lowers the clock of the GPU, and not equally in
 * both. Arithmetic limits attention and the rest of such steps, so their times are scaled as the
 * step differs from the sum of its parts. Reads limit the experts. */
static double part_ns(const measured_step *m, int part) {
    double sum = 0;
    for (int p = 0; p < STEP_PARTS; p++)
        sum += m->part_ns[p];
    bool scaled = predict_range(m->work.rows) == PREDICT_RANGES - 1 && sum > 0;
    return m->part_ns[part] * (scaled && part != STEP_EXPERTS ? m->step_ns / sum : 1);
}

static bool is_of_arm(const measured_step *m, int arm) {
    return (m->arm == CACHE_FP8) == arm;
}

/* Whether a fit has steps of different contexts. Otherwise the time for each query cannot be told
 * from the time for each cached token, so the factor is taken to be 1. */
static bool has_contexts(const fitted_steps *f, int arm) {
    int64_t first = 0;
    for (int i = 0; i < f->n; i++) {
        const measured_step *m = &f->at[i];
        if (!uses(f, m) || !is_of_arm(m, arm))
            continue;
        if (first && first != m->context)
            return true;
        first = m->context;
    }
    return false;
}

/* @per_block: of another range; 0 = it is fitted. */
static rule fit_attention(const rule_book *b, int arm, double per_block, const fitted_steps *f) {
    sample s = {.n = 0};
    double factor = has_contexts(f, arm) ? 0 : 1; /* 0 = it is fitted */
    for (int i = 0; i < f->n; i++) {
        const measured_step *m = &f->at[i];
        predict_terms x;
        if (!uses(f, m) || !is_of_arm(m, arm))
            continue;
        attention_terms(b, m->arm, &m->work, &x);
        double known = query_weights_ns(b, &m->work) + per_block * x.of[0] + factor * x.of[2];
        x.of[0] = per_block > 0 ? 0 : x.of[0];
        x.of[2] = factor > 0 ? 0 : x.of[2];
        add(&s, &x, part_ns(m, STEP_ATTENTION), known);
    }
    rule r = fit(&s);
    r.per.of[0] = per_block > 0 ? per_block : r.per.of[0];
    r.per.of[2] = factor > 0 ? factor : r.per.of[2];
    return r;
}

/* Adds the measured steps to the fit @s. @known: coefficients that are taken from another range; 0
 * = the coefficient is fitted. Their part of the measured time is
 * subtracted before the fit. */
static void sample_experts(sample *s, const predict_terms *known, const fitted_steps *f) {
    for (int i = 0; i < f->n; i++) {
        const measured_step *m = &f->at[i];
        predict_terms x;
        double ns = 0;
        expert_terms(&m->work, &x);
        for (int t = 0; t < PREDICT_TERMS; t++) {
            ns += known->of[t] * x.of[t];
            x.of[t] = known->of[t] > 0 ? 0 : x.of[t];
        }
        if (uses(f, m))
            add(s, &x, part_ns(m, STEP_EXPERTS), ns);
    }
}

/* If no step with BF16 or with e4m3 weights was measured, a byte of this format takes as long as
 * one of the other. */
static void fill_bytes(rule *r) {
    double *bf16 = &r->per.of[TERM_BF16], *e4m3 = &r->per.of[TERM_E4M3];
    *bf16 = *bf16 > 0 ? *bf16 : *e4m3;
    *e4m3 = *e4m3 > 0 ? *e4m3 : *bf16;
}

/* @fewer: the rule of the range with fewer rows, which has some of the terms; NULL = none. @many:
 * whether the range is that of the most rows. */
static rule fit_experts(const rule *fewer, bool many, const fitted_steps *f) {
    sample s = {.n = 0};
    predict_terms known = {{0}};
    if (fewer && many) {
        known.of[TERM_BF16] = fewer->per.of[TERM_BF16];
        known.of[TERM_E4M3] = fewer->per.of[TERM_E4M3];
    } else if (fewer) {
        known.of[TERM_EACH] = fewer->per.of[TERM_EACH];
    }
    sample_experts(&s, &known, f);
    rule r = fit(&s);
    for (int t = 0; t < PREDICT_TERMS; t++)
        r.per.of[t] = known.of[t] > 0 ? known.of[t] : r.per.of[t];
    fill_bytes(&r);
    return r;
}

static double rest_ns(const rule *r, const predict_work *w) {
    double read = r->per.of[byte_term(w)] * w->rest_bytes,
           computed = r->per.of[TERM_MORE] * w->rest_flop;
    return r->n ? r->per.of[TERM_EACH] * w->launches + fmax(read, computed) : (double)NAN;
}

/* The rule if arithmetic limits the steps with more than @most FLOP for each byte of weights, and
 * memory the others. @bytes: has the times for each byte. */
static rule fit_rest_above(double most, const rule *bytes, const fitted_steps *f, double *error) {
    sample s = {.n = 0};
    for (int i = 0; i < f->n; i++) {
        const predict_work *w = &f->at[i].work;
        bool computed = w->rest_flop > most * w->rest_bytes;
        predict_terms x = {{0}};
        x.of[TERM_EACH] = w->launches;
        x.of[TERM_MORE] = computed ? w->rest_flop : 0;
        if (uses(f, &f->at[i]))
            add(&s, &x, part_ns(&f->at[i], STEP_REST),
                computed ? 0 : bytes->per.of[byte_term(w)] * w->rest_bytes);
    }
    rule r = fit(&s);
    r.per.of[TERM_BF16] = bytes->per.of[TERM_BF16];
    r.per.of[TERM_E4M3] = bytes->per.of[TERM_E4M3];
    *error = 0;
    for (int i = 0; i < f->n; i++) {
        double e = rest_ns(&r, &f->at[i].work) / part_ns(&f->at[i], STEP_REST) - 1;
        *error += uses(f, &f->at[i]) ? e * e : 0;
    }
    return r;
}

/* Tries each measured step as the limit between memory and arithmetic. Up to 64 rows, memory is the
 * limit of all steps. A product is not faster than the measured ceiling. */
static rule fit_rest(const rule_book *b, const rule *bytes, const fitted_steps *f) {
    double least, error;
    rule best = fit_rest_above((double)INFINITY, bytes, f, &least);
    for (int i = 0; i < f->n; i++) {
        const predict_work *w = &f->at[i].work;
        if (f->last < PREDICT_RANGES - 1 || !uses(f, &f->at[i]))
            continue;
        rule r = fit_rest_above(w->rest_flop / w->rest_bytes * (1 - 1e-9), bytes, f, &error);
        if (error < least) {
            best = r;
            least = error;
        }
    }
    best.per.of[TERM_MORE] = fmax(best.per.of[TERM_MORE], 1e9 / b->product_rate);
    return best;
}

/* Returns the rule from which the rest takes its time for each byte of weights. That is the rule of
 * the experts, or, if it has no such times, the measured bandwidth. */
static rule bytes_of_rest(const rule_book *b, const rule *experts) {
    rule r = *experts;
    if (r.per.of[TERM_BF16] > 0)
        return r;
    r.per.of[TERM_BF16] = r.per.of[TERM_E4M3] = 1e9 / b->read_rate;
    return r;
}

/* How much shorter the steps are than the sums of their parts, for one row or for more: a time for
 * each launch, NAN without such steps. */
static double fit_overlap(bool one, const fitted_steps *f) {
    double saved = 0;
    int of = 0;
    for (int i = 0; i < f->n; i++) {
        const measured_step *m = &f->at[i];
        if (!uses(f, m) || (m->work.rows <= 1) != one)
            continue;
        for (int p = 0; p < STEP_PARTS; p++)
            saved += m->part_ns[p] / m->work.all_launches;
        saved -= m->step_ns / m->work.all_launches;
        of++;
    }
    return of ? fmax(0, saved / of) : (double)NAN;
}

static void copy_overlap(rules *to, int at, const rules *from, int other) {
    if (isnan(to->overlap[at]))
        to->overlap[at] = from->overlap[other];
}

static void fill_from(rules *to, const rules *from) {
    for (int a = 0; a < 2; a++)
        if (!to->attention[a].n)
            to->attention[a] = from->attention[a];
    if (!to->experts.n)
        to->experts = from->experts;
    if (!to->rest.n)
        to->rest = from->rest;
    for (int i = 0; i < 2; i++) {
        copy_overlap(to, i, from, i);
        copy_overlap(to, i, from, 1 - i);
    }
}

/* A range without steps takes the rules of its neighbour: of that with fewer rows, if there is
 * one. */
static void fill_rules(rule_book *b) {
    for (int r = 1; r < PREDICT_RANGES; r++)
        fill_from(&b->range[r], &b->range[r - 1]);
    for (int r = PREDICT_RANGES - 2; r >= 0; r--)
        fill_from(&b->range[r], &b->range[r + 1]);
    for (int r = 0; r < PREDICT_RANGES; r++)
        for (int i = 0; i < 2; i++)
            copy_overlap(&b->range[r], i, &b->range[r], 1 - i);
}

void rules_fit(rule_book *b, const measured_step *steps, int n, left_out_cell without) {
    b->heads = 0;
    for (int i = 0; i < n; i++)
        b->heads = steps[i].work.heads > b->heads ? steps[i].work.heads : b->heads;
    for (int r = 0; r < PREDICT_RANGES; r++) {
        const fitted_steps range = {steps, without, n, r, r},
                           wide = {steps, without, n, r ? 1 : 0, r ? PREDICT_RANGES - 1 : 0};
        rules *to = &b->range[r];
        for (int a = 0; a < 2; a++)
            to->attention[a] =
                fit_attention(b, a, r ? b->range[0].attention[a].per.of[0] : 0, &wide);
        to->experts = fit_experts(r ? &b->range[r - 1].experts : NULL, r == 2, &range);
        rule bytes = bytes_of_rest(b, &b->range[r ? 1 : 0].experts);
        to->rest = fit_rest(b, &bytes, r == PREDICT_RANGES - 1 ? &wide : &range);
        for (int i = 0; i < 2; i++)
            to->overlap[i] = r == PREDICT_RANGES - 1 ? 0 : fit_overlap(i == 0, &range);
    }
    fill_rules(b);
}

/* ---- predicting ---- */

/* With at most 8 rows, a byte of experts takes longer than with 9 to 64 rows. The difference is a
 * time of each expert, which does not become shorter if ranks divide the width of the expert. */
static double narrow_ns(const rule_book *b, const predict_work *w) {
    int byte = byte_term(w);
    double more = b->range[0].experts.per.of[byte] - b->range[1].experts.per.of[byte];
    return predict_range(w->expert_rows) == 0 ? fmax(0, more) * w->missing_bytes : 0;
}

/* The bytes are those of the rule of the experts. Arithmetic has the speed of the rest, and so have
 * the launches that only ranks have. */
static double experts_ns(const rule_book *b, const predict_work *w) {
    const rules *r = &b->range[predict_range(w->expert_rows)];
    double launches = w->expert_launches * b->range[predict_range(w->rows)].rest.per.of[TERM_EACH];
    predict_terms x;
    if (w->moe_layers <= 0)
        return 0;
    expert_terms(w, &x);
    double read = r->experts.per.of[byte_term(w)] * w->expert_bytes,
           computed = r->rest.per.of[TERM_MORE] * w->expert_flop;
    return apply(&r->experts, &x) + launches + fmax(0, computed - read) + narrow_ns(b, w);
}

double rules_waiting(const rule_book *b, const predict_work *w) {
    const rules *r = &b->range[predict_range(w->expert_rows)];
    bool many = predict_range(w->expert_rows) == 2;
    return (many ? r->experts.per.of[TERM_EACH] * w->more_experts : 0) +
           r->experts.per.of[byte_term(w)] * w->more_bytes;
}

void rules_apply(const rule_book *b, kv_format arm, const predict_work *w, double ns[STEP_PARTS]) {
    ns[STEP_ATTENTION] = attention_ns(b, arm, w);
    ns[STEP_EXPERTS] = experts_ns(b, w);
    ns[STEP_REST] = rest_ns(&b->range[predict_range(w->rows)].rest, w);
}

double rules_step(const rule_book *b, const predict_work *w, const double ns[STEP_PARTS],
                  bool split) {
    const rules *r = &b->range[predict_range(w->rows)];
    int at = w->rows <= 1 && !(split && b->single) ? 0 : 1;
    double sum = 0;
    for (int p = 0; p < STEP_PARTS; p++)
        sum += ns[p];
    return sum - r->overlap[at] * w->all_launches;
}

/* ---- errors ---- */

static double larger_error(double so_far, double predicted, double measured) {
    double e = fabs(predicted / measured - 1);
    return measured > 0 && e > so_far ? e : so_far;
}

/* The rules @b were fitted without the measured step @m. If they predict @m with a larger error
 * than @to states, @to gets that error. Returns the predicted time of the step. */
static double check_step(rule_book *to, const rule_book *b, const measured_step *m) {
    rules *r = &to->range[predict_range(m->work.rows)];
    double ns[STEP_PARTS] = {0};
    rules_apply(b, m->arm, &m->work, ns);
    for (int p = 0; p < STEP_PARTS; p++)
        if (p != STEP_EXCHANGE)
            r->error[p] = larger_error(r->error[p], ns[p], part_ns(m, p));
    r->sum_error =
        larger_error(r->sum_error, rules_step(b, &m->work, m->part_ns, false), m->step_ns);
    double step = rules_step(b, &m->work, ns, false);
    r->step_error = larger_error(r->step_error, step, m->step_ns);
    return step;
}

static compared_step compared_of(const measured_step *steps, int n, const measured_step *m) {
    compared_step c = {m->context, m->batch, true};
    for (int i = 0; i < n; i++)
        if (steps[i].arm == m->arm && steps[i].context == m->context && steps[i].batch > m->batch)
            c.largest = false;
    return c;
}

/* The errors of both arms are mostly the same, so the error of their ratio is smaller than the sum
 * of their errors. A range of rows has few pairs of steps, so all of them give one error.
 * @predicted: the times of the steps, each predicted without its batch. */
static void check_ratios(rule_book *to, const measured_step *steps, const double *predicted,
                         int n) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            const measured_step *bf16 = &steps[i], *fp8 = &steps[k];
            if (bf16->arm != CACHE_BF16 || fp8->arm != CACHE_FP8 ||
                !rules_compared(compared_of(steps, n, bf16), compared_of(steps, n, fp8)))
                continue;
            to->ratio_error = larger_error(fmax(to->ratio_error, 0), predicted[i] / predicted[k],
                                           bf16->step_ns / fp8->step_ns);
        }
}

left_out_cell left_out_of(const measured_step *steps, int n, const measured_step *m) {
    int64_t other = m->batch;
    for (int i = 0; i < n; i++) {
        bool same = predict_range(steps[i].work.rows) == predict_range(m->work.rows);
        if (!same || steps[i].batch == m->batch || steps[i].batch == other)
            continue;
        if (other != m->batch)
            return (left_out_cell){m->batch, 0};
        other = steps[i].batch;
    }
    return (left_out_cell){m->batch, m->context};
}

void rules_fit_and_check(rule_book *b, const measured_step *steps, int n) {
    for (int r = 0; r < PREDICT_RANGES; r++) {
        memset(b->range[r].error, 0, sizeof b->range[r].error);
        b->range[r].sum_error = b->range[r].step_error = 0;
    }
    b->ratio_error = (double)NAN;
    rule_book without = *b;
    double predicted[PREDICT_ROWS];
    for (int i = 0; i < n; i++) {
        rules_fit(&without, steps, n, left_out_of(steps, n, &steps[i]));
        predicted[i] = check_step(b, &without, &steps[i]);
    }
    check_ratios(b, steps, predicted, n);
    rules_fit(b, steps, n, (left_out_cell){0, 0});
}
