#include "generator/local/model/route.h"

#include <math.h>
#include <string.h>

router router_make(const model_shape *s) {
    bool grouped = s->topk != TOPK_GREEDY && s->n_group > 1 && s->topk_group < s->n_group;
    bool v2_normalised = s->arch == ARCH_DEEPSEEK_V2 && s->norm_topk_prob;
    return (router){
        .experts = s->n_routed_experts + s->zero_expert_num,
        .chosen = s->num_experts_per_tok,
        .groups = grouped ? s->n_group : 1,
        .groups_kept = grouped ? s->topk_group : 1,
        .sigmoid = s->scoring == SCORE_SIGMOID,
        .by_two = s->topk == TOPK_NOAUX,
        .normalize = s->norm_topk_prob,
        /* DeepSeek-V2 normalises or applies the factor, not both */
        .factor = v2_normalised ? 1.0f : (float)s->routed_scaling_factor,
    };
}

/* An infinite logit gives NaN, because 0 times it is NaN. */
static void to_scores(const router *r, float *x) {
    if (r->sigmoid) {
        for (int i = 0; i < r->experts; i++)
            x[i] = 1.0f / (1.0f + expf(-x[i])) + 0 * x[i];
        return;
    }
    float largest = x[0], sum = 0;
    for (int i = 1; i < r->experts; i++)
        largest = fmaxf(largest, x[i]);
    for (int i = 0; i < r->experts; i++)
        sum += x[i] = expf(x[i] - largest) + 0 * x[i];
    for (int i = 0; i < r->experts; i++)
        x[i] /= sum;
}

/* The index of the largest number that is not taken; -1 if all are. NaN is greater than any
 * number. */
static int best(const float *x, const bool *taken, int n) {
    int at = -1;
    for (int i = 0; i < n; i++)
        if (!taken[i] && (at < 0 || x[i] > x[at] || (isnan(x[i]) && !isnan(x[at]))))
            at = i;
    return at;
}

static float rate_group(const router *r, const float *x, int size) {
    float first = -INFINITY, second = -INFINITY;
    for (int i = 0; i < size; i++) {
        if (isnan(x[i]))
            return x[i];
        if (x[i] > first) {
            second = first;
            first = x[i];
        } else if (x[i] > second) {
            second = x[i];
        }
    }
    return r->by_two ? first + second : first;
}

/* Marks the experts as taken, except those of the best groups. */
static void keep_best_groups(const router *r, const float *x, bool *taken) {
    float rating[ROUTE_MAX_GROUPS] = {0};
    bool kept[ROUTE_MAX_GROUPS] = {false};
    int size = r->experts / r->groups;
    for (int g = 0; g < r->groups; g++)
        rating[g] = rate_group(r, x + g * size, size);
    for (int i = 0; i < r->groups_kept; i++)
        kept[best(rating, kept, r->groups)] = true;
    for (int e = 0; e < r->groups * size; e++)
        taken[e] = !kept[e / size];
}

void router_choose(const router *r, float *logits, const float *bias, int32_t *expert,
                   float *weight) {
    float biased[ROUTE_MAX_EXPERTS] = {0};
    bool taken[ROUTE_MAX_EXPERTS] = {false}, chosen[ROUTE_MAX_EXPERTS] = {false};
    to_scores(r, logits);
    for (int i = 0; i < r->experts; i++)
        biased[i] = bias ? logits[i] + bias[i] : logits[i];
    if (r->groups > 1)
        keep_best_groups(r, biased, taken);
    for (int i = 0; i < r->chosen; i++) {
        int e = best(biased, taken, r->experts);
        taken[e] = chosen[e] = true;
    }
    float sum = 0;
    int n = 0;
    for (int e = 0; e < r->experts; e++) {
        if (!chosen[e])
            continue;
        expert[n] = e;
        weight[n] = logits[e];
        sum += weight[n++];
    }
    for (int i = 0; i < n; i++)
        weight[i] = (r->normalize ? weight[i] / (sum + 1e-20f) : weight[i]) * r->factor;
}
