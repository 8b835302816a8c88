#include "generator/local/cuda/maps.h"

namespace device {
namespace {

using encode_fn = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                               const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                               const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                               CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
encode_fn encode;

cuuint64_t unsigned_of(int64_t x) {
    return static_cast<cuuint64_t>(x);
}

/* What a map's numbers are. */
struct element {
    CUtensorMapDataType type;
    int64_t bytes;
    CUtensorMapSwizzle swizzle;
};

/* Matrices in memory; pitches in numbers. groups = 0: one matrix and a map of two dimensions. */
struct matrices {
    int64_t cols, rows, pitch, groups, group_pitch;
};

cudaError_t encode_map(CUtensorMap *map, const element &e, const void *at, const matrices &m,
                       int box_cols, int box_rows) {
    const cuuint64_t dims[] = {unsigned_of(m.cols), unsigned_of(m.rows), unsigned_of(m.groups)};
    const cuuint64_t strides[] = {unsigned_of(m.pitch * e.bytes),
                                  unsigned_of(m.group_pitch * e.bytes)};
    const cuuint32_t box[] = {static_cast<cuuint32_t>(box_cols), static_cast<cuuint32_t>(box_rows),
                              1},
                     ones[] = {1, 1, 1};
    if (!encode)
        return cudaErrorInitializationError;
    const CUresult r =
        encode(map, e.type, m.groups ? 3 : 2, const_cast<void *>(at), dims, strides, box, ones,
               CU_TENSOR_MAP_INTERLEAVE_NONE, e.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

} // namespace

cudaError_t maps_init() {
    void *fn = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t e = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &fn, 12000,
                                                           cudaEnableDefault, &found);
    if (e != cudaSuccess)
        return e;
    if (found != cudaDriverEntryPointSuccess)
        return cudaErrorNotSupported;
    encode = reinterpret_cast<encode_fn>(fn);
    return cudaSuccess;
}

cudaError_t map_groups(CUtensorMap *map, const bf16 *at, int64_t cols, int64_t rows, int64_t pitch,
                       int64_t groups, int64_t group_pitch, int box_cols, int box_rows) {
    return encode_map(map, {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, CU_TENSOR_MAP_SWIZZLE_128B}, at,
                      {cols, rows, pitch, groups, group_pitch}, box_cols, box_rows);
}

cudaError_t map_rows(CUtensorMap *map, const bf16 *at, int64_t cols, int64_t rows, int64_t pitch,
                     int box_cols, int box_rows) {
    return map_groups(map, at, cols, rows, pitch, 0, 0, box_cols, box_rows);
}

cudaError_t map_codes(CUtensorMap *map, const uint8_t *at, int64_t cols, int64_t rows,
                      int64_t groups, int box_cols, int box_rows) {
    return encode_map(map, {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, CU_TENSOR_MAP_SWIZZLE_128B}, at,
                      {cols, rows, cols, groups, rows * cols}, box_cols, box_rows);
}

cudaError_t map_floats(CUtensorMap *map, const float *at, int64_t cols, int64_t rows,
                       int64_t groups, int box_cols, int box_rows) {
    return encode_map(map, {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, CU_TENSOR_MAP_SWIZZLE_NONE}, at,
                      {cols, rows, cols, groups, rows * cols}, box_cols, box_rows);
}

} // namespace device
