/* Measures fixed costs: of the timer, of a launch, of one read of memory. Each is enqueued after a
 * long read, so the device is busy while the host enqueues it, and no useful data is left in its
 * caches. Also measures the rates of products in loops that run for seconds. */
#include <algorithm>
#include <chrono>
#include <vector>

#include "kernels/cuda/ceilings/cuda_probes.h"
#include "kernels/cuda/device.h"

namespace {

constexpr size_t kBytes = static_cast<size_t>(2) << 30;
constexpr int kRepeats = 21, kFewReads = 8, kManyReads = 136, kLaunches = 32;

__global__ void nothing() {
}

/* A chain of dependent reads: the address of each comes from the one before. */
__global__ void chase(const uint32_t *memory, uint32_t words, int reads, uint32_t *never) {
    uint32_t at = 0;
    for (int i = 0; i < reads; i++)
        at = __ldcg(memory + (at + i) % words);
    if (at == 0x12345678u)
        *never = at;
}

/* Median device time of the work that `launch` enqueues after the read. */
template <typename F>
cudaError_t time_after_read(cuda_backend *be, const read_memory &m, double *ns, F launch) {
    std::vector<float> ms(kRepeats);
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < kRepeats && e == cudaSuccess; i++) {
        e = probe_read_plain(m, be->sms, 8, 4, be->stream);
        if (e == cudaSuccess)
            e = cudaEventRecord(be->started, be->stream);
        if (e == cudaSuccess)
            e = launch();
        if (e == cudaSuccess)
            e = cudaEventRecord(be->stopped, be->stream);
        if (e == cudaSuccess)
            e = cudaEventSynchronize(be->stopped);
        if (e == cudaSuccess)
            e = cudaEventElapsedTime(&ms[i], be->started, be->stopped);
    }
    std::sort(ms.begin(), ms.end());
    *ns = static_cast<double>(ms[kRepeats / 2]) * 1e6;
    return e;
}

cudaError_t measure_times(cuda_backend *be, const read_memory &m, mla_limits *out) {
    const auto *words = reinterpret_cast<const uint32_t *>(m.at);
    const auto count = static_cast<uint32_t>(static_cast<size_t>(m.pages) * PROBE_PAGE / 4);
    double few = 0, many = 0;
    cudaError_t e = time_after_read(be, m, &out->timer_ns, [] { return cudaSuccess; });
    if (e == cudaSuccess)
        e = time_after_read(be, m, &out->launch_ns, [&] {
            nothing<<<be->sms, 128, 0, be->stream>>>();
            return cudaGetLastError();
        });
    for (const int reads : {kFewReads, kManyReads})
        if (e == cudaSuccess)
            e = time_after_read(be, m, reads == kFewReads ? &few : &many, [&] {
                chase<<<1, 1, 0, be->stream>>>(words, count, reads, m.never);
                return cudaGetLastError();
            });
    out->cold_read_ns = (many - few) / (kManyReads - kFewReads);
    return e;
}

double now_s() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/* The rate in the second half of the loop, after the clock has settled. */
cudaError_t sustain(cuda_backend *be, probe_product kind, double seconds, float *never,
                    double *rate) {
    const double start = now_s();
    double flop = 0, done = 0, took = 0;
    cudaError_t e = cudaSuccess;
    while (e == cudaSuccess && (now_s() < start + seconds || took == 0)) {
        float ms = 0;
        const bool settled = now_s() > start + seconds / 2;
        e = cudaEventRecord(be->started, be->stream);
        for (int i = 0; i < kLaunches && e == cudaSuccess; i++)
            e = be->hopper ? probe_wgmma(kind, be->sms, &flop, never, be->stream)
                           : probe_mma(be->sms, &flop, never, be->stream);
        if (e == cudaSuccess)
            e = cudaEventRecord(be->stopped, be->stream);
        if (e == cudaSuccess)
            e = cudaEventSynchronize(be->stopped);
        if (e == cudaSuccess)
            e = cudaEventElapsedTime(&ms, be->started, be->stopped);
        done += settled ? flop * kLaunches : 0;
        took += settled ? static_cast<double>(ms) * 1e-3 : 0;
    }
    *rate = done / took;
    return e;
}

} // namespace

snap_status cuda_limits(mla_backend *base, double seconds, mla_limits *out, snap_err *err) {
    cuda_backend *be = cuda_of(base);
    const int pages = kBytes / PROBE_PAGE;
    const size_t bytes = static_cast<size_t>(pages) * PROBE_PAGE;
    uint8_t *memory = nullptr;
    cudaError_t e = cudaMalloc(&memory, bytes + sizeof(uint32_t));
    const read_memory m = {memory, nullptr, pages, reinterpret_cast<uint32_t *>(memory + bytes)};
    auto *never = reinterpret_cast<float *>(m.never);
    if (e == cudaSuccess)
        e = probe_fill(memory, bytes, be->stream);
    if (e == cudaSuccess)
        e = measure_times(be, m, out);
    if (e == cudaSuccess)
        e = sustain(be, PROBE_BF16_N256, seconds, never, &out->bf16);
    if (e == cudaSuccess)
        e = sustain(be, PROBE_FP8_N256, seconds, never, &out->fp8);
    cudaFree(memory);
    return cuda_check(e, "measuring the limits", err);
}
