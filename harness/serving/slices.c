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

/* Adds to one of the series of an arm, [CHOICES]. */
static void put_choice(slice_series *c, int series, int slice, double over, double under) {
    if (slice < 0 || !isfinite(over))
        return;
    c[series].over[slice] += over;
    c[series].under[slice] += under;
}

static void fill_choice(slice_series *c, const sliced_block *b, size_t block, size_t each) {
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
        c[CHOICE_OUTPUT].under[block * each + k] = (b->window.to - b->window.from) / (double)each;
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

size_t sliced_choose(const sliced_block *const *blocks, size_t arms, size_t n,
                     slice_dependence *found) {
    enum { kArmsMost = SLICE_SERIES_MOST / CHOICES, kRequestsEach = 4 };
    slice_series all[kArmsMost * CHOICES];
    size_t each = 1, requests = fewest_requests(blocks, arms, n);
    *found = (slice_dependence){false, (double)NAN};
    if (!n || n > SLICES_MOST || !arms || arms > kArmsMost)
        return 0;
    while (2 * each * n <= SLICES_MOST && 2 * each * n * kRequestsEach <= requests)
        each *= 2;
    if (each * n < SLICES_FEWEST)
        return 0;
    memset(all, 0, sizeof all);
    for (size_t a = 0; a < arms; a++)
        for (size_t b = 0; b < n; b++)
            fill_choice(&all[a * CHOICES], &blocks[a][b], b, each);
    return slice_series_merge(all, arms * CHOICES, n, each, found);
}
