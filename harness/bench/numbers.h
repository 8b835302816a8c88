/* numbers.h - the random tokens and queries of a benchmark, any of them at any time.
 *
 * Token i of stream s is a pure function of (seed, distribution, s, i), so that the judge rebuilds
 * what the device got from the same source: a row of kernels/draw.h, from a pool of drawn rows that
 * lies on the host and on the device. All values are bf16, as a model's activations are.
 *
 *   normal   content, RoPE and queries N(0, 1)
 *   mla      the same, and four RoPE columns of the tokens around a constant of up to 1e3: what the
 *            keys of trained MLA models look like (SnapMLA, arXiv 2602.10718, Fig. 3)
 *   sink     every query likes one token in a thousand, whose value is small: what is left for the
 *            others are small probabilities (attention sinks, arXiv 2309.17453)
 *   adversarial
 *            token norms spread over octaves, and two RoPE columns of a thousand times the token's
 *            norm, whose products with a query cancel: what a sum drops beside them is missing */
#ifndef SNAPMLA_HARNESS_BENCH_NUMBERS_H
#define SNAPMLA_HARNESS_BENCH_NUMBERS_H

#include <stdint.h>

#include "kernels/lab.h"

typedef enum {
    NUMBERS_NORMAL,
    NUMBERS_MLA,
    NUMBERS_SINK,
    NUMBERS_ADVERSARIAL,
    NUMBERS_KINDS
} numbers_kind;

const char *numbers_kind_name(numbers_kind k); /* "normal", ... */
/* SNAP_E_USAGE listing the names. */
snap_status numbers_kind_parse(const char *name, numbers_kind *out,
                               snap_err *err) SNAP_CHECK_RESULT;

typedef struct {
    int d_c, d_r;
    uint64_t seed;
    uint16_t *tokens, *queries; /* bf16 [DRAW_POOL][d_c + d_r], owned */
    mla_backend *be;            /* where the copies are; NULL = none; borrowed */
    uint16_t *device_tokens, *device_queries;
} numbers;

snap_status numbers_create(numbers *out, numbers_kind kind, int d_c, int d_r, uint64_t seed,
                           snap_err *err) SNAP_CHECK_RESULT;
void numbers_release(numbers *n); /* the struct is reusable; before the backend is closed */

/* Copies the pools to the memory of a backend that can't read the host's. Before arms are made. */
snap_status numbers_upload(numbers *n, mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;

/* The pools where the backend reads them: the copies, or the host's where there are none. */
draw_source numbers_tokens(const numbers *n);
draw_source numbers_queries(const numbers *n);

/* Row @index of the tokens or queries, bf16 [d_c + d_r], RoPE last. */
void numbers_token(const numbers *n, uint64_t index, uint16_t *row);
void numbers_query(const numbers *n, uint64_t index, uint16_t *row);

#endif
