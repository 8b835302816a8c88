/* The dataflow of an FP8 step without fusion. There are separate launches for scales, content and
 * RoPE of the queries and of the new tokens, and one that copies the tokens to their pages. The
 * rounding is that of dataflow.cu. */
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/device.h"

namespace {

enum { kThreads = 256, kWarps = kThreads / 32 };

/* bf16 rows of d_c + d_r numbers, and the planes that they are quantised to. */
struct rows_of {
    const __nv_bfloat16 *from;
    uint8_t *content;
    __nv_bfloat16 *rope;
    float *scale;
    int64_t rows;
    int d_c, d_r;
    bool pow2; /* the scales are powers of two */
};

struct pages {
    uint8_t *content;
    __nv_bfloat16 *rope;
    float *scale;
    const int *seqlens, *table;
    int count, s_q, table_width, max_tokens;
};

/* Each warp computes the scale of one row. */
__global__ void __launch_bounds__(kThreads) find_scales(rows_of r) {
    const int64_t row = blockIdx.x * int64_t(kWarps) + threadIdx.x / 32;
    if (row >= r.rows)
        return;
    float most = 0;
    for (int d = threadIdx.x % 32; d < r.d_c; d += 32)
        most = fmaxf(most, fabsf(__bfloat162float(r.from[row * (r.d_c + r.d_r) + d])));
    for (int m = 16; m > 0; m /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    const float a = fmaxf(most, 1e-10f) / 448.0f;
    if (threadIdx.x % 32 == 0)
        r.scale[row] =
            r.pow2 ? __uint_as_float((__float_as_uint(a) + 0x7fffffu) & 0x7f800000u) : a;
}

/* Each thread rounds one number. */
__global__ void __launch_bounds__(kThreads) round_content(rows_of r) {
    const int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x, row = i / r.d_c;
    if (row >= r.rows)
        return;
    const float x = __bfloat162float(r.from[row * (r.d_c + r.d_r) + i % r.d_c]);
    r.content[i] = __nv_cvt_float_to_fp8(x / r.scale[row], __NV_SATFINITE, __NV_E4M3);
}

__global__ void __launch_bounds__(kThreads) divide_rope(rows_of r) {
    const int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x, row = i / r.d_r;
    if (row >= r.rows)
        return;
    const float x = __bfloat162float(r.from[row * (r.d_c + r.d_r) + r.d_c + i % r.d_r]);
    r.rope[i] = __float2bfloat16_rn(x / r.scale[row]);
}

/* Copies the quantised tokens to their pages, one warp per token. */
__global__ void __launch_bounds__(kThreads) scatter(rows_of r, pages p) {
    const int64_t i = blockIdx.x * int64_t(kWarps) + threadIdx.x / 32;
    if (i >= r.rows)
        return;
    const int seq = static_cast<int>(i / p.s_q), lane = threadIdx.x % 32;
    const int length = min(max(p.seqlens[seq], 0), p.max_tokens);
    const int token = length - p.s_q + static_cast<int>(i % p.s_q);
    if (token < 0)
        return;
    const int page = p.table[static_cast<size_t>(seq) * p.table_width + token / MLA_PAGE];
    const int64_t slot =
        static_cast<int64_t>(min(max(page, 0), p.count - 1)) * MLA_PAGE + token % MLA_PAGE;
    for (int d = lane; d < r.d_c; d += 32)
        p.content[slot * r.d_c + d] = r.content[i * r.d_c + d];
    for (int d = lane; d < r.d_r; d += 32)
        p.rope[slot * r.d_r + d] = r.rope[i * r.d_r + d];
    if (lane == 0)
        p.scale[slot] = r.scale[i];
}

unsigned blocks(int64_t n, int each) {
    return static_cast<unsigned>((n + each - 1) / each);
}

void quantise(const rows_of &r, cudaStream_t stream) {
    find_scales<<<blocks(r.rows, kWarps), kThreads, 0, stream>>>(r);
    round_content<<<blocks(r.rows * r.d_c, kThreads), kThreads, 0, stream>>>(r);
    divide_rope<<<blocks(r.rows * r.d_r, kThreads), kThreads, 0, stream>>>(r);
}

rows_of rows_from(const mla_plan *plan, const void *from, const lab_rows *to, int64_t rows) {
    return {static_cast<const __nv_bfloat16 *>(from),
            static_cast<uint8_t *>(to->content),
            static_cast<__nv_bfloat16 *>(to->rope),
            to->scale,
            rows,
            plan->cap.d_c,
            plan->cap.d_r,
            cuda_of(plan->be)->scale == MLA_SCALE_POW2};
}

} // namespace

snap_status cuda_unfused(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                         const void *q, const void *kv, const lab_rows *q8, const lab_rows *staged,
                         snap_err *err) {
    const cudaStream_t stream = cuda_of(plan->be)->stream;
    const int64_t tokens = static_cast<int64_t>(step->batch) * step->s_q;
    const rows_of fresh = rows_from(plan, kv, staged, tokens);
    quantise(rows_from(plan, q, q8, tokens * plan->cap.heads), stream);
    quantise(fresh, stream);
    const pages p = {static_cast<uint8_t *>(cache->content),
                     static_cast<__nv_bfloat16 *>(cache->rope),
                     cache->scale,
                     step->seqlens,
                     step->block_table,
                     static_cast<int>(cache->pages),
                     step->s_q,
                     step->table_width,
                     static_cast<int>(plan->cap.max_tokens)};
    scatter<<<blocks(tokens, kWarps), kThreads, 0, stream>>>(fresh, p);
    return cuda_check(cudaGetLastError(), "the unfused dataflow", err);
}
