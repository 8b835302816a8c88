/* round.h - rounds rows of a BF16 cache through another format (kernels/format/round_row.h), so
 * that the cache holds what that format would hold. The bits are those of rounding_apply()
 * (../model/rounding.h). */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_ROUND_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_ROUND_H

#include "generator/local/cuda/attend.h"

extern "C" {
#include "kernels/format/round_row.h"
}

namespace device {

/* Number of ranges for which round_appended() needs memory, with at most @rows rows in a call. */
int64_t round_ranges(const row_format &f, int64_t rows);

/* Rounds the rows that project_decode() or project_chunk() appended with the arguments @p. @shared:
 * memory for round_ranges() ranges. */
cudaError_t round_appended(const stream_of &s, const row_format &f, const project_args &p,
                           row_range *shared);

} // namespace device

#endif
