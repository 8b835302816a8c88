/* grading.h - how fast answers are judged, on one core.
 *
 * The pairs are made up here, of every kind that the graders tell apart, half of them right; each
 * has a known verdict, and a speed counts only when all of them came out. */
#ifndef SNAPMLA_HARNESS_BENCH_GRADING_H
#define SNAPMLA_HARNESS_BENCH_GRADING_H

#include <stdint.h>

#include "evals/grade.h"

enum { GRADING_ROWS = 5 };

typedef struct {
    const char *grader; /* its id */
    const char *input;  /* "answer": bare; "response": found in 2 KiB of text */
    size_t pairs;       /* different ones, judged in turn */
    double rate;        /* gradings a second, median of several passes */
} grading_row;

/* @seconds: measured time of a row. SNAP_E_WRONG naming grader and pair for a verdict that is not
 * the known one. */
snap_status grading_bench(uint64_t seed, double seconds, grading_row rows[GRADING_ROWS],
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
