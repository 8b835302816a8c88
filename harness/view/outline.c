#include "harness/view/outline.h"

#include <string.h>

#include "harness/view/layout_text.h"
#include "harness/view/paper.h"

/* ---- the full report ---- */

static const report_section whole[] = {
    {.id = "compare",
     .title = "Devices",
     .parts = {{.build = report_table_devices},
               {.draw = figure_devices},
               {.build = report_table_pairs},
               {.build = report_table_machines},
               {.build = report_table_refused}}},
    {.id = "steps", .title = "Single steps", .parts = {{.build = report_table_compare}}},
    {.id = "loops",
     .title = "Loops without pauses: power and energy",
     .parts = {{.build = report_table_devices_loops}, {.build = report_table_compare_loops}}},
    {.id = "lacking", .title = "What is missing", .parts = {{.build = report_table_lacking}}},
    {.id = "speed",
     .title = "Speed",
     .parts = {{.build = report_table_named_arms},
               {.build = report_table_named_pairs},
               {.draw = figure_named_arms},
               {.build = report_table_named_cells},
               {.build = report_table_named_pair_cells},
               {.draw = figure_axes},
               {.draw = figure_speedup},
               {.build = report_table_speed},
               {.build = report_table_ablation},
               {.build = report_table_not_measured}}},
    {.id = "roofline",
     .title = "Roofline",
     .parts = {{.draw = figure_roofline}, {.build = report_table_ceilings}}},
    {.id = "exchange",
     .title = "Exchange between GPUs",
     .parts = {{.build = report_table_exchange}}},
    {.id = "predicted",
     .title = "Predicted decode steps",
     .parts = {{.draw = figure_layout_map},
               {.draw = figure_largest_part},
               {.build = report_table_predicted}}},
    {.id = "quality",
     .title = "Quality",
     .parts = {{.draw = figure_parity},
               {.draw = figure_length},
               {.draw = figure_heat},
               {.build = report_table_parity},
               {.build = report_table_blind},
               {.build = report_table_breaks},
               {.build = report_table_groups},
               {.build = report_table_arms},
               {.build = report_table_failures},
               {.build = report_table_opinions},
               {.build = report_table_reasoning},
               {.build = report_table_requests},
               {.build = report_table_judges},
               {.build = report_table_mismatches}}},
    {.id = "serving",
     .title = "Serving",
     .parts = {{.build = report_table_knees},
               {.draw = figure_serving_pareto},
               {.draw = figure_serving_goodput},
               {.build = report_table_serving},
               {.build = report_table_serving_pairs},
               {.draw = figure_serving_cdf},
               {.build = report_table_latencies},
               {.build = report_table_serving_parts},
               {.draw = figure_serving_course}}},
    {.id = "samples", .title = "Samples", .samples = true},
    {.id = "fidelity",
     .title = "Numerical fidelity",
     .parts = {{.draw = figure_fidelity},
               {.build = report_table_fidelity},
               {.build = report_table_predictions},
               {.build = report_table_divergence},
               {.build = report_table_forecast},
               {.draw = figure_layers},
               {.build = report_table_layers},
               {.build = report_table_values},
               {.build = report_table_bounds},
               {.build = report_table_depth}}},
    {.id = "reported", .title = "Reported by others", .parts = {{.build = report_table_reported}}},
    {.title = NULL},
};

const report_outline report_outline_whole = {"FP8 MLA decoding against BF16", whole};

/* ---- the report that is arranged like the SnapMLA paper ---- */

static bool has_steps(const report_model *m) {
    return m->n_steps > 0;
}

static bool has_layouts(const report_model *m) {
    for (size_t i = 0; i < m->n_steps; i++)
        if (layout_read(m->steps[i].layout).gpus > 1)
            return true;
    return false;
}

static bool has_kernel(const report_model *m) {
    return m->gains[0].n + m->gains[0].flagged > 0;
}

static bool has_errors(const report_model *m) {
    return m->n_fidelity > 0;
}

static bool has_layers(const report_model *m) {
    for (size_t i = 0; i < m->n_model_rows; i++)
        if (strcmp(m->model_rows[i].row->kind, "layer") == 0)
            return true;
    return false;
}

static bool has_evals(const report_model *m) {
    return m->n_evals > 0;
}

static bool has_serving(const report_model *m) {
    return m->n_serving > 0;
}

static const report_section paper[] = {
    {.id = "speed",
     .title = "Decoding over configurations",
     .parts = {{.build = report_table_paper_speed}},
     .measured = has_steps,
     .absent = "Not measured in these runs. On a GPU, 'snapmla bench model --out FILE' measures "
               "whole models; --e2e reads its output."},
    {.id = "layouts",
     .title = "Throughput on several GPUs",
     .parts = {{.draw = figure_layouts},
               {.build = report_table_paper_layouts},
               {.build = report_table_paper_checked},
               {.draw = figure_layout_map},
               {.draw = figure_largest_part},
               {.build = report_table_paper_map}},
     .measured = has_layouts,
     .absent = "Not measured in these runs. 'sh ci/gpu_figure1.sh OUT' measures it, and so does "
               "'snapmla bench model --layout LAYOUT --out FILE'; --e2e reads their output."},
    {.id = "kernel",
     .title = "Kernel over heads, batch, context and query tokens",
     .parts = {{.draw = figure_axes},
               {.draw = figure_speedup},
               {.build = report_table_paper_kernel}},
     .measured = has_kernel,
     .absent = "Not measured in these runs. 'snapmla bench' measures it, with scope kernel."},
    {.id = "granularity",
     .title = "Granularity of quantisation",
     .parts = {{.draw = figure_fidelity}, {.build = report_table_paper_granularity}},
     .measured = has_errors,
     .absent = "Not measured in these runs. 'snapmla fidelity' measures it."},
    {.id = "layers",
     .title = "Fidelity layer by layer",
     .parts = {{.draw = figure_layers},
               {.build = report_table_layers},
               {.build = report_table_values},
               {.build = report_table_predictions}},
     .measured = has_layers,
     .absent = "Not measured in these runs. 'snapmla fidelity --model DIR --text FILE --layers' "
               "measures it."},
    {.id = "quality",
     .title = "Quality",
     .parts = {{.draw = figure_parity}, {.build = report_table_paper_quality}},
     .measured = has_evals,
     .absent = "Not measured in these runs. 'snapmla eval' measures it."},
    {.id = "serving",
     .title = "Serving",
     .parts = {{.draw = figure_serving_pareto},
               {.build = report_table_paper_serving},
               {.build = report_table_knees},
               {.build = report_table_serving},
               {.build = report_table_serving_pairs}},
     .measured = has_serving,
     .absent = "Not measured in these runs. 'snapmla bench serving' measures it."},
    {.id = "reported", .title = "Reported by others", .parts = {{.build = report_table_reported}}},
    {.title = NULL},
};

const report_outline report_outline_paper = {"SnapMLA's tables and figures, measured here", paper};
