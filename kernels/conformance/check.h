/* check.h - what the checks share. A check notes its cases in the row and returns SNAP_OK, or the first
 * failure as an error; SNAP_E_UNSUPPORTED of a case only counts. */
#ifndef SNAPMLA_KERNELS_CONFORMANCE_CHECK_H
#define SNAPMLA_KERNELS_CONFORMANCE_CHECK_H

#include "kernels/conformance/conformance.h"
#include "kernels/conformance/step.h"

typedef struct {
    mla_backend *be;
    mla_precision precision; /* for checks of an arm */
    conformance_row *row;
} check_context;

typedef struct {
    const char *name;
    bool both_arms; /* a row an arm, else one without */
    snap_status (*run)(const check_context *c, snap_err *err);
} check;

/* NULL-named entry at the end. */
extern const check checks_arms[], checks_same[], checks_edges[], checks_dataflow[],
    checks_contract[];

/* Counts a case by the status that it ended with: SNAP_OK and SNAP_E_UNSUPPORTED go on, the rest is
 * returned. @err: cleared of what is unsupported, so that a later failure can be told. */
snap_status check_count(const check_context *c, snap_status st, snap_err *err) SNAP_CHECK_RESULT;

/* Notes a figure and fails above its bound. */
snap_status check_figure(const check_context *c, const char *what, double value, double bound,
                         snap_err *err) SNAP_CHECK_RESULT;

/* Does FP8 round P in a unit a page, as the paper has it? If a step that has run says no, so does the row
 * (`exact`) from then on. @rows: judged; 0 = all. BF16: nothing. */
void check_rule(const check_context *c, const step_case *s, int64_t rows);

/* All rows of a step that has run, against exact probabilities: SNAP_E_WRONG. */
snap_status check_exact(const check_context *c, const step_case *s,
                        snap_err *err) SNAP_CHECK_RESULT;

/* @batch sequences of those lengths, each with numbers of its own. */
step_spec check_spec(const check_context *c, int batch, const int *length);

#endif
