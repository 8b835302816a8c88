/* zip.h - zip archives in memory: read one member, read all members, write an archive. Only
 * base/zip.c and tests call libzip.
 *
 * Neither the archive nor its members are written to disk. Some data sets are published in an
 * archive with a known password so that crawlers cannot collect their text. */
#ifndef SNAPMLA_BASE_ZIP_H
#define SNAPMLA_BASE_ZIP_H

#include "base/buf.h"

/**
 * zip_member_read - unpack one member
 *
 * @bytes:    the archive
 * @name:     stands for the archive in messages
 * @member:   path in the archive; a name without "/" matches in any folder
 * @password: ignored if the member is not encrypted
 * @out:      the content is appended; out->limit bounds it
 *
 * SNAP_E_INPUT: not a zip archive, truncated, no such member, wrong password, damaged, or larger
 * than the limit whatever its header says. SNAP_E_UNSUPPORTED: a member that is not stored,
 * deflated or compressed with Zstandard, an encryption other than ZipCrypto, or ZipCrypto with
 * Zstandard. SNAP_E_NOMEM. On failure @out has its old content.
 */
snap_status zip_member_read(const void *bytes, size_t n, const char *name, const char *member,
                            const char *password, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Limits for an archive from an untrusted source. */
typedef struct {
    size_t members;
    size_t bytes; /* unpacked size of all members together */
} zip_limits;

/* Receives a member's name and content, which are valid during the call. An error stops the
 * reading. */
typedef snap_status (*zip_member_fn)(void *ctx, const char *member, const buf *content,
                                     snap_err *err);

/**
 * zip_each_member - unpack all members in archive order
 *
 * Meant for untrusted archives. SNAP_E_INPUT for a name that is empty or absolute, has an empty,
 * "." or ".." part, holds ASCII control characters, ':' or backslashes, occurs twice, is longer
 * than 255 bytes or is not UTF-8; a folder; what a Unix archive marks as a link or device; an
 * encrypted member; a member that is not stored, deflated or compressed with Zstandard; more than
 * @limits allows, whatever the headers say. Other errors are those of zip_member_read() and of @fn.
 */
snap_status zip_each_member(const void *bytes, size_t n, const char *name, zip_limits limits,
                            zip_member_fn fn, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

typedef struct {
    const char *name; /* name of the member, UTF-8, each name once (else SNAP_E_NOMEM); not
                         checked with the rules of zip_each_member() */
    const void *bytes;
    size_t n;
} zip_entry;

/* Appends a new archive to @out. The same entries give the same bytes with the same libzip.
 * SNAP_E_NOMEM, whatever fails. */
snap_status zip_pack(const zip_entry *entries, size_t n, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
