/* verify_bench.c - speeds: statistics against samples, rates against time and shape, time against the
 * ceilings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/audit/audit.h"
#include "harness/bench/row.h"
#include "harness/measure/ceilings.h"
#include "harness/measure/stats.h"
#include "kernels/judge.h"

static const double kSame = 1e-6; /* relative: numbers go through text */

typedef struct {
    const results *run;
    verify_findings *f;
    const js *rows;
    mla_ceilings ceilings;
    bool has_ceilings, is_joined;
} checker;

static const char *text_of(const js *o, const char *key) {
    const char *s = js_get_str(o, key);
    return s ? s : "";
}

static bool is_passed(const js *row) {
    return strcmp(text_of(row, "status"), "passed") == 0;
}

static bool is_measured(const js *row) {
    return strcmp(text_of(row, "origin"), "measured") == 0;
}

static bool is_near(double a, double b) {
    return fabs(a - b) <= kSame * fmax(fabs(a), fabs(b));
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- samples ---- */

static void check_figure(const checker *c, const js *perf, const char *key, double want,
                         const char *where) {
    double said = js_get_num(perf, key, (double)NAN);
    c->f->checks++;
    if (!isnan(said) && !is_near(said, want))
        verify_add(c->f, VERIFY_FORM, where, "%s is %.10g, the samples say %.10g", key, said, want);
}

static void check_samples(const checker *c, const js *row, const char *where) {
    const js *perf = js_get_object(row, "performance"), *samples = js_get_array(perf, "samples_ns");
    size_t n = js_len(samples);
    double *sorted = malloc((n + 1) * sizeof *sorted);
    if (!sorted || !n) {
        c->f->failed |= !sorted;
        verify_add(c->f, VERIFY_FORM, where, "a time without samples");
        free(sorted);
        return;
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = js_num(js_at(samples, i));
    qsort(sorted, n, sizeof *sorted, by_value);
    stats_summary s = stats_summarise(sorted, n);
    check_figure(c, perf, "min_ns", s.min, where);
    check_figure(c, perf, "q1_ns", s.q1, where);
    check_figure(c, perf, "median_ns", s.median, where);
    check_figure(c, perf, "q3_ns", s.q3, where);
    check_figure(c, perf, "max_ns", s.max, where);
    check_figure(c, perf, "count", (double)n, where);
    free(sorted);
}

/* ---- correctness ---- */

static void check_correctness(const checker *c, const js *row, const char *where) {
    const js *o = js_get_object(row, "correctness");
    bench_kind kind = BENCH_BF16;
    (void)bench_kind_parse(text_of(row, "arm"), &kind);
    double error = js_get_num(o, "error", (double)NAN), limit = js_get_num(o, "tolerance", 0);
    double lse = js_get_num(o, "lse_error", 0),
           lse_limit = js_get_num(o, "lse_tolerance", INFINITY);
    double widest = bench_kind_bound(kind, REF_P_BF16).out_rel; /* of any arithmetic of the arm */
    c->f->checks++;
    if (!o || js_get_int(o, "rows_checked", 0) < 1)
        verify_add(c->f, VERIFY_CORRECTNESS, where, "a speed whose output nobody checked");
    else if (!(error <= limit) || !(lse <= lse_limit))
        verify_add(c->f, VERIFY_CORRECTNESS, where,
                   "passed with an error of %.3g, its tolerance is %.3g", error, limit);
    else if (limit > widest)
        verify_add(c->f, VERIFY_CORRECTNESS, where, "a tolerance of %.3g, where %.3g is allowed",
                   limit, widest);
}

/* ---- physics ---- */

static void check_rate(const checker *c, const js *said, const js *want, const char *key,
                       const char *where) {
    double a = row_number(said, key), b = row_number(want, key);
    c->f->checks++;
    if (!isnan(a) && !isnan(b) && !is_near(a, b))
        verify_add(c->f, VERIFY_PHYSICS, where, "%s is %.6g; shape and time make it %.6g", key, a,
                   b);
}

static void check_floor(const checker *c, const js *row, const char *where) {
    bool cold = text_of(row, "cold")[0] && strcmp(text_of(row, "cold"), "none") != 0;
    double ns = row_number(row, "median_ns"), floor_ns = row_number(row, "floor_ns");
    c->f->checks++;
    if (row_has_flag(row, "below_floor") || (cold && ns < floor_ns * (1 - kSame)))
        verify_add(c->f, VERIFY_PHYSICS, where,
                   "%.6g us, where the device's own ceilings need %.6g us", ns / 1e3,
                   floor_ns / 1e3);
}

/* Works the row out again. Of a joined file the ceilings may have risen since. */
static void check_physics(const checker *c, const js *row, const char *where) {
    static const char *const rates[] = {"tflops", "gb_s", "tok_s"};
    static const char *const against[] = {"floor_ns", "roofline_pct"};
    js *again = js_copy(row);
    if (!c->has_ceilings) {
        verify_add(c->f, VERIFY_NOTE, where, "the file has no ceilings to judge it by");
    } else if (!again || row_derive(again, &c->ceilings, NULL) != SNAP_OK) {
        verify_add(c->f, VERIFY_FORM, where, "a shape that this program does not know");
    } else {
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
            check_rate(c, row, again, rates[i], where);
        for (size_t i = 0; i < sizeof against / sizeof *against && !c->is_joined; i++)
            check_rate(c, row, again, against[i], where);
        check_floor(c, row, where);
    }
    js_free(again);
}

/* ---- pairs ---- */

static bool is_pair(const js *a, const js *b) {
    return strcmp(text_of(a, "arm"), "bf16") == 0 && strcmp(text_of(b, "arm"), "fp8") == 0 &&
           js_equal(js_get(a, "shape"), js_get(b, "shape")) &&
           strcmp(text_of(a, "scope"), text_of(b, "scope")) == 0 && is_passed(a) && is_passed(b);
}

static void check_pair(const checker *c, const js *bf16, const js *fp8, const char *where) {
    static const char *const keys[] = {"distribution", "cold", "mode", "backend"};
    double times = row_number(bf16, "median_ns") / row_number(fp8, "median_ns");
    double floors = row_number(bf16, "floor_ns") / row_number(fp8, "floor_ns");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        c->f->checks++;
        if (strcmp(text_of(bf16, keys[i]), text_of(fp8, keys[i])) != 0)
            verify_add(c->f, VERIFY_MIXED, where, "the two arms differ in %s", keys[i]);
    }
    c->f->checks++;
    if (times > floors * (1 + kSame) && !row_has_flag(fp8, "weak_baseline"))
        verify_add(c->f, VERIFY_PHYSICS, where,
                   "a speed-up of %.3f, the floors allow %.3f, and no flag weak_baseline", times,
                   floors);
}

/* ---- the whole ---- */

/* What all rows of one run share; a joined file has several runs. */
static void check_mixture(const checker *c) {
    static const char *const keys[] = {"distribution", "mode", "backend"};
    const js *first = NULL;
    for (size_t i = 0; i < js_len(c->rows) && !c->is_joined; i++) {
        const js *row = js_at(c->rows, i);
        if (!is_measured(row))
            continue;
        first = first ? first : row;
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            char where[32];
            (void)snprintf(where, sizeof where, "bench[%zu]", i);
            c->f->checks++;
            if (strcmp(text_of(first, keys[k]), text_of(row, keys[k])) != 0)
                verify_add(c->f, VERIFY_MIXED, where, "%s is '%s', and '%s' before", keys[k],
                           text_of(row, keys[k]), text_of(first, keys[k]));
        }
    }
}

/* One kernel has one machine code in a run. */
static void check_code(const checker *c) {
    for (size_t i = 1; i < js_len(c->rows) && !c->is_joined; i++) {
        const js *row = js_at(c->rows, i), *before = js_at(c->rows, i - 1);
        const char *a = js_get_str(before, "kernel_hash"), *b = js_get_str(row, "kernel_hash");
        bool same = text_equal(text_of(row, "kernel"), text_of(before, "kernel"));
        char where[32];
        (void)snprintf(where, sizeof where, "bench[%zu]", i);
        if (same && a && b && is_measured(row) && is_measured(before) && strcmp(a, b) != 0)
            verify_add(c->f, VERIFY_MIXED, where, "kernel %s with two machine codes",
                       text_of(row, "kernel"));
    }
}

static void check_flags(const checker *c) {
    static const char *const flags[] = {"throttled", "shared"};
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
        size_t n = 0;
        for (size_t i = 0; i < js_len(c->rows); i++)
            n += row_has_flag(js_at(c->rows, i), flags[k]);
        if (n)
            verify_add(c->f, VERIFY_NOTE, "bench", "%zu of %zu rows are flagged %s", n,
                       js_len(c->rows), flags[k]);
    }
}

void verify_bench(const results *r, verify_findings *f) {
    ceilings known;
    checker c = {.run = r,
                 .f = f,
                 .rows = results_section(r, "bench"),
                 .is_joined = js_get_array(results_document(r), "sources") != NULL};
    c.has_ceilings =
        ceilings_parse(&known, results_section(r, "ceilings"), "ceilings", NULL) == SNAP_OK;
    c.ceilings = known.best;
    for (size_t i = 0; i < js_len(c.rows); i++) {
        const js *row = js_at(c.rows, i);
        char where[32];
        (void)snprintf(where, sizeof where, "bench[%zu]", i);
        if (!is_measured(row) || !is_passed(row))
            continue;
        check_samples(&c, row, where);
        check_correctness(&c, row, where);
        check_physics(&c, row, where);
        if (i && is_pair(js_at(c.rows, i - 1), row))
            check_pair(&c, js_at(c.rows, i - 1), row, where);
    }
    check_mixture(&c);
    check_code(&c);
    check_flags(&c);
}
