/* check_output.h - is what an arm computed right? Asked before a cell is timed, and again after it.
 *
 * The judge starts from the random numbers, not from the device's cache: it quantises them by
 * kernels/formats.h, so that a wrong append, query quantiser or attention all show. Small cells are
 * judged whole; of large ones kVerifyRows rows, spread over up to kVerifySequences sequences, by
 * lab_attend() where the backend has it. The arm of a backend that has it is judged against exact
 * probabilities, any other against the oracle of its own arithmetic. */
#ifndef SNAPMLA_HARNESS_BENCH_CHECK_OUTPUT_H
#define SNAPMLA_HARNESS_BENCH_CHECK_OUTPUT_H

#include "harness/bench/bench_arm.h"
#include "kernels/judge.h"

typedef struct {
    judge_error error; /* of all judged rows together */
    judge_bound bound;
    snap_status verdict; /* SNAP_OK or SNAP_E_WRONG */
    snap_err why;        /* the reason of SNAP_E_WRONG */
    uint16_t *out;       /* what was judged, bf16 [rows][d_c] and fp32 [rows], owned */
    float *lse;
} verified;

void verified_release(verified *v); /* the struct is reusable; initialise with {0} */

/**
 * verify_arm - run one step of the scope on set 0 and judge its rows
 *
 * @v: where it holds the verdict on the very same bytes already (of the other scope), that stands
 *
 * A wrong result is a verdict in @v. Errors: those of the backend, SNAP_E_NOMEM.
 */
snap_status verify_arm(verified *v, bench_arm *arm, bench_scope scope, uint64_t seed,
                       snap_err *err) SNAP_CHECK_RESULT;

/* After the timed steps: set 0 must hold the bytes that were judged, or the verdict turns wrong. */
snap_status verify_unchanged(verified *v, bench_arm *arm, snap_err *err) SNAP_CHECK_RESULT;

#endif
