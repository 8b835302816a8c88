/* grading.h - measures how fast answers are graded on one core.
 *
 * The pairs are generated. They cover every kind of answer that the graders distinguish, and about
 * half of the answers are right. The right verdict of each pair is known. A speed is reported only
 * if all verdicts are right. */
#ifndef SNAPMLA_HARNESS_BENCH_GRADING_H
#define SNAPMLA_HARNESS_BENCH_GRADING_H

#include <stdint.h>

#include "evals/grade.h"

enum { GRADING_ROWS = 5 };

typedef struct {
    const char *grader; /* its id */
    const char *input;  /* "answer": the bare answer; "response": an answer inside 2 KiB of text */
    size_t pairs;       /* number of different pairs, graded in turn */
    double rate;        /* gradings per second, median of several passes */
} grading_row;

/* @seconds: measured time for each row. Returns SNAP_E_WRONG, naming grader and pair, if a verdict
 * is wrong. */
snap_status grading_bench(uint64_t seed, double seconds, grading_row rows[GRADING_ROWS],
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
