/* step.h - a row of the section `e2e`: the time of one step of a whole model with random
 * weights. */
#ifndef SNAPMLA_HARNESS_RECORD_STEP_H
#define SNAPMLA_HARNESS_RECORD_STEP_H

#include "harness/record/field.h"

enum { STEP_TIMED = 1 };

typedef struct {
    unsigned parts;           /* STEP_TIMED; 0 if the sequences did not fit into the memory */
    const char *model_config; /* file or shipped name of the model's configuration, without
                                 folders */
    const char *arm;          /* the cache format: "bf16", "fp8" */
    const char *step;         /* "decode", "prompt" */
    int64_t context, batch;   /* tokens per sequence; sequences, 0 = they do not fit into the
                                 memory */
    double fp8_over_bf16;     /* tokens per second over those of the matching BF16 row; missing
                                 without one */
    /* the part STEP_TIMED */
    int64_t samples;
    double median_ns, best_ns, worst_ns; /* on several GPUs, of the slowest rank in each sample */
    double tokens_s;                     /* tokens per second at the median time */
    double weight_bytes,
        cache_bytes;  /* bytes that a decode step reads on one GPU; 0 for a prompt */
    double flop;      /* floating-point operations of a prompt on one GPU; 0 for a
                                         decode step */
    int64_t cublaslt; /* version of cuBLASLt if it computed dense products; 0 = it did not */
    double roofline_pct;
    /* on several GPUs */
    const char *layout;            /* "DP1/TP2"; "" = one GPU */
    record_numbers rank_median_ns; /* median time of each rank */
    /* parts of a decode step on rank 0, timed with events between them; missing if not timed */
    double attention_ns, exchange_ns, experts_ns, rest_ns;
    double waiting_ns; /* how long rank 0 waits for slower ranks; not in exchange_ns */
    /* the energy of a step, from a loop of steps; missing if it was not measured */
    int64_t energy_steps;       /* in the loop */
    double energy_s;            /* seconds of the loop, on the slowest rank */
    double joules_step;         /* energy of one step, summed over all GPUs */
    double joules_token;        /* joules_step / tokens of a step, of all GPUs */
    record_numbers rank_joules; /* on several GPUs: of each rank, for one step */
} step_record;

extern const record_type step_type;

typedef struct {
    step_record *at;
    size_t n;
} step_list;

#endif
