#include "generator/local/model/rope.h"

#include <math.h>

static double mscale_of(double factor, double mscale) {
    return factor > 1 ? 0.1 * mscale * log(factor) + 1 : 1;
}

/* The pair that rotates @turns times within the trained length, as a real number. */
static double pair_of(const model_shape *s, double turns) {
    double d = s->qk_rope_head_dim, length = s->rope.original_max_position_embeddings;
    return d * log(length / (turns * 2 * acos(-1))) / (2 * log(s->rope.theta));
}

static void yarn(rope *r, const model_shape *s) {
    const rope_shape *y = &s->rope;
    double low = fmax(floor(pair_of(s, y->beta_fast)), 0),
           high = fmin(ceil(pair_of(s, y->beta_slow)), s->qk_rope_head_dim - 1);
    if (low == high)
        high += 0.001;
    for (int i = 0; i < r->pairs; i++) {
        double stretched = fmin(fmax((i - low) / (high - low), 0), 1);
        double f = (double)r->frequency[i];
        r->frequency[i] = (float)(f / y->factor * stretched + f * (1 - stretched));
    }
    r->factor = (float)(mscale_of(y->factor, y->mscale) / mscale_of(y->factor, y->mscale_all_dim));
}

static void longrope(rope *r, const model_shape *s) {
    double trained = s->rope.original_max_position_embeddings, longest = s->max_position_embeddings;
    const double *factors = longest > trained ? s->rope.long_factor : s->rope.short_factor;
    for (int i = 0; i < r->pairs; i++)
        r->frequency[i] /= (float)factors[i];
    if (longest > trained)
        r->factor = (float)sqrt(1 + log(longest / trained) / log(trained));
}

rope rope_make(const model_shape *s) {
    rope r = {.pairs = s->rope_period / 2,
              .halves = s->arch == ARCH_MINICPM3 || s->arch == ARCH_GROUPED_QUERY,
              .factor = 1};
    for (int i = 0; i < r.pairs; i++)
        r.frequency[i] = (float)(1 / pow(s->rope.theta, (double)(2 * i) / s->rope_period));
    if (s->rope.kind == ROPE_YARN)
        yarn(&r, s);
    else if (s->rope.kind == ROPE_LONGROPE)
        longrope(&r, s);
    return r;
}

double rope_softmax_scale(const model_shape *s) {
    bool yarn = s->rope.kind == ROPE_YARN && s->rope.mscale_all_dim != 0;
    double m = yarn ? mscale_of(s->rope.factor, s->rope.mscale_all_dim) : 1;
    return m * m / sqrt(s->head_dim);
}

void rope_angles(const rope *r, int64_t position, float *cosine, float *sine) {
    for (int i = 0; i < r->pairs; i++) {
        float angle = (float)position * r->frequency[i];
        cosine[i] = (float)cos((double)angle) * r->factor;
        sine[i] = (float)sin((double)angle) * r->factor;
    }
}

void rope_turn(const rope *r, const float *cosine, const float *sine, float *x, int n) {
    int step = r->halves ? 1 : 2, apart = r->halves ? r->pairs : 1;
    for (int first = 0; first < n; first += 2 * r->pairs)
        for (int i = 0; i < r->pairs; i++) {
            float *a = x + first + i * step, *b = a + apart, a0 = *a;
            *a = a0 * cosine[i] - *b * sine[i];
            *b = *b * cosine[i] + a0 * sine[i];
        }
}
