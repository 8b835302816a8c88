/* zip.h - one member of a zip archive, in memory. The only caller of libzip.
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

#endif
