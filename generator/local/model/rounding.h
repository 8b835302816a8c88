/* rounding.h - which cache format of docs/formats.md the rows of a BF16 cache are rounded through,
 * and the rounding of rows on the host. So a BF16 cache holds what the format would hold. On a CUDA
 * device ../cuda/round.cu rounds the same rows to the same bits. The code need not be fast, because
 * these formats only serve for comparison.
 *
 * A coded format (kernels/format/coded.h) rounds the content of a token, or of a group of tokens
 * when its last one is appended. Until then the tokens of the group are stored unrounded. With a
 * descriptor (kernels/format/format.h) the result is the bf16 of what cache_format_unpack() returns
 * for the packed rows. Values that tokens share are chosen as follows:
 *   per token   from the token
 *   per page    from the tokens that the page has so far, those that are appended included. Tokens
 *               that were stored before keep their finer values
 *   per tensor  from the rows that a sequence appends at once: a chunk of a prompt, or one token.
 *               For one token, a mean or a scale of its own for each column would be exact, so
 *               formats that have them per tensor are refused
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
    cache_format format;       /* its content may be wider than the rows': see above */
    row_format rows;           /* the same in the form that rows are rounded with */
    char sha256[HASH_HEX];     /* of the format's file; "" for a coded format */
} cache_rounding;

/**
 * rounding_load - read the format that rows are rounded through
 *
 * @name: of a coded format, or as for cache_format_load()
 *
 * Errors: those of cache_format_load(); SNAP_E_UNSUPPORTED for a format whose shared values cannot
 * be chosen while a sequence grows, or with pages that do not divide those of the cache.
 */
snap_status rounding_load(cache_rounding *out, const char *name, int d_c, int d_r,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Bytes that the format takes for a token in one layer; padding included. */
double rounding_token_bytes(const cache_rounding *r);

/* Rounds bf16 rows [n][d_c + d_r] in place; they are appended together to one sequence. @page: the
 * stored rows [MLA_PAGE][d_c + d_r] of the page that the first row joins at index @at. Of these the
 * rows before @at are read, and rounded when they belong to a group that becomes complete. */
void rounding_apply(const row_format *f, uint16_t *rows, int64_t n, uint16_t *page, int at);

#endif
