/* check_output.h - checks an arm's output before a cell is timed, and compares it afterwards.
 *
 * The check starts from the random numbers, not from the device's cache. It quantises them itself,
 * so it finds errors in append, in the query quantiser and in attention. Small cells are checked
 * whole. Of larger cells, about 64 rows are checked, spread over up to 8 sequences, with
 * lab_attend() if the backend has it. The output of such a backend is compared with exact
 * probabilities, any other with the oracle of its own arithmetic. */
#ifndef SNAPMLA_HARNESS_BENCH_CHECK_OUTPUT_H
#define SNAPMLA_HARNESS_BENCH_CHECK_OUTPUT_H

#include "harness/bench/bench_arm.h"
#include "kernels/judge.h"

typedef struct {
    judge_error error; /* over all checked rows */
    judge_bound bound;
    snap_status verdict; /* SNAP_OK or SNAP_E_WRONG */
    snap_err why;        /* the reason of SNAP_E_WRONG */
    uint16_t *out;       /* the checked output, bf16 [rows][d_c] and fp32 [rows], owned */
    float *lse;
} verified;

void verified_release(verified *v); /* frees the output and sets @v to {0}, which is also its
                                       initial value */

/**
 * verify_arm - run one step of the scope on set 0 and check its rows
 *
 * @v:    keeps its verdict if the output is the same, byte for byte, as the one checked before (for
 *        the other scope)
 * @seed: selects the rows of a large cell
 *
 * A wrong result is a verdict in @v. Errors: those of the backend, SNAP_E_NOMEM.
 */
snap_status verify_arm(verified *v, bench_arm *arm, bench_scope scope, uint64_t seed,
                       snap_err *err) SNAP_CHECK_RESULT;

/* Call it after the timed steps. If the output of set 0 is no longer the checked one, the verdict
 * becomes SNAP_E_WRONG. */
snap_status verify_unchanged(verified *v, bench_arm *arm, snap_err *err) SNAP_CHECK_RESULT;

#endif
