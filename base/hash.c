#include "base/hash.h"

#include <fcntl.h>
/* The SHA256_*() functions are deprecated since OpenSSL 3.0, but they allocate nothing. The EVP
 * functions, their successors, fetch the algorithm from a provider. In OpenSSL 3.0 a failed
 * allocation in that crashes the program. */
#define OPENSSL_API_COMPAT 0x10101000L
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static snap_status finish(SHA256_CTX *ctx, char out[HASH_HEX], snap_err *err) {
    unsigned char md[SHA256_DIGEST_LENGTH];
    if (!SHA256_Final(md, ctx))
        return err_set(err, SNAP_E_UNSUPPORTED, "libcrypto cannot compute SHA-256");
    for (size_t i = 0; i < sizeof md; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", md[i]);
    return SNAP_OK;
}

snap_status hash_bytes(const void *bytes, size_t n, char out[HASH_HEX], snap_err *err) {
    SHA256_CTX ctx;
    (void)SHA256_Init(&ctx);
    (void)SHA256_Update(&ctx, bytes, n);
    return finish(&ctx, out, err);
}

/* Opens a regular file. Other files are refused: reading a pipe without a writer, or a device such
 * as /dev/zero, might never end. */
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
        return err ? err->code : SNAP_E_IO;
    SHA256_CTX ctx;
    char chunk[1 << 16];
    size_t n;
    (void)SHA256_Init(&ctx);
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        (void)SHA256_Update(&ctx, chunk, n);
    snap_status st =
        ferror(f) ? err_set_errno(err, "cannot read '%s'", path) : finish(&ctx, out, err);
    (void)fclose(f);
    return st;
}
