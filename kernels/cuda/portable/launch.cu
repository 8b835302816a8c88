#include "kernels/cuda/portable/launch.h"

#include "kernels/cuda/portable/kernel.cuh"

namespace {

constexpr int kCtasPerSm = 2; /* as registers allow; shared memory may allow one only */

int shared_limit() {
    int device = 0, bytes = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
            cudaSuccess)
        return 0;
    return bytes;
}

int row_tiles_of(int heads, int s_q) {
    return (heads * s_q + portable::ROWS - 1) / portable::ROWS;
}

portable::params params_of(const portable_args &a) {
    portable::params p = {};
    p.d_c = a.d_c;
    p.d_r = a.d_r;
    p.pitch = 2 * (a.d_c + a.d_r) + 16;
    p.content = static_cast<const uint8_t *>(a.content);
    p.rope = static_cast<const uint8_t *>(a.rope);
    p.token_scale = a.token_scale;
    p.q = static_cast<const uint8_t *>(a.q);
    p.q_rope = static_cast<const uint8_t *>(a.q_rope);
    p.q_scale = a.q_scale;
    p.block_table = a.block_table;
    p.table_width = a.table_width;
    p.pages = a.pages;
    p.items = a.plan.items;
    p.parts = a.plan.parts;
    p.out = a.out;
    p.lse = a.lse;
    p.partial_out = a.partial_out;
    p.partial_lse = a.partial_lse;
    p.rows = a.heads * a.s_q;
    p.heads = a.heads;
    p.s_q = a.s_q;
    p.row_tiles = row_tiles_of(a.heads, a.s_q);
    p.scale_log2 = a.softmax_scale * 1.44269504f;
    return p;
}

} // namespace

cudaError_t portable_init(void) {
    const int bytes = shared_limit();
    cudaError_t e = cudaFuncSetAttribute(portable::decode<false>,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(portable::decode<true>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    return e;
}

bool portable_serves(int d_c, int d_r) {
    return d_c <= PORTABLE_MAX_CONTENT && d_r <= PORTABLE_MAX_ROPE && d_c % 32 == 0 &&
           d_r % 32 == 0 && portable::memory_bytes(d_c, d_r) <= static_cast<size_t>(shared_limit());
}

int portable_parts(int sms, int heads, int s_q) {
    const int ctas = kCtasPerSm * sms, row_tiles = row_tiles_of(heads, s_q);
    return ctas > row_tiles ? ctas / row_tiles : 1;
}

cudaError_t portable_launch(const portable_args &a, bool may_cut, cudaStream_t stream) {
    const portable::params p = params_of(a);
    const size_t bytes = portable::memory_bytes(a.d_c, a.d_r);
    const int ctas = a.parts * p.row_tiles;
    if (a.token_scale)
        portable::decode<true><<<ctas, portable::kThreads, bytes, stream>>>(p);
    else
        portable::decode<false><<<ctas, portable::kThreads, bytes, stream>>>(p);
    const cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess || !may_cut)
        return e;
    const combine_args merge = {a.plan, a.partial_out, a.partial_lse, a.out,
                                a.lse,  a.batch,       p.rows,        a.d_c};
    return combine_launch(merge, a.parts, stream);
}
