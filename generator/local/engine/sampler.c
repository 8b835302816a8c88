#include "generator/local/engine/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double p; /* unnormalised; 1 for the best token */
    int32_t id;
} candidate;

struct sampler {
    int vocab;
    float *logits;        /* [vocab] after the penalty */
    bool *marked;         /* [vocab] all false between calls */
    candidate *candidate; /* [vocab] */
};

snap_status sampler_create(sampler **out, int vocab, snap_err *err) {
    *out = NULL;
    sampler *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, SNAP_E_NOMEM, "out of memory for sampling");
    s->vocab = vocab;
    s->logits = calloc((size_t)vocab, sizeof *s->logits);
    s->marked = calloc((size_t)vocab, sizeof *s->marked);
    s->candidate = calloc((size_t)vocab, sizeof *s->candidate);
    if (!s->logits || !s->marked || !s->candidate) {
        sampler_free(s);
        return err_set(err, SNAP_E_NOMEM, "out of memory for sampling");
    }
    *out = s;
    return SNAP_OK;
}

void sampler_free(sampler *s) {
    if (!s)
        return;
    free(s->logits);
    free(s->marked);
    free(s->candidate);
    free(s);
}

int sampler_vocab(const sampler *s) {
    return s->vocab;
}

/* The logarithm of the sum of exp(logit - largest). */
static double log_sum(const float *logits, int n, double *largest) {
    double sum = 0;
    *largest = -INFINITY;
    for (int i = 0; i < n; i++)
        *largest = fmax(*largest, (double)logits[i]);
    for (int i = 0; i < n; i++)
        sum += exp((double)logits[i] - *largest);
    return log(sum);
}

double token_logprob(const float *logits, int n, int32_t token) {
    double largest, sum = log_sum(logits, n, &largest);
    return (double)logits[token] - largest - sum;
}

double logits_divergence(const float *p, const float *q, int n) {
    double most_p, most_q, sum_p = log_sum(p, n, &most_p), sum_q = log_sum(q, n, &most_q), sum = 0;
    for (int i = 0; i < n; i++) {
        double lp = (double)p[i] - most_p - sum_p;
        sum += exp(lp) * (lp - ((double)q[i] - most_q - sum_q));
    }
    return sum > 0 ? sum : 0;
}

int top_logprobs(const float *logits, int n, token_logit *list, int k) {
    double largest, sum;
    int kept = 0;
    if (k < 1)
        return 0;
    sum = log_sum(logits, n, &largest);
    for (int32_t i = 0; i < n; i++) {
        if (kept == k && !(logits[i] > list[k - 1].logit))
            continue;
        int at = kept < k ? kept++ : k - 1;
        for (; at > 0 && logits[i] > list[at - 1].logit; at--)
            list[at] = list[at - 1];
        list[at] = (token_logit){i, logits[i]};
    }
    for (int i = 0; i < kept; i++)
        list[i].logit = (float)((double)list[i].logit - largest - sum);
    return kept;
}

static void penalise(sampler *s, double penalty, const int32_t *seen, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float *x = &s->logits[seen[i]];
        if (!s->marked[seen[i]])
            *x = (float)(*x > 0 ? (double)*x / penalty : (double)*x * penalty);
        s->marked[seen[i]] = true;
    }
    for (int64_t i = 0; i < n; i++)
        s->marked[seen[i]] = false;
}

/* Subtracts the penalties of the tokens seen[n_prompt ..]. */
static void penalise_answer(sampler *s, const sampling *how, const int32_t *seen, int64_t n) {
    for (int64_t i = how->n_prompt; i < n; i++) {
        float *x = &s->logits[seen[i]];
        *x = (float)((double)*x - how->frequency_penalty -
                     (s->marked[seen[i]] ? 0 : how->presence_penalty));
        s->marked[seen[i]] = true;
    }
    for (int64_t i = how->n_prompt; i < n; i++)
        s->marked[seen[i]] = false;
}

/* The index of the largest number; of equal ones the first. NaN is never chosen, unless all are
 * NaN. */
static int32_t largest_of(const float *x, int n) {
    int32_t at = 0;
    float best = -INFINITY;
    for (int32_t i = 0; i < n; i++)
        if (x[i] > best)
            best = x[at = i];
    if (best > -INFINITY)
        return at;
    while (at < n - 1 && isnan(x[at]))
        at++;
    return at;
}

/* For qsort(): descending probability; ascending id where it is equal. */
static int by_probability(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->p != y->p)
        return x->p < y->p ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Moves a heap element down to its place (sift-down). */
static void sift_down(candidate *c, int n, int at) {
    for (int child = 2 * at + 1; child < n; at = child, child = 2 * at + 1) {
        if (child + 1 < n && by_probability(&c[child + 1], &c[child]) > 0)
            child++;
        if (by_probability(&c[at], &c[child]) >= 0)
            return;
        candidate worse = c[child];
        c[child] = c[at];
        c[at] = worse;
    }
}

/* Collects the tokens that can be in the nucleus, by id, and the sum over all tokens. Returns their
 * number. Tokens below (1 - top_p) / vocab of the sum are left out: together they have less than 1
 * - top_p of it, so the fewest tokens that reach top_p don't include them. With top_p = 1 all
 * tokens are collected. */
static int collect(sampler *s, const float *logits, double best, const sampling *how, double top_p,
                   double *sum) {
    int n = 0;
    *sum = 0;
    for (int32_t i = 0; i < s->vocab; i++) {
        double p = exp(((double)logits[i] - best) / how->temperature);
        s->candidate[i] = (candidate){p > 0 ? p : 0, i}; /* NaN gives 0 */
        *sum += s->candidate[i].p;
    }
    double least = *sum * (1 - top_p) / s->vocab;
    for (int32_t i = 0; top_p < 1 && i < s->vocab; i++)
        if (s->candidate[i].p > 0 && s->candidate[i].p >= least)
            s->candidate[n++] = s->candidate[i];
    return top_p < 1 ? n : s->vocab;
}

/* How many of the sorted candidates belong to the nucleus. @sum is that of all tokens, or of those
 * that top-k leaves. */
static int nucleus(const candidate *c, int n, double top_p, double sum) {
    double reached = 0;
    for (int i = 0; i < n; i++) {
        reached += c[i].p;
        if (reached >= top_p * sum)
            return i + 1;
    }
    return n;
}

static double sum_of(const candidate *c, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += c[i].p;
    return sum;
}

/* The id of the first candidate at which the running sum of probabilities exceeds @share (0 .. 1)
 * of @sum. If rounding leaves none, the last one whose probability is not 0. */
static int32_t find(const candidate *c, int n, double share, double sum) {
    double left = share * sum;
    int last = n - 1;
    for (int i = 0; i < n; i++) {
        left -= c[i].p;
        if (left < 0)
            return c[i].id;
    }
    while (last > 0 && c[last].p <= 0)
        last--;
    return c[last].id;
}

/* Keeps the fewest of @n candidates whose probabilities add up to top_p of @sum. Then removes those
 * that are less probable than min_p times the best one, and returns how many are left. If top_p is
 * below 1, the candidates must be sorted. */
static int keep_nucleus(candidate *c, int n, const sampling *how, double top_p, double sum) {
    if (top_p < 1)
        n = nucleus(c, n, top_p, sum);
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (c[i].p >= how->min_p)
            c[kept++] = c[i];
    return kept;
}

static double top_p_of(const sampling *how) {
    return how->top_p > 0 && how->top_p < 1 ? how->top_p : 1;
}

static bool has_top_k(const sampler *s, const sampling *how) {
    return how->top_k > 0 && how->top_k < s->vocab;
}

/* Moves the @k best of @n candidates to the front, as a heap with the worst of them first. */
static void keep_best(candidate *c, int n, int k) {
    for (int i = k / 2 - 1; i >= 0; i--)
        sift_down(c, k, i);
    for (int i = k; i < n; i++)
        if (by_probability(&c[i], &c[0]) < 0) {
            c[0] = c[i];
            sift_down(c, k, 0);
        }
}

/* Keeps those of the first @n of s->candidate that can be drawn, sorted, and returns their number.
 * The candidates are in any order and include all tokens that can be drawn. @sum is that of all
 * tokens. */
static int keep_some(sampler *s, int n, const sampling *how, double sum) {
    if (has_top_k(s, how)) {
        if (n > how->top_k)
            keep_best(s->candidate, n, how->top_k);
        n = n < how->top_k ? n : how->top_k;
    }
    qsort(s->candidate, (size_t)n, sizeof *s->candidate, by_probability);
    if (has_top_k(s, how))
        sum = sum_of(s->candidate, n);
    return keep_nucleus(s->candidate, n, how, top_p_of(how), sum);
}

/* Writes the tokens that can be drawn to the front of s->candidate, and returns their number. */
static int keep(sampler *s, const float *logits, double best, const sampling *how) {
    double top_p = top_p_of(how), sum;
    bool top_k = has_top_k(s, how);
    /* With top-k, the nucleus is computed from what top-k leaves, so no token can be left out
     * before. */
    int n = collect(s, logits, best, how, top_k ? 1 : top_p, &sum);
    if (top_k || top_p < 1)
        return keep_some(s, n, how, sum);
    return how->min_p > 0 ? keep_nucleus(s->candidate, n, how, top_p, sum) : n;
}

static int32_t draw_one(const sampler *s, int n, rng *r) {
    return find(s->candidate, n, rng_uniform(r), sum_of(s->candidate, n));
}

void sampler_distribution(sampler *s, const sampling *how, const float *logits, double *p) {
    int32_t best = largest_of(logits, s->vocab);
    memset(p, 0, (size_t)s->vocab * sizeof *p);
    if (!(how->temperature > 0)) {
        p[best] = 1;
        return;
    }
    int n = keep(s, logits, (double)logits[best], how);
    double sum = sum_of(s->candidate, n);
    for (int i = 0; i < n; i++)
        p[s->candidate[i].id] = s->candidate[i].p / sum;
}

static bool repeats(const sampling *how) {
    return how->repetition_penalty > 0 && how->repetition_penalty != 1;
}

static bool answer_penalised(const sampling *how) {
    return how->presence_penalty != 0 || how->frequency_penalty != 0;
}

reading sampler_reading(const sampler *s, const sampling *how, const rng *r) {
    double top_p = top_p_of(how);
    bool top_k = has_top_k(s, how), penalised = repeats(how) || answer_penalised(how);
    rng ahead = *r;
    if (penalised || (top_k && how->top_k > READING_MOST))
        return (reading){.kind = READ_LOGITS};
    if (!(how->temperature > 0))
        return (reading){.kind = READ_BEST};
    if (top_k)
        return (reading){READ_TOP, how->temperature, how->top_k};
    if (top_p < 1)
        return (reading){READ_NUCLEUS, how->temperature, top_p};
    if (how->min_p > 0)
        return (reading){.kind = READ_LOGITS};
    return (reading){READ_SHARE, how->temperature, rng_uniform(&ahead)};
}

int32_t sampler_draw_read(sampler *s, const sampling *how, const reading_result *a, rng *r) {
    if (a->kind == READ_SHARE)
        (void)rng_uniform(r);
    if (a->kind == READ_SHARE || a->kind == READ_BEST)
        return a->token;
    int n = a->n < s->vocab ? a->n : s->vocab;
    for (int i = 0; i < n; i++)
        s->candidate[i] = (candidate){
            exp(((double)a->list[i].logit - (double)a->largest) / how->temperature), a->list[i].id};
    return draw_one(s, keep_some(s, n, how, a->sum), r);
}

int32_t sampler_draw(sampler *s, const sampling *how, const float *logits, const int32_t *seen,
                     int64_t n_seen, rng *r, float *logprob) {
    const float *x = logits;
    if (repeats(how) || answer_penalised(how)) {
        memcpy(s->logits, logits, (size_t)s->vocab * sizeof *logits);
        if (repeats(how))
            penalise(s, how->repetition_penalty, seen, n_seen);
        if (answer_penalised(how))
            penalise_answer(s, how, seen, n_seen);
        x = s->logits;
    }
    int32_t best = largest_of(x, s->vocab);
    bool drawn = how->temperature > 0 && isfinite(x[best]);
    int32_t token = drawn ? draw_one(s, keep(s, x, (double)x[best], how), r) : best;
    if (logprob)
        *logprob = (float)token_logprob(logits, s->vocab, token);
    return token;
}
