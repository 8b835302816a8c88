/* reported.h - a row of a file of figures that others report. It is no part of result files. */
#ifndef SNAPMLA_HARNESS_RECORD_REPORTED_H
#define SNAPMLA_HARNESS_RECORD_REPORTED_H

#include "harness/record/field.h"

/* "about" decides what the numbers mean (view/paper.h). */
typedef struct {
    const char *about; /* "speed", "kernel", "granularity", "quality" */
    const char *what;  /* a condition, a configuration or a task */
    const char *model;
    const char *where; /* in the source: "table 3" */
    double bf16, fp8;
    double speedup;  /* FP8 over BF16 */
    double peak_pct; /* FP8's percent of the peak of its mix of products */
} reported_record;

extern const record_type reported_type;

#endif
