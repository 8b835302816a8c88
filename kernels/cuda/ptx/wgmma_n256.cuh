/* wgmma_n256.cuh - part of wgmma.cuh. */
#pragma once
#include "kernels/cuda/ptx/wgmma.cuh"
