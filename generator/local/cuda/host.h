/* host.h - the C headers of the model, as C++ sees them. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_HOST_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_HOST_H

#include "kernels/cuda/c_contract.h"

extern "C" {
#include "base/clock.h"
#include "generator/local/cuda/cuda_model.h"
#include "generator/local/model/rope.h"
#include "generator/local/model/route.h"
#include "kernels/lab.h"
}

#endif
