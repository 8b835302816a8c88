#include "generator/local/model/ablation_formats.h"

#include <math.h>

#include "kernels/formats.h"

enum { kScaleWidth = 128 };

/* A block of numbers that are scanned or rounded together: @rows rows of @width columns. */
typedef struct {
    uint16_t *row; /* the first row; rows are @stride numbers apart */
    int64_t rows, stride;
    int width;
} block;

static float largest_of(const block *b, float so_far) {
    for (int64_t i = 0; i < b->rows; i++)
        for (int d = 0; d < b->width; d++)
            so_far = fmaxf(so_far, fabsf(bf16_to_f32(b->row[i * b->stride + d])));
    return so_far;
}

static void through_e4m3(const block *b, float scale) {
    for (int64_t i = 0; i < b->rows; i++)
        for (int d = 0; d < b->width; d++) {
            uint16_t *x = &b->row[i * b->stride + d];
            *x = bf16_from_f32(e4m3_to_f32(e4m3_from_f32(bf16_to_f32(*x) / scale)) * scale);
        }
}

static void own_scale(const block *b) {
    through_e4m3(b, largest_of(b, QUANT_MIN_MAX) / E4M3_MAX);
}

static void power_of_two(const block *b) {
    float scale = largest_of(b, QUANT_MIN_MAX) / E4M3_MAX;
    through_e4m3(b, exp2f(ceilf(log2f(scale))));
}

/* Rounds a row as the fp8 cache does (with RoPE in units of the content's scale), and back to
 * bf16. */
static void through_fp8(uint16_t *row, int d_c, int d_r) {
    uint8_t c8[MLA_MAX_CONTENT];
    uint16_t rope[MLA_MAX_ROPE];
    float scale = quant_row(row, d_c, d_r, MLA_SCALE_MAX, c8, rope);
    dequant_row(c8, rope, scale, d_c, d_r, row);
}

static void quantise_row(kv_format f, int d_c, int d_r, uint16_t *row) {
    block content = {row, 1, 0, d_c}, turned = {row + d_c, 1, 0, d_r},
          both = {row, 1, 0, d_c + d_r};
    if (f == CACHE_A) {
        own_scale(&content);
        own_scale(&turned);
    } else if (f == CACHE_B) {
        through_e4m3(&both, 1);
    } else if (f == CACHE_F) {
        power_of_two(&content);
    } else if (f == CACHE_NO_PV) {
        through_fp8(row, d_c, d_r);
    } else if (f == CACHE_E) {
        for (int d = 0; d < d_c; d += kScaleWidth)
            own_scale(&(block){row + d, 1, 0, d_c - d < kScaleWidth ? d_c - d : kScaleWidth});
    }
}

/* Rounds @n rows that join a page after the rows of @before. Those are rounded already, but
 * rounding with the scale largest / E4M3_MAX keeps the largest number, so the scale so far can be
 * computed from them. */
static void quantise_page(int d_c, int width, uint16_t *rows, int64_t n, const block *before) {
    for (int d = 0; d < d_c; d += kScaleWidth) {
        block now = {rows + d, n, width, d_c - d < kScaleWidth ? d_c - d : kScaleWidth},
              then = *before;
        then.row += d;
        then.width = now.width;
        through_e4m3(&now, largest_of(&now, largest_of(&then, QUANT_MIN_MAX)) / E4M3_MAX);
    }
}

static void quantise_pages(int d_c, int d_r, uint16_t *rows, int64_t n, uint16_t *page, int at) {
    int width = d_c + d_r;
    for (int64_t done = 0; done < n;) {
        int64_t left = n - done, count = MLA_PAGE - at < left ? MLA_PAGE - at : left;
        block before = {page, at, width, d_c};
        quantise_page(d_c, width, rows + done * width, count, &before);
        done += count;
        at = 0;
    }
}

void ablation_quantise(kv_format f, int d_c, int d_r, uint16_t *rows, int64_t n, uint16_t *page,
                       int at) {
    block all = {rows, n, d_c + d_r, d_c + d_r};
    if (f == CACHE_C)
        own_scale(&all);
    else if (f == CACHE_D)
        quantise_pages(d_c, d_r, rows, n, page, at);
    else
        for (int64_t i = 0; i < n; i++)
            quantise_row(f, d_c, d_r, rows + i * (d_c + d_r));
}
