#include "harness/serving/part_rows.h"

#include <stdlib.h>

#include "harness/measure/stats.h"

static const double kMs = 1e3;

typedef struct {
    int part;
    double lag_s;
} sent;

static int by_part_and_lag(const void *x, const void *y) {
    const sent *a = x, *b = y;
    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    return (a->lag_s > b->lag_s) - (a->lag_s < b->lag_s);
}

/* Copies part and lag of the requests that parts sent for an arm at a load point, and sorts them.
 * Returns their number. */
static size_t select_parts(const serving_request *all, size_t n, int arm, int64_t point, sent *to) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (all[i].part > 0 && all[i].arm == arm && all[i].point == point)
            to[k++] = (sent){all[i].part, all[i].lag_s};
    if (k)
        qsort(to, k, sizeof *to, by_part_and_lag);
    return k;
}

snap_status serving_rows_of_parts(const serving_request *requests, size_t n, int arm,
                                  const serving_record *base, js *rows, snap_err *err) {
    sent *all = malloc((n + 1) * sizeof *all);
    double *lags = malloc((n + 1) * sizeof *lags);
    bool ok = all && lags;
    size_t count = ok ? select_parts(requests, n, arm, base->point, all) : 0;
    for (size_t from = 0, to; from < count && ok; from = to) {
        serving_record r = serving_record_new("part");
        for (to = from; to < count && all[to].part == all[from].part; to++)
            lags[to - from] = all[to].lag_s;
        r.arm = base->arm;
        r.loop = base->loop;
        r.point = base->point;
        r.load = base->load;
        r.part = all[from].part;
        r.requests = (int64_t)(to - from);
        r.lag_p50_ms = kMs * stats_quantile(lags, to - from, 0.5);
        r.lag_p99_ms = kMs * stats_quantile(lags, to - from, 0.99);
        r.lag_max_ms = kMs * lags[to - from - 1];
        ok = js_push_new(rows, record_write(&serving_type, &r));
    }
    free(all);
    free(lags);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the rows of a server");
}
