/* grading.h - measures how fast answers are graded on one core.
 *
 * The pairs of a reference answer and an answer are generated. They have several forms, for example
 * fractions, intervals and matrices, and about half of the answers are right. The right verdict of
 * each pair is known. A speed is reported only if all verdicts are right. */
#ifndef SNAPMLA_HARNESS_BENCH_GRADING_H
#define SNAPMLA_HARNESS_BENCH_GRADING_H

#include <stdint.h>

#include "evals/grade.h"

enum { GRADING_ROWS = 5 };

typedef struct {
    const char *grader; /* id of the grader */
    const char *input;  /* "answer": the bare answer; "response": an answer at the end of about 1800
                           bytes of text */
    size_t pairs;       /* number of pairs, graded in turn */
    double rate;        /* gradings per second, median of several passes */
} grading_row;

/* @seconds: least measured time for each row. SNAP_E_WRONG: a verdict is wrong; the message names
 * the grader and the pair. SNAP_E_NOMEM. */
snap_status grading_bench(uint64_t seed, double seconds, grading_row rows[GRADING_ROWS],
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
