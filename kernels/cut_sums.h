/* cut_sums.h - FP8 scores as tensor cores sum them that keep few bits (mla_cut_sums), by definition and in FP64
 * otherwise: what the log-sum-exp of such a backend is judged against, whose scores no kernel can sum better. */
#ifndef SNAPMLA_KERNELS_CUT_SUMS_H
#define SNAPMLA_KERNELS_CUT_SUMS_H

#include "kernels/reference.h"

/* Row i of @q with row j of @k over their content, times their scales. Both hold e4m3 numbers with a scale a
 * row. @how.bits > 0. */
double cut_sum_of(mla_cut_sums how, const ref_rows *q, int64_t i, const ref_rows *k, int64_t j);

/* The log-sum-exp of row i's first @visible scores, RoPE's products added exactly; -inf of none. */
double cut_sums_lse(mla_cut_sums how, const ref_rows *q, int64_t i, const ref_rows *k,
                    int64_t visible, double softmax_scale);

#endif
