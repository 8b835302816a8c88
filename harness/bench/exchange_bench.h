/* exchange_bench.h - times the exchange of numbers between the GPUs of a group
 * (generator/local/cuda/exchange.h).
 *
 * Each rank runs exchange_bench_run(), with the same plan. For each row, all ranks
 *
 *   1. fill their buffers with numbers from a random seed of the rank. The ranks exchange their
 *      seeds after the operation, so no rank can know the result without the operation.
 *   2. run the operation on integers and then on fractions, and compare the numbers of the result
 *      with the expected ones. Sums of small integers are exact, whatever their order. NCCL may add
 *      fractions in any order, so its sums of fractions are not compared with a sum. Those of an
 *      all-reduce must have the same bits on every rank. On the path `step`, an all-reduce and
 *      a reduce-scatter add the sum to the receive buffer, once for each operation of the graph.
 *      The buffer is zero before.
 *   3. time the operation. A sample is the longest time of all ranks.
 *   4. repeat the steps 1 and 2.
 *
 * Each operation and size has rows for every path that exchange_allows() accepts: NCCL; the
 * all-reduce over peer memory, which stores its sum; and exchanges over peer memory in the way in
 * which a step of a model does them.
 *
 * A row with a wrong number has no time. Bandwidths follow the definitions of nccl-tests, so they
 * can be compared with its output. */
#ifndef SNAPMLA_HARNESS_BENCH_EXCHANGE_BENCH_H
#define SNAPMLA_HARNESS_BENCH_EXCHANGE_BENCH_H

#include <signal.h>

#include "generator/local/cuda/exchange.h"
#include "harness/record/exchange_record.h"

enum { EXCHANGE_SIZES = 32, EXCHANGE_ROWS = 512 };

typedef struct {
    const char *operations, *sizes; /* comma-separated lists */
    const char *type;               /* "bf16", "fp32" */
    double seconds;                 /* about the time that the samples of one row take */
} exchange_bench_options;

typedef struct {
    bool operations[EXCHANGE_OPERATIONS];
    int64_t sizes[EXCHANGE_SIZES];
    int n_sizes;
    bool bf16;
    double seconds;
} exchange_plan;

typedef struct {
    exchange_record rows[EXCHANGE_ROWS];
    int n, wrong; /* number of rows, and of those with a wrong result */
    exchange_info info;
} exchange_bench;

/* SNAP_E_USAGE: a list or the type is wrong. */
snap_status exchange_bench_plan(exchange_plan *out, const exchange_bench_options *o,
                                snap_err *err) SNAP_CHECK_RESULT;

/* The size in bytes of the buffers that the plan needs. */
int64_t exchange_bench_bytes(const exchange_plan *p);

/* The factor by which the algorithm's bandwidth is multiplied to get the bus bandwidth, for @size
 * ranks. */
double exchange_bus_factor(exchange_operation op, int size);

/**
 * exchange_bench_run - measure all rows; every rank gets the same rows
 *
 * SNAP_E_USAGE: a size is too small for the number of ranks. SNAP_E_CANCELLED. Also the errors of
 * the exchange and the failure of the group. A wrong result is no error: out->wrong counts it.
 */
snap_status exchange_bench_run(const exchange_plan *p, exchange *x, ranks *group,
                               const volatile sig_atomic_t *cancel, exchange_bench *out,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
