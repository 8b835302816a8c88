/* rounding.h - rounds the rows of a BF16 cache through a cache format of docs/formats.md, so that
 * the BF16 cache holds the values that the format would hold. These functions run on the host. On a
 * CUDA device ../cuda/round.cu rounds the same rows to the same bits. The code need not be fast,
 * because these formats only serve for comparison.
 *
 * A coded format (kernels/format/coded.h) rounds the content of each token, or of a group of tokens
 * when its last one is appended. Until then the tokens of the group are stored unrounded. With a
 * descriptor (kernels/format/format.h) the result is the bf16 of what cache_format_unpack() returns
 * for the packed rows. Its scales are chosen as follows:
 *   per token   from the token
 *   per page    from all tokens that the page then has, old and new. Only the new ones are rounded:
 *               the old ones keep the values that an earlier, usually smaller scale gave them
 *   per tensor  from the rows that a sequence appends at once: a chunk of a prompt, or one token.
 *               A mean or a scale for each column would reproduce a single token nearly exactly,
 *               so formats with these per tensor are refused
 * If the groups of a format do not divide the content, the content is padded with zeros. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_ROUNDING_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_ROUNDING_H

#include "base/hash.h"
#include "kernels/format/coded.h"
#include "kernels/format/format.h"
#include "kernels/format/round_row.h"

/* A plain value: copy it, no release. */
typedef struct {
    char name[64];
    const coded_format *coded; /* NULL: a descriptor */
    cache_format format;       /* the descriptor; its content may be padded and so wider than d_c */
    row_format rows;           /* the format as the functions of round_row.h need it */
    char sha256[HASH_HEX];     /* hash of the format's file; "" for a coded format */
} cache_rounding;

/**
 * rounding_load - read the format that rows are rounded through
 *
 * @name: name of a coded format, or as for cache_format_load()
 *
 * Errors: those of cache_format_load(); SNAP_E_UNSUPPORTED for a format with means or scales of
 * columns over all tokens, or with scales per page whose pages do not divide those of the cache.
 */
snap_status rounding_load(cache_rounding *out, const char *name, int d_c, int d_r,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Bytes that the format takes for a token in one layer, padding included. */
double rounding_token_bytes(const cache_rounding *r);

/* Rounds in place the bf16 rows [n][d_c + d_r] that are appended together to one sequence, the
 * first one at position @at. @page: the stored rows [MLA_PAGE][d_c + d_r] of the page of that
 * position. Its rows before @at are read. They are changed only by ROW_KIVI, if their group becomes
 * complete. */
void rounding_apply(const row_format *f, uint16_t *rows, int64_t n, uint16_t *page, int64_t at);

#endif
