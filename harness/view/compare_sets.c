/* compare_sets.c - finds the cells that all devices of a comparison share, and computes the
 * means of each device over them. Means over different cells would not rank devices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/compare.h"

/* ---- the sets -------------------------------------------------------------------------------- */

/* A set of cells: those of one mode and one of the two arms. */
typedef struct {
    const report_model *m;
    compared *rows;
    size_t n;
    const char *arm; /* "bf16" or "fp8" */
    bool loops;
    bool metered; /* only rows whose energy was measured count, and `metered` of a row is set */
    int base;     /* the first device that has such rows */
} search;

static bool counts(const search *s, const compared *r) {
    return report_is_loop(r->cell) == s->loops && strcmp(r->cell->row->arm, s->arm) == 0 &&
           (!s->metered || !isnan(r->cell->perf->tok_j));
}

static int device_of(const report_model *m, const compared *r) {
    return m->device_of[r->cell->file];
}

/* The first row after those of the cell that begins at @from. */
static size_t end_of(const search *s, size_t from) {
    size_t to = from + 1;
    while (to < s->n && compare_same_cell(s->rows[from].cell, s->rows[to].cell))
        to++;
    return to;
}

/* The row of a device in the cell that begins at @from, if it can be compared with the base's row.
 * NULL if there is none. */
static compared *find_row(const search *s, size_t from, int device) {
    const size_t to = end_of(s, from);
    const compared *base = NULL;
    for (size_t i = from; i < to && !base; i++)
        if (counts(s, &s->rows[i]) && device_of(s->m, &s->rows[i]) == s->base)
            base = &s->rows[i];
    for (size_t i = from; base && i < to; i++) {
        compared *r = &s->rows[i];
        if (counts(s, r) && device_of(s->m, r) == device && r->first == base->first &&
            !r->differs[0] && !base->differs[0])
            return r;
    }
    return NULL;
}

/* Counts the cells in the set that a device has. If @keep, the others are removed from the set. */
static size_t count_shared(const search *s, bool *in_set, int device, bool keep) {
    size_t n = 0;
    for (size_t from = 0; from < s->n; from = end_of(s, from)) {
        bool has = in_set[from] && find_row(s, from, device);
        n += has;
        if (keep)
            in_set[from] = has;
    }
    return n;
}

static void mark(const search *s, const bool *in_set, int device) {
    for (size_t from = 0; from < s->n; from = end_of(s, from)) {
        compared *r = in_set[from] ? find_row(s, from, device) : NULL;
        if (r && s->metered)
            r->metered = true;
        else if (r)
            r->common = true;
    }
}

/* @in_set: [n] room for one flag for each cell, at its first row
 * @shares: [devices] room for one flag for each device */
static void find_set(search *s, bool *in_set, bool *shares) {
    s->base = s->m->n_devices;
    for (size_t i = 0; i < s->n; i++) {
        in_set[i] = true;
        if (counts(s, &s->rows[i]) && device_of(s->m, &s->rows[i]) < s->base)
            s->base = device_of(s->m, &s->rows[i]);
    }
    for (int d = s->base; d < s->m->n_devices; d++) {
        shares[d] = count_shared(s, in_set, d, false) > 0;
        if (shares[d])
            (void)count_shared(s, in_set, d, true);
    }
    for (int d = s->base; d < s->m->n_devices; d++)
        if (shares[d])
            mark(s, in_set, d);
}

bool compare_find_sets(const report_model *m, compared *rows, size_t n) {
    static const char *const arms[] = {"bf16", "fp8"};
    bool *in_set = calloc(n + 1, sizeof *in_set);
    bool *shares = calloc((size_t)m->n_devices + 1, sizeof *shares);
    for (int k = 0; in_set && shares && k < 6; k++) {
        search s = {.m = m, .rows = rows, .n = n, .arm = arms[k % 2]};
        s.loops = k >= 2;
        s.metered = k >= 4;
        find_set(&s, in_set, shares);
    }
    bool ok = in_set && shares;
    free(in_set);
    free(shares);
    return ok;
}

/* ---- means ----------------------------------------------------------------------------------- */

bool compare_has(const report_model *m, bool loops) {
    for (size_t i = 0; i < m->n_compared; i++)
        if (report_is_loop(m->compared[i].cell) == loops)
            return true;
    return false;
}

bool compare_is_warm(const report_cell *c) {
    return report_is_loop(c) && strcmp(c->row->cold, "none") == 0;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n) {
    qsort(x, n, sizeof *x, by_value);
    return n ? (x[(n - 1) / 2] + x[n / 2]) / 2 : (double)NAN;
}

static double mean_of(double sum, size_t n) {
    return n ? exp(sum / (double)n) : (double)NAN;
}

device_means compare_means(const report_model *m, int device, const char *arm, bool loops) {
    double *roofline = malloc((m->n_compared + 1) * sizeof *roofline);
    size_t cold = 0;
    device_means sum = {0};
    for (size_t i = 0; roofline && i < m->n_compared; i++) {
        const compared *r = &m->compared[i];
        if (device_of(m, r) != device || strcmp(r->cell->row->arm, arm) != 0)
            continue;
        sum.metered += r->metered;
        sum.tok_j += r->metered ? log(r->cell->perf->tok_j) : 0;
        if (!r->common || report_is_loop(r->cell) != loops)
            continue;
        sum.n++;
        sum.speed += log(r->first->perf->median_ns / r->cell->perf->median_ns);
        sum.tok_s += log(r->cell->perf->tok_s);
        sum.tok_usd += log(r->tok_usd);
        if (!compare_is_warm(r->cell) && !isnan(r->cell->perf->roofline_pct))
            roofline[cold++] = r->cell->perf->roofline_pct;
    }
    device_means mean = {.n = sum.n,
                         .metered = sum.metered,
                         .speed = mean_of(sum.speed, sum.n),
                         .tok_s = mean_of(sum.tok_s, sum.n),
                         .tok_usd = mean_of(sum.tok_usd, sum.n),
                         .tok_j = mean_of(sum.tok_j, sum.metered),
                         .roofline_pct = roofline ? median(roofline, cold) : (double)NAN};
    free(roofline);
    return mean;
}

/* The BF16 row of the same device and shape as an FP8 row; NULL if it does not count. */
static const compared *bf16_of(const report_model *m, const compared *fp8) {
    for (size_t i = 0; i < m->n_compared; i++) {
        const compared *r = &m->compared[i];
        if (r->common && device_of(m, r) == device_of(m, fp8) &&
            strcmp(r->cell->row->arm, "bf16") == 0 &&
            report_is_loop(r->cell) == report_is_loop(fp8->cell) &&
            compare_same_step(r->cell, fp8->cell))
            return r;
    }
    return NULL;
}

double compare_fp8_gain(const report_model *m, int device, bool loops) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < m->n_compared; i++) {
        const compared *r = &m->compared[i];
        if (!r->common || device_of(m, r) != device || strcmp(r->cell->row->arm, "fp8") != 0 ||
            report_is_loop(r->cell) != loops)
            continue;
        const compared *bf16 = bf16_of(m, r);
        n += bf16 != NULL;
        sum += bf16 ? log(bf16->cell->perf->median_ns / r->cell->perf->median_ns) : 0;
    }
    return mean_of(sum, n);
}
