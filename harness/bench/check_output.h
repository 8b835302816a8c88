/* check_output.h - checks an arm's output before a cell is timed, and three things afterwards.
 *
 * Before: the check starts from the random numbers, not from the device's cache. It quantises them
 * itself, so it finds errors in append, in the query quantiser and in attention. Small cells are
 * checked whole, except for arms that keep BF16 queries beside an FP8 cache. Of the other cells,
 * about 64 rows are checked, spread over up to 8 sequences, with lab_attend() if the backend has
 * it, the sequences are equally long and the arm has no cache format. The output of such a backend,
 * and of an arm whose format rounds P to e4m3, is compared with exact probabilities, any other with
 * the oracle of its own arithmetic.
 *
 * Afterwards: a random one of the timed outputs is checked in the same way, or after sustained
 * loops the last one. If the backend has no lab_attend(), or the arm has a cache format, about 8
 * rows of a large cell suffice. Steps that are timed one by one have different queries, so this
 * output cannot be left over from an earlier step. The input that was checked before must give the
 * same bytes again. And a step on planted tokens (bench_arm_plant()) is compared with its closed
 * form in all rows of all sequences. The relative error of the first check says little about one
 * page of a long context, which changes the output of random inputs by about sqrt(64 / context). A
 * planted page changes an element by 1/n, where n, about context / (64 * d_c), is the number of
 * pages in one column; the bound is 1/64. So a page that is missing, exchanged or read twice is
 * found up to a context of about 4096 * d_c tokens. */
#ifndef SNAPMLA_HARNESS_BENCH_CHECK_OUTPUT_H
#define SNAPMLA_HARNESS_BENCH_CHECK_OUTPUT_H

#include "harness/bench/bench_arm.h"
#include "harness/bench/packed_judge.h"
#include "kernels/judge.h"

typedef struct {
    judge_error error;    /* over all rows that were checked before */
    judge_bound bound;    /* the bound for the number of checked rows */
    snap_status verdict;  /* SNAP_OK or SNAP_E_WRONG */
    snap_err why;         /* the reason of SNAP_E_WRONG */
    bench_output checked; /* owned */
} verified;

void verified_release(verified *v); /* frees the output, sets @v to {0}, which is also its
                                       initial value */

/**
 * verify_arm - run one step of the scope on set 0 and check its rows
 *
 * @v:    receives the verdict. If it has SNAP_OK from the other scope, and the output is now the
 *        same, byte for byte, it stays as it is
 * @known: results of the oracle that arms of the same shape and random numbers share
 *         (packed_judge.h); may be NULL
 * @seed: selects the rows of a large cell
 *
 * A wrong result is a verdict in @v. Errors: those of the backend, SNAP_E_NOMEM.
 */
snap_status verify_arm(verified *v, bench_arm *arm, bench_scope scope, packed_references *known,
                       uint64_t seed, snap_err *err) SNAP_CHECK_RESULT;

/* Call it after the timed steps of the scope, for an arm that passed verify_arm(). The verdict
 * becomes SNAP_E_WRONG if one of the checks fails. Unless one fails before the planted tokens, set
 * 0 holds these until bench_arm_reset(), which verify_arm() calls. Errors: those of verify_arm(),
 * and of bench_arm_check(), which it also calls. */
snap_status verify_timed(verified *v, bench_arm *arm, bench_scope scope, packed_references *known,
                         uint64_t seed, snap_err *err) SNAP_CHECK_RESULT;

#endif
