/* bench_journal.h - the journal of a benchmark: its finished rows until the result file is
 * written. */
#ifndef SNAPMLA_HARNESS_BENCH_BENCH_JOURNAL_H
#define SNAPMLA_HARNESS_BENCH_BENCH_JOURNAL_H

#include "harness/record/results.h"

/* Opens RUN/journal in the run's folder, which is created if needed, or FILE.json.journal. A run
 * continues the journal only if its configuration is the same, except for the paths of ceilings and
 * results. Errors: those of fs_mkdirs() and results_journal_open(), SNAP_E_NOMEM. */
snap_status bench_journal_open(results_journal **journal, const char *run, const js *config,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
