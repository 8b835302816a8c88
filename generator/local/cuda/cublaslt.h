/* cublaslt.h - dense products by NVIDIA's cuBLASLt, if the machine has it.
 *
 * On Hopper it computes the dense products of more than kFewRows rows (model.h). Products with a
 * gate must also have at most kGatedRows rows. The library can split k among blocks, which
 * gemm_many() does not. It has about
 * half a gigabyte, so it is never linked: it is opened when a model is created. Products that it
 * does not compute are left to gemm_many() or gemm_few().
 *
 * The algorithm for a product is the library's first proposal for its shape. It is the same each
 * time with one device and one version of the library, so the results are reproducible. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CUBLASLT_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CUBLASLT_H

#include "generator/local/cuda/cuda_gemm.h"

namespace device {

struct cublaslt;

/* NULL if the library is missing or fails. */
cublaslt *cublaslt_open();
void cublaslt_close(cublaslt *lt); /* NULL is allowed */

/* The library's version, such as 130100 for 13.1. */
size_t cublaslt_version(const cublaslt *lt);

/* Like gemm_many(), for products that are neither listed nor end in a gate. False if the library
 * can't compute the product; then nothing was done. */
bool cublaslt_gemm(cublaslt *lt, const stream_of &s, const gemm_args &a);

} // namespace device

#endif
