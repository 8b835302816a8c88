/* rows.h - the operations of a step on its rows between the matrix products. A row holds one token.
 * The operations are embedding, norms, choosing experts, gathering rows for experts, adding up the
 * outputs of experts, and choosing the next token. Sums are FP32. Functions at the end fill memory
 * with random numbers, transpose weights, and compute rotation angles. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_ROWS_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_ROWS_H

#include "generator/local/cuda/cuda_gemm.h"
#include "generator/local/cuda/host.h"

namespace device {

/* x [rows][hidden] = factor * embedding of token [rows]; key [rows] = 0. Also increments the step
 * counter *epoch, unless @epoch is NULL. */
cudaError_t embed(const stream_of &s, const bf16 *table, const int *token, int rows, int hidden,
                  float factor, float *x, unsigned long long *key, uint32_t *epoch);

/* Outputs of experts that have not been added to their rows yet. */
struct join_from {
    const float *down;   /* [pairs][hidden]; NULL = none */
    const int *place;    /* [rows][slots] the pair of each choice; PLACE_ZERO or PLACE_ELSEWHERE */
    const float *weight; /* [rows][slots] */
    const float *identity; /* [rows][hidden] the input, which a zero-computation expert returns; may
                            be NULL */
    int slots;
    float factor;
    int identity_row; /* identity begins with the input of this row */
};

enum { MAX_NORMED = 12000 }; /* longest row that can be normalised */

struct norm_to {
    const float *weight; /* [hidden] */
    float eps, factor;
    bf16 *packed;
    const int *row; /* packed row i is the norm of x's row row[i]; NULL = of row i */
};

/* x += factor * the joined expert outputs; then packed = norm of x. If norm.row is given, only the
 * rows that it lists change. */
cudaError_t join_norm(const stream_of &s, float *x, int rows, int hidden, const join_from &join,
                      const norm_to &norm);

/* out [rows][hidden] = the joined expert outputs, without join.factor; if @adds, they are added to
 * it. Experts that another rank computes (PLACE_ELSEWHERE) are left out, and so are
 * zero-computation experts if join.identity is NULL. */
cudaError_t join_rows(const stream_of &s, int rows, int hidden, const join_from &join, bool adds,
                      float *out);

/* packed [rows][n] = norm of in [rows][n]; rows of @in are in_row floats apart. */
cudaError_t norm_rows(const stream_of &s, const float *in, int64_t in_row, int rows, int n,
                      const norm_to &norm);

/* If the experts are divided over ranks (EP), a row goes to them as a message of message_row()
 * numbers of BF16: the normalised row, then its chosen experts (int; -1 = a zero-computation
 * expert, INT_MAX = none) and their weights (float). */
__host__ __device__ inline int64_t message_row(int hidden, int chosen) {
    return (static_cast<int64_t>(hidden) + 4 * chosen + 7) / 8 * 8;
}

struct route_args {
    const float *x; /* [rows][hidden] */
    int rows, hidden;
    const float *norm, *gate, *bias; /* [hidden], [experts][hidden], [experts] or NULL */
    float eps;
    router how;
    int routed, shared;  /* experts with weights: number of routed ones, number of shared ones */
    bf16 *packed;        /* [rows][hidden] normalised */
    float *identity;     /* [rows][hidden] normalised, in FP32, or NULL */
    bf16 *message;       /* [rows][message_row()], or NULL without EP */
    float *scores;       /* [rows][experts] */
    int *chosen;         /* [rows][chosen], ascending */
    int *expert, *place; /* [rows][chosen + shared]; expert is -1 for a zero-computation expert */
    float *weight;
    int *first, *active, *count, *row; /* the arrays of expert_list (cuda_gemm.h); row has one entry
                                          for each pair */
    int *total;                        /* [experts] scratch */
    int *ticket;                       /* [1 + rows] counters of thread blocks: they must be zero,
                                          and are zero again after the launches */
};

/* Normalises the rows, computes the router's scores, chooses the experts, and sorts the (row,
 * expert) pairs by expert. If there are messages, it writes the choices there and sorts nothing. */
cudaError_t route(const stream_of &s, const route_args &a);

/* Changes the messages of the rows from @from on, so that no rank computes an expert for them. */
cudaError_t drop_choices(const stream_of &s, const route_args &a, int from);

/* The facts about this rank that sort_messages() needs. */
struct rank_rows {
    int first_expert;     /* the rank has the experts first_expert .. + routed - 1 */
    int first_row, count; /* the rows whose zero-computation experts this rank adds */
};

/* Sorts the pairs of the experts of this rank by expert, for the rows in a.message. @a: rows,
 * hidden, how, the lists and the scratch memory are used; a.routed = number of experts of this
 * rank, a.shared = 0. Also writes a.weight. */
cudaError_t sort_messages(const stream_of &s, const route_args &a, const rank_rows &own);

/* x_pairs [pairs][hidden] = the packed row of each pair. The rows of @packed are packed_row numbers
 * apart. */
cudaError_t gather(const stream_of &s, const bf16 *packed, int64_t packed_row, const int *row,
                   const int *first, int experts, int most_pairs, int hidden, bf16 *x_pairs);

/* Raises key [rows] to that of the largest logit of the row. A key holds a logit and the token's
 * id, and of equal logits the lowest id has the largest key. It becomes KEY_NOT_FINITE if a logit
 * of the row is NaN or infinite. It must be 0 before the call, as embed() leaves it.
 * next_token_of() gives the id of a key. */
cudaError_t best_token(const stream_of &s, const float *logits, int rows, int vocab,
                       unsigned long long *key);

/* Fill memory with uniform random numbers: fill_bf16() from [-spread, spread], fill_f32() from
 * [centre - spread, centre + spread], fill_e4m3() from [-256, 256]. */
cudaError_t fill_bf16(const stream_of &s, bf16 *to, int64_t n, float spread, uint64_t seed);
cudaError_t fill_f32(const stream_of &s, float *to, int64_t n, float centre, float spread,
                     uint64_t seed);
cudaError_t fill_e4m3(const stream_of &s, uint8_t *to, int64_t n, uint64_t seed);

/* to [heads][k_width][n_width] = for each head, the transpose of the first n_width rows of
 * w [heads][rows][k_width]. */
cudaError_t transpose_heads(const stream_of &s, const bf16 *w, int heads, int rows, int n_width,
                            int k_width, bf16 *to);

/* to [context][pairs] = cosine and sine of the rotation angle, times r.factor, for every position
 * and rotary pair. */
cudaError_t make_angles(const stream_of &s, const rope &r, int64_t context, float2 *to);

} // namespace device

/* Greater than the key of any finite logit. */
constexpr unsigned long long KEY_NOT_FINITE = ~0ull;

/* The token id that a key of best_token() encodes; -1 for KEY_NOT_FINITE. */
__host__ __device__ inline int next_token_of(unsigned long long key) {
    return key == KEY_NOT_FINITE ? -1 : static_cast<int>(0xffffffffu - static_cast<uint32_t>(key));
}

#endif
