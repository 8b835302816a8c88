/* Implements sums.h. */
#include <algorithm>
#include <new>
#include <sched.h>

#include "generator/local/cuda/exchange_inside.h"

extern "C" {
#include "generator/local/cuda/sums.h"
}

namespace device {
namespace {

enum { kThreads = 256, kMostBlocks = 1024 };
const double kOpenLimit = 60; /* seconds: the limit on each exchange while GPUs are connected */
const int64_t kFirstWarmUp = 4096; /* bytes */

struct cuda_sums {
    comm base;
    ranks *group;
    exchange_part part;
    int device;
    nccl *library;
    nccl_comm *joined; /* NULL = NCCL is not used */
    exchange_peers peers;
    int64_t one_shot; /* longest message of the one-shot kernel in bytes; 0 = it is not used */
    bool overlap;     /* as in one_shot_add() */
};

cuda_sums *sums_of(comm *c) {
    return reinterpret_cast<cuda_sums *>(c);
}

__global__ void __launch_bounds__(kThreads)
    add(float4 *x, const float4 *sum, int64_t n, float factor) {
    for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < n;
         i += int64_t(kThreads) * gridDim.x) {
        float4 v = x[i];
        const float4 s = sum[i];
        v.x += factor * s.x;
        v.y += factor * s.y;
        v.z += factor * s.z;
        v.w += factor * s.w;
        x[i] = v;
    }
}

/* Enqueues x [n] += factor * sum [n]. */
snap_status add_to(float *x, const float *sum, int64_t n, float factor, cudaStream_t stream,
                   snap_err *err) {
    const int64_t units = n / 4, blocks = (units + kThreads - 1) / kThreads;
    add<<<static_cast<unsigned>(std::min<int64_t>(blocks, kMostBlocks)), kThreads, 0, stream>>>(
        reinterpret_cast<float4 *>(x), reinterpret_cast<const float4 *>(sum), units, factor);
    return cuda_check(cudaGetLastError(), "adding a sum over the ranks", err);
}

snap_status by_nccl(cuda_sums *c, float *x, float *part, int64_t n, float factor,
                    cudaStream_t stream, snap_err *err) {
    const snap_status st = nccl_all_reduce(c->library, c->joined, NCCL_FP32, part, part,
                                           static_cast<size_t>(n), stream, err);
    return st == SNAP_OK ? add_to(x, part, n, factor, stream, err) : st;
}

snap_status by_one_shot(cuda_sums *c, float *x, float *part, int64_t n, float factor,
                        cudaStream_t stream, snap_err *err) {
    const int64_t most = c->one_shot / static_cast<int64_t>(sizeof *x);
    cudaError_t e = cudaSuccess;
    for (int64_t at = 0; at < n && e == cudaSuccess; at += most)
        e = one_shot_add(c->peers.group, part + at, x + at, factor,
                         static_cast<size_t>(std::min(most, n - at)) * sizeof *x, c->overlap,
                         stream);
    return cuda_check(e, "a sum over the ranks", err);
}

snap_status add_sum(comm *base, float *x, float *part, int64_t n, float factor, void *stream,
                    snap_err *err) {
    cuda_sums *c = sums_of(base);
    const auto on = static_cast<cudaStream_t>(stream);
    const sums_path path = sums_path_of(n * 4, c->one_shot, c->joined != nullptr);
    return path == SUMS_BY_NCCL ? by_nccl(c, x, part, n, factor, on, err)
                                : by_one_shot(c, x, part, n, factor, on, err);
}

/* The most rows that are summed and normalised in one kernel. In decode steps of up to 64 rows, one
 * kernel was measured to be as fast as two, or faster. Steps of more rows were not measured. */
enum { kNormedRows = 128 };

snap_status add_sum_norm(comm *base, float *x, float *part, float factor, const comm_norm *norm,
                         bool *normed, void *stream, snap_err *err) {
    cuda_sums *c = sums_of(base);
    const int64_t n = static_cast<int64_t>(norm->rows) * norm->width;
    const one_shot_norm to = {norm->weight, norm->eps,  norm->factor,
                              norm->to,     norm->rows, norm->width};
    const sums_path path = sums_path_of(n * 4, c->one_shot, c->joined != nullptr);
    *normed = path == SUMS_BY_ONE_SHOT && norm->rows <= kNormedRows &&
              one_shot_allows_norm(c->peers.group, to);
    if (!*normed)
        return add_sum(base, x, part, n, factor, stream, err);
    return cuda_check(one_shot_add_norm(c->peers.group, part, x, factor, to, c->overlap,
                                        static_cast<cudaStream_t>(stream)),
                      "a sum over the ranks and its norm", err);
}

/* ---- all-gather and reduce-scatter ---- */

snap_status gather(comm *base, const void *mine, void *all, int64_t bytes, void *stream,
                   snap_err *err) {
    cuda_sums *c = sums_of(base);
    const auto on = static_cast<cudaStream_t>(stream);
    if (sums_path_of(bytes, c->one_shot, c->joined != nullptr) == SUMS_BY_NCCL)
        return nccl_all_gather(c->library, c->joined, NCCL_FP32, mine, all,
                               static_cast<size_t>(bytes) / sizeof(float), on, err);
    cudaError_t e = cudaSuccess;
    for (int64_t at = 0; at < bytes && e == cudaSuccess; at += c->one_shot)
        e = one_shot_gather(c->peers.group, static_cast<const char *>(mine) + at,
                            static_cast<char *>(all) + at,
                            static_cast<size_t>(std::min(c->one_shot, bytes - at)),
                            static_cast<size_t>(bytes), c->overlap, on);
    return cuda_check(e, "an all-gather over the ranks", err);
}

/* NCCL writes the sum in place, over this rank's own part of its input. ncclReduceScatter allows
 * this. */
snap_status scatter_by_nccl(cuda_sums *c, float *x, float *part, int64_t n, cudaStream_t stream,
                            snap_err *err) {
    float *own = part + c->base.rank * n;
    const snap_status st = nccl_reduce_scatter(c->library, c->joined, NCCL_FP32, part, own,
                                               static_cast<size_t>(n), stream, err);
    return st == SNAP_OK ? add_to(x, own, n, 1, stream, err) : st;
}

snap_status scatter_sum(comm *base, float *x, float *part, int64_t n, void *stream, snap_err *err) {
    cuda_sums *c = sums_of(base);
    const auto on = static_cast<cudaStream_t>(stream);
    if (sums_path_of(n * 4, c->one_shot, c->joined != nullptr) == SUMS_BY_NCCL)
        return scatter_by_nccl(c, x, part, n, on, err);
    const int64_t most = c->one_shot / static_cast<int64_t>(sizeof *x);
    cudaError_t e = cudaSuccess;
    for (int64_t at = 0; at < n && e == cudaSuccess; at += most)
        e = one_shot_scatter_add(c->peers.group, part + at, x + at,
                                 static_cast<size_t>(std::min(most, n - at)) * sizeof *x,
                                 static_cast<size_t>(n) * sizeof *x, c->overlap, on);
    return cuda_check(e, "a reduce-scatter over the ranks", err);
}

/* ---- waiting ---- */

void stop(comm *base) {
    cuda_sums *c = sums_of(base);
    if (c->peers.host_stop)
        *static_cast<volatile uint32_t *>(c->peers.host_stop) = 1;
    if (c->library)
        nccl_abort(c->library, c->joined);
    c->joined = nullptr;
}

snap_status poll(cuda_sums *c, cudaStream_t stream, snap_err *err) {
    for (;;) {
        const cudaError_t e = cudaStreamQuery(stream);
        if (e == cudaSuccess)
            return SNAP_OK;
        if (e != cudaErrorNotReady)
            return cuda_check(e, "device work", err);
        (void)cudaGetLastError(); /* This clears the error: a later check of a launch must not get
                                     "not ready" */
        snap_status st = ranks_check(c->group, err);
        if (st == SNAP_OK && c->joined)
            st = nccl_check(c->library, c->joined, err);
        if (st != SNAP_OK) {
            stop(&c->base);
            return st;
        }
        sched_yield();
    }
}

snap_status wait(comm *base, void *stream, snap_err *err) {
    cuda_sums *c = sums_of(base);
    snap_status st = ranks_begin(c->group, "a step of the model", err);
    if (st != SNAP_OK)
        stop(base);
    else
        st = poll(c, static_cast<cudaStream_t>(stream), err);
    return st == SNAP_OK ? ranks_end(c->group, err) : st;
}

/* ---- opening and closing ---- */

/* Runs one exchange of @bytes of each kind that the model has. */
snap_status exchange_once(cuda_sums *c, float *numbers, int64_t bytes, bool gathers,
                          cudaStream_t stream, snap_err *err) {
    float *others = numbers + bytes / 4;
    if (!gathers)
        return add_sum(&c->base, numbers, others, bytes / 4, 1, stream, err);
    const snap_status st = gather(&c->base, numbers, others, bytes, stream, err);
    return st == SNAP_OK ? scatter_sum(&c->base, numbers, others, bytes / 4, stream, err) : st;
}

/* NCCL connects the ranks when an algorithm is used for the first time, and chooses the algorithm
 * by size. Connecting must not be recorded in a graph, so messages of all sizes are exchanged
 * here. */
snap_status warm_up(cuda_sums *c, int64_t most_bytes, bool gathers, cudaStream_t stream,
                    snap_err *err) {
    const size_t all =
        static_cast<size_t>(most_bytes) * static_cast<size_t>(gathers ? 1 + c->base.size : 2);
    float *numbers = nullptr;
    snap_status st =
        cuda_check(cudaMalloc(&numbers, all), "memory for exchanges between the ranks", err);
    if (st == SNAP_OK)
        st = cuda_check(cudaMemsetAsync(numbers, 0, all, stream),
                        "memory for exchanges between the ranks", err);
    for (int64_t bytes = std::min(kFirstWarmUp, most_bytes); st == SNAP_OK;
         bytes = std::min(4 * bytes, most_bytes)) {
        st = exchange_once(c, numbers, bytes, gathers, stream, err);
        if (st == SNAP_OK)
            st = wait(&c->base, stream, err);
        if (bytes == most_bytes)
            break;
    }
    cudaFree(numbers);
    return st;
}

/* Loads NCCL. If the group can do without it, a rank on which it cannot be loaded is no error. All
 * ranks use it, or none does. */
snap_status load_nccl(cuda_sums *c, snap_err *err) {
    bool all[RANKS_MOST] = {}, usable;
    snap_status st = nccl_open(&c->library, c->one_shot > 0 ? nullptr : err);
    if (st != SNAP_OK && c->one_shot == 0)
        return st;
    usable = st == SNAP_OK;
    st = ranks_all_gather(c->group, "whether there is NCCL", &usable, sizeof usable, all, err);
    for (int r = 0; r < ranks_size(c->group) && st == SNAP_OK; r++)
        usable &= all[r];
    if (st == SNAP_OK && !usable) {
        nccl_close(c->library);
        c->library = nullptr;
    }
    return st;
}

snap_status connect(cuda_sums *c, const sums_options *opt, cudaStream_t stream, snap_err *err) {
    const int64_t most = opt->gather_bytes > 0 ? SUMS_ONE_SHOT : sums_one_shot(c->part.size),
                  wanted = opt->one_shot_bytes < 0 ? most : opt->one_shot_bytes,
                  most_bytes =
                      (std::max<int64_t>({opt->most_bytes, opt->gather_bytes, 16}) + 15) / 16 * 16;
    snap_status st = SNAP_OK;
    if (wanted > 0)
        st = exchange_peers_open(&c->peers, c->group, c->part, stream, err);
    if (st == SNAP_OK && c->peers.usable)
        c->one_shot = std::min<int64_t>(wanted, ONE_SHOT_BYTES) / 16 * 16;
    if (st == SNAP_OK && most_bytes > c->one_shot)
        st = load_nccl(c, err);
    if (st == SNAP_OK && c->library)
        st = exchange_join(c->library, &c->joined, c->group, c->part, err);
    return st == SNAP_OK ? warm_up(c, most_bytes, opt->gather_bytes > 0, stream, err) : st;
}

snap_status open(cuda_sums *c, const sums_options *opt, snap_err *err) {
    cudaStream_t stream = nullptr;
    int major = 0;
    const double limit = ranks_set_limit(c->group, kOpenLimit);
    cudaError_t e = cudaSetDevice(c->device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, c->device);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    c->overlap = major >= 9;
    snap_status st = cuda_check(e, "opening the GPU of a rank", err);
    if (st == SNAP_OK)
        st = connect(c, opt, stream, err);
    if (stream)
        cudaStreamDestroy(stream);
    (void)ranks_set_limit(c->group, limit);
    return st;
}

} // namespace
} // namespace device

using namespace device;

extern "C" snap_status sums_cuda_open(comm **out, const sums_options *opt, snap_err *err) {
    *out = nullptr;
    auto *c = new (std::nothrow) cuda_sums{};
    if (!c)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a communicator");
    c->group = opt->group;
    c->part = {opt->first, std::max(opt->step, 1), opt->size};
    c->device = opt->device;
    c->base.rank = (ranks_rank(opt->group) - opt->first) / c->part.step;
    c->base.size = opt->size;
    c->base.add_sum = add_sum;
    c->base.add_sum_norm = add_sum_norm;
    c->base.wait = wait;
    c->base.stop = stop;
    c->base.gather = gather;
    c->base.scatter_sum = scatter_sum;
    const snap_status st = open(c, opt, err);
    if (st == SNAP_OK) {
        *out = &c->base;
        return SNAP_OK;
    }
    if (err)
        ranks_fail(c->group, err); /* before closing, which otherwise waits for the others */
    sums_cuda_close(&c->base);
    return st;
}

extern "C" void sums_cuda_close(comm *base) {
    if (!base)
        return;
    cuda_sums *c = sums_of(base);
    (void)cudaSetDevice(c->device);
    if (ranks_check(c->group, nullptr) != SNAP_OK)
        stop(base); /* nccl_leave() may wait for the others */
    else if (c->library)
        nccl_leave(c->library, c->joined);
    exchange_peers_close(&c->peers, c->group);
    nccl_close(c->library);
    delete c;
}

extern "C" int64_t sums_cuda_one_shot(const comm *base, const char **why_not) {
    const auto *c = reinterpret_cast<const cuda_sums *>(base);
    *why_not = c->peers.why_not;
    return c->one_shot;
}

extern "C" int sums_cuda_nccl(const comm *base) {
    const auto *c = reinterpret_cast<const cuda_sums *>(base);
    return c->joined ? nccl_version(c->library) : 0;
}
