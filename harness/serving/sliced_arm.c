#include "harness/serving/sliced_arm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- latencies ---- */

typedef struct {
    double value;
    uint32_t place;
    uint16_t slice;
} valued;

typedef struct {
    valued *at;
    size_t n;
} valued_list;

static void put(valued_list *l, double value, int slice) {
    if (slice < 0 || !isfinite(value))
        return;
    l->at[l->n] = (valued){value, (uint32_t)l->n, (uint16_t)slice};
    l->n++;
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

static void collect(valued_list *l, const sliced_block *b, size_t block, size_t each,
                    serving_time which) {
    for (size_t i = 0; i < b->n; i++) {
        const serving_request *r = &b->at[i];
        int slice = sliced_place(b, block, each, r->due_s, b->window.cohort_to);
        if (which != SERVING_ITL)
            put(l, serving_time_of(r, which), slice);
        for (int k = 0; which == SERVING_ITL && slice >= 0 && k < sliced_gaps(r); k++)
            put(l, (double)r->gap_s[k], slice);
    }
}

/* The most values that collect() adds. A run has millions of gaps, so they are counted before
 * memory is allocated: a list that doubles would need the old and the new memory at once. */
static size_t most_values(const sliced_block *b, size_t block, size_t each, serving_time which) {
    size_t n = 0;
    for (size_t i = 0; i < b->n && which == SERVING_ITL; i++) {
        const serving_request *r = &b->at[i];
        bool in_cohort = sliced_place(b, block, each, r->due_s, b->window.cohort_to) >= 0;
        n += in_cohort ? (size_t)sliced_gaps(r) : 0;
    }
    return which == SERVING_ITL ? n : b->n;
}

static bool make_latency(sliced_arm *out, const sliced_block *blocks, size_t n, size_t each,
                         serving_time which, arena *mem) {
    size_t most = 0;
    for (size_t b = 0; b < n; b++)
        most += most_values(&blocks[b], b, each, which);
    valued_list l = {.at = calloc(most + 1, sizeof *l.at)};
    if (!l.at)
        return false;
    for (size_t b = 0; b < n; b++)
        collect(&l, &blocks[b], b, each, which);
    bool ok = index_values(&out->latency[which], &l, out->slices, mem);
    free(l.at);
    return ok;
}

/* ---- rates and targets ---- */

/* Counts an answered request in the slice in which it ended. */
static void count_ended(sliced_arm *out, const serving_request *r, int slice, bool good) {
    if (slice < 0 || !serving_is_answered(r))
        return;
    out->over[SERVING_REQUESTS][slice] += 1;
    out->over[SERVING_INPUT][slice] += (double)r->prompt_tokens;
    out->over[SERVING_OUTPUT][slice] += (double)r->completion_tokens;
    out->over[SERVING_PIECES][slice] += r->pieces;
    out->over[SERVING_GOODPUT][slice] += good;
}

/* Counts a request in the slice in which it was due. @cohort: that slice, or -1 outside the cohort.
 * A request that was cut counts as one that misses the targets. */
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

static void count_target(double *hits, double *totals, const slo_target *t,
                         const serving_request *r, int slice) {
    if (slice < 0)
        return;
    if (t->latency != SERVING_ITL) {
        hits[slice] += slo_met(t, r);
        totals[slice] += 1;
        return;
    }
    for (int i = 0; i < sliced_gaps(r); i++) {
        hits[slice] += (double)r->gap_s[i] <= t->limit_s;
        totals[slice] += 1;
    }
}

void sliced_count_target(const sliced_block *blocks, size_t n, size_t each, const slo_target *t,
                         double *hits, double *totals) {
    for (size_t b = 0; b < n; b++)
        for (size_t i = 0; i < blocks[b].n; i++) {
            const serving_request *r = &blocks[b].at[i];
            count_target(hits, totals, t, r,
                         sliced_place(&blocks[b], b, each, r->due_s, blocks[b].window.cohort_to));
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
        int cohort = sliced_place(b, block, each, r->due_s, b->window.cohort_to);
        count_ended(out, r, sliced_place(b, block, each, serving_left(r), b->window.to), good);
        count_due(out, r, sliced_place(b, block, each, r->due_s, b->window.to), cohort, good);
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
    for (size_t k = 0; k < targets->n; k++)
        sliced_count_target(blocks, n, each, &targets->at[k], out->hits[k], out->totals[k]);
    for (size_t s = 0; s < out->slices && gpus > 0; s++)
        out->over[SERVING_GPU][s] = out->over[SERVING_OUTPUT][s] / gpus;
    drop_unknown(out, blocks, n, targets->n > 0, gpus);
    return SNAP_OK;
}
