/* flags.h - what is wrong with an arm at a load point, and which verdicts it prevents.
 *
 *   saturated     the queue grows (steady.h). ttft, e2e and goodput then depend on how long the
 *                 blocks are.
 *   unsteady      some block has no steady part
 *   correlated    neighbouring slices are correlated by more than one standard error, and the test
 *                 of slice_series.h rejects independence. Intervals by slices are then too narrow.
 *                 Other programs disturbed some blocks, or the speed of the server varies slowly.
 *                 With two or more blocks of each arm, intervals by blocks replace them
 *                 (serving_arm.by_blocks). Then the flag prevents no verdict.
 *   client lag    the client's own lag can change a latency by more than 1 %. A verdict then needs
 *                 an interval that excludes the lag too.
 *   failed, cut   more than 1 % of the requests: what is left is a selection of them
 *   no usage      the server states no tokens, so some metrics do not exist
 *   no intervals  there are too few requests */
#ifndef SNAPMLA_HARNESS_SERVING_FLAGS_H
#define SNAPMLA_HARNESS_SERVING_FLAGS_H

#include "harness/serving/measured.h"

enum {
    SERVING_FLAG_SATURATED = 1 << 0,
    SERVING_FLAG_UNSTEADY = 1 << 1,
    SERVING_FLAG_CORRELATED = 1 << 2,
    SERVING_FLAG_LAG = 1 << 3,
    SERVING_FLAG_FAILED = 1 << 4,
    SERVING_FLAG_CUT = 1 << 5,
    SERVING_FLAG_NO_USAGE = 1 << 6,
    SERVING_FLAG_NO_INTERVALS = 1 << 7,
    SERVING_FLAGS = 8, /* number of flags */
};

/* The name of flag @i: "client lag" for 3. */
const char *serving_flag_name(int i);

/* The flags of an arm, as bits. */
unsigned serving_flags_of(const serving_arm *a);

/* The flags of an arm without `correlated` if its intervals hold with blocks as units. */
unsigned serving_doubts_of(const serving_arm *a);

/* The first of the flags that prevents a verdict on the metric; "" = none does. @flags:
 * serving_doubts_of() of both arms that are compared. */
const char *serving_flag_against(unsigned flags, int metric);

/* The flag that puts the state of the targets of an arm in doubt: correlated, unless blocks were
 * the units of the tests that decide the state, or unsteady. "" = none does. Saturation is tested
 * by the growth within the blocks, which has a correction of its own, so a saturated arm fails in
 * any case. */
const char *serving_flag_against_state(const serving_arm *a);

#endif
