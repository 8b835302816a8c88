/* load.cuh - loads queries and tokens into shared memory as bf16 rows.
 *
 * bf16 holds every e4m3 number exactly, so FP8 numbers are converted without their scales. The
 * scales are applied to the scores and the probabilities. Tokens past the end become zeros. */
#pragma once
#include "kernels/cuda/portable/portable_traits.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/ptx/warp.cuh"

namespace portable {

__device__ __forceinline__ uint32_t smem_addr(const void *p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/* Converts the e4m3 number in the lowest byte. Its bits, moved to the exponent and mantissa of an
 * fp32, are its value times 2^-120. A NaN becomes 480. */
__device__ __forceinline__ float widen(uint32_t byte) {
    const uint32_t bits = (byte & 0x80) << 24 | (byte & 0x7f) << 20;
    return __uint_as_float(bits) * 0x1p120f;
}

/* Converts four e4m3 numbers. The lower seven bits of a NaN, and of no other number, are all ones.
 * So adding one carries into the eighth bit. The carry sets the exponent and the quiet bit of the
 * bf16. */
__device__ __forceinline__ uint2 widen4(uint32_t four) {
    uint2 wide = make_uint2(ptx::pack_bf16x2(widen(four), widen(four >> 8)),
                            ptx::pack_bf16x2(widen(four >> 16), widen(four >> 24)));
    const uint32_t nan = ((four & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u;
    if (nan) {
        wide.x |= (nan & 0x80u ? 0x7fc0u : 0) | (nan & 0x8000u ? 0x7fc00000u : 0);
        wide.y |= (nan & 0x800000u ? 0x7fc0u : 0) | (nan & 0x80000000u ? 0x7fc00000u : 0);
    }
    return wide;
}

/* The location of a sequence's tokens in the planes. */
struct token_source {
    const int *table; /* the sequence's row */
    int tokens;

    __device__ size_t slot(const params &p, int token) const {
        const int page = min(max(__ldg(table + token / PAGE), 0), p.io.pages - 1);
        return static_cast<size_t>(page) * PAGE + token % PAGE;
    }
};

/* Starts copying `bytes` bytes of each token of a step from one plane. */
template <int kStep>
__device__ __forceinline__ void copy_rows(const params &p, const token_source &from, int first,
                                          const uint8_t *plane, int bytes, uint8_t *to, int pitch) {
    constexpr int across = kThreads / kStep;
    const int row = threadIdx.x / across, token = first + row;
    const bool real = token < from.tokens;
    const uint8_t *src = plane + (real ? from.slot(p, token) : 0) * bytes;
    const uint32_t dst = smem_addr(to) + row * pitch;
    for (int i = threadIdx.x % across * 16; i < bytes; i += across * 16)
        ptx::copy_async_16(dst + i, src + i, real);
}

/* Starts copying the tokens of a step: bf16 rows to their final place, fp8 rows to a staging
 * buffer. */
template <bool kFp8, int kStep>
__device__ __forceinline__ void start_tokens(const params &p, const memory<kStep> &m,
                                             const token_source &from, int first, int turn) {
    if (kFp8) {
        copy_rows<kStep>(p, from, first, p.content, p.d_c, m.raw(), p.d_c + 2 * p.d_r);
        copy_rows<kStep>(p, from, first, p.rope, 2 * p.d_r, m.raw() + p.d_c, p.d_c + 2 * p.d_r);
    } else {
        copy_rows<kStep>(p, from, first, p.content, 2 * (p.d_c + p.d_r), m.k(turn & 1), p.pitch);
    }
    ptx::copy_async_commit();
}

/* Converts the staged fp8 rows to bf16 rows, and loads the scales of the tokens. */
template <int kStep>
__device__ __forceinline__ void widen_tokens(const params &p, const memory<kStep> &m,
                                             const token_source &from, int first) {
    constexpr int across = kThreads / kStep;
    const int raw_pitch = p.d_c + 2 * p.d_r;
    const uint8_t *src = m.raw() + threadIdx.x / across * raw_pitch;
    uint8_t *dst = m.k(0) + threadIdx.x / across * p.pitch;
    for (int i = threadIdx.x % across * 4; i < p.d_c; i += across * 4)
        *reinterpret_cast<uint2 *>(dst + 2 * i) =
            widen4(*reinterpret_cast<const uint32_t *>(src + i));
    for (int i = threadIdx.x % across * 4; i < 2 * p.d_r; i += across * 4)
        *reinterpret_cast<uint32_t *>(dst + 2 * p.d_c + i) =
            *reinterpret_cast<const uint32_t *>(src + p.d_c + i);
    if (threadIdx.x < kStep) {
        const int token = first + static_cast<int>(threadIdx.x);
        m.s->token_scale[threadIdx.x] =
            token < from.tokens ? __ldg(p.token_scale + from.slot(p, token)) : 0;
    }
}

template <bool kFp8, int kStep>
__device__ __forceinline__ void load_queries(const params &p, const memory<kStep> &m, int seq,
                                             int first_row) {
    const int row = first_row + static_cast<int>(threadIdx.x) / 8;
    const bool real = row < p.rows;
    const size_t at = static_cast<size_t>(seq) * p.rows + (real ? row : 0);
    uint8_t *dst = m.q + threadIdx.x / 8 * p.pitch;
    const int lane = threadIdx.x % 8, narrow = kFp8 ? p.d_c : 0;
    const int wide = 2 * (kFp8 ? p.d_r : p.d_c + p.d_r);
    const uint8_t *src = (kFp8 ? p.q_rope : p.q) + at * wide;
    for (int i = 4 * lane; i < narrow; i += 8 * 4)
        *reinterpret_cast<uint2 *>(dst + 2 * i) =
            widen4(real ? __ldg(reinterpret_cast<const uint32_t *>(p.q + at * p.d_c + i)) : 0);
    for (int i = 16 * lane; i < wide; i += 8 * 16)
        *reinterpret_cast<uint4 *>(dst + 2 * narrow + i) =
            real ? __ldg(reinterpret_cast<const uint4 *>(src + i)) : make_uint4(0, 0, 0, 0);
    if (lane == 0)
        m.s->row_scale[threadIdx.x / 8] =
            (kFp8 && real ? __ldg(p.q_scale + at) : 1.0f) * p.scale_log2;
}

} // namespace portable
