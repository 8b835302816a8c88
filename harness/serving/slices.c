#include "harness/serving/slices.h"

#include <math.h>
#include <string.h>

int sliced_place(const sliced_block *b, size_t block, size_t each, double t, double to) {
    const steady_window *w = &b->window;
    if (!(t >= w->from && t < to && t < w->to))
        return -1;
    size_t k = (size_t)((t - w->from) / (w->to - w->from) * (double)each);
    return (int)(block * each + (k < each ? k : each - 1));
}

int sliced_gaps(const serving_request *r) {
    return serving_is_answered(r) && r->pieces > 1 && r->gap_s ? r->pieces - 1 : 0;
}

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
        int due = sliced_place(b, block, each, r->due_s, b->window.cohort_to);
        put_choice(c, CHOICE_TTFT, due, serving_time_of(r, SERVING_TTFT), 1);
        put_choice(c, CHOICE_E2E, due, serving_time_of(r, SERVING_E2E), 1);
        if (sliced_gaps(r))
            put_choice(c, CHOICE_ITL, due, serving_last_piece(r) - r->first_s, sliced_gaps(r));
        int end = sliced_place(b, block, each, serving_left(r), b->window.to);
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
                inside += sliced_place(&blocks[a][b], 0, 1, blocks[a][b].at[i].due_s,
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
