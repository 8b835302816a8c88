#include "kernels/cuda/sm90_bf16/launch.h"

#include "kernels/cuda/sm90_bf16/kernel.cuh"

namespace {

using encode_fn = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                               const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                               const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                               CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
encode_fn encode;

/* A map of bf16: `dims` innermost first, `strides` in bytes of dimensions 1 and up. */
cudaError_t make_map(CUtensorMap *map, const void *at, cuuint32_t rank, const cuuint64_t *dims,
                     const cuuint64_t *strides, const cuuint32_t *box) {
    const cuuint32_t ones[5] = {1, 1, 1, 1, 1};
    if (!encode)
        return cudaErrorInitializationError;
    CUresult r =
        encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, rank, const_cast<void *>(at), dims, strides,
               box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t make_maps(sm90_bf16::params &p, const bf16_decode_args &a) {
    using namespace sm90_bf16;
    const cuuint64_t tokens = static_cast<cuuint64_t>(a.pages) * PAGE, rows = p.rows;
    const cuuint64_t batch = a.batch, pitch = WIDTH * 2;
    const cuuint64_t kv[] = {SWIZZLE / 2, tokens, COLUMNS}, kv_stride[] = {pitch, SWIZZLE};
    const cuuint32_t kv_box[] = {SWIZZLE / 2, PAGE, 1};
    const cuuint64_t q[] = {SWIZZLE / 2, rows, COLUMNS, batch};
    const cuuint64_t q_stride[] = {pitch, SWIZZLE, rows * pitch};
    const cuuint32_t q_box[] = {SWIZZLE / 2, ROWS, COLUMNS - 1, 1};
    cudaError_t e = cudaSuccess;
    if (!SM90_BF16_WIDEN)
        e = make_map(&p.kv, a.kv, 3, kv, kv_stride, kv_box);
    return e == cudaSuccess ? make_map(&p.q, a.q, 4, q, q_stride, q_box) : e;
}

} // namespace

cudaError_t bf16_decode_init(void) {
    void *fn = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaError_t e = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &fn, 12000,
                                                     cudaEnableDefault, &found);
    if (e != cudaSuccess)
        return e;
    if (found != cudaDriverEntryPointSuccess)
        return cudaErrorNotSupported;
    encode = reinterpret_cast<encode_fn>(fn);
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
    p.partial_out = a.partial_out;
    p.partial_lse = a.partial_lse;
    p.counters = a.counters;
    p.heads = a.heads;
    p.s_q = a.s_q;
    p.row_tiles = bf16_row_tiles(a.heads, a.s_q);
    p.scale_log2 = a.softmax_scale * 1.44269504f;
    cudaLaunchAttribute resident = {};
    resident.id = cudaLaunchAttributeCooperative;
    resident.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = a.parts * p.row_tiles;
    config.blockDim = sm90_bf16::kThreads;
    config.dynamicSmemBytes = sizeof(sm90_bf16::shared);
    config.stream = stream;
    config.attrs = &resident;
    config.numAttrs = may_cut ? 1 : 0;
    return cudaLaunchKernelEx(&config, sm90_bf16::decode, p);
}
