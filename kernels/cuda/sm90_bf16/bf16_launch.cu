#include "kernels/cuda/sm90_bf16/bf16_launch.h"

#include <algorithm>

#include "kernels/cuda/hopper.h"
#include "kernels/cuda/sm90_bf16/bf16_kernel.cuh"

namespace {

cudaError_t make_map(CUtensorMap *map, const void *at, int rank, const cuuint64_t *dims,
                     const cuuint64_t *strides, const cuuint32_t *box) {
    return tensor_map_make(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, at, rank, dims, strides, box);
}

cudaError_t make_maps(sm90_bf16::params &p, const decode_args &a) {
    using namespace sm90_bf16;
    const cuuint64_t tokens = static_cast<cuuint64_t>(a.cache.pages) * PAGE, rows = p.rows;
    const cuuint64_t batch = a.step.batch, pitch = WIDTH * 2;
    const cuuint64_t kv[] = {SWIZZLE / 2, tokens, COLUMNS}, kv_stride[] = {pitch, SWIZZLE};
    const cuuint32_t kv_box[2][3] = {{SWIZZLE / 2, PAGE, 1}, {SWIZZLE / 2, PAGE, 2}};
    const cuuint64_t q[] = {SWIZZLE / 2, rows, COLUMNS, batch};
    const cuuint64_t q_stride[] = {pitch, SWIZZLE, rows * pitch};
    const cuuint32_t q_box[] = {SWIZZLE / 2, static_cast<cuuint32_t>(p.q_tile_rows), COLUMNS - 1,
                                1};
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < 2 && e == cudaSuccess && !SM90_BF16_WIDEN; i++)
        e = make_map(&p.kv[i], a.cache.content, 3, kv, kv_stride, kv_box[i]);
    return e == cudaSuccess ? make_map(&p.q, a.attn.q, 4, q, q_stride, q_box) : e;
}

} // namespace

cudaError_t bf16_decode_init(void) {
    const cudaError_t e = tensor_map_init();
    if (e != cudaSuccess)
        return e;
    return cudaFuncSetAttribute(sm90_bf16::decode, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                sizeof(sm90_bf16::shared));
}

int bf16_row_tiles(int heads, int s_q) {
    return (heads * s_q + sm90_bf16::ROWS - 1) / sm90_bf16::ROWS;
}

int bf16_decode_parts(int sms, int heads, int s_q) {
    const int row_tiles = bf16_row_tiles(heads, s_q);
    return sms > row_tiles ? sms / row_tiles : 1;
}

cudaError_t bf16_decode_launch(const decode_args &a, cudaStream_t stream) {
    sm90_bf16::params p = {};
    p.rows = decode_rows(a);
    p.q_tile_rows = std::min((p.rows + 7) / 8 * 8, int(sm90_bf16::ROWS));
    cudaError_t e = make_maps(p, a);
    if (e != cudaSuccess)
        return e;
    p.q_rows = static_cast<const uint32_t *>(a.attn.q);
    p.content = static_cast<const uint8_t *>(a.cache.content);
    p.rope = static_cast<const uint8_t *>(a.cache.rope);
    p.token_scale = a.cache.scale;
    p.io = decode_io_of(a);
    p.partials = static_cast<uint8_t *>(a.work.partial_out);
    p.counters = a.work.counters;
    p.heads = a.heads;
    p.s_q = a.step.s_q;
    p.row_tiles = bf16_row_tiles(a.heads, a.step.s_q);
    p.scale_log2 = decode_scale_log2(a);
    p.window = p.rows <= sm90_bf16::EXACT_ROWS ? 0 : sm90_bf16::kWindow;
    return decode_launch(reinterpret_cast<const void *>(sm90_bf16::decode), p.row_tiles,
                         a.grid.parts, sm90_bf16::kThreads, sizeof(sm90_bf16::shared), &p,
                         a.may_cut, a.follows_prepare, stream);
}
