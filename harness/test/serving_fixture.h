/* serving_fixture.h - the result of a simulated run of servers, for tests of what is made of it. */
#ifndef SNAPMLA_HARNESS_TEST_SERVING_FIXTURE_H
#define SNAPMLA_HARNESS_TEST_SERVING_FIXTURE_H

#include "harness/record/results.h"

/* Two servers, "bf16" at http://a/v1 and "fp8 & <co>" at http://b/v1, at two loads. The second is
 * @speed times as fast. The caller owns the result. The test fails on an error. */
results *serving_fixture(double speed);

#endif
