/* exchange_record.h - a row of the section `exchange`: the time of one exchange of numbers between
 * the GPUs of a group (`snapmla bench exchange`). */
#ifndef SNAPMLA_HARNESS_RECORD_EXCHANGE_RECORD_H
#define SNAPMLA_HARNESS_RECORD_EXCHANGE_RECORD_H

#include "harness/record/field.h"

enum { EXCHANGE_TIMED = 1 };

typedef struct {
    unsigned parts;        /* EXCHANGE_TIMED; 0 if a result was wrong */
    const char *operation; /* "all_reduce", "all_gather", "reduce_scatter", "all_to_all" */
    const char *path;      /* "nccl"; "one_shot", "step": EXCHANGE_ONE_SHOT, EXCHANGE_STEP */
    const char *launch;    /* "eager", "graph" */
    const char *type;      /* "bf16", "fp32" */
    int64_t ranks;
    int64_t bytes;   /* size of the larger one of the two buffers of a rank, as nccl-tests count */
    int64_t nccl;    /* version of NCCL, such as 22803 */
    int64_t checked; /* numbers that were compared on all ranks, before and after the timing */
    int64_t wrong;   /* how many of them were wrong; 1 more for each check of a rank whose result
                        does not have the bits of rank 0's */
    /* the part EXCHANGE_TIMED. A sample is the longest time of all ranks. */
    int64_t samples;
    int64_t operations;                /* number of operations in one sample: 1, or those of a
                                          graph */
    double median_ns, p99_ns, best_ns; /* times of one operation; p99 is missing for fewer than 100
                                          samples */
    double algorithm_bytes_s;          /* bytes / median */
    double bus_bytes_s;                /* what each link of the slowest rank carries, by the
                                          definition of nccl-tests */
} exchange_record;

extern const record_type exchange_type;

typedef struct {
    exchange_record *at;
    size_t n;
} exchange_list;

#endif
