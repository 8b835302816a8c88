/* Computes attention in FP64. Results of kernels are compared with it. The rows come from the
 * random source. This file quantises them by the definition of the format, with none of the code
 * under test. Probabilities are not quantised. Sums are in FP64; on request, the content part of
 * FP8 scores is summed as mla_cut_sums describes. Each block computes one row over one run of
 * tokens; a second kernel merges the runs in order. */
#include <climits>
#include <cmath>
#include <cuda_bf16.h>

#include "kernels/cuda/device.h"

namespace {

enum {
    kThreads = 256,
    kWarps = kThreads / 32,
    kRun = 1024,                           /* tokens per block */
    kTokens = 16,                          /* tokens in shared memory at a time */
    kColumns = MLA_MAX_CONTENT / kThreads, /* output columns per thread */
};

struct problem {
    draw_source tokens, queries;
    const int64_t *row;
    double *partial; /* [rows][runs][d_c + 2]: output, maximum, sum */
    double *out, *lse;
    double softmax_scale;
    int64_t context;
    int rows, runs, heads, s_q;
    bool fp8, fp8_queries, pow2; /* pow2: scales are powers of two */
    mla_cut_sums sums;
};

__device__ float bf16(uint16_t bits) {
    return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}

/* Rounds to the nearest e4m3, ties to even, saturating: 3 bits after the leading one, steps of at
 * least 2^-9. */
__device__ float round_e4m3(float x) {
    int e;
    frexpf(x, &e); /* |x| in [2^(e-1), 2^e) */
    const int step = max(e - 4, -9);
    return fminf(fmaxf(ldexpf(rintf(ldexpf(x, -step)), step), -448.0f), 448.0f);
}

/* The smallest power of two that is not below a > 0. */
__device__ float power_above(float a) {
    int e;
    const float m = frexpf(a, &e); /* a = m 2^e, m in [1/2, 1) */
    return ldexpf(1.0f, m > 0.5f ? e : e - 1);
}

/* Loads row `index` with one warp. With @fp8, quantises it, but does not multiply it by its scale,
 * which is a power of two with @pow2. Writes the numbers to x and returns the scale; 1 without
 * @fp8. */
__device__ float take_row(const draw_source &from, uint64_t index, bool fp8, bool pow2, float *x) {
    const int lane = threadIdx.x % 32, width = from.d_c + from.d_r;
    const draw_parts p = draw_parts_of(from.seed, index, from.d_c);
    const uint16_t *content = from.pool + static_cast<size_t>(p.content) * width;
    const uint16_t *rope = from.pool + static_cast<size_t>(p.rope) * width;
    float most = 0;
    for (int d = lane; d < from.d_c; d += 32) {
        x[d] = bf16(content[(d + p.turn) % from.d_c]);
        most = fmaxf(most, fabsf(x[d]));
    }
    for (int d = from.d_c + lane; d < width; d += 32)
        x[d] = bf16(rope[d]);
    if (!fp8)
        return 1.0f;
    for (int m = 16; m > 0; m /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    float a = __fdiv_rn(fmaxf(most, 1e-10f), 448.0f);
    if (pow2)
        a = power_above(a);
    for (int d = lane; d < from.d_c; d += 32)
        x[d] = round_e4m3(__fdiv_rn(x[d], a));
    for (int d = from.d_c + lane; d < width; d += 32)
        x[d] = __bfloat162float(__float2bfloat16_rn(__fdiv_rn(x[d], a)));
    return a;
}

__device__ double warp_dot(const float *a, const float *b, int n) {
    double sum = 0;
    for (int d = threadIdx.x % 32; d < n; d += 32)
        sum += static_cast<double>(a[d]) * static_cast<double>(b[d]);
    for (int m = 16; m > 0; m /= 2)
        sum += __shfl_xor_sync(~0u, sum, m);
    return sum;
}

/* The exponent of a number, and a power of two, by bit operations: all nonzero numbers that they
 * are used for are normal. */
__device__ int exponent_of(double x) {
    return (__double2hiint(x) >> 20 & 0x7ff) - 1023;
}

__device__ double power_of_two(int e) {
    return __hiloint2double((1023 + e) << 20, 0);
}

__device__ double cut(double x, int unit) {
    return trunc(x * power_of_two(-unit)) * power_of_two(unit);
}

__device__ int exponent_e4m3(float x) {
    return max(exponent_of(x), -6);
}

/* The dot product of e4m3 numbers, summed as kernels/cut_sums.c sums them: as a sequence of tensor
 * core instructions of how.products products each. A round of the loop stands for one instruction,
 * and each lane computes one of its products. */
__device__ double cut_dot(const float *a, const float *b, int n, mla_cut_sums how) {
    const int lane = threadIdx.x % 32;
    double sum = 0;
    for (int first = 0; first < n; first += how.products) {
        const int d = first + lane;
        const bool mine = lane < how.products && d < n && a[d] != 0 && b[d] != 0;
        int top = mine ? exponent_e4m3(a[d]) + exponent_e4m3(b[d]) : INT_MIN;
        top = __reduce_max_sync(~0u, sum != 0 ? max(top, exponent_of(sum)) : top);
        if (top == INT_MIN)
            continue;
        const int unit = top - how.bits;
        const double product = mine ? static_cast<double>(a[d]) * static_cast<double>(b[d]) : 0;
        double kept = cut(product, unit);
        for (int m = 16; m > 0; m /= 2)
            kept += __shfl_xor_sync(~0u, kept, m);
        sum = kept + cut(sum, unit);
        sum = sum == 0 ? 0 : cut(sum, exponent_of(sum) - how.bits);
    }
    return sum;
}

__device__ double dot_of(const problem &p, const float *q, const float *k) {
    const int d_c = p.tokens.d_c, d_r = p.tokens.d_r;
    if (!p.sums.bits)
        return warp_dot(q, k, d_c + d_r);
    return cut_dot(q, k, d_c, p.sums) + warp_dot(q + d_c, k + d_c, d_r);
}

__global__ void __launch_bounds__(kThreads, 3) /* 3 blocks per SM */
    attend_run(problem p) {
    extern __shared__ float memory[];
    __shared__ double score[kTokens], scale[kTokens];
    __shared__ float q_scale;
    const int d_c = p.tokens.d_c, width = d_c + p.tokens.d_r, warp = threadIdx.x / 32;
    float *q = memory, *k = memory + width; /* [width], [kTokens][width] */
    const int64_t row = p.row[blockIdx.y], sequence = row / (p.s_q * p.heads);
    const int64_t visible = p.context - (p.s_q - 1 - row / p.heads % p.s_q);
    const int64_t begin = blockIdx.x * static_cast<int64_t>(kRun);
    const int64_t end = min(begin + kRun, visible);
    double o[kColumns] = {}, most = -INFINITY, sum = 0;
    if (warp == 0) {
        const float a = take_row(p.queries, row, p.fp8_queries, p.pow2, q);
        if (threadIdx.x == 0)
            q_scale = a;
    }
    __syncthreads();
    for (int64_t first = begin; first < end; first += kTokens) {
        const int n = static_cast<int>(min(static_cast<int64_t>(kTokens), end - first));
        for (int t = warp; t < n; t += kWarps) {
            float *x = k + t * width;
            const double a =
                take_row(p.tokens, sequence * p.context + first + t, p.fp8, p.pow2, x);
            __syncwarp();
            const double s = dot_of(p, q, x) * a * static_cast<double>(q_scale);
            if (threadIdx.x % 32 == 0) {
                score[t] = s * p.softmax_scale;
                scale[t] = a;
            }
        }
        __syncthreads();
        double now = most;
        for (int t = 0; t < n; t++)
            now = fmax(now, score[t]);
        const double rescale = exp(most - now);
        sum *= rescale;
        for (int i = 0; i < kColumns; i++)
            o[i] *= rescale;
        for (int t = 0; t < n; t++) {
            const double weight = exp(score[t] - now);
            sum += weight;
            for (int i = 0; i < kColumns; i++) {
                const int d = threadIdx.x + i * kThreads;
                if (d < d_c)
                    o[i] += weight * scale[t] * static_cast<double>(k[t * width + d]);
            }
        }
        most = now;
        __syncthreads();
    }
    double *to = p.partial + (static_cast<size_t>(blockIdx.y) * p.runs + blockIdx.x) * (d_c + 2);
    for (int i = 0; i < kColumns; i++)
        if (threadIdx.x + i * kThreads < d_c)
            to[threadIdx.x + i * kThreads] = o[i];
    if (threadIdx.x == 0) {
        to[d_c] = most;
        to[d_c + 1] = sum;
    }
}

__global__ void __launch_bounds__(kThreads) merge_runs(problem p) {
    const int d_c = p.tokens.d_c, stride = d_c + 2;
    const double *from = p.partial + static_cast<size_t>(blockIdx.x) * p.runs * stride;
    double most = -INFINITY, sum = 0;
    for (int r = 0; r < p.runs; r++)
        most = fmax(most, from[r * stride + d_c]);
    for (int r = 0; r < p.runs && most > -INFINITY; r++)
        sum += from[r * stride + d_c + 1] * exp(from[r * stride + d_c] - most);
    for (int d = threadIdx.x; d < d_c; d += kThreads) {
        double o = 0;
        for (int r = 0; r < p.runs && sum > 0; r++)
            o += from[r * stride + d] * exp(from[r * stride + d_c] - most);
        p.out[static_cast<size_t>(blockIdx.x) * d_c + d] = sum > 0 ? o / sum : 0;
    }
    if (threadIdx.x == 0)
        p.lse[blockIdx.x] = sum > 0 ? most + log(sum) : -INFINITY;
}

cudaError_t launch(const problem &p, cudaStream_t stream) {
    const size_t shared =
        static_cast<size_t>(1 + kTokens) * (p.tokens.d_c + p.tokens.d_r) * sizeof(float);
    cudaError_t e = cudaFuncSetAttribute(attend_run, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(shared));
    if (e != cudaSuccess)
        return e;
    attend_run<<<dim3(p.runs, p.rows), kThreads, shared, stream>>>(p);
    merge_runs<<<p.rows, kThreads, 0, stream>>>(p);
    return cudaGetLastError();
}

} // namespace

snap_status cuda_attend(mla_backend *base, const lab_step *step, const int64_t *row, int rows,
                        double *out, double *lse, snap_err *err) {
    const int d_c = step->tokens.d_c;
    const int runs = static_cast<int>((step->context + kRun - 1) / kRun);
    const size_t partial = static_cast<size_t>(rows) * runs * (d_c + 2) * sizeof(double);
    const size_t out_bytes = static_cast<size_t>(rows) * d_c * sizeof(double);
    const size_t lse_bytes = rows * sizeof(double), row_bytes = rows * sizeof(int64_t);
    cudaStream_t stream = cuda_of(base)->stream;
    uint8_t *memory = nullptr;
    cudaError_t e = cudaMalloc(&memory, partial + out_bytes + lse_bytes + row_bytes);
    problem p = {step->tokens,
                 step->queries,
                 reinterpret_cast<int64_t *>(memory + partial + out_bytes + lse_bytes),
                 reinterpret_cast<double *>(memory),
                 reinterpret_cast<double *>(memory + partial),
                 reinterpret_cast<double *>(memory + partial + out_bytes),
                 static_cast<double>(step->softmax_scale),
                 step->context,
                 rows,
                 runs,
                 step->heads,
                 step->s_q,
                 step->precision == MLA_FP8,
                 step->precision == MLA_FP8 && !step->bf16_queries,
                 cuda_of(base)->scale == MLA_SCALE_POW2,
                 step->sums};
    if (!p.fp8_queries || p.sums.products > 32)
        p.sums = {};
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(const_cast<int64_t *>(p.row), row, row_bytes, cudaMemcpyHostToDevice,
                            stream);
    if (e == cudaSuccess)
        e = launch(p, stream);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(out, p.out, out_bytes, cudaMemcpyDeviceToHost, stream);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(lse, p.lse, lse_bytes, cudaMemcpyDeviceToHost, stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(stream);
    cudaFree(memory);
    return cuda_check(e, "judging on the device", err);
}
