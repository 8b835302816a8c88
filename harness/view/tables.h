/* tables.h - the tables of a report, one builder for each. Those of the paper are in paper.h. */
#ifndef SNAPMLA_HARNESS_VIEW_TABLES_H
#define SNAPMLA_HARNESS_VIEW_TABLES_H

#include "harness/view/model.h"
#include "harness/view/table.h"

/* Each function builds its table in the arena and returns false if memory is exhausted. The table
 * has no rows if the model has no data for it. */
bool report_table_ceilings(const report_model *m, arena *mem, table *t);
/* The tables of a comparison, which are empty without one: */
bool report_table_devices(const report_model *m, arena *mem, table *t);
bool report_table_devices_loops(const report_model *m, arena *mem, table *t);
bool report_table_pairs(const report_model *m, arena *mem, table *t);
bool report_table_machines(const report_model *m, arena *mem, table *t);
bool report_table_refused(const report_model *m, arena *mem, table *t);
bool report_table_compare(const report_model *m, arena *mem, table *t);
bool report_table_compare_loops(const report_model *m, arena *mem, table *t);
bool report_table_lacking(const report_model *m, arena *mem, table *t);
bool report_table_speed(const report_model *m, arena *mem, table *t);
bool report_table_named_arms(const report_model *m, arena *mem, table *t);
bool report_table_named_pairs(const report_model *m, arena *mem, table *t);
/* Only pairs without the baseline: report_table_named_cells() has the others. */
bool report_table_named_pair_cells(const report_model *m, arena *mem, table *t);
bool report_table_named_cells(const report_model *m, arena *mem, table *t);
bool report_table_ablation(const report_model *m, arena *mem, table *t);
bool report_table_not_measured(const report_model *m, arena *mem, table *t);
bool report_table_parity(const report_model *m, arena *mem, table *t);
bool report_table_blind(const report_model *m, arena *mem, table *t);
bool report_table_breaks(const report_model *m, arena *mem, table *t);
bool report_table_groups(const report_model *m, arena *mem, table *t);
bool report_table_arms(const report_model *m, arena *mem, table *t);
bool report_table_opinions(const report_model *m, arena *mem, table *t);
bool report_table_failures(const report_model *m, arena *mem, table *t);
bool report_table_judges(const report_model *m, arena *mem, table *t);
bool report_table_reasoning(const report_model *m, arena *mem, table *t);
bool report_table_requests(const report_model *m, arena *mem, table *t);
bool report_table_mismatches(const report_model *m, arena *mem, table *t);
bool report_table_fidelity(const report_model *m, arena *mem, table *t);
bool report_table_predictions(const report_model *m, arena *mem, table *t);
bool report_table_layers(const report_model *m, arena *mem, table *t);
bool report_table_values(const report_model *m, arena *mem, table *t);
bool report_table_bounds(const report_model *m, arena *mem, table *t);
bool report_table_divergence(const report_model *m, arena *mem, table *t);
bool report_table_forecast(const report_model *m, arena *mem, table *t);
bool report_table_depth(const report_model *m, arena *mem, table *t);
bool report_table_exchange(const report_model *m, arena *mem, table *t);
bool report_table_predicted(const report_model *m, arena *mem, table *t);
bool report_table_reported(const report_model *m, arena *mem, table *t);
bool report_table_serving(const report_model *m, arena *mem, table *t);
bool report_table_latencies(const report_model *m, arena *mem, table *t);
/* For the terminal: one row for each load point and arm, with the medians and the p99 of four
 * latencies. */
bool report_table_latencies_brief(const report_model *m, arena *mem, table *t);
bool report_table_serving_parts(const report_model *m, arena *mem, table *t);
bool report_table_serving_pairs(const report_model *m, arena *mem, table *t);
bool report_table_knees(const report_model *m, arena *mem, table *t);
bool report_table_sources(const report_model *m, arena *mem, table *t);

typedef bool (*report_table_fn)(const report_model *m, arena *mem, table *t);

/* Builds a table. In a comparison, a last column that names the device becomes the first one.
 * Returns false if memory is exhausted. */
bool report_build(const report_model *m, report_table_fn build, arena *mem, table *t);

/* The device on which a file's rows were measured; "" = unknown. */
const char *report_device_of(const report_model *m, int file);

#endif
