/* fs.h - files: whole reads with a ceiling, atomic writes, durable appends, locks.
 *
 * Paths are NUL-terminated UTF-8, relative to the working directory or absolute. Every message
 * names the path. */
#ifndef SNAPMLA_BASE_FS_H
#define SNAPMLA_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Reads a whole regular file or pipe into @out (appended). SNAP_E_IO; SNAP_E_NOMEM past
 * out->limit. "-" reads standard input. */
snap_status fs_read(const char *path, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Replaces @path with @n bytes so that a crash leaves the old file or the new one: temporary file
 * beside it, fsync, rename, fsync of the folder. */
snap_status fs_write_atomic(const char *path, const void *bytes, size_t n,
                            snap_err *err) SNAP_CHECK_RESULT;

/* Renames @from, whose content is on disk, to @to in the same folder, durably. */
snap_status fs_replace(const char *from, const char *to, snap_err *err) SNAP_CHECK_RESULT;

/* mkdir -p. An existing folder is no error. */
snap_status fs_mkdirs(const char *path, snap_err *err) SNAP_CHECK_RESULT;

bool fs_exists(const char *path);
bool fs_is_dir(const char *path);

/* "dir/name" in a caller-owned string (free()); NULL when memory is exhausted. */
char *fs_join(const char *dir, const char *name);

/* An append-only log of lines. Each fs_log_append is one write(2), so a concurrent reader never
 * sees half a line of a live process; after a kill at most the last line is cut, and opening
 * cuts such a tail off. */
typedef struct {
    int fd;
    char *path; /* owned */
} fs_log;
#define FS_LOG_CLOSED ((fs_log){.fd = -1})

/* Opens or creates; truncates a trailing partial line (one without '\n'). */
snap_status fs_log_open(fs_log *log, const char *path, snap_err *err) SNAP_CHECK_RESULT;
/* Appends @n bytes, which must end in '\n'. A failed or short write is undone by truncation. */
snap_status fs_log_append(fs_log *log, const void *line, size_t n, snap_err *err) SNAP_CHECK_RESULT;
snap_status fs_log_sync(fs_log *log, snap_err *err) SNAP_CHECK_RESULT; /* fdatasync */
void fs_log_close(fs_log *log); /* idempotent; initialise with FS_LOG_CLOSED */

/* Takes an exclusive lock on @path (created if absent) for this process. SNAP_E_IO with the
 * holder's process id in the message when another process has it. *fd is the caller's to
 * close, which releases the lock. */
snap_status fs_lock(const char *path, int *fd, snap_err *err) SNAP_CHECK_RESULT;

#endif
