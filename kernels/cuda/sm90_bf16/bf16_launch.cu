#include "kernels/cuda/sm90_bf16/bf16_launch.h"

#include <algorithm>

#include "kernels/cuda/hopper.h"
#include "kernels/cuda/sm90_bf16/bf16_kernel.cuh"

namespace {

cudaError_t make_map(CUtensorMap *map, const void *at, int rank, const cuuint64_t *dims,
                     const cuuint64_t *strides, const cuuint32_t *box) {
    return tensor_map_make(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, at, rank, dims, strides, box);
}

cudaError_t make_maps(sm90_bf16::params &p, const bf16_decode_args &a) {
    using namespace sm90_bf16;
    const cuuint64_t tokens = static_cast<cuuint64_t>(a.pages) * PAGE, rows = p.rows;
    const cuuint64_t batch = a.batch, pitch = WIDTH * 2;
    const cuuint64_t kv[] = {SWIZZLE / 2, tokens, COLUMNS}, kv_stride[] = {pitch, SWIZZLE};
    const cuuint32_t kv_box[2][3] = {{SWIZZLE / 2, PAGE, 1}, {SWIZZLE / 2, PAGE, 2}};
    const cuuint64_t q[] = {SWIZZLE / 2, rows, COLUMNS, batch};
    const cuuint64_t q_stride[] = {pitch, SWIZZLE, rows * pitch};
    const cuuint32_t q_box[] = {SWIZZLE / 2, static_cast<cuuint32_t>(p.q_tile_rows), COLUMNS - 1,
                                1};
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < 2 && e == cudaSuccess && !SM90_BF16_WIDEN; i++)
        e = make_map(&p.kv[i], a.kv, 3, kv, kv_stride, kv_box[i]);
    return e == cudaSuccess ? make_map(&p.q, a.q, 4, q, q_stride, q_box) : e;
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

cudaError_t bf16_decode_launch(const bf16_decode_args &a, bool may_cut, cudaStream_t stream) {
    sm90_bf16::params p = {};
    p.rows = a.heads * a.s_q;
    p.q_tile_rows = std::min((p.rows + 7) / 8 * 8, int(sm90_bf16::ROWS));
    cudaError_t e = make_maps(p, a);
    if (e != cudaSuccess)
        return e;
    p.q_rows = static_cast<const uint32_t *>(a.q);
    p.content = static_cast<const uint8_t *>(a.kv);
    p.rope = static_cast<const uint8_t *>(a.rope);
    p.token_scale = a.token_scale;
    p.block_table = a.block_table;
    p.table_width = a.table_width;
    p.pages = a.pages;
    p.items = a.plan.items;
    p.parts = a.plan.parts;
    p.out = a.out;
    p.lse = a.lse;
    p.partials = static_cast<uint8_t *>(a.partials);
    p.counters = a.counters;
    p.heads = a.heads;
    p.s_q = a.s_q;
    p.row_tiles = bf16_row_tiles(a.heads, a.s_q);
    p.scale_log2 = a.softmax_scale * 1.44269504f;
    p.window = p.rows <= sm90_bf16::EXACT_ROWS ? 0 : sm90_bf16::kWindow;
    return decode_launch(reinterpret_cast<const void *>(sm90_bf16::decode), p.row_tiles, a.parts,
                         sm90_bf16::kThreads, sizeof(sm90_bf16::shared), &p, may_cut,
                         a.follows_prepare, stream);
}
