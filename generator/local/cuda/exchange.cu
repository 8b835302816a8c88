/* Implements exchange.h on CUDA devices. */
#include "generator/local/cuda/exchange_inside.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <sched.h>
#include <vector>

namespace device {
namespace {

enum { kWarmUps = 3 };
const double kOpenLimit = 60; /* seconds: the limit on each exchange while the GPUs are opened */

cuda_exchange *cuda_exchange_of(exchange *x) {
    return reinterpret_cast<cuda_exchange *>(x);
}

/* ---- waiting ---- */

/* Waits for the work on the stream. If the group or NCCL fails meanwhile, ends the work that
 * waits for another rank, and returns the failure. */
snap_status wait(cuda_exchange *x, const char *what, snap_err *err) {
    for (;;) {
        const cudaError_t e = cudaStreamQuery(x->stream);
        if (e == cudaSuccess)
            return SNAP_OK;
        if (e != cudaErrorNotReady)
            return cuda_check(e, what, err);
        (void)cudaGetLastError(); /* This clears the error: a later check of a launch must not get
                                     "not ready" */
        snap_status st = ranks_check(x->group, err);
        if (st == SNAP_OK)
            st = nccl_check(x->nccl, x->comm, err);
        if (st != SNAP_OK) {
            exchange_stop(x);
            return st;
        }
        sched_yield();
    }
}

/* One exchange, for which the limit of the group holds: calls @enqueue and waits for the work that
 * it has enqueued. */
template <typename F>
snap_status within_limit(cuda_exchange *x, snap_err *err, F enqueue) {
    snap_status st = ranks_begin(x->group, x->what, err);
    if (st == SNAP_OK)
        st = enqueue();
    if (st == SNAP_OK)
        st = wait(x, x->what, err);
    return st == SNAP_OK ? ranks_end(x->group, err) : st;
}

/* ---- the operation ---- */

size_t part_bytes(const cuda_exchange *x) {
    return static_cast<size_t>(x->call.bytes) / ranks_size(x->group);
}

snap_status enqueue_nccl(cuda_exchange *x, snap_err *err) {
    const nccl_type type = x->call.bf16 ? NCCL_BF16 : NCCL_FP32;
    const size_t element = x->call.bf16 ? 2 : 4, part = part_bytes(x) / element;
    switch (x->call.operation) {
    case EXCHANGE_ALL_REDUCE:
        return nccl_all_reduce(x->nccl, x->comm, type, x->send, x->recv,
                               static_cast<size_t>(x->call.bytes) / element, x->stream, err);
    case EXCHANGE_ALL_GATHER:
        return nccl_all_gather(x->nccl, x->comm, type, x->send, x->recv, part, x->stream, err);
    case EXCHANGE_REDUCE_SCATTER:
        return nccl_reduce_scatter(x->nccl, x->comm, type, x->send, x->recv, part, x->stream, err);
    default:
        return nccl_all_to_all(x->nccl, x->comm, type, x->send, x->recv, part, ranks_size(x->group),
                               x->stream, err);
    }
}

/* Makes the same calls as sums.cu. */
snap_status enqueue_step(cuda_exchange *x, snap_err *err) {
    const one_shot_group &g = x->peers.group;
    const size_t bytes = static_cast<size_t>(x->call.bytes), part = part_bytes(x);
    const bool overlap = x->properties.major >= 9;
    const auto *in = static_cast<const float *>(x->send);
    auto *out = static_cast<float *>(x->recv);
    cudaError_t e = cudaErrorInvalidValue;
    if (x->call.operation == EXCHANGE_ALL_REDUCE)
        e = one_shot_add(g, in, out, 1, bytes, overlap, x->stream);
    else if (x->call.operation == EXCHANGE_ALL_GATHER)
        e = one_shot_gather(g, in, out, part, part, overlap, x->stream);
    else if (x->call.operation == EXCHANGE_REDUCE_SCATTER)
        e = one_shot_scatter_add(g, in, out, part, part, overlap, x->stream);
    return cuda_check(e, x->what, err);
}

snap_status enqueue(cuda_exchange *x, snap_err *err) {
    if (x->call.path == EXCHANGE_NCCL)
        return enqueue_nccl(x, err);
    if (x->call.path == EXCHANGE_STEP)
        return enqueue_step(x, err);
    return cuda_check(one_shot_all_reduce(x->peers.group, x->send, x->recv,
                                          static_cast<size_t>(x->call.bytes), x->call.bf16,
                                          x->stream),
                      "one-shot all-reduce", err);
}

void release_graph(cuda_exchange *x) {
    if (x->exec)
        cudaGraphExecDestroy(x->exec);
    if (x->graph)
        cudaGraphDestroy(x->graph);
    x->exec = nullptr;
    x->graph = nullptr;
}

snap_status record_graph(cuda_exchange *x, snap_err *err) {
    snap_status st = cuda_check(cudaStreamBeginCapture(x->stream, cudaStreamCaptureModeThreadLocal),
                                "recording", err);
    for (int i = 0; i < x->call.graph && st == SNAP_OK; i++)
        st = enqueue(x, err);
    const cudaError_t ended = cudaStreamEndCapture(x->stream, &x->graph);
    if (st == SNAP_OK)
        st = cuda_check(ended, "recording", err);
    if (st == SNAP_OK)
        st = cuda_check(cudaGraphInstantiate(&x->exec, x->graph, 0), "recording", err);
    if (st == SNAP_OK)
        st = cuda_check(cudaGraphUpload(x->exec, x->stream), "recording", err);
    return st;
}

int64_t one_shot_bytes(const cuda_exchange *x) {
    return x->peers.usable ? ONE_SHOT_BYTES : 0;
}

snap_status prepare(exchange *base, const exchange_call *call, snap_err *err) {
    static const char *const names[] = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"};
    static const char *const paths[EXCHANGE_PATHS] = {"", "one-shot ", "step's "};
    cuda_exchange *x = cuda_exchange_of(base);
    release_graph(x);
    x->call = *call;
    snprintf(x->what, sizeof x->what, "%s%s of %lld bytes", paths[call->path],
             names[call->operation], static_cast<long long>(call->bytes));
    if (call->bytes > x->most_bytes)
        return err_set(err, SNAP_E_SHAPE, "%s is more than the buffers hold", x->what);
    if (!exchange_allows(call, ranks_size(x->group), one_shot_bytes(x)))
        return err_set(err, SNAP_E_SHAPE, "%s cannot go over peer memory", x->what);
    if (!call->graph)
        return SNAP_OK;
    /* NCCL connects the ranks at the first call of an operation, which must not be recorded. */
    snap_status st = within_limit(x, err, [&] { return enqueue(x, err); });
    return st == SNAP_OK ? within_limit(x, err, [&] { return record_graph(x, err); }) : st;
}

snap_status launch(cuda_exchange *x, snap_err *err) {
    return x->exec ? cuda_check(cudaGraphLaunch(x->exec, x->stream), x->what, err)
                   : enqueue(x, err);
}

snap_status run(exchange *base, snap_err *err) {
    cuda_exchange *x = cuda_exchange_of(base);
    return within_limit(x, err, [&] { return launch(x, err); });
}

/* ---- timing ---- */

struct event_list {
    std::vector<cudaEvent_t> at;
    ~event_list() {
        for (cudaEvent_t e : at)
            if (e)
                cudaEventDestroy(e);
    }
    cudaError_t create(size_t n) {
        at.assign(n, nullptr);
        for (cudaEvent_t &e : at)
            if (const cudaError_t failed = cudaEventCreate(&e); failed != cudaSuccess)
                return failed;
        return cudaSuccess;
    }
};

snap_status enqueue_timed(cuda_exchange *x, const event_list &events, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < kWarmUps && st == SNAP_OK; i++)
        st = launch(x, err);
    for (size_t i = 0; i < events.at.size() && st == SNAP_OK; i++) {
        st = cuda_check(cudaEventRecord(events.at[i], x->stream), "timer", err);
        if (i + 1 < events.at.size() && st == SNAP_OK)
            st = launch(x, err);
    }
    return st;
}

snap_status time_calls(exchange *base, int samples, double *ns, snap_err *err) {
    cuda_exchange *x = cuda_exchange_of(base);
    const int each = x->call.graph ? x->call.graph : 1;
    event_list events;
    snap_status st = cuda_check(events.create(static_cast<size_t>(samples) + 1), "timer", err);
    if (st == SNAP_OK)
        st = within_limit(x, err, [&] { return enqueue_timed(x, events, err); });
    for (int i = 0; i < samples && st == SNAP_OK; i++) {
        float ms = 0;
        st = cuda_check(cudaEventElapsedTime(&ms, events.at[i], events.at[i + 1]), "timer", err);
        ns[i] = static_cast<double>(ms) * 1e6 / each;
    }
    return st;
}

/* ---- filling and checking ---- */

snap_status fill(exchange *base, exchange_numbers kind, uint64_t seed, snap_err *err) {
    cuda_exchange *x = cuda_exchange_of(base);
    const auto bytes = static_cast<size_t>(x->call.bytes);
    const int byte = exchange_additions(&x->call) ? 0 : 0xff; /* numbers of 0xff bytes are NaN */
    cudaError_t e = cudaMemsetAsync(x->recv, byte, bytes, x->stream);
    if (e == cudaSuccess)
        e = exchange_fill(x->send, bytes, x->call.bf16, kind == EXCHANGE_INTEGERS,
                          exchange_largest(ranks_size(x->group)), seed, x->stream);
    const snap_status st = cuda_check(e, "filling the buffers", err);
    return st == SNAP_OK ? wait(x, "filling the buffers", err) : st;
}

size_t received_bytes(const cuda_exchange *x) {
    return x->call.operation == EXCHANGE_REDUCE_SCATTER ? part_bytes(x)
                                                        : static_cast<size_t>(x->call.bytes);
}

/* Copies x->word to *out. @e is what the launch of the kernel that computes it returned. */
snap_status fetch(cuda_exchange *x, cudaError_t e, uint64_t *out, const char *what, snap_err *err) {
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(x->host_word, x->word, sizeof *out, cudaMemcpyDeviceToHost, x->stream);
    snap_status st = cuda_check(e, what, err);
    if (st == SNAP_OK)
        st = wait(x, what, err);
    *out = *x->host_word;
    return st;
}

snap_status check(exchange *base, exchange_numbers kind, const uint64_t *seeds, int64_t *wrong,
                  snap_err *err) {
    cuda_exchange *x = cuda_exchange_of(base);
    const int size = ranks_size(x->group);
    uint64_t count = 0;
    cudaError_t e =
        cudaMemcpyAsync(x->seeds, seeds, sizeof *seeds * size, cudaMemcpyHostToDevice, x->stream);
    if (e == cudaSuccess)
        e = cudaMemsetAsync(x->word, 0, sizeof *x->word, x->stream);
    const exchange_expected want = {x->call.operation,
                                    x->call.bf16,
                                    kind == EXCHANGE_INTEGERS,
                                    exchange_largest(size),
                                    ranks_rank(x->group),
                                    size,
                                    exchange_additions(&x->call),
                                    x->seeds};
    if (e == cudaSuccess)
        e = exchange_compare(x->recv, received_bytes(x), want, x->word, x->stream);
    const snap_status st = fetch(x, e, &count, "checking the result", err);
    *wrong = static_cast<int64_t>(count);
    return st;
}

snap_status digest(exchange *base, uint64_t *out, snap_err *err) {
    cuda_exchange *x = cuda_exchange_of(base);
    cudaError_t e = cudaMemsetAsync(x->word, 0, sizeof *x->word, x->stream);
    if (e == cudaSuccess)
        e = exchange_hash(x->recv, received_bytes(x), x->word, x->stream);
    return fetch(x, e, out, "hashing the result", err);
}

/* ---- opening and closing ---- */

void describe(const exchange *base, exchange_info *out) {
    const auto *x = reinterpret_cast<const cuda_exchange *>(base);
    *out = {};
    snprintf(out->device, sizeof out->device, "%.100s", x->properties.name);
    snprintf(out->pci, sizeof out->pci, "%04x:%02x:%02x.0", x->properties.pciDomainID & 0xffff,
             x->properties.pciBusID & 0xff, x->properties.pciDeviceID & 0xff);
    out->nccl = nccl_version(x->nccl);
    out->one_shot_bytes = one_shot_bytes(x);
    snprintf(out->why_not, sizeof out->why_not, "%s", x->peers.why_not);
}

void close(exchange *base) {
    if (!base)
        return;
    cuda_exchange *x = cuda_exchange_of(base);
    release_graph(x);
    if (ranks_check(x->group, nullptr) != SNAP_OK)
        exchange_stop(x); /* nccl_leave() may wait for the others */
    else
        nccl_leave(x->nccl, x->comm);
    exchange_peers_close(&x->peers, x->group);
    cudaFree(x->send);
    cudaFree(x->recv);
    cudaFree(x->seeds);
    cudaFree(x->word);
    if (x->host_word)
        cudaFreeHost(x->host_word);
    if (x->stream)
        cudaStreamDestroy(x->stream);
    nccl_close(x->nccl);
    delete x;
}

exchange_ops make_ops() {
    exchange_ops ops = {};
    ops.close = close;
    ops.describe = describe;
    ops.prepare = prepare;
    ops.fill = fill;
    ops.run = run;
    ops.time = time_calls;
    ops.check = check;
    ops.digest = digest;
    return ops;
}

const exchange_ops kOps = make_ops();

/* A launcher may make only one GPU visible to each rank. That GPU has the number 0. */
snap_status choose_device(cuda_exchange *x, const exchange_options *opt, snap_err *err) {
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess || count == 0) {
        (void)cudaGetLastError();
        return err_set(err, SNAP_E_UNSUPPORTED, "no CUDA device: %s",
                       e == cudaSuccess ? "there is none" : cudaGetErrorString(e));
    }
    const int local = std::max(opt->local_rank, 0);
    const int number = opt->device >= 0 ? opt->device : count == 1 ? 0 : local;
    if (number >= count)
        return err_set(err, SNAP_E_USAGE, "there is no CUDA device %d; this machine has %d", number,
                       count);
    e = cudaSetDevice(number);
    if (e == cudaSuccess)
        e = cudaGetDeviceProperties(&x->properties, number);
    return cuda_check(e, "choosing the CUDA device", err);
}

snap_status allocate(cuda_exchange *x, int64_t most, snap_err *err) {
    const auto bytes = static_cast<size_t>(most);
    x->most_bytes = most;
    cudaError_t e = cudaStreamCreateWithFlags(&x->stream, cudaStreamNonBlocking);
    if (e == cudaSuccess)
        e = cudaMalloc(&x->send, bytes);
    if (e == cudaSuccess)
        e = cudaMalloc(&x->recv, bytes);
    if (e == cudaSuccess)
        e = cudaMalloc(&x->seeds, sizeof *x->seeds * RANKS_MOST);
    if (e == cudaSuccess)
        e = cudaMalloc(&x->word, sizeof *x->word);
    if (e == cudaSuccess)
        e = cudaHostAlloc(&x->host_word, sizeof *x->host_word, cudaHostAllocDefault);
    return cuda_check(e, "buffers of an exchange", err);
}

} // namespace

snap_status exchange_join(const nccl *library, nccl_comm **out, ranks *group, exchange_part part,
                          snap_err *err) {
    nccl_id id = {};
    std::vector<nccl_id> all(static_cast<size_t>(ranks_size(group)));
    const int rank = (ranks_rank(group) - part.first) / part.step;
    snap_status st = rank == 0 ? nccl_new_id(library, &id, err) : SNAP_OK;
    if (st == SNAP_OK)
        st = ranks_all_gather(group, "the identifier of NCCL", &id, sizeof id, all.data(), err);
    if (st == SNAP_OK)
        st = ranks_begin(group, "joining the communicator of NCCL", err);
    if (st == SNAP_OK)
        st = nccl_join(library, out, &all[static_cast<size_t>(part.first)], rank, part.size, err);
    return st == SNAP_OK ? ranks_end(group, err) : st;
}

void exchange_stop(cuda_exchange *x) {
    if (x->peers.host_stop)
        *static_cast<volatile uint32_t *>(x->peers.host_stop) = 1;
    if (x->nccl)
        nccl_abort(x->nccl, x->comm);
    x->comm = nullptr;
}

} // namespace device

extern "C" snap_status exchange_cuda_open(exchange **out, const exchange_options *opt,
                                          snap_err *err) {
    using namespace device;
    *out = nullptr;
    auto *x = new (std::nothrow) cuda_exchange{};
    if (!x)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an exchange");
    x->base.ops = &kOps;
    x->group = opt->group;
    const double limit = ranks_set_limit(x->group, kOpenLimit);
    snap_status st = nccl_open(&x->nccl, err);
    if (st == SNAP_OK)
        st = choose_device(x, opt, err);
    if (st == SNAP_OK)
        st = allocate(x, opt->most_bytes, err);
    if (st == SNAP_OK)
        st = exchange_join(x->nccl, &x->comm, x->group, {0, 1, ranks_size(x->group)}, err);
    if (st == SNAP_OK)
        st = exchange_peers_open(&x->peers, x->group, {0, 1, ranks_size(x->group)}, x->stream, err);
    (void)ranks_set_limit(x->group, limit);
    if (st == SNAP_OK) {
        *out = &x->base;
        return SNAP_OK;
    }
    if (err)
        ranks_fail(x->group, err); /* before close(), which otherwise waits for the others */
    close(&x->base);
    return st;
}
