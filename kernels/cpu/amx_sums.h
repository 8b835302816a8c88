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

/* One row. The last block writes the part's result. */
INLINE void add_row(amx_work *w) {
    const sums_work *x = &w->sums;
    const weights *of = x->of;
    size_t d_c = (size_t)w->part->d_c, row = (size_t)x->row, column = (size_t)x->column;
    float *o = w->o + (size_t)of->row * d_c + column * kRowBlock + row * kColumns;
    vf by = vf_set(of->rescale[row]);
    UNROLL
    for (int i = 0; i < kColumns; i += LANES) {
        vf y = vf_load(x->product + row * kColumns + i);
        vf_store(o + i, of->first ? y : VF_FMA(vf_load(o + i), by, y));
    }
    if (of->last)
        store_columns(w->out + ((size_t)of->row + row) * d_c + column, o);
    w->sums.row++;
}

INLINE void add_rows(amx_work *w, int n) {
    for (; n > 0 && w->sums.row < w->sums.rows; n--)
        add_row(w);
}

static void finish_sums(amx_work *w) {
    add_rows(w, kRowBlock);
}

#endif
