/* hopper.h - launch helpers of the Hopper decode kernels: tensor maps, and the launch itself. */
#ifndef SNAPMLA_KERNELS_CUDA_HOPPER_H
#define SNAPMLA_KERNELS_CUDA_HOPPER_H

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Finds the driver's function that encodes tensor maps. Must be called before tensor_map_make().
 * Further calls do no harm. */
cudaError_t tensor_map_init(void);

/* Describes an array in device memory for TMA: innermost dimension first, `strides` in bytes for
 * dimensions 1 and up, `box` in elements, 128-byte swizzle. Elements outside the array read as
 * zero. */
cudaError_t tensor_map_make(CUtensorMap *map, CUtensorMapDataType type, const void *at, int rank,
                            const cuuint64_t *dims, const cuuint64_t *strides,
                            const cuuint32_t *box);

/* Launches row_tiles x parts CTAs. A CTA's block index is (row tile, part). @wait_for_each_other:
 * CTAs synchronise, so all must be resident (a cooperative launch). @follows_prepare: the previous
 * launch is that of prepare_launch(), so this one may begin before it has ended
 * (ptx/launch.cuh). */
cudaError_t decode_launch(const void *kernel, int row_tiles, int parts, int threads, size_t shared,
                          void *params, bool wait_for_each_other, bool follows_prepare,
                          cudaStream_t stream);

#endif
