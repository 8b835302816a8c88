#include "harness/measure/paired_ratio.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/rank.h"
#include "harness/measure/stats.h"

enum { kStretches = 25 };
static const double kBeyond = 0.025; /* the share beyond each end of a 95 % interval */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const double *x, size_t n, double *scratch) {
    memcpy(scratch, x, n * sizeof *scratch);
    qsort(scratch, n, sizeof *scratch, by_value);
    return stats_quantile(scratch, n, 0.5);
}

snap_status paired_ratio_of(const double *base, size_t n, const double *arm, size_t m,
                            paired_ratio *out, snap_err *err) {
    *out = (paired_ratio){(double)NAN, (double)NAN, (double)NAN};
    if (!n || !m)
        return SNAP_OK;
    double *scratch = malloc((n > m ? n : m) * sizeof *scratch);
    if (!scratch)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the ratio of two arms");
    snap_status st = SNAP_OK;
    if (n != m) {
        out->ratio = median_of(base, n, scratch) / median_of(arm, m, scratch);
        goto cleanup;
    }
    double x[kStretches];
    size_t parts = n < kStretches ? n : kStretches;
    for (size_t k = 0; k < parts; k++) {
        size_t from = n * k / parts, count = n * (k + 1) / parts - from;
        x[k] = log(median_of(base + from, count, scratch) / median_of(arm + from, count, scratch));
    }
    rank_estimate e;
    TRY(rank_centre(x, parts, kBeyond, &e, err));
    out->ratio = exp(e.centre);
    out->lo = isfinite(e.lo) ? exp(e.lo) : (double)NAN;
    out->hi = isfinite(e.hi) ? exp(e.hi) : (double)NAN;
cleanup:
    free(scratch);
    return st;
}
