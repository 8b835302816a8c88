/* cuda_probes.h - probe loops: each does only the operation that its ceiling is measured for. */
#ifndef SNAPMLA_KERNELS_CUDA_CEILINGS_CUDA_PROBES_H
#define SNAPMLA_KERNELS_CUDA_CEILINGS_CUDA_PROBES_H

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

struct read_memory {
    uint8_t *at;      /* random bytes, [pages][PROBE_PAGE] */
    const int *order; /* [pages] a permutation of the pages, for probe_read_bulk(); else null */
    int pages;
    uint32_t *never; /* target of a store that practically never happens; it keeps the compiler from
                        removing the loop */
};
enum { PROBE_PAGE = 40 << 10 }; /* about a page of an FP8 cache */

cudaError_t probe_fill(uint8_t *memory, size_t bytes, cudaStream_t stream);

/* Reads with 16-byte loads; each thread has `ahead` (2, 4 or 8) loads in flight. */
cudaError_t probe_read_plain(const read_memory &m, int sms, int ahead, int blocks_per_sm,
                             cudaStream_t stream);

/* Reads with bulk copies (TMA) into shared memory, pages in shuffled order. Hopper only. */
cudaError_t probe_read_bulk(const read_memory &m, int sms, cudaStream_t stream);

/* Multiply random operands in registers or shared memory. *flop is the work of one launch. */
enum probe_product { PROBE_BF16_N256, PROBE_BF16_N64, PROBE_FP8_N256, PROBE_FP8_N64 };
cudaError_t probe_wgmma(probe_product kind, int sms, double *flop, float *never,
                        cudaStream_t stream);                                    /* Hopper */
cudaError_t probe_mma(int sms, double *flop, float *never, cudaStream_t stream); /* BF16, compute
                                                                                    capability 8.0
                                                                                    or newer */

#endif
