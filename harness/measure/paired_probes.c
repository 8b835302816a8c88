#include "harness/measure/paired_probes.h"

#include "base/clock.h"
#include "harness/measure/stats.h"

enum { kPause = 2 }; /* least pause after a probe, in durations of that probe */

snap_status paired_probes_take(paired_probes *g, mla_backend *be, snap_err *err) {
    int64_t start = clock_now_ns();
    snap_err why = {0};
    mla_probe_rates now;
    if (g->n == PAIRED_PROBES_MAX || (g->n > 0 && start - g->ended_ns < kPause * g->took_ns))
        return SNAP_OK;
    snap_status st = mla_ceilings_probe_once(&now, be, &why);
    if (st == SNAP_E_UNSUPPORTED)
        return SNAP_OK;
    if (st != SNAP_OK)
        return err_set(err, st, "%s", why.text);
    stats_insert(g->read, g->n, now.read);
    stats_insert(g->bf16, g->n, now.bf16);
    stats_insert(g->fp8, g->n, now.fp8);
    g->n++;
    g->reasons |= gpu_now(g->device).reasons;
    g->ended_ns = clock_now_ns();
    g->took_ns = g->ended_ns - start;
    return SNAP_OK;
}

static mla_ceilings quantile(const paired_probes *g, double p) {
    return (mla_ceilings){.read.rate = stats_quantile(g->read, g->n, p),
                          .bf16.rate = stats_quantile(g->bf16, g->n, p),
                          .fp8.rate = stats_quantile(g->fp8, g->n, p)};
}

mla_ceilings paired_probes_median(const paired_probes *g) {
    return quantile(g, 0.5);
}

mla_ceilings paired_probes_best(const paired_probes *g) {
    return quantile(g, 1.0);
}
