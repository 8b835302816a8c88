/* cublaslt.h - dense products by NVIDIA's library, where the machine has it.
 *
 * It takes a step's dense products of more rows than gemm_few() is for: there it splits k among blocks, which
 * gemm_many() does not. The library is half a gigabyte, so it is looked for when a model is created and never
 * linked: without it gemm_many() does all.
 *
 * An algorithm is what the library proposes first for a product's shape; it is the same each time on one device
 * with one library, and so are the numbers. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CUBLASLT_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CUBLASLT_H

#include "generator/local/cuda/cuda_gemm.h"

namespace device {

struct cublaslt;

/* NULL where there is no such library, or it fails. */
cublaslt *cublaslt_open();
void cublaslt_close(cublaslt *lt); /* NULL is allowed */

/* The library's, as 130100 of 13.1. */
size_t cublaslt_version(const cublaslt *lt);

/* As gemm_many(), of products that are neither listed nor end in a gate. False where the library has no way to
 * compute it: then nothing was done. */
bool cublaslt_gemm(cublaslt *lt, const stream_of &s, const gemm_args &a);

} // namespace device

#endif
