/* safetensors.h - one safetensors file: 8 bytes of header length, the header (JSON), the tensors.
 *
 * Files are hostile: the header's length is bounded, offsets must lie inside the file, neither overlap
 * nor leave gaps (as the format demands), and their lengths must be what dtype and shape say. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_SAFETENSORS_H
#define SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_SAFETENSORS_H

#include "base/arena.h"
#include "base/err.h"
#include "generator/local/checkpoint/tensor.h"

typedef struct {
    arena mem;
    tensor *tensors; /* in the order of their data */
    size_t n;
    void *map; /* the file, read-only; NULL when it was parsed from memory */
    size_t map_bytes;
} safetensors;

/* Parses @n bytes that must outlive *out. SNAP_E_INPUT naming @path and the tensor; SNAP_E_NOMEM.
 * Release with safetensors_close(), also after a failure. */
snap_status safetensors_parse(safetensors *out, const void *bytes, size_t n, const char *path,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Maps a file and parses it; the tensors' data are read from disk when they are touched. A file that
 * shrinks while it is mapped ends the program (SIGBUS). SNAP_E_IO, and as above. */
snap_status safetensors_open(safetensors *out, const char *path, snap_err *err) SNAP_CHECK_RESULT;
void safetensors_close(safetensors *s);

#endif
