/* unit.cuh - computes E, the exponent of the unit of P, in loops in which a thread has one token
 * and several rows. This code has never run. In this code, E only grows: it is raised when a score
 * does not fit. The kernel for Hopper has another rule (sm90_fp8/fp8_units.cuh). */
#pragma once
#include "kernels/cuda/ptx/barrier.cuh"

namespace sm100_sketch {

constexpr float kLog2Largest = 8.8073549f; /* log2(448), the largest e4m3 number */
constexpr float kHeadroom = 8.0f;          /* as in sm90_fp8/fp8_config.h */

/* What the 128 threads of a softmax group exchange. */
template <int Rows>
struct unit_exchange {
    float unit[Rows], factor[Rows], scale[Rows], sums[4][Rows];
    int most[Rows];

    /* `q_scale`: null if the queries have no scale of their own. */
    __device__ void begin(int thread, const float *q_scale, float scale_log2) {
        if (thread < Rows) {
            unit[thread] = -1e30f;
            scale[thread] = scale_log2 * (q_scale ? q_scale[thread] : 1);
        }
    }
    __device__ void add_up(int thread, float (&sum)[Rows]) {
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            for (int step = 16; step > 0; step /= 2)
                sum[r] += __shfl_xor_sync(~0u, sum[r], step);
            if (thread % 32 == 0)
                sums[thread / 32][r] = sum[r];
        }
    }
    __device__ float sum_of(int r) const {
        return sums[0][r] + sums[1][r] + (sums[2][r] + sums[3][r]);
    }
};

/* Maps the bits of floats to integers with the same order. The function is its own inverse. */
__device__ __forceinline__ int ordered(int i) {
    return i ^ (i >> 31 & 0x7fffffff);
}

/* Raises E of the rows in which a score does not fit. `more`: what is added to a score y. Sets the
 * factors for O and multiplies the sums by them. */
template <int Rows>
__device__ void raise_unit(unit_exchange<Rows> &ex, int barrier, int thread, const float (&y)[Rows],
                           float more, float (&sum)[Rows]) {
    if (thread < Rows)
        ex.most[thread] = ordered(__float_as_int(-1e30f));
    ptx::named_sync(barrier, 128);
#pragma unroll
    for (int r = 0; r < Rows; r++) {
        const int most = __reduce_max_sync(~0u, ordered(__float_as_int(y[r] + more)));
        if (thread % 32 == 0)
            atomicMax(&ex.most[r], most);
    }
    ptx::named_sync(barrier, 128);
    if (thread < Rows) {
        const float most = __int_as_float(ordered(ex.most[thread])) - kLog2Largest;
        const float before = ex.unit[thread], after = most > before ? most + kHeadroom : before;
        ex.factor[thread] = exp2f(before - after);
        ex.unit[thread] = after;
    }
    ptx::named_sync(barrier, 128);
#pragma unroll
    for (int r = 0; r < Rows; r++)
        sum[r] *= ex.factor[r];
}

} // namespace sm100_sketch
