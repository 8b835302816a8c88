#include "base/hash.h"

#include <errno.h>
/* The SHA256_*() functions are deprecated since OpenSSL 3.0, but they allocate nothing. The EVP
 * functions, their successors, fetch the algorithm from a provider, and in OpenSSL 3.0 a failed
 * allocation during that fetch crashes the program. */
#define OPENSSL_API_COMPAT 0x10101000L
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"

static void *allocate(size_t n, const char *file, int line) {
    (void)file, (void)line;
    return malloc(n);
}

static void *reallocate(void *p, size_t n, const char *file, int line) {
    (void)file, (void)line;
    return realloc(p, n);
}

static void release(void *p, const char *file, int line) {
    (void)file, (void)line;
    free(p);
}

/* Runs before main(), so that failed allocations of libcrypto are noted. */
__attribute__((constructor)) static void set_allocate(void) {
    (void)CRYPTO_set_mem_functions(allocate, reallocate, release);
}

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

snap_status hash_file(const char *path, char out[HASH_HEX], snap_err *err) {
    int fd;
    snap_status st = fs_open_regular(path, &fd, err);
    if (st != SNAP_OK)
        return st;
    SHA256_CTX ctx;
    char chunk[1 << 16];
    ssize_t n;
    (void)SHA256_Init(&ctx);
    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            (void)SHA256_Update(&ctx, chunk, (size_t)n);
    st = n < 0 ? err_set_errno(err, "cannot read '%s'", path) : finish(&ctx, out, err);
    (void)close(fd);
    return st;
}
