#include "base/hash.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static snap_status finish(EVP_MD_CTX *ctx, char out[HASH_HEX], snap_err *err) {
    unsigned char md[32];
    unsigned n = 0;
    if (!EVP_DigestFinal_ex(ctx, md, &n) || n != sizeof md)
        return err_set(err, SNAP_E_UNSUPPORTED, "libcrypto cannot compute SHA-256");
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", md[i]);
    return SNAP_OK;
}

static EVP_MD_CTX *begin(snap_err *err) {
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL))
        return ctx;
    EVP_MD_CTX_free(ctx);
    (void)err_set(err, SNAP_E_UNSUPPORTED, "libcrypto cannot compute SHA-256");
    return NULL;
}

snap_status hash_bytes(const void *bytes, size_t n, char out[HASH_HEX], snap_err *err) {
    EVP_MD_CTX *ctx = begin(err);
    if (!ctx)
        return SNAP_E_UNSUPPORTED;
    (void)EVP_DigestUpdate(ctx, bytes, n);
    snap_status st = finish(ctx, out, err);
    EVP_MD_CTX_free(ctx);
    return st;
}

/* Opens a regular file. Other files are refused: reading a pipe without a writer, or some devices,
 * would never end. */
static FILE *open_regular(const char *path, snap_err *err) {
    struct stat s;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool other = fd >= 0 && (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode));
    FILE *f = fd >= 0 && !other ? fdopen(fd, "rb") : NULL;
    if (other)
        (void)err_set(err, SNAP_E_IO, "cannot hash '%s': it is not a regular file", path);
    else if (!f)
        (void)err_set_errno(err, "cannot open '%s'", path);
    if (!f && fd >= 0)
        (void)close(fd);
    return f;
}

snap_status hash_file(const char *path, char out[HASH_HEX], snap_err *err) {
    FILE *f = open_regular(path, err);
    if (!f)
        return SNAP_E_IO;
    EVP_MD_CTX *ctx = begin(err);
    snap_status st = ctx ? SNAP_OK : SNAP_E_UNSUPPORTED;
    char chunk[1 << 16];
    size_t n;
    while (ctx && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        (void)EVP_DigestUpdate(ctx, chunk, n);
    if (ctx && ferror(f))
        st = err_set_errno(err, "cannot read '%s'", path);
    if (st == SNAP_OK)
        st = finish(ctx, out, err);
    EVP_MD_CTX_free(ctx);
    (void)fclose(f);
    return st;
}
