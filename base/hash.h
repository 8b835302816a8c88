/* hash.h - SHA-256 of bytes and files (libcrypto). */
#ifndef SNAPMLA_BASE_HASH_H
#define SNAPMLA_BASE_HASH_H

#include <stddef.h>

#include "base/err.h"

enum { HASH_HEX = 65 }; /* 64 hexadecimal digits and NUL */

snap_status hash_bytes(const void *bytes, size_t n, char out[HASH_HEX],
                       snap_err *err) SNAP_CHECK_RESULT;
/* Refuses files that are not regular with SNAP_E_IO. Other failures to read are SNAP_E_IO, too, or
 * SNAP_E_NOMEM. */
snap_status hash_file(const char *path, char out[HASH_HEX], snap_err *err) SNAP_CHECK_RESULT;

#endif
