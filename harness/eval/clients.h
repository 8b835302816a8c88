/* clients.h - statistics of the HTTP clients with which snapmla requested a run's samples. They are
 * kept in the run's journal, so that they are still known when the run is graded again.
 *
 * The journal has one row for each arm whose client made transfers: the statistics of the last
 * session in which it made some. After `snapmla eval merge` the row has the sums of the counts over
 * the shards, and the longest of their lags. The row is a client_record (harness/record/eval.h):
 * {"transfers", "connections", "outages", "lag_ms_p99", "lag_ms_max"}. */
#ifndef SNAPMLA_HARNESS_EVAL_CLIENTS_H
#define SNAPMLA_HARNESS_EVAL_CLIENTS_H

#include "generator/generator.h"
#include "harness/record/eval.h"
#include "harness/record/results.h"

snap_status clients_record(results_journal *j, const char *arm, const generator_load *load,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Adds the statistics of another part of the run to @to. Counts are summed; of lags, the longest is
 * kept. Returns false if journal @j has no row for the arm, and when out of memory. */
bool clients_add(const results_journal *j, const char *arm, generator_load *to);

/* Reads the row of an arm. If the journal has none, the row is marked as absent. Returns false when
 * out of memory. */
bool clients_find(const results_journal *j, const char *arm, arena *mem, client_record *out);

#endif
