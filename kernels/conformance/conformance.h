/* conformance.h - does a backend keep what mla.h promises? Invariants and tolerances as a list of checks
 * that run on any backend, whether the host reaches its memory or not.
 *
 * Right means: within judge.h's bounds of the FP64 oracle of the arm's arithmetic; equal to the bit where
 * mla.h says so. An FP8 arm may round P by another rule than the paper's unit a page: then it is held against
 * exact probabilities, by judge.h's bounds for those, and its row says so; cuts may then differ by as much. Where a backend declares that its FP8
 * scores are summed in few bits (mla_backend_info.fp8_sums), an lse beyond its bound is held against scores so
 * summed. Unused slots, table entries and outputs hold NaN in all steps. */
#ifndef SNAPMLA_KERNELS_CONFORMANCE_CONFORMANCE_H
#define SNAPMLA_KERNELS_CONFORMANCE_CONFORMANCE_H

#include "kernels/mla.h"

typedef enum {
    CONFORMANCE_PASSED,
    CONFORMANCE_FAILED,
    CONFORMANCE_SKIPPED, /* the backend says SNAP_E_UNSUPPORTED of every case */
} conformance_verdict;

typedef struct {
    const char *check; /* static */
    const char *arm;   /* "bf16", "fp8", "-" for checks that have no arm; static */
    conformance_verdict verdict;
    int cases;           /* steps or calls that were judged */
    int unsupported;     /* cases that the backend refuses */
    double worst, bound; /* of the check's figure; NaN where equality is asked for */
    bool exact;          /* FP8 by a rule of its own: against exact probabilities */
    double lse; /* the largest error of lse, over max(1, |lse|); NaN where it is not judged */
    double
        lse_alike; /* of rows beyond the bound, against scores as the backend says that it sums them; 0: none */
    double lse_bound; /* of that */
    char reason[240]; /* what failed, or why it was skipped; else "" */
} conformance_row;

const char *conformance_verdict_name(conformance_verdict v); /* "passed", "FAILED", "skipped" */

/* Called after each check. Returning false stops the suite. */
typedef bool (*conformance_fn)(void *ctx, const conformance_row *row);

/* How many rows a whole run has. */
int conformance_count(void);

/* Runs all checks. Failures are rows; only a stop by @on_row is an error: SNAP_E_CANCELLED. */
snap_status conformance_run(mla_backend *be, conformance_fn on_row, void *ctx,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
