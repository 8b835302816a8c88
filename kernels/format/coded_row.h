/* coded_row.h - the formats of coded.h as inline functions, for the host and for CUDA kernels. On a
 * device the threads of a block round a row together. They add numbers in the same order as the one
 * thread on the host, so the results have the same bits. */
#ifndef SNAPMLA_KERNELS_FORMAT_CODED_ROW_H
#define SNAPMLA_KERNELS_FORMAT_CODED_ROW_H

#include "kernels/format/coded.h"
#include "kernels/format/element_code.h"
#include "kernels/formats.h"

/* The threads that round a row together: all threads of a block, or one thread of the host. */
typedef struct {
    int rank, size;
} row_team;

/* Returns when all threads of the team have called it. */
FORMAT_INLINE void team_wait(void) {
#ifdef __CUDA_ARCH__
    __syncthreads();
#endif
}

/* Memory that the threads of a team share. */
typedef struct {
    double y[MLA_MAX_CONTENT]; /* the rotated row */
    float magnitude[MLA_MAX_CONTENT];
    bool marked[MLA_MAX_CONTENT]; /* see team_mark_largest() */
    double value[2];              /* values for all threads that the first thread computed */
} coded_memory;

/* Does the work of transform_hadamard() with all threads of @t. When it returns, every thread can
 * read all of x[0 .. n - 1].
 * @block: how many numbers are transformed together, a power of two that divides @n; 0: none is
 * transformed. */
FORMAT_INLINE void team_hadamard(row_team t, double *x, int n, int block) {
    for (int half = 1; half < block; half *= 2) {
        team_wait();
        for (int i = t.rank; i < n / 2; i += t.size) {
            double *pair = x + (i & (half - 1)) + 2 * (i & ~(half - 1));
            double a = pair[0], b = pair[half];
            pair[0] = a + b;
            pair[half] = a - b;
        }
    }
    team_wait();
    double norm = block ? 1.0 / sqrt((double)block) : 1.0;
    for (int i = t.rank; i < n && block; i += t.size)
        x[i] *= norm;
    team_wait();
}

/* Sets m->marked[d] if x[d] is one of the @count numbers of x[0 .. n - 1] with the largest
 * magnitudes. Of equal magnitudes the one with the lower index is preferred. A NaN counts as 0. */
FORMAT_INLINE void team_mark_largest(row_team t, coded_memory *m, const float *x, int n,
                                     int count) {
    for (int d = t.rank; d < n; d += t.size)
        m->magnitude[d] = isnan(x[d]) ? 0.0f : fabsf(x[d]);
    team_wait();
    for (int d = t.rank; d < n; d += t.size) {
        float own = m->magnitude[d];
        int preferred = 0; /* numbers that are preferred to this one */
        for (int i = 0; i < d && preferred < count; i++)
            preferred += m->magnitude[i] >= own;
        for (int i = d + 1; i < n && preferred < count; i++)
            preferred += m->magnitude[i] > own;
        m->marked[d] = preferred < count;
    }
    team_wait();
}

/* The level nearest to @z. Levels are symmetric around 0: @levels has the @n positive ones in
 * ascending order. Halfway between two levels the result is the one nearer to 0, and for 0 it is
 * the smallest positive one. */
FORMAT_INLINE double coded_nearest(double z, const double *levels, int n) {
    int i = 0;
    while (i + 1 < n && fabs(z) > (levels[i] + levels[i + 1]) / 2.0)
        i++;
    return z < 0.0 ? -levels[i] : levels[i];
}

/* ---- KIVI ------------------------------------------------------------------------------------ */

/* Scales for each column of a group of tokens, after KIVI (arXiv 2402.02750).
 *
 * KIVI forms groups of 32 tokens, and quantises keys with a scale and an offset for each channel of
 * a group, because the outliers of keys lie in few channels. It keeps the newest tokens in BF16
 * until their group is complete. MLA reads the content of a latent as key and as value. Here it is
 * treated as a key. (KIVI's values have scales for each token and group of columns. The descriptor
 * int4-zero is that format.) The offset is the least number. Scale and offset are fp16.
 *
 * Rounds one column: x[0], x[stride], ... x[(KIVI_TOKENS - 1) * stride]. */
FORMAT_INLINE void kivi_column(float *x, int stride, int bits) {
    double most = (double)((1 << bits) - 1), low = INFINITY, high = -INFINITY;
    for (int i = 0; i < KIVI_TOKENS; i++) { /* comparisons with a NaN are false */
        double v = (double)x[i * stride];
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    double offset = (double)element_nearest(ELEMENT_FP16, low),
           scale = (double)element_nearest(ELEMENT_FP16, (high - low) / most);
    for (int i = 0; i < KIVI_TOKENS; i++) {
        float *v = &x[i * stride];
        double code = scale == 0.0 ? 0.0 : nearbyint(((double)*v - offset) / scale);
        if (!isnan(*v))
            *v = (float)(offset + fmin(fmax(code, 0.0), most) * scale);
    }
}

/* ---- KVQuant --------------------------------------------------------------------------------- */

FORMAT_INLINE int kvquant_outliers(int d_c) {
    return (d_c + 99) / 100;
}

FORMAT_INLINE double kvquant_level(double z, int bits) {
    static const double levels[3][8] = {
        {0.167985, 0.554432},
        {0.088527, 0.272013, 0.478627, 0.744945},
        {0.045118, 0.136178, 0.229812, 0.328142, 0.43406, 0.552038, 0.690053, 0.865545},
    };
    return coded_nearest(z, levels[bits - 2], 1 << (bits - 1));
}

/* Levels at uneven distances, and outliers in bf16, after KVQuant (arXiv 2401.18079).
 *
 * The 1 % of a token's numbers with the largest magnitudes are stored in bf16 with their column in
 * 16 bits. The range of the others is mapped to -1 .. 1 (middle and half width in bf16), and each
 * is stored as the code of the nearest level. KVQuant finds the levels by k-means over calibration
 * data. The levels here are those that k-means finds for a normal distribution without its outer
 * 1 %, so the format needs no calibration. */
FORMAT_INLINE void kvquant_row(row_team t, float *x, int d_c, int bits, coded_memory *m) {
    team_mark_largest(t, m, x, d_c, kvquant_outliers(d_c));
    if (t.rank == 0) {
        double low = INFINITY, high = -INFINITY;
        for (int d = 0; d < d_c; d++)
            if (!m->marked[d]) { /* comparisons with a NaN are false */
                low = (double)x[d] < low ? (double)x[d] : low;
                high = (double)x[d] > high ? (double)x[d] : high;
            }
        m->value[0] = (double)element_nearest(ELEMENT_BF16, (low + high) / 2.0);
        m->value[1] = (double)element_nearest(ELEMENT_BF16, (high - low) / 2.0);
    }
    team_wait();
    double middle = m->value[0], half = m->value[1];
    for (int d = t.rank; d < d_c; d += t.size) {
        double z = half == 0.0 ? 0.0 : ((double)x[d] - middle) / half;
        if (m->marked[d])
            x[d] = element_nearest(ELEMENT_BF16, (double)x[d]);
        else if (!isnan(x[d]))
            x[d] = half == 0.0 ? (float)middle : (float)(middle + kvquant_level(z, bits) * half);
    }
}

/* ---- rotations ------------------------------------------------------------------------------- */

/* The number of columns to which formats that rotate the content pad it with zeros: the next power
 * of two. */
FORMAT_INLINE int coded_padded(int d_c) {
    int n = 1;
    while (n < d_c)
        n *= 2;
    return n;
}

/* ---- RotateKV -------------------------------------------------------------------------------- */

enum { ROTATEKV_GROUP = 128, ROTATEKV_ROTATED = 512 }; /* columns */

/* Rounds the @n rotated numbers that share a scale and a zero point. Code c stands for (c - zero
 * point) * scale. The codes cover the smallest range that contains 0 and all the numbers. With 2
 * bits, they cover 80 % of that range, and numbers beyond it saturate. */
FORMAT_INLINE void rotatekv_group(double *y, int n, int bits) {
    double most = (double)((1 << bits) - 1), kept = bits == 2 ? 0.8 : 1.0, low = 0.0, high = 0.0;
    for (int i = 0; i < n; i++) { /* comparisons with a NaN are false */
        low = y[i] < low ? y[i] : low;
        high = y[i] > high ? y[i] : high;
    }
    double scale = (double)element_nearest(ELEMENT_BF16, (high - low) * kept / most),
           zero = scale == 0.0 ? 0.0 : fmin(nearbyint(-low * kept / scale), most);
    for (int i = 0; i < n; i++) {
        double code = scale == 0.0 ? 0.0 : nearbyint(y[i] / scale) + zero;
        if (!isnan(y[i]))
            y[i] = (fmin(fmax(code, 0.0), most) - zero) * scale;
    }
}

/* A rotation over the columns of several heads, then integers with a scale and a zero point for
 * each 128 columns, after RotateKV (arXiv 2501.16383).
 *
 * RotateKV multiplies the keys of four heads of 128 columns by one Hadamard matrix before RoPE. It
 * then sorts the columns by their sums over calibration data, so that columns which share a scale
 * have similar means. Tokens on which much attention falls (sinks) stay exact: 20 tokens of a
 * prompt, which it finds by their activations. Here, blocks of 512 columns of the content are
 * rotated, the columns keep their order, because there are no calibration data, and the first
 * ROTATEKV_EXACT tokens of a sequence stay exact. Scales are bf16. */
FORMAT_INLINE void rotatekv_row(row_team t, float *x, int d_c, int bits, coded_memory *m) {
    int n = coded_padded(d_c), block = n < ROTATEKV_ROTATED ? n : ROTATEKV_ROTATED,
        group = n < ROTATEKV_GROUP ? n : ROTATEKV_GROUP;
    for (int d = t.rank; d < n; d += t.size)
        m->y[d] = d < d_c ? (double)x[d] : 0.0;
    team_hadamard(t, m->y, n, block);
    for (int i = t.rank; i < n / group; i += t.size)
        rotatekv_group(m->y + (size_t)(i * group), group, bits);
    team_hadamard(t, m->y, n, block);
    for (int d = t.rank; d < d_c && d < n; d += t.size)
        x[d] = (float)m->y[d];
}

/* ---- TurboQuant ------------------------------------------------------------------------------ */

/* The random sign of a column: one bit of SplitMix64 with the column as its seed. */
FORMAT_INLINE double turboquant_sign(int column) {
    uint64_t z = (uint64_t)column + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) & 1u ? -1.0 : 1.0;
}

/* The level nearest to @z of the Lloyd-Max quantiser of N(0, 1) with 2, 3 or 4 bits. The table has
 * the positive levels. */
FORMAT_INLINE double turboquant_level(double z, int bits) {
    static const double levels[3][8] = {
        {0.45278, 1.510418},
        {0.245094, 0.756005, 1.343909, 2.151946},
        {0.128395, 0.388048, 0.656759, 0.94234, 1.256231, 1.618046, 2.069017, 2.73259},
    };
    return coded_nearest(z, levels[bits - 2], 1 << (bits - 1));
}

/* A random rotation and one codebook for all coordinates, after TurboQuant (arXiv 2504.19874), the
 * variant for the mean squared error.
 *
 * A rotated vector of length 1 in n dimensions has coordinates that are nearly N(0, 1/n), whatever
 * the vector was. So all coordinates can use one codebook, the best one for the normal
 * distribution. A token is stored as its norm in fp32 and one code for each coordinate. The
 * rotation is a randomised Hadamard transform: random signs, then a Hadamard matrix. The content is
 * padded with zeros to a power of two, and the codes of the padding are stored, too. */
FORMAT_INLINE void turboquant_row(row_team t, float *x, int d_c, int bits, coded_memory *m) {
    int n = coded_padded(d_c);
    for (int d = t.rank; d < n; d += t.size)
        m->y[d] = d < d_c ? (double)x[d] * turboquant_sign(d) : 0.0;
    if (t.rank == 0) {
        double sum = 0.0;
        for (int d = 0; d < d_c; d++)
            sum += (double)x[d] * (double)x[d];
        m->value[0] = (double)(float)sqrt(sum) / sqrt((double)n);
    }
    team_hadamard(t, m->y, n, n);
    double unit = m->value[0]; /* standard deviation of a rotated coordinate */
    for (int d = t.rank; d < n; d += t.size)
        m->y[d] = unit == 0.0 ? 0.0 : turboquant_level(m->y[d] / unit, bits) * unit;
    team_hadamard(t, m->y, n, n);
    for (int d = t.rank; d < d_c && d < n; d += t.size)
        x[d] = (float)(m->y[d] * turboquant_sign(d));
}

/* ---- residual -------------------------------------------------------------------------------- */

/* The value of @x after rounding to an e4m3 code with the scale @scale. */
FORMAT_INLINE double residual_held(double x, float scale) {
    return (double)element_nearest(ELEMENT_E4M3FN, (double)((float)x / scale)) * (double)scale;
}

/* e4m3 with a second, small plane that holds the rounding errors of the @count largest numbers of a
 * token.
 *
 * The content is that of snapmla: e4m3 with one fp32 scale per token. For the numbers with the
 * largest magnitudes, which have the largest rounding errors, the error is stored too: in e4m3, in
 * units of the same scale, with the column in 16 bits. An error is at most 16 units, so it does not
 * saturate. Rounding it to e4m3 leaves at most 2^-4 of it, or 2^-10 units if that is more. */
FORMAT_INLINE void residual_row(row_team t, float *x, int d_c, int count, coded_memory *m) {
    team_mark_largest(t, m, x, d_c, count);
    if (t.rank == 0) {
        float largest = QUANT_MIN_MAX;
        for (int d = 0; d < d_c; d++)
            largest = fabsf(x[d]) > largest ? fabsf(x[d]) : largest;
        m->value[0] = (double)(largest / E4M3_MAX);
    }
    team_wait();
    float scale = (float)m->value[0];
    for (int d = t.rank; d < d_c; d += t.size) {
        double held = residual_held((double)x[d], scale);
        if (m->marked[d])
            held += residual_held((double)x[d] - held, scale);
        x[d] = (float)held;
    }
}

/* ---- rounding by any coded format ------------------------------------------------------------ */

/* Rounds the content x[0 .. d_c - 1] of a token through a format whose tokens are rounded one by
 * one: not CODED_KIVI. Every thread of the team must be able to read all of @x, and can when this
 * returns. */
FORMAT_INLINE void coded_row(row_team t, coded_kind kind, int setting, float *x, int d_c,
                             coded_memory *m) {
    if (kind == CODED_KVQUANT)
        kvquant_row(t, x, d_c, setting, m);
    else if (kind == CODED_ROTATEKV)
        rotatekv_row(t, x, d_c, setting, m);
    else if (kind == CODED_TURBOQUANT)
        turboquant_row(t, x, d_c, setting, m);
    else if (kind == CODED_RESIDUAL)
        residual_row(t, x, d_c, setting, m);
    team_wait();
}

#endif
