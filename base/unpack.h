/* unpack.h - decompresses Zstandard, Snappy and gzip data in memory. Only base/unpack.c calls
 * libzstd and libsnappy. */
#ifndef SNAPMLA_BASE_UNPACK_H
#define SNAPMLA_BASE_UNPACK_H

#include <stdint.h>

#include "base/buf.h"

typedef enum {
    UNPACK_ZSTD,   /* one or more frames; a window of at most 128 MiB */
    UNPACK_SNAPPY, /* one block, without the framing format */
    UNPACK_GZIP,   /* one or more members */
} unpack_format;

/**
 * unpack - decompress a whole block of data from an untrusted source
 *
 * @max:  bytes that are appended at most, whatever the data say about their length
 * @name: stands for the data in messages
 * @out:  the content is appended
 *
 * SNAP_E_INPUT: damaged, truncated or longer than @max. SNAP_E_NOMEM. On failure @out may hold a
 * part of the content.
 */
snap_status unpack(unpack_format format, const void *bytes, size_t n, size_t max, const char *name,
                   buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* The CRC-32 of zip and gzip files. */
uint32_t unpack_crc32(const void *bytes, size_t n);

#endif
