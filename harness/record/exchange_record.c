#include "harness/record/exchange_record.h"

/* clang-format off */
static const char *const kOperations[] = {"all_reduce", "all_gather", "reduce_scatter",
                                          "all_to_all", NULL};
static const char *const kPaths[] = {"nccl", "one_shot", "step", NULL};
static const char *const kLaunches[] = {"eager", "graph", NULL};
static const char *const kTypes[] = {"bf16", "fp32", NULL};

#define X(member) FIELD_OF(exchange_record, member)
static const field fields[] = {
    {X(operation), FIELD_TEXT, .words = kOperations, .csv = "operation"},
    {X(path), FIELD_TEXT, .words = kPaths, .csv = "path",
     .about = "one_shot: an all-reduce in one kernel over peer memory, which stores the sum; step: "
              "an exchange in such a kernel as a step of a model does it, which adds sums to FP32 "
              "numbers"},
    {X(launch), FIELD_TEXT, .words = kLaunches, .csv = "launch"},
    {X(type), FIELD_TEXT, .words = kTypes, .csv = "type"},
    {X(ranks), FIELD_COUNT, .low = 1, .csv = "ranks"},
    {X(bytes), FIELD_COUNT, .low = 1, .csv = "bytes",
     .about = "of the larger one of the two buffers of a rank"},
    {X(nccl), FIELD_COUNT, .csv = "nccl", .about = "version of NCCL, such as 22803"},
    {X(checked), FIELD_COUNT, .csv = "checked",
     .about = "numbers that were compared on all ranks, before and after the timing"},
    {X(wrong), FIELD_COUNT, .csv = "wrong",
     .about = "how many of them were wrong; such a row has no time"},
    {X(samples), FIELD_COUNT, 0, EXCHANGE_TIMED, .csv = "samples",
     .about = "each is the longest time of all ranks"},
    {X(operations), FIELD_COUNT, 0, EXCHANGE_TIMED, .csv = "operations", .low = 1,
     .about = "operations in one sample: 1, or those of a CUDA graph"},
    {X(median_ns), FIELD_NUMBER, FIELD_ABOVE_0, EXCHANGE_TIMED, .csv = "median_ns",
     .about = "of one operation"},
    {X(p99_ns), FIELD_NUMBER, FIELD_NULLABLE | FIELD_ABOVE_0, EXCHANGE_TIMED, .csv = "p99_ns",
     .about = "null for fewer than 100 samples"},
    {X(best_ns), FIELD_NUMBER, FIELD_ABOVE_0, EXCHANGE_TIMED, .csv = "best_ns"},
    {X(algorithm_bytes_s), FIELD_NUMBER, FIELD_ABOVE_0, EXCHANGE_TIMED, .csv = "algorithm_bytes_s",
     .about = "bytes divided by the median time"},
    {X(bus_bytes_s), FIELD_NUMBER, FIELD_FROM_0, EXCHANGE_TIMED, .csv = "bus_bytes_s",
     .about = "algorithm_bytes_s times 2 (n - 1) / n for an all-reduce over n ranks, else times "
              "(n - 1) / n"},
};
#undef X
const record_type exchange_type = {
    .name = "exchange",
    .about = "an exchange of numbers between the GPUs of a group; a row without median_ns gave a "
             "wrong result",
    .size = sizeof(exchange_record), RECORD_FIELDS(fields),
    .parts = RECORD_MEMBER(exchange_record, parts)};
/* clang-format on */
