/* ceiling.h - a row of the section `ceilings`: the best rate that probes of the device reached, a
 * rate that it sustained, or a time that a probe measured. */
#ifndef SNAPMLA_HARNESS_RECORD_CEILING_H
#define SNAPMLA_HARNESS_RECORD_CEILING_H

#include "harness/record/field.h"

typedef struct {
    const char *name;       /* "read_bandwidth", "bf16_mma", "fp8_mma", "timer", ... */
    double value;           /* in `unit`. A best rate is that of all probes, including those between
                               the samples of cells */
    const char *unit;       /* "B/s", "FLOP/s", "ns" */
    const char *method;     /* how it was measured */
    record_numbers samples; /* in `unit`: one for each repetition, 64 at most */
    const char *origin;     /* "measured", "reported" */
    const char *source;     /* who reported it; missing if measured */
    const char *arm;        /* the named arm on whose backend it was measured; "" in a run without
                               named arms. Arms of one device share the rows of the first of them */
} ceiling_record;

extern const record_type ceiling_type;

typedef struct {
    ceiling_record *at;
    size_t n;
} ceiling_list;

#endif
