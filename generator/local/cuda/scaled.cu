#include "generator/local/cuda/scaled.h"

#include <algorithm>
#include <cuda_fp8.h>

namespace device {
namespace {

enum { kThreads = 256, kBlocksPerSm = 16 };

__device__ __forceinline__ float number(uint8_t code) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
}

__global__ void __launch_bounds__(kThreads) multiply(scaled_rows a) {
    wait_previous();
    for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < a.rows * a.width;
         i += gridDim.x * int64_t(kThreads)) {
        const int64_t row = i / a.width, col = a.col + i % a.width;
        const float scale = a.scale[(a.first + row) / a.block * a.across + col / a.block];
        const int64_t to = a.by_eights ? row / 8 * 16 + row % 8 : row;
        a.to[to * a.width + i % a.width] =
            __float2bfloat16_rn(__fmul_rn(number(a.code[i]), scale));
    }
}

} // namespace

cudaError_t scaled_to_bf16(const stream_of &s, const scaled_rows &a) {
    const int64_t all = (a.rows * a.width + kThreads - 1) / kThreads;
    return launch(s, multiply,
                  dim3(static_cast<unsigned>(std::min<int64_t>(all, s.sms * kBlocksPerSm))),
                  kThreads, 0, a);
}

} // namespace device
