/* damage.h - the coarser formats of the ablation: rows go through them and back to bf16 before a
 * BF16 cache stores them. Slow is fine here: they exist to be compared with.
 *
 *   A      content and RoPE e4m3, a scale a token each
 *   B      both e4m3, scale 1
 *   C      both e4m3, one scale for what a sequence appends together: a prompt's chunk, or one token
 *   D      content e4m3, a scale for 128 columns of the 64 tokens of a page; RoPE bf16. While a page
 *          fills, a scale is that of its tokens so far: earlier ones keep the finer one
 *   E      content e4m3, a scale for 128 columns of a token; RoPE bf16
 *   F      as fp8, the scale rounded up to a power of two, so that RoPE stays exact
 *   noPV   as fp8, and nothing else: what its queries and its P cost is left out */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_DAMAGE_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_DAMAGE_H

#include "generator/local/model/cache.h"

/* bf16 rows [n][d_c + d_r] of one sequence, appended together, in place; nothing for formats that
 * are no damage. @page: the stored rows [..][d_c + d_r] of the page that the first of them joins,
 * at place
 * @at of it; read by D only. */
void damage_rows(cache_format f, int d_c, int d_r, uint16_t *rows, int64_t n, uint16_t *page,
                 int at);

#endif
