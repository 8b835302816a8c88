/* conditions.h - the conditions of a row that must agree before its time is compared with another
 * row of the same scope and shape: the input, what an arm computes, and how it was timed. */
#ifndef SNAPMLA_HARNESS_VIEW_CONDITIONS_H
#define SNAPMLA_HARNESS_VIEW_CONDITIONS_H

#include "harness/record/cell.h"

typedef enum {
    CONDITION_INPUT,   /* distribution of the random numbers: "normal" */
    CONDITION_ARM,     /* name or kind of the arm: "fp8" */
    CONDITION_QUERIES, /* how the arm reads its queries: "bf16", "fp8", "format" */
    CONDITION_UNIT,    /* unit in which probabilities are rounded: "kept", "page" (kernel-fp8.md) */
    CONDITION_SUMS,    /* where FP8 products are added: "FP32", "tensor cores" */
    CONDITION_SCALE,   /* rule of the FP8 scales: "max", "pow2" */
    CONDITION_FORMAT,  /* name of a cache format of its own; "" = none */
    CONDITION_LAYOUT,  /* SHA-256 of that format */
    CONDITION_COLD,    /* state of the cache: "cold", "warm" */
    CONDITION_MODE,    /* "burst", "sustained" */
    CONDITIONS,
    /* If two rows differ in a condition before CONDITION_COLD, they measured different work.
     * CONDITION_COLD and the conditions after it say how the work was timed. */
    CONDITIONS_OF_WORK = CONDITION_COLD,
} condition;

const char *condition_name(condition c); /* "input", "scale rule" */
const char *condition_value(const cell_record *row, condition c);
bool condition_differs(const cell_record *a, const cell_record *b, condition c);

#endif
