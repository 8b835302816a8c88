/* fp32.h - computes one part in FP32 arithmetic, for each vector width of vec.h.
 *
 * avx2.c, avx512f.c and portable.c include it after the definitions that vec.h needs and after
 * decode_e4m3(), which decodes a row of codes to FP32.
 *
 * A page is decoded once into FP32 [64][d] and used for all rows:
 *   scores    S[token][row] = sum_d K[token][d] Q^T[d][row]     rows in the lanes, K broadcast,
 *                                                               4 tokens x 2 vectors at a time
 *   softmax   over tokens, lane by lane; P replaces S           rows in the lanes
 *   values    O[row][d] = rescale * O + sigma * sum_token P[token][row] V[token][d]
 *                                                               columns in the lanes, P broadcast
 * The page is SnapMLA's block, so sigma and the running maximum follow the algorithm of the paper
 * (arXiv 2602.10718). */
#include <math.h>
#include <string.h>

#include "kernels/cpu/burst.h"
#include "kernels/cpu/cpu_dataflow.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/softmax.h"
#include "kernels/formats.h"

enum { kRowAlign = 2 * LANES, kTokens = 4, kRows = 4 };

typedef struct {
    int d, rows, padded; /* d_c + d_r; rows; rows rounded up to kRowAlign */
    float *q;            /* [d][padded] */
    float *tile;         /* [64][d] */
    float *s;            /* [padded / LANES][64][LANES]: scores, then P */
    softmax_state state;
} scratch32;

static scratch32 scratch_layout(void *memory, int rows, int d_c, int d_r, size_t *bytes) {
    scratch32 w = {.d = d_c + d_r, .rows = rows};
    w.padded = (rows + kRowAlign - 1) / kRowAlign * kRowAlign;
    size_t at = 0;
    w.q = scratch_carve(memory, &at, (size_t)w.d * (size_t)w.padded * sizeof *w.q);
    w.tile = scratch_carve(memory, &at, (size_t)w.d * MLA_PAGE * sizeof *w.tile);
    w.s = scratch_carve(memory, &at, (size_t)w.padded * MLA_PAGE * sizeof *w.s);
    w.state = softmax_layout(memory, &at, w.padded);
    *bytes = at;
    return w;
}

static size_t scratch_bytes(int rows, int d_c, int d_r) {
    size_t bytes;
    (void)scratch_layout(NULL, rows, d_c, d_r, &bytes);
    return bytes;
}

/* ---- decoding ------------------------------------------------------------------------------- */

static void decode_bf16(float *out, const uint16_t *in, int n) {
    for (int i = 0; i < n; i += LANES)
        vf_store(out + i, vf_load_bf16(in + i));
}

static void decode_row(float *out, mla_precision p, int d_c, int d_r, const void *content,
                       const void *rope, int64_t row) {
    if (p == MLA_BF16) {
        decode_bf16(out, (const uint16_t *)content + row * (d_c + d_r), d_c + d_r);
    } else {
        const uint8_t *c8 = (const uint8_t *)content + row * d_c;
        decode_e4m3(out, c8, d_c);
        decode_bf16(out + d_c, (const uint16_t *)rope + row * d_r, d_r);
    }
}

static void pack_q(scratch32 *w, const cpu_part *part) {
    memset(w->q, 0, (size_t)w->d * (size_t)w->padded * sizeof *w->q);
    for (int i = 0; i < w->rows; i++) {
        decode_row(w->tile, part->precision, part->d_c, part->d_r, part->q, part->q_rope,
                   part->row0 + i);
        for (int d = 0; d < w->d; d++)
            w->q[(int64_t)d * w->padded + i] = w->tile[d];
    }
}

/* Decodes @n tokens. The tokens after them become zeros, because their slots may hold any value. */
static void load_tile(scratch32 *w, const cpu_part *part, int64_t slot, int n) {
    for (int j = 0; j < n; j++)
        decode_row(w->tile + (int64_t)j * w->d, part->precision, part->d_c, part->d_r,
                   part->cache.content, part->cache.rope, slot + j);
    memset(w->tile + (int64_t)n * w->d, 0, (size_t)(MLA_PAGE - n) * (size_t)w->d * sizeof *w->tile);
}

/* ---- products ------------------------------------------------------------------------------- */

static NOINLINE void scores_block(scratch32 *w, int token, int row) {
    vf sum[kTokens][2] = {0};
    const float *q = w->q + row, *k = w->tile + (int64_t)token * w->d;
    for (int d = 0; d < w->d; d++) {
        vf q0 = vf_load(q + (int64_t)d * w->padded),
           q1 = vf_load(q + (int64_t)d * w->padded + LANES);
        UNROLL
        for (int t = 0; t < kTokens; t++) {
            vf x = vf_set(k[t * w->d + d]);
            sum[t][0] = VF_FMA(x, q0, sum[t][0]);
            sum[t][1] = VF_FMA(x, q1, sum[t][1]);
        }
    }
    UNROLL
    for (int t = 0; t < kTokens; t++) {
        float *s = w->s + row * MLA_PAGE + (token + t) * LANES;
        vf scale = vf_set(w->state.a_k[token + t]);
        vf_store(s, sum[t][0] * scale);
        vf_store(s + LANES * MLA_PAGE, sum[t][1] * scale);
    }
}

static void scores(scratch32 *w) {
    for (int row = 0; row < w->padded; row += kRowAlign)
        for (int token = 0; token < MLA_PAGE; token += kTokens)
            scores_block(w, token, row);
}

/* Computes rows row .. row + rows - 1, columns d .. d + 2 LANES - 1 of the output. */
INLINE void values_block(const scratch32 *w, float *o, int d_c, int row, int rows, int d) {
    vf sum[kRows][2] = {0};
    const float *first = w->s + row / LANES * LANES * MLA_PAGE + row % LANES;
    for (int t = 0; t < MLA_PAGE; t++) {
        const float *v = w->tile + (int64_t)t * w->d + d, *p = first + t * LANES;
        vf v0 = vf_load(v), v1 = vf_load(v + LANES);
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf x = vf_set(p[r]);
            sum[r][0] = VF_FMA(x, v0, sum[r][0]);
            sum[r][1] = VF_FMA(x, v1, sum[r][1]);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        float *to = o + (int64_t)(row + r) * d_c + d;
        vf rescale = vf_set(w->state.rescale[row + r]), sigma = vf_set(w->state.sigma[row + r]);
        vf_store(to, VF_FMA(sigma, sum[r][0], rescale * vf_load(to)));
        vf_store(to + LANES, VF_FMA(sigma, sum[r][1], rescale * vf_load(to + LANES)));
    }
}

static void values(const scratch32 *w, float *o, int d_c) {
    for (int d = 0; d < d_c; d += 2 * LANES) {
        int row = 0;
        for (; row + kRows <= w->rows; row += kRows)
            values_block(w, o, d_c, row, kRows, d);
        for (; row < w->rows; row++)
            values_block(w, o, d_c, row, 1, d);
    }
}

/* ---- one part ------------------------------------------------------------------------------- */

static void attend(const cpu_part *part, void *memory, float *o, float *m, float *l) {
    size_t bytes;
    scratch32 w = scratch_layout(memory, part->rows, part->d_c, part->d_r, &bytes);
    pack_q(&w, part);
    softmax_begin(&w.state, part);
    memset(o, 0, (size_t)part->rows * (size_t)part->d_c * sizeof *o);
    for (int64_t token = part->first; token < part->end; token += MLA_PAGE) {
        int n = part->end - token < MLA_PAGE ? (int)(part->end - token) : MLA_PAGE;
        int64_t slot = mla_slot(part->table, part->cache.pages, token);
        bool whole = softmax_page(&w.state, part, token, slot, n);
        load_tile(&w, part, slot, n);
        scores(&w);
        softmax_block(&w.state, part->precision, whole, w.s);
        values(&w, o, part->d_c);
    }
    softmax_end(&w.state, part->rows, m, l);
}

/* ---- probe ---------------------------------------------------------------------------------- */

/* FP32 multiply-accumulates on converted bf16 operands. Returns the number of FLOP. */
static double multiply(const uint16_t *operands, int64_t rounds) {
    enum { kSums = 12 };
    float x[4 * LANES];
    for (int i = 0; i < 4 * LANES; i++)
        x[i] = bf16_to_f32(operands[i]);
    vf sum[kSums], a[2] = {vf_load(x), vf_load(x + LANES)};
    vf b[2] = {vf_load(x + 2 * LANES), vf_load(x + 3 * LANES)};
    UNROLL
    for (int j = 0; j < kSums; j++)
        sum[j] = vf_set(x[j]); /* different values, or the compiler would compute one sum for all */
    for (int64_t i = 0; i < rounds; i++) {
        UNROLL
        for (int j = 0; j < kSums; j++)
            sum[j] = VF_FMA(a[j & 1], b[j >> 1 & 1], sum[j]);
    }
    UNROLL
    for (int j = 0; j < kSums; j++)
        vf_keep(sum[j]);
    return (double)rounds * kSums * LANES * 2.0;
}
