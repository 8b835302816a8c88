/* device_memory.cuh - host helpers that several checks share: error checks, device memory, and
 * times with a cold L2 cache. */
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(expr)                                                                                \
    do {                                                                                           \
        cudaError_t e_ = (expr);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #expr, cudaGetErrorString(e_)); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Memory is not released: the programs are short. */
template <typename T>
T *allocate(size_t n) {
    T *p;
    CHECK(cudaMalloc(&p, std::max(n, size_t(1)) * sizeof(T)));
    return p;
}

template <typename T>
T *upload(const std::vector<T> &v) {
    T *p = allocate<T>(v.size());
    CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

template <typename T>
std::vector<T> download(const T *p, size_t n) {
    std::vector<T> v(n);
    CHECK(cudaDeviceSynchronize()); /* kernels of all streams */
    CHECK(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

inline std::vector<int> equal(int n, int length) {
    return std::vector<int>(n, length);
}

/* Evicts the L2 cache by reads only. Dirty lines would be written back during the next
 * measurement. */
__global__ void flush_l2(const uint4 *buffer, size_t n, uint32_t *sink) {
    uint32_t x = 0;
    for (size_t i = blockIdx.x * 512ull + threadIdx.x; i < n; i += gridDim.x * 512ull) {
        const uint4 v = buffer[i];
        x ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (x == 0x12345678)
        *sink = x;
}

/* Measures the device time of `launch`, each time after a flush of L2. Calls it @reps times after
 * two calls that are not measured. Returns sorted times in us. */
template <typename F>
std::vector<float> time_cold(int reps, F &&launch) {
    const size_t n = size_t(16) << 20;
    static uint4 *buffer = nullptr;
    static uint32_t *sink = nullptr;
    if (!buffer) {
        buffer = allocate<uint4>(n);
        sink = allocate<uint32_t>(1);
        CHECK(cudaMemset(buffer, 1, n * sizeof(uint4)));
    }
    std::vector<cudaEvent_t> e(2 * reps);
    for (auto &x : e)
        CHECK(cudaEventCreate(&x));
    CHECK(cudaDeviceSynchronize());
    for (int i = -2; i < reps; i++) {
        flush_l2<<<1056, 512>>>(buffer, n, sink);
        if (i >= 0)
            CHECK(cudaEventRecord(e[2 * i]));
        launch();
        if (i >= 0)
            CHECK(cudaEventRecord(e[2 * i + 1]));
    }
    CHECK(cudaDeviceSynchronize());
    std::vector<float> us(reps);
    for (int i = 0; i < reps; i++) {
        CHECK(cudaEventElapsedTime(&us[i], e[2 * i], e[2 * i + 1]));
        us[i] *= 1e3f;
    }
    for (auto &x : e)
        CHECK(cudaEventDestroy(x));
    std::sort(us.begin(), us.end());
    return us;
}
