/* rope.h - rotary positions: the frequencies of a model, and the rotation of a vector.
 *
 * Pair i of the d numbers is turned by position * f_i and multiplied by a common factor:
 *   default    f_i = theta^(-2i/d)
 *   YaRN       arXiv 2309.00071: f_i between theta^(-2i/d) and that over `factor`, by how often the pair
 *              turns within the trained length; common factor m(mscale) / m(mscale_all_dim), and
 *              the softmax scale gains m(mscale_all_dim)^2, m(s) = 0.1 s ln(factor) + 1
 *   LongRoPE   arXiv 2402.13753: f_i divided by a list of factors, the short one up to the trained length
 * Pairs are neighbours (2i, 2i + 1) or lie half a vector apart (i, i + d/2). */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_ROPE_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "generator/local/checkpoint/shape.h"
#include "kernels/mla.h"

typedef struct {
    int pairs;
    bool halves;                       /* pairs lie half a vector apart */
    float frequency[MLA_MAX_ROPE / 2]; /* radians a token */
    float factor;                      /* of cosine and sine */
} rope;

rope rope_make(const model_shape *shape);

/* What the softmax scale 1 / sqrt(d) is multiplied by. */
double rope_softmax_factor(const model_shape *shape);

/* cosine and sine [pairs] of a position, the common factor included */
void rope_angles(const rope *r, int64_t position, float *cosine, float *sine);

/* Turns x [2 * pairs] in place. */
void rope_turn(const rope *r, const float *cosine, const float *sine, float *x);

#endif
