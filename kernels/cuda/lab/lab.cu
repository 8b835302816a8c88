/* lab.h on a CUDA device: filling, flushing, generating rows, recording, and the table of all
 * functions. */
#include <cstdint>
#include <new>

#include "kernels/cuda/device.h"

/* Recorded work, as a CUDA graph. */
struct lab_recording {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
};

namespace {

enum { kThreads = 256, kWarps = kThreads / 32, kFlushTimes = 4, kLeastFlush = 256 << 20 };

/* ---- flushing ------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(kThreads) read_all(const uint4 *from, size_t n, uint32_t *never) {
    uint32_t sum = 0;
    const size_t step = static_cast<size_t>(gridDim.x) * kThreads;
#pragma unroll 8
    for (size_t i = blockIdx.x * static_cast<size_t>(kThreads) + threadIdx.x; i < n; i += step) {
        const uint4 x = from[i];
        sum |= x.x | x.y | x.z | x.w;
    }
    if (sum) /* the memory is all zeros; the possible store keeps the compiler from removing the
                loads */
        *never = sum;
}

size_t flush_bytes(const cuda_backend *be) {
    const size_t caches = static_cast<size_t>(be->device.l2CacheSize) * kFlushTimes;
    return caches > kLeastFlush ? caches : kLeastFlush;
}

snap_status flush(mla_backend *base, snap_err *err) {
    cuda_backend *be = cuda_of(base);
    const size_t bytes = flush_bytes(be);
    if (!be->flush_memory) {
        cudaError_t e = cudaMalloc(&be->flush_memory, bytes);
        if (e == cudaSuccess)
            e = cudaMemsetAsync(be->flush_memory, 0, bytes, be->stream);
        if (e != cudaSuccess)
            return cuda_check(e, "memory that flushes the cache", err);
    }
    auto *memory = static_cast<uint4 *>(be->flush_memory);
    read_all<<<be->sms * 8, kThreads, 0, be->stream>>>(memory, bytes / sizeof(uint4),
                                                       reinterpret_cast<uint32_t *>(memory));
    return cuda_check(cudaGetLastError(), "flushing the cache", err);
}

snap_status fill(mla_backend *be, void *device, int byte, size_t bytes, snap_err *err) {
    return cuda_check(cudaMemsetAsync(device, byte, bytes, cuda_of(be)->stream), "filling memory",
                      err);
}

/* ---- generating rows: one warp per row ------------------------------------------------------- */

__global__ void __launch_bounds__(kThreads)
    draw(draw_source from, const uint64_t *first, int64_t rows_per_group, int64_t rows,
         uint16_t *out) {
    const int lane = threadIdx.x % 32, width = from.d_c + from.d_r;
    for (int64_t i = blockIdx.x * int64_t(kWarps) + threadIdx.x / 32; i < rows;
         i += gridDim.x * int64_t(kWarps)) {
        const uint64_t index =
            first[i / rows_per_group] + static_cast<uint64_t>(i % rows_per_group);
        const draw_parts p = draw_parts_of(from.seed, index, from.d_c);
        const uint16_t *content = from.pool + static_cast<size_t>(p.content) * width;
        const uint16_t *rope = from.pool + static_cast<size_t>(p.rope) * width;
        uint16_t *to = out + i * width;
        const int left = from.d_c - static_cast<int>(p.turn);
        for (int d = lane; d < from.d_c; d += 32)
            to[d] = content[d < left ? d + static_cast<int>(p.turn) : d - left];
        for (int d = from.d_c + lane; d < width; d += 32)
            to[d] = rope[d];
    }
}

snap_status draw_rows(mla_backend *base, const draw_source *from, const uint64_t *first, int groups,
                      int64_t rows, void *out, snap_err *err) {
    const cuda_backend *be = cuda_of(base);
    const int64_t all = groups * rows, blocks = (all + kWarps - 1) / kWarps, most = be->sms * 16;
    if (all == 0)
        return SNAP_OK;
    draw<<<static_cast<unsigned>(blocks < most ? blocks : most), kThreads, 0, be->stream>>>(
        *from, first, rows, all, static_cast<uint16_t *>(out));
    return cuda_check(cudaGetLastError(), "drawing random rows", err);
}

/* ---- recording ------------------------------------------------------------------------------- */

snap_status record(mla_backend *be, snap_err *err) {
    return cuda_check(cudaStreamBeginCapture(cuda_of(be)->stream, cudaStreamCaptureModeThreadLocal),
                      "recording a step", err);
}

void recording_free(mla_backend *, lab_recording *r) {
    if (r->exec)
        cudaGraphExecDestroy(r->exec);
    if (r->graph)
        cudaGraphDestroy(r->graph);
    delete r;
}

snap_status record_end(mla_backend *be, lab_recording **out, snap_err *err) {
    auto *r = new (std::nothrow) lab_recording{};
    if (!r)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a recording");
    cudaError_t e = cudaStreamEndCapture(cuda_of(be)->stream, &r->graph);
    if (e == cudaSuccess)
        e = cudaGraphInstantiate(&r->exec, r->graph, 0);
    if (e == cudaSuccess)
        e = cudaGraphUpload(r->exec, cuda_of(be)->stream);
    if (e == cudaSuccess)
        *out = r;
    else
        recording_free(be, r);
    return cuda_check(e, "recording a step", err);
}

snap_status replay(mla_backend *be, lab_recording *r, snap_err *err) {
    return cuda_check(cudaGraphLaunch(r->exec, cuda_of(be)->stream), "a recorded step", err);
}

} // namespace

const mla_lab_ops cuda_lab_ops = {
    cuda_plan_kernel, fill,   flush,          draw_rows,   cuda_unfused,         record,
    record_end,       replay, recording_free, cuda_attend, cuda_plan_create_lab,
};
