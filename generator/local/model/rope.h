/* rope.h - rotary position embedding: the frequencies of a model, and the rotation of a vector.
 *
 * Pair i of the d numbers is rotated by position * f_i and multiplied by a common factor:
 *   default    f_i = theta^(-2i/d); the common factor is 1
 *   YaRN       arXiv 2309.00071: f_i lies between theta^(-2i/d) and that divided by `factor`,
 *              depending on how often the pair rotates within the trained length. The common factor
 *              is m(mscale) / m(mscale_all_dim), and the softmax scale is multiplied by
 *              m(mscale_all_dim)^2, with m(s) = 0.1 s ln(factor) + 1
 *   LongRoPE   arXiv 2402.13753: f_i is divided by a factor from a list. If the model's longest
 *              context is within the trained length, this is the short list, and the common factor
 *              is 1. Else it is the long list, and the common factor is
 *              sqrt(1 + ln(longest / trained) / ln(trained))
 * A pair is (2i, 2i + 1), or (i, i + d/2) in models with `halves`. A vector of several times d
 * numbers has d of each of several heads. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_ROPE_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "generator/local/checkpoint/shape.h"
#include "kernels/mla.h"

typedef struct {
    int pairs;                         /* d / 2 */
    bool halves;                       /* a pair's numbers lie half a vector apart */
    float frequency[MLA_MAX_ROPE / 2]; /* radians per token */
    float factor;                      /* multiplies cosine and sine */
} rope;

rope rope_make(const model_shape *shape);

/* The softmax scale: 1 / sqrt(head_dim), multiplied by YaRN's factor if the model has one. */
double rope_softmax_scale(const model_shape *shape);

/* Cosine and sine [pairs] of a position, multiplied by the common factor. */
void rope_angles(const rope *r, int64_t position, float *cosine, float *sine);

/* Rotates x [n] in place; n is a multiple of 2 * pairs. */
void rope_turn(const rope *r, const float *cosine, const float *sine, float *x, int n);

#endif
