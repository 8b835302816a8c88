/* verify_exchange.c - checks the rows of exchanges between GPUs: their checks, the order of their
 * times, and the bandwidths that follow from time and size. */
#include <stdio.h>
#include <string.h>

#include "harness/audit/audit.h"
#include "harness/bench/exchange_bench.h"

static exchange_operation operation_of(const exchange_record *row) {
    if (strcmp(row->operation, "all_reduce") == 0)
        return EXCHANGE_ALL_REDUCE;
    return EXCHANGE_ALL_GATHER; /* the other two operations have the same factor */
}

static void check_results(verify_findings *f, const exchange_record *row, const char *where) {
    bool timed = row->parts & EXCHANGE_TIMED;
    f->checks += 2;
    if (timed && row->checked < 1)
        verify_add(f, VERIFY_CORRECTNESS, where, "a time whose result was not checked");
    if (timed && row->wrong > 0)
        verify_add(f, VERIFY_CORRECTNESS, where, "a time although %lld numbers were wrong",
                   (long long)row->wrong);
    if (!timed && row->wrong == 0)
        verify_add(f, VERIFY_FORM, where, "no time although no number was wrong");
}

static void check_times(verify_findings *f, const exchange_record *row, const char *where) {
    double algorithm = (double)row->bytes / row->median_ns * 1e9;
    double bus = algorithm * exchange_bus_factor(operation_of(row), (int)row->ranks);
    f->checks += 3;
    if (row->best_ns > row->median_ns || row->p99_ns < row->median_ns)
        verify_add(f, VERIFY_FORM, where, "its times are not in order");
    if (!verify_is_near(row->algorithm_bytes_s, algorithm))
        verify_add(f, VERIFY_PHYSICS, where,
                   "algorithm_bytes_s is %.10g, but size and time give %.10g",
                   row->algorithm_bytes_s, algorithm);
    if (!verify_is_near(row->bus_bytes_s, bus))
        verify_add(f, VERIFY_PHYSICS, where, "bus_bytes_s is %.10g, but size and time give %.10g",
                   row->bus_bytes_s, bus);
}

void verify_exchange(const run_record *r, verify_findings *f) {
    for (size_t i = 0; i < r->exchange.n; i++) {
        const exchange_record *row = &r->exchange.at[i];
        char where[64];
        (void)snprintf(where, sizeof where, "exchange[%zu]", i);
        check_results(f, row, where);
        if (row->parts & EXCHANGE_TIMED)
            check_times(f, row, where);
    }
}
