/* check.h - helpers that all checks use. A check counts its cases in the result row. It returns
 * SNAP_OK, or its first failure as an error. A case that fails with SNAP_E_UNSUPPORTED is only
 * counted. */
#ifndef SNAPMLA_KERNELS_CONFORMANCE_CHECK_H
#define SNAPMLA_KERNELS_CONFORMANCE_CHECK_H

#include "kernels/conformance/conformance.h"
#include "kernels/conformance/step.h"

typedef struct {
    mla_backend *be;
    mla_precision precision; /* the arm under test, for checks that run per arm */
    conformance_row *row;
} check_context;

typedef struct {
    const char *name;
    bool both_arms; /* run once per arm; else once, without an arm */
    snap_status (*run)(const check_context *c, snap_err *err);
} check;

/* Each list ends with an entry whose name is NULL. */
extern const check checks_arms[], checks_same[], checks_edges[], checks_dataflow[],
    checks_contract[], checks_not_finite[], checks_reach[];

/* Counts a case by its status. SNAP_OK and SNAP_E_UNSUPPORTED are counted, and SNAP_OK is returned;
 * any other status is returned unchanged. For SNAP_E_UNSUPPORTED, @err is cleared, so that it can
 * hold a later failure. */
snap_status check_count(const check_context *c, snap_status st, snap_err *err) SNAP_CHECK_RESULT;

/* Records a figure and its bound in the row, which keeps the largest figure. Fails with
 * SNAP_E_WRONG if the figure is above its bound or NaN. */
snap_status check_figure(const check_context *c, const char *what, double value, double bound,
                         snap_err *err) SNAP_CHECK_RESULT;

/* Tests whether an FP8 step rounded P with one scale per page, as in the paper. If the step,
 * already run, contradicts that, `exact` of the row is set, and all later cases of this check are
 * judged against exact probabilities. @rows: size of the sample that is judged; 0 = all. Does
 * nothing for BF16. */
void check_rule(const check_context *c, const step_case *s, int64_t rows);

/* Compares all rows of a step, which must have run before this call, with attention whose
 * probabilities P are not rounded. SNAP_E_WRONG, SNAP_E_NOMEM. */
snap_status check_exact(const check_context *c, const step_case *s,
                        snap_err *err) SNAP_CHECK_RESULT;

/* A step of @batch sequences with the given lengths. Each sequence has different numbers. */
step_spec check_spec(const check_context *c, int batch, const int *length);

#endif
