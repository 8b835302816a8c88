/* amx_sums.h - adds products P V to O.
 *
 * The tile unit starts each product of 32 rows, 32 columns and all tokens of a block from zero. So
 * it need not wait until O is loaded. The vector units add the result to O later, between the next
 * products, and rescale O at the same time. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_SUMS_H
#define SNAPMLA_KERNELS_CPU_AMX_SUMS_H

#include "kernels/cpu/amx_work.h"

/* Begins to add @product to the columns from @column on. */
static void start_sums(amx_work *w, const weights *of, const float *product, int column) {
    int left = w->part->rows - of->row;
    w->sums = (sums_work){of, product, column, 0, left < kRowBlock ? left : kRowBlock};
}

/* One row. @to: NULL, or where the part's result is written. */
INLINE void add_row(float *o, const float *product, float rescale, bool first, float *to) {
    vf by = vf_set(rescale);
    UNROLL
    for (int i = 0; i < kColumns; i += LANES) {
        vf y = vf_load(product + i);
        vf_store(o + i, first ? y : VF_FMA(vf_load(o + i), by, y));
    }
    if (to)
        store_columns(to, o);
}

/* Up to @n rows. The last block writes the part's result. */
static void add_rows(amx_work *w, int n) {
    sums_work x = w->sums;
    const weights *of = x.of;
    int end = x.row + n < x.rows ? x.row + n : x.rows;
    if (x.row >= end)
        return;
    size_t d_c = (size_t)w->part->d_c, column = (size_t)x.column;
    float *o = w->o + (size_t)of->row * d_c + column * kRowBlock;
    float *out = of->last ? w->out + (size_t)of->row * d_c + column : NULL;
    bool first = of->first;
    for (int i = x.row; i < end; i++)
        add_row(o + (size_t)i * kColumns, x.product + (size_t)i * kColumns, of->rescale[i], first,
                out ? out + (size_t)i * d_c : NULL);
    w->sums.row = end;
}

static void finish_sums(amx_work *w) {
    add_rows(w, kRowBlock);
}

#endif
