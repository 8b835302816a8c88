/* c_contract.h - includes the C headers of errors and of the contract of a backend, in a form that
 * C++ accepts. */
#ifndef SNAPMLA_KERNELS_CUDA_C_CONTRACT_H
#define SNAPMLA_KERNELS_CUDA_C_CONTRACT_H

#define _Noreturn [[noreturn]]
extern "C" {
#include "base/err.h"
#include "kernels/backend.h"
}
#undef _Noreturn

#endif
