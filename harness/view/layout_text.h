/* layout_text.h - layouts of a model over several GPUs, as result files write them ("DP4/TP1/EP4"):
 * their sizes, their order in a report, and a shorter text. */
#ifndef SNAPMLA_HARNESS_VIEW_LAYOUT_TEXT_H
#define SNAPMLA_HARNESS_VIEW_LAYOUT_TEXT_H

typedef struct {
    int gpus; /* dp x tp; 0 = the text is not a layout */
    int dp;   /* replicas of the model */
    int tp;   /* GPUs of one replica */
    int ep;   /* GPUs over which whole experts are divided; 0 = without EP */
} layout_sizes;

enum { LAYOUT_SHORT_MAX = 48 };

/* The sizes of a layout "DPd/TPt/EPe", in which parts may be missing. "" is one GPU. */
layout_sizes layout_read(const char *text);

/* Orders layouts by the number of GPUs, then by TP, then by EP. Returns a number below, equal to or
 * above 0. */
int layout_compare(const layout_sizes *a, const layout_sizes *b);

/* The layout without parts of one GPU: "DP4/EP4" for "DP4/TP1/EP4", and "1 GPU" for "". Returns
 * @out, or @text if it is not a layout. */
const char *layout_short(const char *text, char out[LAYOUT_SHORT_MAX]);

#endif
