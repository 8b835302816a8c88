/* code_hash.h - which machine code was measured: same hash and another time means noise.
 *
 * For kernels that are part of this program: SHA-256 of the .text section of the running binary,
 * which debug information and the commit stamp don't touch. */
#ifndef SNAPMLA_HARNESS_MEASURE_CODE_HASH_H
#define SNAPMLA_HARNESS_MEASURE_CODE_HASH_H

#include <stddef.h>

#include "base/buf.h"
#include "base/hash.h"

/* SNAP_E_IO, SNAP_E_UNSUPPORTED where the binary is no 64-bit ELF file of this byte order. */
snap_status code_hash_self(char out[HASH_HEX], snap_err *err) SNAP_CHECK_RESULT;

/* For kernels that run on a CUDA device: SHA-256 of the machine code of all kernels of this program
 * with @kernel ("sm90_fp8") in their names, and of those that stand around them in a step (plan,
 * combine, dataflow), for every architecture it was built for. The build leaves device code
 * uncompressed for that. SNAP_E_UNSUPPORTED where there is none. */
snap_status code_hash_device(const char *kernel, char out[HASH_HEX],
                             snap_err *err) SNAP_CHECK_RESULT;

/**
 * code_hash_of - whichever of these serves a step
 *
 * @backend: as it was asked for: "auto", "cpu", "plugin:PATH", ...
 * @kernel:  lab_plan_kernel()'s; NULL = none: the program's own code, of a plugin its file
 *
 * SNAP_E_UNSUPPORTED for OpenCL, whose code the device's driver makes.
 */
snap_status code_hash_of(const char *backend, const char *kernel, char out[HASH_HEX],
                         snap_err *err) SNAP_CHECK_RESULT;

/* Appends the machine code of the kernels with @kernel in their names, found in the ELF images
 * (cubins) that lie in @image. */
void code_find_device(const void *image, size_t n, const char *kernel, buf *out);

/* Finds .text in an ELF image. SNAP_E_UNSUPPORTED for anything malformed. */
snap_status code_find_text(const void *image, size_t n, size_t *offset, size_t *size,
                           snap_err *err) SNAP_CHECK_RESULT;

#endif
