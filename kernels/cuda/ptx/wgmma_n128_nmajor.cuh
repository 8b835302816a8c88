/* wgmma_n128_nmajor.cuh - part of wgmma.cuh. */
#pragma once
#include "kernels/cuda/ptx/wgmma.cuh"
