#include "harness/serving/interval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "evals/distributions.h"
#include "harness/measure/stats.h"

/* ---- names ---- */

int serving_metric_of(serving_time l, serving_statistic s) {
    return (int)l * SERVING_STATISTICS + (int)s;
}

int serving_metric_of_rate(serving_rate r) {
    return SERVING_TIMES * SERVING_STATISTICS + (int)r;
}

bool serving_more_is_better(int metric) {
    return metric >= serving_metric_of_rate(SERVING_OFFERED) &&
           metric != serving_metric_of_rate(SERVING_FAILED);
}

void serving_metric_name(int metric, char out[32]) {
    int rate = metric - serving_metric_of_rate(SERVING_OFFERED);
    if (rate >= 0)
        (void)snprintf(out, 32, "%s", serving_rate_name((serving_rate)rate));
    else
        (void)snprintf(out, 32, "%s_%s",
                       serving_time_name((serving_time)(metric / SERVING_STATISTICS)),
                       serving_statistic_name((serving_statistic)(metric % SERVING_STATISTICS)));
}

/* ---- slices ---- */

/* The slice of the time @t, or -1 if it lies outside [from, to). */
static int slice_of(const sliced_block *b, size_t block, size_t each, double t, double to) {
    const steady_window *w = &b->window;
    if (!(t >= w->from && t < to && t < w->to))
        return -1;
    size_t k = (size_t)((t - w->from) / (w->to - w->from) * (double)each);
    return (int)(block * each + (k < each ? k : each - 1));
}

static int gaps_of(const serving_request *r) {
    return serving_is_answered(r) && r->pieces > 1 && r->gap_s ? r->pieces - 1 : 0;
}

/* ---- how many slices ---- */

enum { CHOICE_TTFT, CHOICE_E2E, CHOICE_ITL, CHOICE_OUTPUT, CHOICES };

/* Sums of four series in the slices of one arm. */
typedef struct {
    double over[CHOICES][SLICES_MOST], under[CHOICES][SLICES_MOST];
} choice;

static void put_choice(choice *c, int series, int slice, double over, double under) {
    if (slice < 0 || !isfinite(over))
        return;
    c->over[series][slice] += over;
    c->under[series][slice] += under;
}

static void fill_choice(choice *c, const sliced_block *b, size_t block, size_t each) {
    for (size_t i = 0; i < b->n; i++) {
        const serving_request *r = &b->at[i];
        int due = slice_of(b, block, each, r->due_s, b->window.cohort_to);
        put_choice(c, CHOICE_TTFT, due, serving_time_of(r, SERVING_TTFT), 1);
        put_choice(c, CHOICE_E2E, due, serving_time_of(r, SERVING_E2E), 1);
        if (gaps_of(r))
            put_choice(c, CHOICE_ITL, due, serving_last_piece(r) - r->first_s, gaps_of(r));
        int end = slice_of(b, block, each, serving_left(r), b->window.to);
        if (serving_is_answered(r) && r->completion_tokens > 0)
            put_choice(c, CHOICE_OUTPUT, end, (double)r->completion_tokens, 0);
    }
    for (size_t k = 0; k < each; k++)
        c->under[CHOICE_OUTPUT][block * each + k] = (b->window.to - b->window.from) / (double)each;
}

/* Whether neighbours within a block are positively correlated around the mean of all blocks: the
 * correlation exceeds one standard error. */
static bool is_correlated(const double *over, const double *under, size_t blocks, size_t each) {
    double x[SLICES_MOST], mean = 0, squares = 0, products = 0;
    size_t n = blocks * each, pairs = 0, known = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = under[i] > 0 ? over[i] / under[i] : (double)NAN;
        mean += under[i] > 0 ? x[i] : 0;
        known += under[i] > 0;
    }
    mean /= (double)known;
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            continue;
        squares += (x[i] - mean) * (x[i] - mean);
        if (i % each && !isnan(x[i - 1])) {
            products += (x[i] - mean) * (x[i - 1] - mean);
            pairs++;
        }
    }
    if (pairs < 3 || !(squares > 0))
        return false;
    double r = products / (double)pairs / (squares / (double)known);
    return r > 1 / sqrt((double)pairs);
}

static void merge_neighbours(choice *c, size_t n) {
    for (int s = 0; s < CHOICES; s++)
        for (size_t i = 0; i < n / 2; i++) {
            c->over[s][i] = c->over[s][2 * i] + c->over[s][2 * i + 1];
            c->under[s][i] = c->under[s][2 * i] + c->under[s][2 * i + 1];
        }
}

static bool any_correlated(const choice *all, size_t arms, size_t blocks, size_t each) {
    for (size_t a = 0; a < arms; a++)
        for (int s = 0; s < CHOICES; s++)
            if (is_correlated(all[a].over[s], all[a].under[s], blocks, each))
                return true;
    return false;
}

static size_t fewest_requests(const sliced_block *const *blocks, size_t arms, size_t n) {
    size_t fewest = SIZE_MAX;
    for (size_t a = 0; a < arms; a++) {
        size_t inside = 0;
        for (size_t b = 0; b < n; b++)
            for (size_t i = 0; i < blocks[a][b].n; i++)
                inside += slice_of(&blocks[a][b], 0, 1, blocks[a][b].at[i].due_s,
                                   blocks[a][b].window.cohort_to) == 0;
        fewest = inside < fewest ? inside : fewest;
    }
    return fewest;
}

size_t sliced_choose(const sliced_block *const *blocks, size_t arms, size_t n, bool *correlated) {
    enum { kArmsMost = 8, kRequestsEach = 4 };
    choice all[kArmsMost];
    size_t each = 1, requests = fewest_requests(blocks, arms, n);
    *correlated = false;
    if (!n || n > SLICES_MOST || !arms || arms > kArmsMost)
        return 0;
    while (2 * each * n <= SLICES_MOST && 2 * each * n * kRequestsEach <= requests)
        each *= 2;
    if (each * n < SLICES_FEWEST)
        return 0;
    memset(all, 0, sizeof all);
    for (size_t a = 0; a < arms; a++)
        for (size_t b = 0; b < n; b++)
            fill_choice(&all[a], &blocks[a][b], b, each);
    while ((*correlated = any_correlated(all, arms, n, each)) && each > 1 &&
           each * n / 2 >= SLICES_FEWEST) {
        for (size_t a = 0; a < arms; a++)
            merge_neighbours(&all[a], each * n);
        each /= 2;
    }
    return each;
}

/* ---- the values of the slices ---- */

typedef struct {
    double value;
    uint32_t place;
    uint16_t slice;
} valued;

typedef struct {
    valued *at;
    size_t n, capacity;
} valued_list;

static bool put(valued_list *l, double value, int slice) {
    if (slice < 0 || !isfinite(value))
        return true;
    if (l->n == l->capacity) {
        size_t capacity = l->capacity ? 2 * l->capacity : 1024;
        valued *more = realloc(l->at, capacity * sizeof *more);
        if (!more)
            return false;
        l->at = more;
        l->capacity = capacity;
    }
    l->at[l->n] = (valued){value, (uint32_t)l->n, (uint16_t)slice};
    l->n++;
    return true;
}

static int by_value(const void *a, const void *b) {
    double x = ((const valued *)a)->value, y = ((const valued *)b)->value;
    return (x > y) - (x < y);
}

/* Sorts the list into @out and counts its values at the marks. */
static bool index_values(sliced_values *out, valued_list *l, size_t slices, arena *mem) {
    size_t n = l->n;
    if (n)
        qsort(l->at, n, sizeof *l->at, by_value);
    out->n = n;
    out->step = (n + SLICED_MARKS - 1) / SLICED_MARKS;
    out->value = arena_alloc(mem, n + 1, sizeof *out->value);
    out->slice = arena_alloc(mem, n + 1, sizeof *out->slice);
    out->place = arena_alloc(mem, n + 1, sizeof *out->place);
    out->level = arena_alloc(mem, n + 1, sizeof *out->level);
    out->sum = arena_alloc(mem, slices, sizeof *out->sum);
    out->count = arena_alloc(mem, slices, sizeof *out->count);
    out->below = arena_alloc(mem, (SLICED_MARKS + 1) * slices, sizeof *out->below);
    if (!out->value || !out->slice || !out->place || !out->level || !out->sum || !out->count ||
        !out->below)
        return false;
    for (size_t i = 0; i < n; i++) {
        size_t s = l->at[i].slice;
        out->value[i] = l->at[i].value;
        out->slice[i] = l->at[i].slice;
        out->place[i] = l->at[i].place;
        out->sum[s] += l->at[i].value;
        out->count[s] += 1;
    }
    for (size_t k = 1; k <= SLICED_MARKS; k++) {
        uint32_t *row = out->below + k * slices;
        memcpy(row, row - slices, slices * sizeof *row);
        for (size_t i = (k - 1) * out->step; i < k * out->step && i < n; i++)
            row[out->slice[i]]++;
    }
    return true;
}

static bool collect(valued_list *l, const sliced_block *b, size_t block, size_t each,
                    serving_time which) {
    bool ok = true;
    for (size_t i = 0; i < b->n && ok; i++) {
        const serving_request *r = &b->at[i];
        int slice = slice_of(b, block, each, r->due_s, b->window.cohort_to);
        if (which != SERVING_ITL)
            ok = put(l, serving_time_of(r, which), slice);
        for (int k = 0; which == SERVING_ITL && slice >= 0 && k < gaps_of(r) && ok; k++)
            ok = put(l, (double)r->gap_s[k], slice);
    }
    return ok;
}

static bool make_latency(sliced_arm *out, const sliced_block *blocks, size_t n, size_t each,
                         serving_time which, arena *mem) {
    valued_list l = {0};
    bool ok = true;
    for (size_t b = 0; b < n && ok; b++)
        ok = collect(&l, &blocks[b], b, each, which);
    ok = ok && index_values(&out->latency[which], &l, out->slices, mem);
    free(l.at);
    return ok;
}

/* ---- rates and targets ---- */

/* Counts what ended in the window. */
static void count_ended(sliced_arm *out, const serving_request *r, int slice, bool good) {
    if (slice < 0 || !serving_is_answered(r))
        return;
    out->over[SERVING_REQUESTS][slice] += 1;
    out->over[SERVING_INPUT][slice] += (double)r->prompt_tokens;
    out->over[SERVING_OUTPUT][slice] += (double)r->completion_tokens;
    out->over[SERVING_PIECES][slice] += r->pieces;
    out->over[SERVING_GOODPUT][slice] += good;
}

/* Counts the requests that were due in the window. A request that was cut before it could meet or
 * miss the targets counts as a miss: it had not ended when the block did. */
static void count_due(sliced_arm *out, const serving_request *r, int slice, int cohort, bool good) {
    double tpot = serving_time_of(r, SERVING_TPOT);
    if (slice >= 0)
        out->over[SERVING_OFFERED][slice] += 1;
    if (cohort < 0)
        return;
    out->requests += 1;
    out->over[SERVING_GOOD][cohort] += good;
    out->under[SERVING_GOOD][cohort] += 1;
    out->over[SERVING_FAILED][cohort] += r->failed;
    out->under[SERVING_FAILED][cohort] += 1;
    if (tpot > 0) {
        out->over[SERVING_USER][cohort] += 1 / tpot;
        out->under[SERVING_USER][cohort] += 1;
    }
}

static void count_target(sliced_arm *out, size_t k, const slo_target *t, const serving_request *r,
                         int slice) {
    if (slice < 0)
        return;
    if (t->latency != SERVING_ITL) {
        out->hits[k][slice] += slo_met(t, r);
        out->totals[k][slice] += 1;
        return;
    }
    for (int i = 0; i < gaps_of(r); i++) {
        out->hits[k][slice] += (double)r->gap_s[i] <= t->limit_s;
        out->totals[k][slice] += 1;
    }
}

static void count_block(sliced_arm *out, const sliced_block *b, size_t block, size_t each,
                        const slo_list *targets) {
    double seconds = (b->window.to - b->window.from) / (double)each;
    for (size_t k = 0; k < each; k++)
        for (int r = SERVING_OFFERED; r <= SERVING_GOODPUT; r++)
            out->under[r][block * each + k] = fmax(0, seconds);
    for (size_t i = 0; i < b->n; i++) {
        const serving_request *r = &b->at[i];
        bool good = serving_is_answered(r) && slo_all_met(targets, r);
        int cohort = slice_of(b, block, each, r->due_s, b->window.cohort_to);
        count_ended(out, r, slice_of(b, block, each, serving_left(r), b->window.to), good);
        count_due(out, r, slice_of(b, block, each, r->due_s, b->window.to), cohort, good);
        for (size_t k = 0; k < targets->n; k++)
            count_target(out, k, &targets->at[k], r, cohort);
    }
}

/* Whether the server counted the tokens of every answered request. */
static bool has_usage(const sliced_block *blocks, size_t n, bool prompt) {
    for (size_t b = 0; b < n; b++)
        for (size_t i = 0; i < blocks[b].n; i++) {
            const serving_request *r = &blocks[b].at[i];
            if (serving_is_answered(r) && (prompt ? r->prompt_tokens : r->completion_tokens) < 0)
                return false;
        }
    return true;
}

/* Removes the rates that do not exist. */
static void drop_unknown(sliced_arm *out, const sliced_block *blocks, size_t n, bool targets,
                         double gpus) {
    if (!has_usage(blocks, n, true))
        out->over[SERVING_INPUT] = NULL;
    if (!has_usage(blocks, n, false))
        out->over[SERVING_OUTPUT] = out->over[SERVING_GPU] = NULL;
    if (!(gpus > 0))
        out->over[SERVING_GPU] = NULL;
    if (!targets)
        out->over[SERVING_GOODPUT] = out->over[SERVING_GOOD] = NULL;
}

snap_status sliced_make(sliced_arm *out, const sliced_block *blocks, size_t n, size_t each,
                        const slo_list *targets, double gpus, arena *mem, snap_err *err) {
    bool ok = true;
    *out = (sliced_arm){.slices = n * each};
    for (int l = 0; l < SERVING_TIMES && ok; l++)
        ok = make_latency(out, blocks, n, each, (serving_time)l, mem);
    for (int r = 0; r < SERVING_RATES && ok; r++) {
        out->over[r] = arena_alloc(mem, out->slices, sizeof(double));
        out->under[r] = arena_alloc(mem, out->slices, sizeof(double));
        ok = out->over[r] && out->under[r];
    }
    for (size_t k = 0; k < targets->n && ok; k++) {
        out->hits[k] = arena_alloc(mem, out->slices, sizeof(double));
        out->totals[k] = arena_alloc(mem, out->slices, sizeof(double));
        ok = out->hits[k] && out->totals[k];
    }
    if (!ok)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the metrics of a server");
    for (size_t b = 0; b < n; b++)
        count_block(out, &blocks[b], b, each, targets);
    for (size_t s = 0; s < out->slices && gpus > 0; s++)
        out->over[SERVING_GPU][s] = out->over[SERVING_OUTPUT][s] / gpus;
    drop_unknown(out, blocks, n, targets->n > 0, gpus);
    return SNAP_OK;
}

/* ---- metrics ---- */

/* The number of values before mark @k, each slice counted with its weight. */
static double before_mark(const sliced_values *v, const uint16_t *weight, size_t slices, size_t k) {
    const uint32_t *row = v->below + k * slices;
    double n = 0;
    for (size_t s = 0; s < slices; s++)
        n += (double)row[s] * (weight ? weight[s] : 1);
    return n;
}

/* Quantile @q of the weighted values, @total of them, as stats_quantile() has it. */
static double quantile_of(const sliced_values *v, const uint16_t *weight, size_t slices,
                          double total, double q) {
    double at = (total - 1) * q, below = floor(at), found[2] = {(double)NAN, (double)NAN};
    size_t lo = 0, hi = SLICED_MARKS; /* the value lies at or after mark lo */
    if (!(total > 0))
        return (double)NAN;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (before_mark(v, weight, slices, mid) <= below)
            lo = mid;
        else
            hi = mid;
    }
    double n = before_mark(v, weight, slices, lo);
    for (size_t i = lo * v->step; i < v->n && isnan(found[1]); i++) {
        n += weight ? weight[v->slice[i]] : 1;
        if (isnan(found[0]) && n > below)
            found[0] = v->value[i];
        if (n > below + 1)
            found[1] = v->value[i];
    }
    return isnan(found[1]) ? found[0] : found[0] + (at - below) * (found[1] - found[0]);
}

static double weighted(const double *x, const uint16_t *weight, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * (weight ? weight[i] : 1);
    return sum;
}

void sliced_metrics(const sliced_arm *arm, const uint16_t *weight, double out[SERVING_METRICS]) {
    for (int l = 0; l < SERVING_TIMES; l++) {
        const sliced_values *v = &arm->latency[l];
        double n = weighted(v->count, weight, arm->slices);
        double *x = out + (size_t)l * SERVING_STATISTICS;
        x[SERVING_MEAN] = n > 0 ? weighted(v->sum, weight, arm->slices) / n : (double)NAN;
        for (int s = SERVING_P50; s < SERVING_STATISTICS; s++)
            x[s] =
                quantile_of(v, weight, arm->slices, n, serving_quantile_of((serving_statistic)s));
    }
    for (int r = 0; r < SERVING_RATES; r++) {
        double under = weighted(arm->under[r], weight, arm->slices);
        out[serving_metric_of_rate((serving_rate)r)] =
            arm->over[r] && under > 0 ? weighted(arm->over[r], weight, arm->slices) / under
                                      : (double)NAN;
    }
}

double sliced_quantile(const sliced_arm *arm, serving_time l, double q) {
    const sliced_values *v = &arm->latency[l];
    return v->n ? stats_quantile(v->value, v->n, q) : (double)NAN;
}

/* The design effect of the share of values up to @at. */
static double effect_at(const sliced_arm *arm, serving_time l, double at) {
    const sliced_values *v = &arm->latency[l];
    double hits[SLICES_MOST] = {0};
    for (size_t i = 0; i < v->n && v->value[i] <= at; i++)
        hits[v->slice[i]] += 1;
    return slo_design_effect(hits, v->count, arm->slices);
}

double sliced_cluster_effect(const sliced_arm *arm, serving_time l, double limit) {
    const sliced_values *v = &arm->latency[l];
    double middle = sliced_quantile(arm, l, 0.5), size = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < v->n; i++)
        v->level[v->place[i]] = v->value[i] <= middle ? 0 : v->value[i] <= limit ? 1 : 2;
    for (size_t i = 0; i <= v->n; i++) {
        if (i < v->n && v->level[i]) {
            size += v->level[i] == 2;
            continue;
        }
        sum += size;
        squares += size * size;
        size = 0;
    }
    return sum > 0 ? squares / sum : 1;
}

double sliced_effect(const sliced_arm *arm, serving_time l) {
    return effect_at(arm, l, sliced_quantile(arm, l, 0.5));
}

void sliced_quantile_interval(const sliced_arm *arm, serving_time l, double q, double ci[2]) {
    double n = (double)arm->latency[l].n, share[2];
    ci[0] = ci[1] = (double)NAN;
    if (!(n > 0) || arm->slices < 2)
        return;
    double at = sliced_quantile(arm, l, q);
    double effect = fmax(sliced_effect(arm, l), effect_at(arm, l, at));
    effect = fmax(effect, sliced_cluster_effect(arm, l, at));
    slo_share_interval(q, n / effect, arm->slices, 0.95, share);
    ci[0] = sliced_quantile(arm, l, share[0]);
    ci[1] = (1 - share[1]) * n / effect < 1 ? (double)INFINITY : sliced_quantile(arm, l, share[1]);
}

void sliced_bootstrap(const sliced_arm *arms, size_t n, int draws, uint64_t seed, double *out) {
    size_t slices = arms[0].slices;
    rng r = rng_make(seed, rng_stream_of("serving slices"));
    uint16_t weight[UINT8_MAX + 1];
    for (int d = 0; d < draws && slices && slices <= UINT8_MAX; d++) {
        memset(weight, 0, sizeof weight);
        for (size_t i = 0; i < slices; i++)
            weight[rng_below(&r, (uint32_t)slices)]++;
        for (size_t a = 0; a < n; a++)
            sliced_metrics(&arms[a], weight,
                           out + (a * (size_t)draws + (size_t)d) * SERVING_METRICS);
    }
}

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sliced_interval(double *x, size_t n, size_t slices, double level, double out[2]) {
    size_t known = 0;
    out[0] = out[1] = (double)NAN;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            x[known++] = x[i];
    if (slices < 2 || known < 2 || known * 20 < n * 19)
        return;
    double s = (double)slices;
    double t = student_quantile(0.5 + level / 2, s - 1) * sqrt(s / (s - 1));
    double tail = normal_cdf(-t);
    qsort(x, known, sizeof *x, by_number);
    out[0] = stats_quantile(x, known, tail);
    out[1] = stats_quantile(x, known, 1 - tail);
}
