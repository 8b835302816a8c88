/* bench_warn.c - warnings about the rows of a benchmark. */
#include "base/term.h"
#include "base/text.h"
#include "harness/bench/bench_run.h"
#include "harness/bench/sweep.h"

/* The first reason why a row has no energy; NULL if there is none. */
static const char *energy_missing_of(const js *rows) {
    const char *why = NULL;
    for (size_t i = 0; i < js_len(rows) && !why; i++)
        why = js_get_str(js_get_object(js_at(rows, i), "performance"), "energy_missing");
    return why;
}

/* The number of timed single steps that may have found their input in the cache. */
static int count_warm(const js *rows) {
    int n = 0;
    for (size_t i = 0; i < js_len(rows); i++) {
        const char *cold = js_get_str(js_at(rows, i), "cold"),
                   *mode = js_get_str(js_at(rows, i), "mode"),
                   *status = js_get_str(js_at(rows, i), "status");
        n += cold && mode && status && text_equal(cold, "none") && text_equal(mode, "burst") &&
             text_equal(status, "passed");
    }
    return n;
}

void bench_warn(const js *rows) {
    const char *no_energy = energy_missing_of(rows);
    if (no_energy)
        term_warn("energy was not measured: %s", no_energy);
    int all = (int)js_len(rows), warm = count_warm(rows),
        shared = (int)sweep_count_flag(rows, NULL, "shared");
    int noisy = (int)sweep_count_flag(rows, NULL, "noisy"),
        weak = (int)sweep_count_flag(rows, NULL, "weak_baseline"),
        uncaptured = (int)sweep_count_flag(rows, NULL, "not_captured"),
        late = (int)sweep_count_flag(rows, NULL, "host_limited");
    if (warm)
        term_warn(
            "%d of %d rows are of a warm cache, because the backend does not know its size (a "
            "plugin sets cache_bytes in describe()): 'snapmla compare' shows no speed "
            "relative to rows of a cold cache",
            warm, all);
    if (uncaptured)
        term_warn(
            "%d of %d rows are of kernels that no CUDA graph could record: their times contain "
            "what the host does for each step",
            uncaptured, all);
    if (late)
        term_warn("in %d of %d rows the device could begin a step before the host had enqueued all "
                  "of it: their times can contain waiting for the host",
                  late, all);
    if (shared)
        term_warn("other work shared the processors during %d of %d rows: their times may be too "
                  "long; repeat on an idle machine",
                  shared, all);
    if (noisy > shared)
        term_warn("%d of %d rows are noisy (quartiles more than 5 %% of the median apart); more "
                  "samples may help: --min-time, --timeout",
                  noisy, all);
    if (weak)
        term_warn("%d speed-ups exceed the ratio of the two floors: there the BF16 arm is further "
                  "from its roofline than the FP8 arm",
                  weak);
}
