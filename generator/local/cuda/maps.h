/* maps.h - tensor maps of matrices for TMA. Those of bf16 and e4m3 have 128-byte swizzle, so boxes
 * have at most 64 and 128 columns. Those of FP32 have no swizzle. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_MAPS_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_MAPS_H

#include <cuda.h>

#include "generator/local/cuda/launch.cuh"

namespace device {

/* Gets the driver's function for encoding tensor maps. Must be called before the functions
 * below. */
cudaError_t maps_init();

/* Maps @rows rows of @cols numbers, @pitch numbers apart, for boxes of @box_cols by @box_rows. */
cudaError_t map_rows(CUtensorMap *map, const bf16 *at, int64_t cols, int64_t rows, int64_t pitch,
                     int box_cols, int box_rows);

/* Maps @groups matrices like that of map_rows(), which are @group_pitch numbers apart. */
cudaError_t map_groups(CUtensorMap *map, const bf16 *at, int64_t cols, int64_t rows, int64_t pitch,
                       int64_t groups, int64_t group_pitch, int box_cols, int box_rows);

/* Maps @groups matrices of e4m3 codes. Rows and matrices follow each other without gaps. */
cudaError_t map_codes(CUtensorMap *map, const uint8_t *at, int64_t cols, int64_t rows,
                      int64_t groups, int box_cols, int box_rows);

/* Maps @groups matrices of FP32 numbers without gaps. @box_cols is a multiple of 4. */
cudaError_t map_floats(CUtensorMap *map, const float *at, int64_t cols, int64_t rows,
                       int64_t groups, int box_cols, int box_rows);

} // namespace device

#endif
