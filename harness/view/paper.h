/* paper.h - `snapmla report paper`: the paper's tables and figures from measured runs, beside the
 * figures that papers report.
 *
 * A reported figure has the origin "reported" in its row, and its source. No mean or ranking
 * includes it. A file of reported figures has this form, as paper.json has:
 *
 *   {"source": "who reports it, and where",
 *    "rows": [{"about": "speed", "what": "up to; 8 GPUs, 16k to 128k", "speedup": 1.91,
 *              "where": "table 3", "model": "DeepSeek-V3.1", "bf16": 1200, "fp8": 2290}, ...]}
 *
 * "source" is required, and in each row "about", "what" and at least one number. The unit of bf16
 * and fp8 depends on "about":
 *   speed        tokens/s; speedup: FP8 over BF16. A row may have "layout", for example "DP8/TP1";
 *                with that of several GPUs, the table of layouts shows it, too
 *   kernel       TFLOPS; speedup; peak_pct: FP8's percentage of the mixed peak
 *   granularity  fp8: relative L2 error of the configuration that "what" names
 *   quality      percent in the task that "what" names ("aime25") */
#ifndef SNAPMLA_HARNESS_VIEW_PAPER_H
#define SNAPMLA_HARNESS_VIEW_PAPER_H

#include "harness/view/tables.h"

typedef struct report_quote {
    const char *about, *what, *model, *source; /* source: "SnapMLA, arXiv 2602.10718, table 3" */
    const char *layout;                        /* "" = not reported */
    double bf16, fp8, speedup, peak_pct;       /* NAN = not reported */
} report_quote;

/* One row of the whole-model benchmark: decode steps. */
typedef struct report_step {
    const char *model, *device, *name; /* name: name of the file */
    const char *layout;                /* "DP4/TP1/EP4"; "" = one GPU */
    int64_t context;
    int64_t batch, bf16_batch; /* batch of FP8 and of BF16; RECORD_NO_COUNT = the file lacks the row
                                  of BF16 */
    double bf16, fp8, speedup; /* tokens/s; speedup: FP8 over BF16 */
} report_step;

/* A series of cells that differ in one number of the shape: the longest such series of a file. */
enum { AXIS_HEADS, AXIS_BATCH, AXIS_CONTEXT, AXIS_S_Q, AXES };
enum { AXIS_POINTS = 32 };
typedef struct {
    const report_speed *at[AXIS_POINTS]; /* ascending along the axis; both arms passed */
    size_t n;
} report_axis;

extern const char *const report_axis_names[AXES]; /* "heads" */
int64_t report_axis_value(const report_cell *c, int axis);

/* Finds the longest series of @file in scope kernel along @axis. Of series of equal length, the one
 * with the most work is taken. Returns false if no series has two points. */
bool report_axis_find(const report_model *m, int file, int axis, report_axis *out);

/* Percentage of the peak of the FP8 arm's mix of products, from the file's own ceilings; NAN if it
 * has none. */
double report_peak_pct(const report_model *m, const report_cell *c);

bool report_table_paper_speed(const report_model *m, arena *mem, table *t);
/* Several GPUs: tokens/s over the context, three rows for each model and layout. */
bool report_table_paper_layouts(const report_model *m, arena *mem, table *t);
/* Predicted steps beside measured ones. */
bool report_table_paper_checked(const report_model *m, arena *mem, table *t);
/* The rows of maps of predicted layouts. */
bool report_table_paper_map(const report_model *m, arena *mem, table *t);
bool report_table_paper_kernel(const report_model *m, arena *mem, table *t);
bool report_table_paper_granularity(const report_model *m, arena *mem, table *t);
bool report_table_paper_quality(const report_model *m, arena *mem, table *t);
bool report_table_paper_serving(const report_model *m, arena *mem, table *t);

#endif
