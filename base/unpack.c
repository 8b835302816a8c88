#define ZLIB_CONST /* zlib does not change its input */
#include "base/unpack.h"

#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { kChunk = 1 << 16 };

/* Where decompressed bytes go. */
typedef struct {
    size_t left; /* bytes that may still be appended */
    size_t max;
    const char *name;
    buf *out;
} sink;

static snap_status damaged(const sink *s, snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "%s: the compressed data are damaged", s->name);
}

static snap_status no_memory(const sink *s, snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "%s: out of memory", s->name);
}

static snap_status too_long(const sink *s, snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "%s: unpacks to more than %zu bytes", s->name, s->max);
}

static snap_status take(sink *s, const void *bytes, size_t n, snap_err *err) {
    if (n > s->left)
        return too_long(s, err);
    s->left -= n;
    if (buf_append(s->out, bytes, n))
        return SNAP_OK;
    return s->out->too_long ? too_long(s, err) : buf_check(s->out, s->name, err);
}

/* ---- Zstandard ---- */

static snap_status zstd_frames(ZSTD_DCtx *d, const void *bytes, size_t n, sink *s, snap_err *err) {
    char chunk[kChunk];
    ZSTD_inBuffer in = {bytes, n, 0};
    size_t rest = 1;   /* 0 at the end of a frame */
    bool full = false; /* the last call may have left output in the decompressor */
    while (in.pos < in.size || full) {
        ZSTD_outBuffer out = {chunk, sizeof chunk, 0};
        rest = ZSTD_decompressStream(d, &out, &in);
        if (ZSTD_isError(rest))
            return ZSTD_getErrorCode(rest) == ZSTD_error_memory_allocation ? no_memory(s, err)
                                                                           : damaged(s, err);
        snap_status st = take(s, chunk, out.pos, err);
        if (st != SNAP_OK)
            return st;
        full = rest && out.pos == out.size;
    }
    return rest ? damaged(s, err) : SNAP_OK;
}

static snap_status zstd(const void *bytes, size_t n, sink *s, snap_err *err) {
    ZSTD_DCtx *d = ZSTD_createDCtx();
    snap_status st = d ? zstd_frames(d, bytes, n, s, err) : no_memory(s, err);
    (void)ZSTD_freeDCtx(d);
    return st;
}

/* ---- Snappy ---- */

static snap_status snappy(const void *bytes, size_t n, sink *s, snap_err *err) {
    /* Three packed bytes stand for at most 64 bytes, so the ratio is below 32. */
    enum { kMostRatio = 32 };
    size_t size = 0;
    if (snappy_uncompressed_length(bytes, n, &size) != SNAPPY_OK || size / kMostRatio > n)
        return damaged(s, err);
    if (size > s->left)
        return too_long(s, err);
    char *plain = malloc(size + 1);
    if (!plain)
        return no_memory(s, err);
    snap_status st = snappy_uncompress(bytes, n, plain, &size) == SNAPPY_OK
                         ? take(s, plain, size, err)
                         : damaged(s, err);
    free(plain);
    return st;
}

/* ---- gzip ---- */

static snap_status gzip_members(z_stream *z, sink *s, snap_err *err) {
    unsigned char chunk[kChunk];
    int rc = Z_OK;
    do {
        if (rc == Z_STREAM_END && inflateReset(z) != Z_OK)
            return damaged(s, err);
        z->next_out = chunk;
        z->avail_out = sizeof chunk;
        rc = inflate(z, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END)
            return rc == Z_MEM_ERROR ? no_memory(s, err) : damaged(s, err);
        snap_status st = take(s, chunk, sizeof chunk - z->avail_out, err);
        if (st != SNAP_OK)
            return st;
    } while (z->avail_in || rc != Z_STREAM_END);
    return SNAP_OK;
}

static snap_status gzip(const void *bytes, size_t n, sink *s, snap_err *err) {
    enum { kGzip = 16 };
    z_stream z = {0};
    if (n > UINT32_MAX)
        return damaged(s, err);
    int rc = inflateInit2(&z, MAX_WBITS + kGzip);
    if (rc != Z_OK)
        return no_memory(s, err);
    z.next_in = bytes;
    z.avail_in = (uInt)n;
    snap_status st = gzip_members(&z, s, err);
    (void)inflateEnd(&z);
    return st;
}

snap_status unpack(unpack_format format, const void *bytes, size_t n, size_t max, const char *name,
                   buf *out, snap_err *err) {
    sink s = {.left = max, .max = max, .name = name, .out = out};
    switch (format) {
    case UNPACK_ZSTD:
        return zstd(bytes, n, &s, err);
    case UNPACK_SNAPPY:
        return snappy(bytes, n, &s, err);
    default:
        return gzip(bytes, n, &s, err);
    }
}

uint32_t unpack_crc32(const void *bytes, size_t n) {
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, n);
}
