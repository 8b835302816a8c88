/* bench_rows.h - rows of the section "bench" as JSON, for tests of what is derived from them. */
#ifndef SNAPMLA_HARNESS_TEST_BENCH_ROWS_H
#define SNAPMLA_HARNESS_TEST_BENCH_ROWS_H

#include "harness/bench/sweep.h"

/* Whether the text of the member is @value. */
bool row_is(const js *row, const char *key, const char *value);

/* cell_derive(), cell_raise() and cell_has_flag() of a row. */
snap_status row_derive(js *row, const mla_ceilings *c, snap_err *err) SNAP_CHECK_RESULT;
void row_raise(const js *row, mla_ceilings *c);
bool row_has_flag(const js *row, const char *flag);

/* The number under @key of the row's object `performance`; NAN if the row lacks it. */
double row_number(const js *row, const char *key);
double row_paired_pct(const js *row);
double rows_speedup(const js *rows, size_t i); /* sweep_speedup() */

#endif
