#include "kernels/format/coded.h"

#include <math.h>
#include <string.h>

#include "kernels/mla.h"

static const coded_format formats[] = {
    {"kivi2", kivi_round, kivi_bytes, 2, KIVI_TOKENS},
    {"kivi4", kivi_round, kivi_bytes, 4, KIVI_TOKENS},
    {"kvquant2", kvquant_round, kvquant_bytes, 2, 1},
    {"kvquant3", kvquant_round, kvquant_bytes, 3, 1},
    {"kvquant4", kvquant_round, kvquant_bytes, 4, 1},
    {"residual", residual_round, residual_bytes, 32, 1},
    {"turboquant2", turboquant_round, turboquant_bytes, 2, 1},
    {"turboquant3", turboquant_round, turboquant_bytes, 3, 1},
    {"turboquant4", turboquant_round, turboquant_bytes, 4, 1},
    {0},
};

const coded_format *coded_formats(void) {
    return formats;
}

const coded_format *coded_format_find(const char *name) {
    for (const coded_format *f = formats; f->name; f++)
        if (strcmp(name, f->name) == 0)
            return f;
    return NULL;
}

double coded_token_bytes(const coded_format *f, int d_c, int d_r) {
    return f->bytes(d_c, f->setting) + 2.0 * d_r;
}

void coded_round_rows(const coded_format *f, float *rows, int64_t tokens, int width, int d_c) {
    float x[CODED_MOST_TOKENS * MLA_MAX_CONTENT];
    size_t bytes = (size_t)d_c * sizeof *x;
    for (int64_t first = 0; first + f->tokens <= tokens; first += f->tokens) {
        for (int i = 0; i < f->tokens; i++)
            memcpy(x + i * d_c, rows + (first + i) * width, bytes);
        f->round(x, d_c, f->setting);
        for (int i = 0; i < f->tokens; i++)
            memcpy(rows + (first + i) * width, x + i * d_c, bytes);
    }
}

void coded_mark_largest(bool *marked, const float *x, int n, int count) {
    memset(marked, 0, (size_t)n * sizeof *marked);
    for (; count > 0; count--) {
        int best = -1;
        float most = -1.0f;
        for (int d = 0; d < n; d++) {
            float magnitude = isnan(x[d]) ? 0.0f : fabsf(x[d]);
            if (!marked[d] && magnitude > most) {
                most = magnitude;
                best = d;
            }
        }
        if (best < 0)
            return;
        marked[best] = true;
    }
}

double coded_nearest(double z, const double *levels, int n) {
    int i = 0;
    while (i + 1 < n && fabs(z) > (levels[i] + levels[i + 1]) / 2.0)
        i++;
    return z < 0.0 ? -levels[i] : levels[i];
}
