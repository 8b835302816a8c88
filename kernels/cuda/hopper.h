/* hopper.h - what launches of the Hopper kernels share: tensor maps, and CTAs that wait for each other.
 */
#ifndef SNAPMLA_KERNELS_CUDA_HOPPER_H
#define SNAPMLA_KERNELS_CUDA_HOPPER_H

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Once a process, before the first map: the driver's encoder. */
cudaError_t tensor_map_init(void);

/* An array in device memory as the copy engine sees it: innermost dimension first, `strides` in bytes of
 * dimensions 1 and up, boxes swizzled by 128 bytes. What lies outside reads as zero. */
cudaError_t tensor_map_make(CUtensorMap *map, CUtensorMapDataType type, const void *at, int rank,
                            const cuuint64_t *dims, const cuuint64_t *strides,
                            const cuuint32_t *box);

/* One CTA an SM: block (row tile, part). @wait_for_each_other: all CTAs must be resident. @follows_prepare: the
 * launch ahead is prepare_launch()'s, so that this one may begin before that has ended (ptx/launch.cuh). */
cudaError_t decode_launch(const void *kernel, int row_tiles, int parts, int threads, size_t shared,
                          void *params, bool wait_for_each_other, bool follows_prepare,
                          cudaStream_t stream);

#endif
