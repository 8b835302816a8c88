/* report_fixture.h - runs for the tests of reports: a small one with everything in it, and sweeps
 * of any size. */
#ifndef SNAPMLA_HARNESS_TEST_REPORT_FIXTURE_H
#define SNAPMLA_HARNESS_TEST_REPORT_FIXTURE_H

#include "harness/view/report.h"

/* Everything that some format takes for markup, and what no format may pass on. */
extern const char kEvil[];

/* Owned, as is a model of one run, which it outlives. They fail the test where they can't. */
results *fixture_load(void);
report_model *fixture_model(const results *r);

/* The public grid: 4 heads x 2 s_q x 8 batches x 8 contexts, both arms and scopes, the first @rows
 * (2048 at most) of it; with the fixture's ceilings. */
results *fixture_sweep(int rows);

#endif
