/* fs.h - files: reads with a size limit, atomic writes, append-only logs and locks.
 *
 * Paths are NUL-terminated, relative to the working directory or absolute. Most error messages
 * name the path. */
#ifndef SNAPMLA_BASE_FS_H
#define SNAPMLA_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

/* Appends the whole content of a file to @out. The path "-" is standard input. A path may also lead
 * to an anonymous pipe, as that of <(command) in a shell does. Everything else that is not a
 * regular file is refused (SNAP_E_IO): opening a named pipe waits for a writer, possibly for ever.
 * Other errors: SNAP_E_IO; SNAP_E_NOMEM if the content exceeds out->limit or memory is
 * exhausted. */
snap_status fs_read(const char *path, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Like fs_read(), but a path must lead to a regular file. For files that a program finds by itself
 * or that have a fixed place, such as configurations, results and checkpoints. js_parse_file()
 * reads through this function. */
snap_status fs_read_regular(const char *path, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Like fs_read_regular(), but SNAP_E_IO also if the last part of @path is a symbolic link, which
 * may lead to a file outside of its folder. Links before it are followed. "-" is a name like any
 * other. */
snap_status fs_read_unlinked(const char *path, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Opens a regular file for reading; the caller closes *fd. SNAP_E_IO if @path is anything else, for
 * example a folder, a socket, a pipe (whose opening may block), or a device such as /dev/zero
 * (whose reading might never end). *fd is -1 on failure. */
snap_status fs_open_regular(const char *path, int *fd, snap_err *err) SNAP_CHECK_RESULT;

/* fs_open_regular() as a stream; the caller closes it. *f is NULL on failure. Also SNAP_E_NOMEM. */
snap_status fs_stream_regular(const char *path, FILE **f, snap_err *err) SNAP_CHECK_RESULT;

/* Creates or replaces @path with @n bytes. After a crash, @path has either its old or its new
 * content: the bytes go to a temporary file in the same folder, which is synced and renamed, and
 * then the folder is synced. After a noted fault the bytes may be incomplete: then nothing is
 * written, and the result is the error of fault_of_process(). */
snap_status fs_write_atomic(const char *path, const void *bytes, size_t n,
                            snap_err *err) SNAP_CHECK_RESULT;

/* Renames @from to @to in the same folder and syncs the folder. The content of @from must already
 * be on disk. */
snap_status fs_replace(const char *from, const char *to, snap_err *err) SNAP_CHECK_RESULT;

/* Creates a folder and its missing parents, like mkdir -p. An existing folder is not an error. */
snap_status fs_mkdirs(const char *path, snap_err *err) SNAP_CHECK_RESULT;

bool fs_exists(const char *path);
bool fs_is_dir(const char *path);

/* "dir/name" as a string that the caller frees with free(); NULL if memory is exhausted. */
char *fs_join(const char *dir, const char *name);

/* An append-only log of lines. fs_log_append() normally is a single write(2), so a concurrent
 * reader does not see half a line. If the process is killed, only the last line can be incomplete,
 * and the next fs_log_open() removes an incomplete last line. */
typedef struct {
    int fd;
    char *path; /* owned */
} fs_log;
#define FS_LOG_CLOSED ((fs_log){.fd = -1})

/* Opens or creates the log. Removes an incomplete last line, that is, one without '\n'. SNAP_E_IO:
 * the file cannot be opened or read, or @path is not a regular file. SNAP_E_NOMEM. */
snap_status fs_log_open(fs_log *log, const char *path, snap_err *err) SNAP_CHECK_RESULT;
/* Appends @n bytes, which must end in '\n'. If writing fails, the log is truncated to its old
 * length. If that fails too, the message says that a partial line is left. After a noted fault it
 * fails as fs_write_atomic() does. */
snap_status fs_log_append(fs_log *log, const void *line, size_t n, snap_err *err) SNAP_CHECK_RESULT;
snap_status fs_log_sync(fs_log *log, snap_err *err) SNAP_CHECK_RESULT; /* fdatasync */
void fs_log_close(fs_log *log); /* may be called twice; initialise with FS_LOG_CLOSED */

/* Takes an exclusive lock (flock) on the file @path, which is created if absent. The caller closes
 * *fd to release the lock. If the lock is held already: SNAP_E_IO, and the message has the process
 * id of its holder, or "unknown". */
snap_status fs_lock(const char *path, int *fd, snap_err *err) SNAP_CHECK_RESULT;

#endif
