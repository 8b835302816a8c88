/* numbers.h - the random tokens and queries of a benchmark, in any order.
 *
 * Row i of the tokens, or of the queries, is a pure function of seed, distribution, widths and i.
 * So the check of the output can rebuild the input that the device received. Each row is made as
 * kernels/draw.h describes: its content and its RoPE part come from two rows of a random pool,
 * which are chosen independently. The pool lies in host memory and, if the backend cannot read it,
 * also in device memory. All values are bf16, as a model's activations are.
 *
 *   normal   content, RoPE part and queries N(0, 1)
 *   mla      the same, but four RoPE columns of the tokens vary around constants of up to 1e3, as
 *            the keys of trained MLA models do (SnapMLA, arXiv 2602.10718, Fig. 3)
 *   sink     about one token in a thousand has a RoPE part to which most queries give much weight,
 *            so the other tokens get small probabilities (attention sinks, arXiv 2309.17453). About
 *            one content in a thousand is small.
 *   adversarial
 *            the norms of contents and of RoPE parts spread over several octaves, and two RoPE
 *            columns are about a thousand times the others. Their products with a query cancel, so
 *            an error in summing them shows. */
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
/* Returns SNAP_E_USAGE, listing the names, for an unknown name. */
snap_status numbers_kind_parse(const char *name, numbers_kind *out,
                               snap_err *err) SNAP_CHECK_RESULT;

typedef struct {
    int d_c, d_r;
    uint64_t seed;
    uint16_t *tokens, *queries; /* bf16 [DRAW_POOL][d_c + d_r], owned unless `is_shared` */
    bool is_shared;             /* `tokens` and `queries` belong to another struct */
    mla_backend *be;            /* owner of the device copies, borrowed; NULL = no copies */
    uint16_t *device_tokens, *device_queries;
} numbers;

snap_status numbers_create(numbers *out, numbers_kind kind, int d_c, int d_r, uint64_t seed,
                           snap_err *err) SNAP_CHECK_RESULT;
void numbers_release(numbers *n); /* the struct can be used again; call it before the backend is
                                     closed */

/* Makes the same numbers for a second backend. *out uses the pools on the host, which @from owns
 * and must keep as long as *out exists. It has no device copies yet. Release *out with
 * numbers_release(). */
void numbers_share(numbers *out, const numbers *from);

/* Copies the pools to the device if the backend cannot read host memory. Call it before arms are
 * created. */
snap_status numbers_upload(numbers *n, mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;

/* The pools in memory that the backend can read: the device copies if there are any, else the
 * host's pools. */
draw_source numbers_tokens(const numbers *n);
draw_source numbers_queries(const numbers *n);

/* Writes row @index of the tokens or queries: bf16 [d_c + d_r], RoPE last. */
void numbers_token(const numbers *n, uint64_t index, uint16_t *row);
void numbers_query(const numbers *n, uint64_t index, uint16_t *row);

#endif
