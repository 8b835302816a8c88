#include "kernels/cuda/hopper.h"

namespace {

using encode_fn = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                               const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                               const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                               CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
encode_fn encode;

} // namespace

cudaError_t tensor_map_init(void) {
    void *fn = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaError_t e = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &fn, 12000,
                                                     cudaEnableDefault, &found);
    if (e != cudaSuccess)
        return e;
    encode = reinterpret_cast<encode_fn>(fn);
    return found == cudaDriverEntryPointSuccess ? cudaSuccess : cudaErrorNotSupported;
}

cudaError_t tensor_map_make(CUtensorMap *map, CUtensorMapDataType type, const void *at, int rank,
                            const cuuint64_t *dims, const cuuint64_t *strides,
                            const cuuint32_t *box) {
    const cuuint32_t ones[5] = {1, 1, 1, 1, 1};
    if (!encode)
        return cudaErrorInitializationError;
    CUresult r =
        encode(map, type, static_cast<cuuint32_t>(rank), const_cast<void *>(at), dims, strides, box,
               ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t decode_launch(const void *kernel, int row_tiles, int parts, int threads, size_t shared,
                          void *params, bool wait_for_each_other, bool follows_prepare,
                          cudaStream_t stream) {
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = wait_for_each_other;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = follows_prepare;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(row_tiles), static_cast<unsigned>(parts));
    config.blockDim = static_cast<unsigned>(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 2;
    void *args[] = {params};
    return cudaLaunchKernelExC(&config, kernel, args);
}
