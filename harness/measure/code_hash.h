/* code_hash.h - a hash of the machine code that was measured. If it is the same in two runs, the
 * hashed code is not the cause of a difference in time.
 *
 * For kernels of this program on the CPU it is the SHA-256 of the .text section of the running
 * binary. Debug information and the hash of the commit do not change it; whether the build had
 * uncommitted changes may. */
#ifndef SNAPMLA_HARNESS_MEASURE_CODE_HASH_H
#define SNAPMLA_HARNESS_MEASURE_CODE_HASH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/hash.h"

/* The hash for the CPU. SNAP_E_IO; SNAP_E_NOMEM; SNAP_E_UNSUPPORTED if the binary is not a 64-bit
 * ELF file or has no .text section. */
snap_status code_hash_self(char out[HASH_HEX], snap_err *err) SNAP_CHECK_RESULT;

/* For kernels on a CUDA device: the SHA-256 of the machine code of all kernels of this program with
 * @kernel ("sm90_fp8") in their names, of the kernels of scheduling, preparation and dataflow, and
 * of the portable kernels' merge (even if @kernel does not use it), for every architecture in the
 * binary. The build leaves device code uncompressed for this purpose. SNAP_E_UNSUPPORTED if the
 * program has no such kernel. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status code_hash_device(const char *kernel, char out[HASH_HEX],
                             snap_err *err) SNAP_CHECK_RESULT;

/* Whether a backend's code is a file that the user names: "plugin:PATH", "python:FILE". */
bool code_is_file(const char *backend);

/**
 * code_hash_of - hash the code that a backend runs in a step
 *
 * @backend: as given by the user: "auto", "cpu", "plugin:PATH", "python:FILE", ...
 * @kernel:  result of lab_plan_kernel() for a CUDA device; NULL: the program's own code is hashed
 *
 * If the code is a file, the file is hashed, whatever name its kernel has.
 * SNAP_E_UNSUPPORTED for OpenCL, because the device's driver compiles its code. Also the errors of
 * the functions above and of reading the file.
 */
snap_status code_hash_of(const char *backend, const char *kernel, char out[HASH_HEX],
                         snap_err *err) SNAP_CHECK_RESULT;

/* Appends the machine code of the kernels with @kernel in their names. They are searched in all ELF
 * images (cubins) that @image contains. */
void code_find_device(const void *image, size_t n, const char *kernel, buf *out);

/* Finds .text in an ELF image. SNAP_E_UNSUPPORTED if it is no 64-bit ELF image or has no .text. */
snap_status code_find_text(const void *image, size_t n, size_t *offset, size_t *size,
                           snap_err *err) SNAP_CHECK_RESULT;

#endif
