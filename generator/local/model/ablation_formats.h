/* ablation_formats.h - the coarser cache formats of the ablation. Rows are rounded through them and
 * back to bf16 before a BF16 cache stores them. The code need not be fast, because the formats only
 * serve for comparison.
 *
 *   A      content and RoPE e4m3, each with one scale per token
 *   B      both e4m3, scale 1
 *   C      both e4m3, one scale for all rows that a sequence appends at once (a prompt's chunk, or
 *          one token)
 *   D      content e4m3, one scale for 128 columns of the 64 tokens of a page; RoPE bf16. While a
 *          page fills, the scale is that of its tokens so far, and earlier tokens keep their finer
 *          scale
 *   E      content e4m3, one scale for 128 columns of a token; RoPE bf16
 *   F      like fp8, with the scale rounded up to a power of two, so that RoPE stays exact
 *   noPV   like fp8; only the cache is rounded, not the queries and not P */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_ABLATION_FORMATS_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_ABLATION_FORMATS_H

#include "generator/local/model/cache.h"

/* Rounds bf16 rows [n][d_c + d_r] in place; they are appended together to one sequence. Formats
 * that are not ablation formats change nothing. @page: the stored rows [..][d_c + d_r] of the page
 * that the first row joins at index @at; only D reads it. */
void ablation_quantise(kv_format f, int d_c, int d_r, uint16_t *rows, int64_t n, uint16_t *page,
                       int at);

#endif
