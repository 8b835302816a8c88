/* fidelity_record.h - a row of the section `fidelity`: the numerical error of attention with one
 * cache format, compared with FP64 attention over the same unquantised numbers. */
#ifndef SNAPMLA_HARNESS_RECORD_FIDELITY_RECORD_H
#define SNAPMLA_HARNESS_RECORD_FIDELITY_RECORD_H

#include "harness/record/field.h"

typedef struct {
    const char *kind;         /* "kernel" */
    const char *config;       /* name of the cache format: "bf16", "snapmla", "A", "nvfp4" */
    const char *source;       /* "reference" (the oracle on the CPU), or the backend's name */
    const char *distribution; /* distribution of the random inputs */
    int64_t context, heads;   /* context in tokens of one sequence; number of heads */
    int64_t seed;
    double bytes_per_token;                    /* bytes of the cache per token; absent in rows of
                                                  older versions */
    double rmse, cosine_diff, rel_l2, max_abs; /* over the outputs of all heads */
    double lse_error;                          /* over the heads, the largest |difference| / max(1,
                                                  |exact log-sum-exp|) */
    int64_t rows;                              /* rows compared: query tokens x heads */
    const char *origin;                        /* "measured", "reported" */
} fidelity_record;

extern const record_type fidelity_type;

typedef struct {
    fidelity_record *at;
    size_t n;
} fidelity_list;

#endif
