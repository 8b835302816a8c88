#include "kernels/format/coded.h"

#include <string.h>

#include "kernels/format/coded_row.h"

/* ---- bytes of the content of a token --------------------------------------------------------- */

static double kivi_bytes(int d_c, int bits) {
    return d_c * (bits / 8.0 + 4.0 / KIVI_TOKENS);
}

static double kvquant_bytes(int d_c, int bits) {
    return d_c * bits / 8.0 + 4.0 + 4.0 * kvquant_outliers(d_c);
}

static double residual_bytes(int d_c, int count) {
    return d_c + 4.0 + 3.0 * (count < d_c ? count : d_c);
}

static double rotatekv_bytes(int d_c, int bits) {
    int n = coded_padded(d_c), group = n < ROTATEKV_GROUP ? n : ROTATEKV_GROUP;
    return n * bits / 8.0 + (double)n / group * (2.0 + bits / 8.0);
}

static double turboquant_bytes(int d_c, int bits) {
    return coded_padded(d_c) * bits / 8.0 + 4.0;
}

/* ---- the formats ----------------------------------------------------------------------------- */

static const coded_format formats[] = {
    {"kivi2", CODED_KIVI, kivi_bytes, 2, KIVI_TOKENS, 0},
    {"kivi4", CODED_KIVI, kivi_bytes, 4, KIVI_TOKENS, 0},
    {"kvquant2", CODED_KVQUANT, kvquant_bytes, 2, 1, 0},
    {"kvquant3", CODED_KVQUANT, kvquant_bytes, 3, 1, 0},
    {"kvquant4", CODED_KVQUANT, kvquant_bytes, 4, 1, 0},
    {"residual", CODED_RESIDUAL, residual_bytes, 32, 1, 0},
    {"rotatekv2", CODED_ROTATEKV, rotatekv_bytes, 2, 1, ROTATEKV_EXACT},
    {"rotatekv3", CODED_ROTATEKV, rotatekv_bytes, 3, 1, ROTATEKV_EXACT},
    {"rotatekv4", CODED_ROTATEKV, rotatekv_bytes, 4, 1, ROTATEKV_EXACT},
    {"turboquant2", CODED_TURBOQUANT, turboquant_bytes, 2, 1, 0},
    {"turboquant3", CODED_TURBOQUANT, turboquant_bytes, 3, 1, 0},
    {"turboquant4", CODED_TURBOQUANT, turboquant_bytes, 4, 1, 0},
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
    const row_team alone = {0, 1};
    coded_memory memory;
    for (int64_t first = f->exact; first + f->tokens <= tokens; first += f->tokens) {
        float *x = rows + first * width;
        if (f->kind != CODED_KIVI)
            coded_row(alone, f->kind, f->setting, x, d_c, &memory);
        for (int d = 0; d < d_c && f->kind == CODED_KIVI; d++)
            kivi_column(x + d, width, f->setting);
    }
}
