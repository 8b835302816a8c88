#include "kernels/cuda/portable/portable_launch.h"

#include "kernels/cuda/merge/combine.h"
#include "kernels/cuda/portable/portable_kernel.cuh"

namespace {

constexpr int kCtasPerSm = 2; /* the registers allow two; with wide rows, shared memory allows only
                                 one */

constexpr int kDevices = 64; /* most devices of a machine */

/* Bytes of shared memory that one CTA and one SM may use, as portable_init() has set them. */
struct shared_memory {
    int limit, of_sm;
};
shared_memory shared_of_device[kDevices];

int current_device() {
    int device = 0;
    return cudaGetDevice(&device) == cudaSuccess && device < kDevices ? device : 0;
}

int device_number(cudaDeviceAttr what) {
    int n = 0;
    return cudaDeviceGetAttribute(&n, what, current_device()) == cudaSuccess ? n : 0;
}

int row_tiles_of(int heads, int s_q) {
    return (heads * s_q + portable::ROWS - 1) / portable::ROWS;
}

portable::params params_of(const decode_args &a) {
    portable::params p = {};
    p.d_c = a.d_c;
    p.d_r = a.d_r;
    p.pitch = 2 * (a.d_c + a.d_r) + 16;
    p.content = static_cast<const uint8_t *>(a.cache.content);
    p.rope = static_cast<const uint8_t *>(a.cache.rope);
    p.token_scale = a.cache.scale;
    p.q = static_cast<const uint8_t *>(a.attn.q);
    p.q_rope = static_cast<const uint8_t *>(a.attn.q_rope);
    p.q_scale = a.attn.q_scale;
    p.io = decode_io_of(a);
    p.partial_out = static_cast<float *>(a.work.partial_out);
    p.partial_lse = a.work.partial_lse;
    p.rows = decode_rows(a);
    p.heads = a.heads;
    p.s_q = a.step.s_q;
    p.row_tiles = row_tiles_of(a.heads, a.step.s_q);
    p.scale_log2 = decode_scale_log2(a);
    return p;
}

/* True if `ctas` CTAs with that step fit into an SM's shared memory. The system takes 1 KB for each
 * CTA. */
template <int kStep>
bool fits(int d_c, int d_r, int ctas) {
    const size_t bytes = portable::memory_bytes<kStep>(d_c, d_r);
    const shared_memory &has = shared_of_device[current_device()];
    return bytes <= static_cast<size_t>(has.limit) &&
           ctas * (bytes + 1024) <= static_cast<size_t>(has.of_sm);
}

/* Chooses the number of tokens per step: the most with which two CTAs fit on an SM, so that one CTA
 * can compute while the other waits at a barrier. If there is none, takes the most with which one
 * CTA fits. Returns 0 if none fits. */
int step_of(int d_c, int d_r) {
    for (int ctas = kCtasPerSm; ctas > 0; ctas--) {
        if (fits<portable::kLongStep>(d_c, d_r, ctas))
            return portable::kLongStep;
        if (fits<portable::kShortStep>(d_c, d_r, ctas))
            return portable::kShortStep;
    }
    return 0;
}

template <int kStep>
cudaError_t launch(const decode_args &a, const portable::params &p, cudaStream_t stream) {
    const size_t bytes = portable::memory_bytes<kStep>(a.d_c, a.d_r);
    const int ctas = a.grid.parts * p.row_tiles;
    if (a.precision == MLA_FP8)
        portable::decode<true, kStep><<<ctas, portable::kThreads, bytes, stream>>>(p);
    else
        portable::decode<false, kStep><<<ctas, portable::kThreads, bytes, stream>>>(p);
    return cudaGetLastError();
}

template <int kStep>
cudaError_t allow(int limit) {
    cudaError_t e = cudaFuncSetAttribute(portable::decode<false, kStep>,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, limit);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(portable::decode<true, kStep>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, limit);
    return e;
}

} // namespace

cudaError_t portable_init(int limit) {
    const int most = device_number(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    const int of_sm = device_number(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    const bool less = limit > 0 && limit < most;
    const shared_memory has = {less ? limit : most, less ? limit + 1024 : of_sm};
    shared_of_device[current_device()] = has;
    const cudaError_t e = allow<portable::kLongStep>(has.limit);
    return e == cudaSuccess ? allow<portable::kShortStep>(has.limit) : e;
}

bool portable_serves(int d_c, int d_r) {
    return d_c <= PORTABLE_MAX_CONTENT && d_r <= PORTABLE_MAX_ROPE && d_c % 32 == 0 &&
           d_r % 32 == 0 && step_of(d_c, d_r) > 0;
}

int portable_parts(int sms, int heads, int s_q) {
    const int ctas = kCtasPerSm * sms, row_tiles = row_tiles_of(heads, s_q);
    return ctas > row_tiles ? ctas / row_tiles : 1;
}

cudaError_t portable_launch(const decode_args &a, cudaStream_t stream) {
    const portable::params p = params_of(a);
    const cudaError_t e = step_of(a.d_c, a.d_r) == portable::kLongStep
                              ? launch<portable::kLongStep>(a, p, stream)
                              : launch<portable::kShortStep>(a, p, stream);
    if (e != cudaSuccess || !a.may_cut)
        return e;
    const combine_args merge = {a.work.metadata, p.partial_out, p.partial_lse, p.io.out,
                                p.io.lse,        a.step.batch,  p.rows,        a.d_c};
    return combine_launch(merge, a.grid.parts, stream);
}
