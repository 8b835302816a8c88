/* challenge.h - the cells of a challenge: shapes, lengths, page order and data that all follow from
 * one seed text, which nobody knew when the kernels were frozen. docs/court.md has the rules.
 *
 * The derivation, for a text SEED and T tokens. `x % y` is the remainder, and each arrow draws from
 * the generator of base/rng.h in the order written here:
 *
 *   number = the first 8 bytes, big-endian, of SHA-256("snapmla challenge 1\n" SEED "\n") % 10^15
 *   r      = rng_make(number, rng_stream_of("challenge"))
 *   distribution of the numbers  <- rng_below(r, 4), in the order of numbers_kind
 *   for each cell 0 .. CHALLENGE_CELLS - 1:
 *     heads  = 2^a               a <- rng_below(r, 8)
 *     s_q    = 1 + a             a <- rng_below(r, 4)
 *     batch  = 2^a + b           a <- rng_below(r, 6), then b <- rng_below(r, 2^a)
 *     mean   = ceil(T / batch / 2^a)                     a <- rng_below(r, 4)
 *     kind   <- rng_below(r, 3):
 *       0  "uniform:64-H"          H = max(64, 2 * mean)
 *       1  "lognormal:mean,S"      S = (1 + a) / 4       a <- rng_below(r, 6)
 *       2  "bimodal:A,B,S"         A = max(64, ceil(mean / 8)), B = max(64, 2 * mean),
 *                                  S = (1 + a) / 8       a <- rng_below(r, 7)
 *       (H, B and mean are at most 2^20.)
 *     lengths: lengths_draw() of that distribution with the seed number + cell. Each length n then
 *       becomes max(64, n), or, if their sum is above T, max(64, floor(n * T / sum)).
 *     seed of the cell's data and page order: number
 *
 * T is the option --challenge-tokens: the size of a cell must fit the device, but nothing else may
 * be chosen. A sequence has at least 64 tokens. With very few of them, each token has a large
 * weight. FP8 rounds a weight by up to 6 %, and the check of the output could not tell that from a
 * fault. */
#ifndef SNAPMLA_HARNESS_BENCH_CHALLENGE_H
#define SNAPMLA_HARNESS_BENCH_CHALLENGE_H

#include "base/hash.h"
#include "harness/bench/grid.h"
#include "harness/bench/lengths.h"
#include "harness/bench/numbers.h"

enum {
    CHALLENGE_CELLS = 8,
    CHALLENGE_BATCH = 63, /* the largest batch */
    CHALLENGE_SEED = 128, /* longest text */
};

typedef struct {
    bench_shape shape; /* `lengths` points into this struct */
    int32_t lengths[CHALLENGE_BATCH];
    char distribution[LENGTHS_TEXT]; /* distribution of the lengths, written as in lengths.h */
} challenge_cell;

typedef struct {
    char text[CHALLENGE_SEED + 1];
    int64_t tokens;
    uint64_t seed; /* `number` of the derivation above */
    numbers_kind distribution;
    challenge_cell cell[CHALLENGE_CELLS];
} challenge;

/* @text: 1 .. CHALLENGE_SEED printable ASCII characters without spaces; @tokens: 2^12 .. 2^24.
 * SNAP_E_USAGE. SNAP_E_NOMEM. Do not copy *out: its shapes point into it. */
snap_status challenge_derive(challenge *out, const char *text, int64_t tokens, int d_c, int d_r,
                             snap_err *err) SNAP_CHECK_RESULT;

/* The SHA-256 of the random pools of tokens and queries, from which all data of the challenge are
 * made. Takes some tenths of a second. SNAP_E_NOMEM. */
snap_status challenge_data_hash(const challenge *c, int d_c, int d_r, char out[HASH_HEX],
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
