/* route.h - chooses the experts of a token from the router's logits, in FP32.
 *
 *   scores    softmax (V2, LongCat) or sigmoid (V3) of the logits
 *   choice    the experts with the best score + bias. With groups, only experts of the best groups
 *             count; a group is rated by the score + bias of its best expert (V2) or by the sum
 *             over its best two (V3)
 *   weights   the scores without bias, divided by their sum if the model says so, times a factor
 *             (in V2 only if they were not divided)
 * Of equal scores the lower index wins. A logit that is not finite makes scores NaN. NaN is greater
 * than any number, so an expert whose score is NaN is chosen, and the NaN reaches the logits of the
 * model. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_ROUTE_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_ROUTE_H

#include "generator/local/checkpoint/shape.h"

enum { ROUTE_MAX_EXPERTS = 4096, ROUTE_MAX_GROUPS = 256, ROUTE_MAX_CHOSEN = 64 };

/* The place of a choice for which this rank computes nothing (comm.h). */
enum {
    PLACE_ZERO = -1,     /* a zero-computation expert, which returns its input */
    PLACE_ELSEWHERE = -2 /* an expert of another rank, or one that another rank adds */
};

typedef struct {
    int experts; /* number of experts, zero-computation ones included */
    int chosen;  /* per token */
    int groups, groups_kept;
    bool sigmoid, by_two, normalize;
    float factor;
} router;

router router_make(const model_shape *s);

/* @logits [experts] is overwritten; @bias [experts] or NULL. Writes expert and weight [chosen], in
 * ascending order of expert. */
void router_choose(const router *r, float *logits, const float *bias, int32_t *expert,
                   float *weight);

#endif
