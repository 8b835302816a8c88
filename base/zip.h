/* zip.h - zip archives in memory: one member, all members, a new archive. The only caller of libzip.
 *
 * Archive and member never touch the disk: some data sets are published in an archive with a
 * known password so that their text stays out of crawlers' reach. */
#ifndef SNAPMLA_BASE_ZIP_H
#define SNAPMLA_BASE_ZIP_H

#include "base/buf.h"

/**
 * zip_member_read - unpack one member
 *
 * @bytes:    the archive
 * @name:     what messages call it
 * @member:   file name within; folders in front of it are ignored
 * @password: ignored where the member is not encrypted
 * @out:      appended; out->limit is the ceiling of what may come out
 *
 * SNAP_E_INPUT naming archive and member: no zip, truncated, member missing, wrong password,
 * damaged, larger than the ceiling whatever its header says; SNAP_E_UNSUPPORTED: packed other than
 * by deflate or encrypted other than by ZipCrypto; SNAP_E_NOMEM. On failure nothing is
 * left in @out but what was there before.
 */
snap_status zip_member_read(const void *bytes, size_t n, const char *name, const char *member,
                            const char *password, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* What an archive from elsewhere may be at most. */
typedef struct {
    size_t members;
    size_t bytes; /* of all members together, unpacked */
} zip_limits;

/* Gets a member's name and content; both are the caller's again afterwards. An error stops the walk. */
typedef snap_status (*zip_member_fn)(void *ctx, const char *member, const buf *content,
                                     snap_err *err);

/**
 * zip_each_member - unpack all members, in their order
 *
 * SNAP_E_INPUT naming archive and member for an archive that nobody means well with: names that are
 * absolute, lead upwards, hold control characters or backslashes, or come twice; folders, links and devices; encrypted
 * members; more than @limits allows, whatever the headers say. Else as zip_member_read().
 */
snap_status zip_each_member(const void *bytes, size_t n, const char *name, zip_limits limits,
                            zip_member_fn fn, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

typedef struct {
    const char *name; /* plain: no folders */
    const void *bytes;
    size_t n;
} zip_entry;

/* A new archive, appended to @out: the same entries give the same bytes. SNAP_E_NOMEM. */
snap_status zip_pack(const zip_entry *entries, size_t n, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
