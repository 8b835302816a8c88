/* layout_series.h - decoding speed over the context for a model that is divided over several GPUs:
 * the counterpart of Figure 1 of the SnapMLA paper. */
#ifndef SNAPMLA_HARNESS_VIEW_LAYOUT_SERIES_H
#define SNAPMLA_HARNESS_VIEW_LAYOUT_SERIES_H

#include "harness/view/decode_speed.h"

/* One context. If several rows have the largest batches, it is the mean over these rows. */
typedef struct {
    int64_t context;
    size_t rows;
    int64_t batch[SPEED_ARMS];
    double tokens_s[SPEED_ARMS];           /* mean */
    double lo[SPEED_ARMS], hi[SPEED_ARMS]; /* predicted interval; NAN without one */
    double speedup;                        /* mean of the rows' ratios of FP8 to BF16 */
    double lowest, highest;                /* range of these ratios; for a predicted ratio, its
                                              interval */
} layout_point;

/* One model, layout and machine. */
typedef struct {
    const decode_speed *first; /* has the origin, model, layout and conditions of all points */
    layout_point *points;      /* ascending by context */
    size_t n;
} layout_series;

typedef struct {
    layout_series *at;
    size_t n;
} layout_series_list;

/* Collects the curves of layouts of several GPUs in the arena, in the order of
 * decode_speeds_find(). Rows of maps are left out, because a map has a layout only where it is the
 * fastest one. If a context was measured with several batches, its point is the step with the
 * largest FP8 batch, and among these the one with the largest BF16 batch. Returns false when out of
 * memory. */
bool layout_series_find(const report_model *m, arena *mem, layout_series_list *out);

#endif
