/* power_record.h - a row of `eval plan`: how many samples one task needs. It is not part of result
 * files. */
#ifndef SNAPMLA_HARNESS_RECORD_POWER_RECORD_H
#define SNAPMLA_HARNESS_RECORD_POWER_RECORD_H

#include "harness/record/field.h"

typedef struct {
    const char *task;
    const char *source;        /* where the variances come from: "planning value", "run" */
    int64_t problems, samples; /* samples per problem */
    double margin_pp;
    double within, between; /* variances (eval/power.h) */
    double se_pp;           /* standard error of the difference */
    double ci95_pp;         /* half width of the 95 % interval of the difference */
    double power;           /* probability of a verdict of equivalence with these problems and
                               samples */
    double power_wanted;
    int64_t samples_needed;  /* samples per problem that give power_wanted with these problems;
                                missing if no number is enough */
    int64_t problems_needed; /* problems that give power_wanted with these samples; missing if no
                                number is enough */
} power_record;

extern const record_type power_type;

typedef struct {
    power_record *at;
    size_t n;
} power_list;

#endif
