/* fake_backend.h - a CPU backend with injected faults, and small sweeps on it. */
#ifndef SNAPMLA_HARNESS_TEST_FAKE_BACKEND_H
#define SNAPMLA_HARNESS_TEST_FAKE_BACKEND_H

#include "harness/bench/sweep.h"
#include "kernels/backend.h"

/* The faults that the backend injects, and its counters. fake_open() sets all to 0. */
extern struct fake_faults {
    int runs;          /* counter: steps that were run */
    int corrupt_from;  /* first run with corrupted output; 0 = never */
    int fail_from;     /* first run that reports a broken device; 0 = never */
    bool spoil_append; /* the content of the last BF16 token of each sequence is negated */
    size_t memory;
    int clock_from; /* first time that is measured by a clock that runs backwards; 0 = never */
    int times;
    double reported_ns; /* the time that is reported for each step; 0 = the measured one */
} fake_faults;

/* One backend may be open at a time. Its cache has 256 KiB. */
mla_backend *fake_open(void);
void fake_close(mla_backend *be);
const mla_backend_ops *fake_ops(void); /* its functions, for a test that replaces some of them */

/* A grid of 8 small shapes in both arms and scopes, a grid made from a text, and a grid of one of
 * the small shapes. */
extern const bench_grid_text fake_tiny;
bench_grid fake_grid(bench_grid_text text);
bench_grid fake_one_shape(void);

/* Options for a sweep over the grid with 3 to 8 samples for each cell. */
sweep_options fake_options(mla_backend *be, const bench_grid *g);

/* The rows of such a sweep, which must return @expected. Their floors are derived from fake_plenty.
 * The caller owns them. */
js *fake_sweep_rows(mla_backend *be, const bench_grid *g, snap_status expected);
extern const mla_ceilings fake_plenty; /* ceilings that no time reaches */

#endif
