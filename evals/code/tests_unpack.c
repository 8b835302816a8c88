/* tests_unpack.c - unpacks LiveCodeBench's private tests and gzip files. */
#include <string.h>
#include <zlib.h>

#include "evals/code/code_rows.h"
#include "evals/code/pickle.h"
#include "evals/code/tests.h"

enum { kChunk = 1 << 16, kZlib = 0, kGzip = 16 };

/* ---- base64 ---- */

static int digit_of(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

static snap_status base64(span text, buf *out, const char *where, snap_err *err) {
    unsigned word = 0, bits = 0;
    size_t i = 0;
    for (; i < text.n && text.s[i] != '='; i++) {
        if (text.s[i] == '\n' || text.s[i] == '\r')
            continue;
        int digit = digit_of(text.s[i]);
        if (digit < 0)
            return err_set(err, SNAP_E_INPUT, "%s: neither JSON nor base64 at byte %zu", where, i);
        word = word << 6 | (unsigned)digit;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            (void)buf_append(out, &(unsigned char){(unsigned char)(word >> bits)}, 1);
            word &= (1U << bits) - 1;
        }
    }
    while (i < text.n && (text.s[i] == '=' || text.s[i] == '\n' || text.s[i] == '\r'))
        i++;
    if (i < text.n)
        return err_set(err, SNAP_E_INPUT, "%s: base64 continues after its end, byte %zu", where, i);
    return buf_check(out, "packed tests", err);
}

/* ---- zlib ---- */

static int inflate_some(z_stream *z, buf *out) {
    unsigned char chunk[kChunk];
    z->next_out = chunk;
    z->avail_out = kChunk;
    int rc = inflate(z, Z_NO_FLUSH);
    (void)buf_append(out, chunk, kChunk - z->avail_out);
    return rc;
}

static snap_status decompress(const buf *packed, int format, buf *out, const char *where,
                              snap_err *err) {
    z_stream z = {0};
    size_t fed = 0;
    int rc = inflateInit2(&z, MAX_WBITS + format);
    if (rc != Z_OK)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory to unpack", where);
    while (rc == Z_OK && !out->failed) {
        if (!z.avail_in && fed < packed->len) {
            size_t n = packed->len - fed < kChunk ? packed->len - fed : kChunk;
            z.next_in = (unsigned char *)packed->data + fed;
            z.avail_in = (unsigned)n;
            fed += n;
        }
        rc = inflate_some(&z, out);
    }
    bool no_memory = rc == Z_MEM_ERROR;
    bool all = rc == Z_STREAM_END && fed == packed->len && !z.avail_in;
    (void)inflateEnd(&z);
    snap_status st = buf_check(out, where, err);
    if (st == SNAP_OK && no_memory)
        st = err_set(err, SNAP_E_NOMEM, "%s: out of memory to unpack", where);
    if (st == SNAP_OK && !all)
        st = err_set(err, SNAP_E_INPUT, "%s: the packed data is damaged (zlib)", where);
    return st;
}

snap_status tests_unpack(span text, buf *out, const char *where, snap_err *err) {
    snap_status st;
    buf packed = {0}, pickled = {.limit = out->limit};
    span inner;
    TRY(base64(text, &packed, where, err));
    if (!packed.len)
        TRY(err_set(err, SNAP_E_INPUT, "%s: the packed tests are empty", where));
    TRY(decompress(&packed, kZlib, &pickled, where, err));
    TRY(pickle_text((span){buf_str(&pickled), pickled.len}, &inner, where, err));
    (void)buf_append(out, inner.s, inner.n);
    TRY(buf_check(out, where, err));
cleanup:
    buf_release(&packed);
    buf_release(&pickled);
    return st;
}

snap_status code_gunzip(const buf *packed, buf *out, const char *where, snap_err *err) {
    return decompress(packed, kGzip, out, where, err);
}
