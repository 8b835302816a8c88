/* cut_sums.h - FP8 scores, summed the way that tensor cores with few accumulator bits sum them.
 *
 * The content products follow mla_cut_sums step by step; everything else is in FP64. A kernel
 * that sums its scores in such tensor cores makes the same errors. So judge.h compares a
 * log-sum-exp that is beyond its bound with this one, too. */
#ifndef SNAPMLA_KERNELS_CUT_SUMS_H
#define SNAPMLA_KERNELS_CUT_SUMS_H

#include "kernels/reference.h"

/* The log-sum-exp of row i's first @visible scores; -inf if @visible is 0 or less. The contents of
 * q and k are e4m3 numbers with one scale per row. The RoPE products are added in FP64. @how.bits >
 * 0. */
double cut_sums_lse(mla_cut_sums how, const ref_rows *q, int64_t i, const ref_rows *k,
                    int64_t visible, double softmax_scale);

#endif
