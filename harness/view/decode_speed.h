/* decode_speed.h - decode steps of whole models in which FP8 is compared with BF16, measured and
 * predicted, in one form for the tables and figures of the paper. */
#ifndef SNAPMLA_HARNESS_VIEW_DECODE_SPEED_H
#define SNAPMLA_HARNESS_VIEW_DECODE_SPEED_H

#include "harness/view/layout_text.h"
#include "harness/view/model.h"

enum { SPEED_BF16, SPEED_FP8, SPEED_ARMS };

/* One step of each arm. */
typedef struct {
    bool predicted;         /* else measured */
    bool of_map;            /* predicted, and the layout is the fastest one of its number of GPUs */
    const char *model;      /* without folders and ".json" */
    const char *layout;     /* "DP4/TP1/EP4"; "" = one GPU */
    const char *conditions; /* "4 × NVIDIA H200"; predicted: "8 GPUs, weights in e4m3" */
    const char *source;     /* the file */
    layout_sizes sizes;     /* of the layout */
    int64_t context;
    int64_t batch[SPEED_ARMS];             /* batch of all GPUs; RECORD_NO_COUNT = unknown */
    double tokens_s[SPEED_ARMS];           /* of all GPUs */
    double lo[SPEED_ARMS], hi[SPEED_ARMS]; /* predicted interval of tokens_s; NAN without one */
    double speedup;                        /* FP8 over BF16 */
    double speedup_lo, speedup_hi;         /* predicted interval of it; NAN without one */
} decode_speed;

typedef struct {
    decode_speed *at;
    size_t n;
} decode_speeds;

/* Collects the steps in the arena. They are sorted by origin (measured before predicted), model,
 * layout, conditions, context, batch and source. Predictions of steps that were also measured check
 * the prediction, and are left out. Returns false when out of memory. */
bool decode_speeds_find(const report_model *m, arena *mem, decode_speeds *out);

/* Compares what is the same in all steps of one curve over the context: origin, model, layout,
 * conditions and, for predictions, the source. Returns 0 for steps of the same curve. */
int decode_speed_compare(const decode_speed *a, const decode_speed *b);

/* Whether a BF16 step with @bf16 tokens/s can be the one over which the gain of an FP8 step was
 * computed. Files do not name that step, and its batch may differ from that of the FP8 step. */
bool decode_speed_is_baseline(double bf16, double fp8, double gain);

#endif
