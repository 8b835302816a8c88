/* ceiling.h - a row of the section `ceilings`: the highest rate, or the shortest time, that the
 * device reached. */
#ifndef SNAPMLA_HARNESS_RECORD_CEILING_H
#define SNAPMLA_HARNESS_RECORD_CEILING_H

#include "harness/record/field.h"

typedef struct {
    const char *name;       /* "read_bandwidth", "bf16_mma", "fp8_mma", "timer", ... */
    double value;           /* in `unit`: the best of the samples */
    const char *unit;       /* "B/s", "FLOP/s", "ns" */
    const char *method;     /* how it was measured */
    record_numbers samples; /* in `unit`: one for each repetition */
    const char *origin;     /* "measured", "reported" */
    const char *source;     /* who reported it */
} ceiling_record;

extern const record_type ceiling_type;

typedef struct {
    ceiling_record *at;
    size_t n;
} ceiling_list;

#endif
