/* backend.h - the CUDA backend, for the registry. */
#ifndef SNAPMLA_KERNELS_CUDA_BACKEND_H
#define SNAPMLA_KERNELS_CUDA_BACKEND_H

#include "kernels/backend.h"

/* SNAP_E_UNSUPPORTED, saying why, where there is no driver, no device or none of capability 9.0. */
snap_status cuda_backend_open(mla_backend **out, const mla_backend_options *opt, snap_err *err);

#endif
