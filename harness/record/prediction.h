/* prediction.h - a row of the section `predicted`: the predicted time of one decode step of a
 * model on several GPUs, and the memory that it needs (`snapmla bench model --predict`). Predicted
 * rows are never ranked with measured ones. */
#ifndef SNAPMLA_HARNESS_RECORD_PREDICTION_H
#define SNAPMLA_HARNESS_RECORD_PREDICTION_H

#include "harness/record/field.h"

enum { PREDICTION_FITS = 1, PREDICTION_MEASURED = 2 };

typedef struct {
    unsigned parts;           /* PREDICTION_FITS; without it, the sequences do not fit into the
                                 memory. PREDICTION_MEASURED: the same step was measured */
    const char *origin;       /* "predicted" */
    const char *model_config; /* file or shipped name of the model's configuration, without
                                 folders */
    const char *layout;       /* "DP8/TP1", "DP8/TP1/EP8" */
    int64_t gpus;
    const char *weights;  /* "bf16", "e4m3" */
    const char *link;     /* between the GPUs of a node: the name of a link, or "measured" */
    const char *network;  /* between nodes: the name of a link; "" = one node */
    const char *exchange; /* "all_to_all": rows may go only to the ranks that need them, where that
                               is shorter; "" = all-gathers and reduce-scatters */
    const char *arm;      /* the cache format: "bf16", "fp8" */
    int64_t context, batch; /* tokens per sequence; sequences of all GPUs */
    bool largest;           /* the batch is the largest that fits */
    bool best;              /* no layout of as many GPUs has more tokens per second at this context
                               with this cache format; false if layouts were not compared */
    int64_t weight_bytes, buffer_bytes, cache_bytes; /* on each GPU */

    /* the part PREDICTION_FITS */
    double median_ns, interval_ns[2];
    double attention_ns, exchange_ns, experts_ns, rest_ns; /* as `bench model --parts` times them */
    double waiting_ns; /* with EP: for the rank that reads the most experts in each layer */
    const char *limit; /* the largest part */
    double tokens_s, tokens_s_interval[2];
    double fp8_over_bf16; /* tokens per second over those of the matching BF16 row; missing without
                             one */
    double fp8_over_bf16_interval[2];

    /* A row that is `best`: the second fastest layout. Missing if no other layout fits. */
    const char *runner_up; /* its layout */
    double runner_up_tokens_s, runner_up_interval[2];
    int64_t tied; /* number of other layouts whose interval overlaps that of the best one */

    /* the part PREDICTION_MEASURED */
    double measured_ns, error_pct; /* predicted / measured - 1 */
    double measured_fp8_over_bf16; /* missing as fp8_over_bf16 is */
    double measured_attention_ns, measured_exchange_ns, measured_experts_ns, measured_rest_ns,
        measured_waiting_ns; /* missing if not timed */
} prediction_record;

extern const record_type prediction_type;

typedef struct {
    prediction_record *at;
    size_t n;
} prediction_list;

#endif
