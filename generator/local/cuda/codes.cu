#include "generator/local/cuda/codes.h"

#include <algorithm>
#include <cuda_fp8.h>

namespace device {
namespace {

enum { kThreads = 256, kWarps = kThreads / 32, kBlocksPerSm = 16 };

__global__ void __launch_bounds__(kThreads) place(code_scale_rows a) {
    wait_previous();
    const int64_t blocks = code_blocks(a.width), pitch = code_pitch(a.width);
    for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < a.rows / 8 * blocks;
         i += gridDim.x * int64_t(kThreads)) {
        const int64_t eight = i / blocks, block = i % blocks;
        const int64_t row = (a.first + 8 * eight) / CODE_BLOCK;
        const int64_t to = a.to_first / 8 + eight * (a.by_eights ? 2 : 1);
        a.to[(to / 2 * pitch + block) * 2 + to % 2] =
            a.from[row * a.across + a.col / CODE_BLOCK + block];
    }
}

/* The first code is in the low byte. */
__device__ __forceinline__ uint32_t two_codes(float x, float y) {
    return __nv_cvt_float2_to_fp8x2({x, y}, __NV_SATFINITE, __NV_E4M3);
}

/* One warp quantises CODE_BLOCK columns of a row, four in each lane. */
__global__ void __launch_bounds__(kThreads) quantise(quantise_args a) {
    let_next();
    wait_previous();
    const int64_t blocks = code_blocks(a.k), rows = a.count ? *a.count : a.rows;
    const int lane = threadIdx.x % 32;
    for (int64_t i = blockIdx.x * int64_t(kWarps) + threadIdx.x / 32; i < rows * blocks;
         i += gridDim.x * int64_t(kWarps)) {
        const int64_t row = i / blocks, block = i % blocks;
        const int64_t from = a.row ? a.row[row] : row, col = block * CODE_BLOCK + 4 * lane;
        float x[4] = {};
        if (col < a.k) {
            const uint2 raw = *reinterpret_cast<const uint2 *>(a.x + from * a.x_row + col);
            const auto *pairs = reinterpret_cast<const __nv_bfloat162 *>(&raw);
            x[0] = __low2float(pairs[0]);
            x[1] = __high2float(pairs[0]);
            x[2] = __low2float(pairs[1]);
            x[3] = __high2float(pairs[1]);
        }
        float largest = fmaxf(fmaxf(fabsf(x[0]), fabsf(x[1])), fmaxf(fabsf(x[2]), fabsf(x[3])));
        for (int m = 16; m > 0; m /= 2)
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, m));
        const float scale = fmaxf(largest, 1e-10f) / 448.0f;
        if (col < a.k)
            *reinterpret_cast<uint32_t *>(a.code + row * a.k + col) =
                two_codes(x[0] / scale, x[1] / scale) | two_codes(x[2] / scale, x[3] / scale) << 16;
        if (lane == 0)
            a.scale[block * a.rows + row] = scale;
    }
}

dim3 grid_for(const stream_of &s, int64_t work, int64_t per_block) {
    const int64_t blocks = (work + per_block - 1) / per_block;
    return dim3(static_cast<unsigned>(
        std::max<int64_t>(std::min<int64_t>(blocks, s.sms * kBlocksPerSm), 1)));
}

} // namespace

cudaError_t place_code_scales(const stream_of &s, const code_scale_rows &a) {
    return launch(s, place, grid_for(s, a.rows / 8 * code_blocks(a.width), kThreads), kThreads, 0,
                  a);
}

cudaError_t quantise_rows(const stream_of &s, const quantise_args &a) {
    return launch(s, quantise, grid_for(s, a.rows * code_blocks(a.k), kWarps), kThreads, 0, a);
}

} // namespace device
