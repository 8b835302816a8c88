/* reported.h - a row of a file with figures that other authors published. It is not part of result
 * files. */
#ifndef SNAPMLA_HARNESS_RECORD_REPORTED_H
#define SNAPMLA_HARNESS_RECORD_REPORTED_H

#include "harness/record/field.h"

/* `about` decides what bf16 and fp8 mean (view/paper.h). */
typedef struct {
    const char *about; /* "speed", "kernel", "granularity", "quality" */
    const char *what;  /* the condition, configuration or task */
    const char *model;
    const char *where;  /* the place in the source: "table 3" */
    const char *layout; /* over several GPUs: "DP8/TP1" */
    double bf16, fp8;
    double speedup;  /* speed of FP8 over that of BF16 */
    double peak_pct; /* the FP8 speed in percent of the peak of its mix of FP8 and BF16 products */
} reported_record;

extern const record_type reported_type;

#endif
