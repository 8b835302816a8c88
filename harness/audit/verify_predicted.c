/* verify_predicted.c - checks the rows of predicted decode steps: layouts and numbers of GPUs,
 * rates and errors that follow from times, intervals, and the largest part. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/audit/audit.h"
#include "harness/bench/predict_work.h"

static bool is_in(const double ends[2], double x) {
    return ends[0] <= x * (1 + verify_rounding) && ends[1] >= x * (1 - verify_rounding);
}

static const char *largest_part(const prediction_record *row) {
    const char *const names[] = {"attention", "exchange", "experts", "rest"};
    const double ns[] = {row->attention_ns, row->exchange_ns, row->experts_ns, row->rest_ns};
    int most = 0;
    for (int i = 1; i < 4; i++)
        most = ns[i] > ns[most] ? i : most;
    return names[most];
}

static void check_layout(verify_findings *f, const prediction_record *row, const char *where) {
    predict_layout l;
    f->checks++;
    if (predict_layout_parse(&l, row->layout, NULL) != SNAP_OK || predict_gpus(&l) != row->gpus)
        verify_add(f, VERIFY_FORM, where, "layout '%s' does not have %lld GPUs", row->layout,
                   (long long)row->gpus);
}

static void check_times(verify_findings *f, const prediction_record *row, const char *where) {
    double rate = (double)row->batch / row->median_ns * 1e9;
    f->checks += 3;
    if (!verify_is_near(row->tokens_s, rate))
        verify_add(f, VERIFY_PHYSICS, where, "tokens_s is %.10g, but batch and time give %.10g",
                   row->tokens_s, rate);
    if (!is_in(row->interval_ns, row->median_ns) || !is_in(row->tokens_s_interval, row->tokens_s))
        verify_add(f, VERIFY_FORM, where, "an interval does not contain its value");
    if (strcmp(row->limit, largest_part(row)) != 0)
        verify_add(f, VERIFY_FORM, where, "the largest part is %s, not %s", largest_part(row),
                   row->limit);
}

/* The runner-up is not faster than the row, and it is one of the ties if its interval overlaps. */
static void check_comparisons(verify_findings *f, const prediction_record *row, const char *where) {
    f->checks += 2;
    if (isfinite(row->fp8_over_bf16) && isfinite(row->fp8_over_bf16_interval[0]) &&
        !is_in(row->fp8_over_bf16_interval, row->fp8_over_bf16))
        verify_add(f, VERIFY_FORM, where, "the interval of FP8 over BF16 does not contain it");
    if (!isfinite(row->runner_up_tokens_s))
        return;
    bool overlaps = row->runner_up_interval[1] >= row->tokens_s_interval[0];
    if (row->runner_up_tokens_s > row->tokens_s || (overlaps && row->tied < 1))
        verify_add(f, VERIFY_FORM, where,
                   "the layout is not the best, or its ties are not counted");
}

static void check_error(verify_findings *f, const prediction_record *row, const char *where) {
    double error = 100 * (row->median_ns / row->measured_ns - 1);
    f->checks++;
    if (fabs(error - row->error_pct) > 1e-4)
        verify_add(f, VERIFY_FORM, where, "error_pct is %.6g, but the times give %.6g",
                   row->error_pct, error);
}

void verify_predicted(const run_record *r, verify_findings *f) {
    for (size_t i = 0; i < r->predicted.n; i++) {
        const prediction_record *row = &r->predicted.at[i];
        char where[64];
        (void)snprintf(where, sizeof where, "predicted[%zu]", i);
        check_layout(f, row, where);
        if (row->parts & PREDICTION_FITS) {
            check_times(f, row, where);
            check_comparisons(f, row, where);
        }
        if (row->parts & PREDICTION_MEASURED)
            check_error(f, row, where);
    }
}
