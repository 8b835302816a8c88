/* Measures the device's ceilings. The loops of a ceiling run in turn, in windows of about a
 * millisecond. The best window of the best loop counts. cuda_probe_once() runs one window of each
 * probe. */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cuda/ceilings/cuda_probes.h"
#include "kernels/cuda/device.h"

namespace {

constexpr size_t kReadBytes = static_cast<size_t>(2) << 30;

struct loop {
    const char *name;
    double best, worst; /* rates */
};

double now_s() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/* Measures the device time of the work that `launch` enqueues. */
template <typename F>
cudaError_t window(cuda_backend *be, double *seconds, F launch) {
    float ms = 0;
    cudaError_t e = cudaEventRecord(be->started, be->stream);
    if (e == cudaSuccess)
        e = launch();
    if (e == cudaSuccess)
        e = cudaEventRecord(be->stopped, be->stream);
    if (e == cudaSuccess)
        e = cudaEventSynchronize(be->stopped);
    if (e == cudaSuccess)
        e = cudaEventElapsedTime(&ms, be->started, be->stopped);
    *seconds = ms * 1e-3;
    return e;
}

/* Reports the best loop. If that is not loop @also, the report has the rate of @also, too. */
void report(mla_ceiling *out, const loop *loops, int n, int64_t windows, int also, double unit,
            const char *unit_name) {
    const loop *best = std::max_element(
        loops, loops + n, [](const loop &a, const loop &b) { return a.best < b.best; });
    out->rate = best->best;
    out->worst_window = best->worst;
    out->windows = windows;
    if (best == &loops[also])
        snprintf(out->how, sizeof out->how, "%s", best->name);
    else
        snprintf(out->how, sizeof out->how, "%s; %s: %.4g %s", best->name, loops[also].name,
                 loops[also].best / unit, unit_name);
}

/* Runs the loops in turn for @seconds and stores their best and worst rates. `run(i, &amount)`
 * enqueues loop i once and sets the amount of its work. */
template <typename F>
cudaError_t measure(cuda_backend *be, loop *loops, int n, double seconds, int64_t *windows, F run) {
    const double end = now_s() + seconds;
    cudaError_t e = cudaSuccess;
    for (*windows = 0; e == cudaSuccess && (*windows < 2 * n || now_s() < end); ++*windows) {
        loop &l = loops[*windows % n];
        double amount = 0, took = 0;
        e = window(be, &took, [&] { return run(static_cast<int>(*windows % n), &amount); });
        const double rate = amount / took;
        if (*windows < n || e != cudaSuccess) /* the first window of each loop is a warm-up */
            continue;
        l.best = std::max(l.best, rate);
        l.worst = l.worst == 0 ? rate : std::min(l.worst, rate);
    }
    return e;
}

cudaError_t read_ceiling(cuda_backend *be, double seconds, mla_ceilings *out) {
    static const int shape[][2] = {{8, 4}, {8, 8}, {4, 8}, {2, 8}, {4, 32}, {8, 64}};
    enum { kPlain = sizeof shape / sizeof *shape };
    loop loops[] = {{"8 loads ahead, 4 blocks/SM", 0, 0},  {"8 loads ahead, 8 blocks/SM", 0, 0},
                    {"4 loads ahead, 8 blocks/SM", 0, 0},  {"2 loads ahead, 8 blocks/SM", 0, 0},
                    {"4 loads ahead, 32 blocks/SM", 0, 0}, {"8 loads ahead, 64 blocks/SM", 0, 0},
                    {"bulk copies of 40 KB", 0, 0}};
    std::vector<int> order(kReadBytes / PROBE_PAGE);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    uint8_t *memory = nullptr;
    const size_t bytes = order.size() * PROBE_PAGE, order_bytes = order.size() * sizeof(int);
    cudaError_t e = cudaMalloc(&memory, bytes + order_bytes + sizeof(uint32_t));
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(memory + bytes, order.data(), order_bytes, cudaMemcpyHostToDevice,
                            be->stream);
    if (e == cudaSuccess)
        e = probe_fill(memory, bytes, be->stream);
    const read_memory m = {memory, reinterpret_cast<int *>(memory + bytes),
                           static_cast<int>(order.size()),
                           reinterpret_cast<uint32_t *>(memory + bytes + order_bytes)};
    const int n = be->hopper ? kPlain + 1 : kPlain;
    int64_t windows = 0;
    if (e == cudaSuccess)
        e = measure(be, loops, n, seconds, &windows, [&](int i, double *amount) {
            *amount = static_cast<double>(bytes);
            return i == kPlain ? probe_read_bulk(m, be->sms, be->stream)
                               : probe_read_plain(m, be->sms, shape[i][0], shape[i][1], be->stream);
        });
    if (e == cudaSuccess)
        report(&out->read, loops, n, windows, n - 1, 1e12, "TB/s");
    out->read_bytes = bytes;
    cudaFree(memory);
    return e;
}

cudaError_t wgmma_ceiling(cuda_backend *be, double seconds, float *never, const probe_product *kind,
                          mla_ceiling *out) {
    loop loops[] = {{"wgmma, N = 256", 0, 0}, {"N = 64", 0, 0}};
    int64_t windows = 0;
    cudaError_t e = measure(be, loops, 2, seconds, &windows, [&](int i, double *flop) {
        return probe_wgmma(kind[i], be->sms, flop, never, be->stream);
    });
    if (e == cudaSuccess)
        report(out, loops, 2, windows, 1, 1e12, "TFLOP/s");
    return e;
}

cudaError_t mma_ceiling(cuda_backend *be, double seconds, float *never, mla_ceiling *out) {
    loop loops[] = {{"mma.sync m16n8k16", 0, 0}};
    int64_t windows = 0;
    cudaError_t e = measure(be, loops, 1, seconds, &windows, [&](int, double *flop) {
        return probe_mma(be->sms, flop, never, be->stream);
    });
    if (e == cudaSuccess)
        report(out, loops, 1, windows, 0, 1e12, "TFLOP/s");
    return e;
}

cudaError_t product_ceilings(cuda_backend *be, double seconds, mla_ceilings *out) {
    static const probe_product bf16[] = {PROBE_BF16_N256, PROBE_BF16_N64};
    static const probe_product fp8[] = {PROBE_FP8_N256, PROBE_FP8_N64};
    float *never = nullptr;
    cudaError_t e = cudaMalloc(&never, sizeof *never);
    out->fp8_native = be->hopper;
    if (e == cudaSuccess && be->hopper) {
        e = wgmma_ceiling(be, seconds, never, bf16, &out->bf16);
        if (e == cudaSuccess)
            e = wgmma_ceiling(be, seconds, never, fp8, &out->fp8);
    } else if (e == cudaSuccess) {
        e = mma_ceiling(be, seconds, never, &out->bf16);
        out->fp8 = out->bf16; /* e4m3 is dequantised to bf16 on chip */
    }
    cudaFree(never);
    return e;
}

/* ---- one window of each probe -----------------------------------------------------------------
 * */

/* Memory of random bytes, followed by a word that is practically never written. */
cudaError_t probe_memory(cuda_backend *be, read_memory *out) {
    const size_t share = be->device.totalGlobalMem / 16; /* a sixteenth of the device's memory at
                                                            most */
    const int pages = static_cast<int>(std::min(kReadBytes, share) / PROBE_PAGE);
    const size_t bytes = static_cast<size_t>(pages) * PROBE_PAGE;
    cudaError_t e = cudaSuccess;
    if (!be->probe_memory) {
        e = cudaMalloc(&be->probe_memory, bytes + sizeof(uint32_t));
        if (e == cudaSuccess)
            e = probe_fill(static_cast<uint8_t *>(be->probe_memory), bytes, be->stream);
    }
    auto *at = static_cast<uint8_t *>(be->probe_memory);
    *out = {at, nullptr, pages, reinterpret_cast<uint32_t *>(at + bytes)};
    return e;
}

cudaError_t product_probe_once(cuda_backend *be, probe_product kind, float *never, double *rate) {
    double flop = 0, took = 0;
    const cudaError_t e = window(be, &took, [&] {
        return be->hopper ? probe_wgmma(kind, be->sms, &flop, never, be->stream)
                          : probe_mma(be->sms, &flop, never, be->stream);
    });
    *rate = flop / took;
    return e;
}

} // namespace

/* Uses one fixed loop for each ceiling: on Hopper those that were the fastest on an H200
 * (results/nvidia-h200). */
snap_status cuda_probe_once(mla_backend *base, mla_probe_rates *out, snap_err *err) {
    cuda_backend *be = cuda_of(base);
    read_memory m = {};
    double took = 0;
    cudaError_t e = probe_memory(be, &m);
    auto *never = reinterpret_cast<float *>(m.never);
    if (e == cudaSuccess)
        e = window(be, &took, [&] { return probe_read_plain(m, be->sms, 8, 4, be->stream); });
    out->read = static_cast<double>(m.pages) * PROBE_PAGE / took;
    if (e == cudaSuccess)
        e = product_probe_once(be, PROBE_BF16_N256, never, &out->bf16);
    if (e == cudaSuccess)
        e = product_probe_once(be, PROBE_FP8_N256, never, &out->fp8);
    return cuda_check(e, "probing the ceilings", err);
}

snap_status cuda_ceilings(mla_backend *base, double seconds, mla_ceilings *out, snap_err *err) {
    cuda_backend *be = cuda_of(base);
    cudaError_t e = read_ceiling(be, seconds, out);
    if (e == cudaSuccess)
        e = product_ceilings(be, seconds, out);
    return cuda_check(e, "measuring the ceilings", err);
}
