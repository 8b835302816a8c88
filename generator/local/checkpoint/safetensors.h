/* safetensors.h - one safetensors file: 8 bytes of header length, the header (JSON), the tensors.
 *
 * Files are hostile input. The header's length is limited. Offsets must lie inside the file and, as
 * the format demands, neither overlap nor leave gaps. Lengths must agree with dtype and shape. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_SAFETENSORS_H
#define SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_SAFETENSORS_H

#include "base/arena.h"
#include "base/err.h"
#include "generator/local/checkpoint/tensor.h"

typedef struct {
    arena mem;
    tensor *tensors; /* in the order of their data */
    size_t n;
    void *map; /* the file, read-only; NULL if it was parsed from memory */
    size_t map_bytes;
} safetensors;

/* Parses @n bytes, which must outlive *out. SNAP_E_INPUT, naming @path and, if it is at fault, the
 * tensor; SNAP_E_UNSUPPORTED for a dtype that is not known; SNAP_E_NOMEM. Release with
 * safetensors_close(), also after a failure. */
snap_status safetensors_parse(safetensors *out, const void *bytes, size_t n, const char *path,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Maps a file and parses it. The data of a tensor are read from disk when they are first used. If
 * the file is truncated while it is mapped, reading the missing part ends the program (SIGBUS).
 * SNAP_E_IO, and the errors of safetensors_parse(). Release with safetensors_close(), also after a
 * failure. */
snap_status safetensors_open(safetensors *out, const char *path, snap_err *err) SNAP_CHECK_RESULT;
void safetensors_close(safetensors *s);

/* Releases the memory of the pages of a mapped file that have been read. They are read again when
 * they are next used. Does nothing for a file that was parsed from memory. */
void safetensors_drop_pages(const safetensors *s);

#endif
