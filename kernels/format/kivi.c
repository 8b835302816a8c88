/* kivi.c - scales for each column of a group of tokens, after KIVI (arXiv 2402.02750).
 *
 * KIVI quantises keys with a scale and an offset for each channel of 32 tokens, because the
 * outliers of keys lie in few channels, and keeps the newest tokens in BF16 until a group is
 * complete. The content of a latent is read as key and as value. It is treated as a key here.
 * (KIVI's values have scales for each token and group of columns; the descriptor int4-zero is that
 * format.) Scale and offset, the least number, are fp16. */
#include <math.h>

#include "kernels/format/coded.h"
#include "kernels/format/element.h"

static double as_fp16(double x) {
    return (double)element_decode(ELEMENT_FP16, element_encode(ELEMENT_FP16, x));
}

void kivi_round(float *x, int d_c, int bits) {
    double most = (double)((1 << bits) - 1);
    for (int d = 0; d < d_c; d++) {
        double low = INFINITY, high = -INFINITY;
        for (int i = 0; i < KIVI_TOKENS; i++) { /* comparisons with a NaN are false */
            double v = (double)x[i * d_c + d];
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        double offset = as_fp16(low), scale = as_fp16((high - low) / most);
        for (int i = 0; i < KIVI_TOKENS; i++) {
            float *v = &x[i * d_c + d];
            double code = scale == 0.0 ? 0.0 : nearbyint(((double)*v - offset) / scale);
            if (!isnan(*v))
                *v = (float)(offset + fmin(fmax(code, 0.0), most) * scale);
        }
    }
}

double kivi_bytes(int d_c, int bits) {
    return d_c * (bits / 8.0 + 4.0 / KIVI_TOKENS);
}
