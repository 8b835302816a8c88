/* conformance.h - checks that a backend keeps the contract of mla.h.
 *
 * The checks cover invariants and tolerances. They run on any backend, whether or not the host can
 * access its memory. Results must be within judge.h's bounds of the FP64 reference (for MLA_BF16
 * with exact probabilities, for MLA_FP8 in the arm's own arithmetic), and bit-identical where
 * mla.h says so.
 *
 * The paper's FP8 arm rounds P with one scale per page. A backend may use another rule. It is then
 * judged against exact probabilities, with judge.h's bounds for those; its result row says so
 * (`exact`), and results for different splits may differ by these bounds. If a backend declares
 * that its FP8 scores are summed in few bits (mla_backend_info.fp8_sums), an lse beyond its bound
 * is also compared with that of scores summed in the same way.
 *
 * The longest contexts have 262,145 tokens, the largest batches 256 sequences. A step of the last
 * three checks (reach.c) that needs more than half of the device's memory is left out, and counts
 * as one that the backend does not support. If the device's memory is the host's, the copy for the
 * judge counts, too.
 *
 * Before a step runs, its unused slots and its outputs hold NaN (in one check, partly large
 * numbers), and its unused table entries hold invalid page numbers. */
#ifndef SNAPMLA_KERNELS_CONFORMANCE_CONFORMANCE_H
#define SNAPMLA_KERNELS_CONFORMANCE_CONFORMANCE_H

#include "kernels/mla.h"

typedef enum {
    CONFORMANCE_PASSED,
    CONFORMANCE_FAILED,
    CONFORMANCE_SKIPPED, /* every case counts as one that the backend does not support */
} conformance_verdict;

typedef struct {
    const char *check; /* name of the check; static */
    const char *arm;   /* "bf16", "fp8", or "-" for checks without an arm; static */
    conformance_verdict verdict;
    int cases;           /* number of steps or calls that passed */
    int unsupported;     /* number of cases that the backend does not support */
    double worst, bound; /* the check's largest figure and its bound; NaN if the check has no
                            figure */
    bool exact;          /* FP8 rounds P by another rule: judged against exact probabilities */
    double lse;          /* largest |lse - ref| / max(1, |ref|); NaN for checks outside arms.c, some
                            of which compare the lse, too */
    double
        lse_alike; /* the same for rows above the bound, against the reference or scores summed as
                      declared, whichever is nearer; 0 = no such row, NaN if not judged */
    double lse_bound; /* the bound of lse and lse_alike */
    char reason[240]; /* the failure, or why cases were left out; else "" */
} conformance_row;

const char *conformance_verdict_name(conformance_verdict v); /* "passed", "FAILED", "skipped" */

/* Called with each result row. Returning false stops the suite. */
typedef bool (*conformance_fn)(void *ctx, const conformance_row *row);

/* The number of result rows of a complete run. */
int conformance_count(void);

/* Runs all checks. Failed checks are reported through @on_row and are not an error. The only error
 * is SNAP_E_CANCELLED, if @on_row stops the suite. */
snap_status conformance_run(mla_backend *be, conformance_fn on_row, void *ctx,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
