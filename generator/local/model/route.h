/* route.h - which experts a token goes to, from the router's logits, in FP32.
 *
 *   scores    softmax (V2, LongCat) or sigmoid (V3) of the logits
 *   choice    the best of scores + bias; with groups, only those in the best groups: judged by their
 *             best expert (V2) or the sum of their best two (V3)
 *   weights   the scores without bias, over their sum where the model says so, times a factor
 * Of equals the lower number wins. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_ROUTE_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_ROUTE_H

#include "generator/local/checkpoint/shape.h"

enum { ROUTE_MAX_EXPERTS = 4096, ROUTE_MAX_GROUPS = 256, ROUTE_MAX_CHOSEN = 64 };

typedef struct {
    int experts; /* all of them, zero-computation ones included */
    int chosen;  /* a token */
    int groups, groups_kept;
    bool sigmoid, by_two, normalize;
    float factor;
} router;

router router_make(const model_shape *s);

/* @logits [experts], overwritten; @bias [experts] or NULL; expert and weight [chosen], ascending by
 * expert. */
void router_choose(const router *r, float *logits, const float *bias, int32_t *expert,
                   float *weight);

#endif
