/* clients.h - what the clients of a run say of their own work, kept in its journal, so that a run
 * that is graded again still knows.
 *
 * Of every arm the last session that generated something: {"transfers", "connections", "outages",
 * "lag_ms_p99", "lag_ms_max"} as generator_load has them. */
#ifndef SNAPMLA_HARNESS_EVAL_CLIENTS_H
#define SNAPMLA_HARNESS_EVAL_CLIENTS_H

#include "generator/generator.h"
#include "harness/record/eval.h"
#include "harness/record/results.h"

snap_status clients_record(results_journal *j, const char *arm, const generator_load *load,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Adds what another part of the run did: counts are summed, of lags the longest stays. False where
 * it has no row of the arm. */
bool clients_add(const results_journal *j, const char *arm, generator_load *to);

/* The row of an arm, which does not exist where the journal has none. False: out of memory. */
bool clients_find(const results_journal *j, const char *arm, arena *mem, client_record *out);

#endif
