/* model_layout.h - the ranks of `bench model --layout`: this process starts one for each GPU, or is
 * one of them. */
#ifndef SNAPMLA_HARNESS_CMD_MODEL_LAYOUT_H
#define SNAPMLA_HARNESS_CMD_MODEL_LAYOUT_H

#include "harness/bench/model_bench.h"
#include "harness/cmd/cmd.h"

/* Measures as the options say, and prints the rows if @shows. */
typedef snap_status model_layout_measure(opt_shared *shared, bool shows, snap_err *err);

/* If @l has one rank, only calls @measure. Otherwise, with @devices, the value of --devices, and
 * without a launcher, this function starts the ranks of @l and waits for them. In a rank that a
 * launcher started, it joins the group and calls @measure; meanwhile, o->group is the group.
 * SNAP_E_USAGE if the numbers of ranks and GPUs, or of processes, differ, and the errors of the
 * ranks. */
snap_status model_layout_run(model_bench_options *o, const char *devices, const rank_layout *l,
                             opt_shared *shared, model_layout_measure *measure,
                             snap_err *err) SNAP_CHECK_RESULT;

#endif
