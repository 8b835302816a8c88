/* report_fixture.h - runs for the tests of reports: a small one with ceilings, cells, errors and
 * evaluations, and sweeps of up to 2048 rows. */
#ifndef SNAPMLA_HARNESS_TEST_REPORT_FIXTURE_H
#define SNAPMLA_HARNESS_TEST_REPORT_FIXTURE_H

#include "harness/view/report.h"

/* A text with many characters that some format treats as markup, and with characters that no format
 * may output. */
extern const char kEvil[];

/* Both are owned by the caller. The run must outlive its model. The test fails on an error. */
results *fixture_load(void);
report_model *fixture_model(const results *r);

/* The first @rows rows (at most 2048) of a grid: 4 heads x 2 s_q x 8 batches x 8 contexts, both
 * arms and scopes; with the ceilings of the fixture. */
results *fixture_sweep(int rows);

#endif
