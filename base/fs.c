#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fault.h"

static snap_status read_fd(int fd, const char *path, buf *out, snap_err *err) {
    char chunk[1 << 16];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(err, "cannot read '%s'", path);
        if (n == 0)
            return SNAP_OK;
        if (!buf_append(out, chunk, (size_t)n))
            return buf_check(out, path, err);
    }
}

/* Closes @fd after reading. */
static snap_status read_and_close(int fd, const char *path, buf *out, snap_err *err) {
    snap_status st = read_fd(fd, path, out, err);
    (void)close(fd);
    return st;
}

/* An anonymous pipe is open at its other end already, so opening it does not wait. */
static bool is_anonymous_pipe(int fd) {
    struct statfs at;
    return fstatfs(fd, &at) == 0 && at.f_type == PIPEFS_MAGIC;
}

enum { ALSO_PIPES = 1 }; /* for @also of open_file() */

/* Opens a regular file or, with ALSO_PIPES, an anonymous pipe. */
static snap_status open_file(const char *path, int flags, int also, int *fd, snap_err *err) {
    struct stat sb;
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
    if (*fd < 0 && errno == ELOOP && flags & O_NOFOLLOW)
        return err_set(err, SNAP_E_IO, "cannot read '%s': it is a symbolic link", path);
    if (*fd < 0 && errno != ENXIO) /* ENXIO: for example a socket */
        return err_set_errno(err, "cannot open '%s'", path);
    if (*fd >= 0 && fstat(*fd, &sb) == 0 && S_ISREG(sb.st_mode))
        return SNAP_OK;
    if (*fd >= 0 && also == ALSO_PIPES && is_anonymous_pipe(*fd) && fcntl(*fd, F_SETFL, 0) == 0)
        return SNAP_OK;
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    return err_set(err, SNAP_E_IO, "cannot read '%s': it is not a regular file", path);
}

snap_status fs_read(const char *path, buf *out, snap_err *err) {
    int fd;
    if (strcmp(path, "-") == 0)
        return read_fd(STDIN_FILENO, "standard input", out, err);
    snap_status st = open_file(path, 0, ALSO_PIPES, &fd, err);
    return st == SNAP_OK ? read_and_close(fd, path, out, err) : st;
}

snap_status fs_open_regular(const char *path, int *fd, snap_err *err) {
    return open_file(path, 0, 0, fd, err);
}

snap_status fs_stream_regular(const char *path, FILE **f, snap_err *err) {
    int fd;
    snap_status st = fs_open_regular(path, &fd, err);
    *f = st == SNAP_OK ? fdopen(fd, "r") : NULL;
    if (*f || st != SNAP_OK)
        return st;
    (void)close(fd);
    return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
}

snap_status fs_read_unlinked(const char *path, buf *out, snap_err *err) {
    int fd;
    snap_status st = open_file(path, O_NOFOLLOW, 0, &fd, err);
    return st == SNAP_OK ? read_and_close(fd, path, out, err) : st;
}

snap_status fs_read_regular(const char *path, buf *out, snap_err *err) {
    if (strcmp(path, "-") == 0)
        return fs_read(path, out, err);
    int fd;
    snap_status st = fs_open_regular(path, &fd, err);
    return st == SNAP_OK ? read_and_close(fd, path, out, err) : st;
}

static snap_status write_all(int fd, const char *path, const char *p, size_t n, snap_err *err) {
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return err_set_errno(err, "cannot write '%s'", path);
        p += w;
        n -= (size_t)w;
    }
    return SNAP_OK;
}

/* Syncs the folder of @path. A rename is durable only after that. */
static snap_status sync_parent(const char *path, snap_err *err) {
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!dir)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snap_status st = SNAP_OK;
    /* some file systems refuse fsync on a folder (EINVAL); nothing more can be done for them */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        st = err_set_errno(err, "cannot sync folder '%s'", dir);
    if (fd >= 0)
        (void)close(fd);
    free(dir);
    return st;
}

static snap_status write_temp(int fd, const char *path, const void *p, size_t n, snap_err *err) {
    snap_status st = write_all(fd, path, p, n, err);
    if (st == SNAP_OK && fchmod(fd, 0644) != 0)
        st = err_set_errno(err, "cannot set the mode of '%s'", path);
    if (st == SNAP_OK && fsync(fd) != 0)
        st = err_set_errno(err, "cannot sync '%s'", path);
    if (close(fd) != 0 && st == SNAP_OK)
        st = err_set_errno(err, "cannot close '%s'", path);
    return st;
}

snap_status fs_replace(const char *from, const char *to, snap_err *err) {
    if (rename(from, to) != 0)
        return err_set_errno(err, "cannot replace '%s'", to);
    return sync_parent(to, err);
}

snap_status fs_write_atomic(const char *path, const void *bytes, size_t n, snap_err *err) {
    buf tmp = {0};
    (void)buf_printf(&tmp, "%s.tmp.XXXXXX", path);
    snap_status st = fault_of_process(buf_check(&tmp, "a path", err), err);
    if (st != SNAP_OK)
        goto cleanup;
    int fd = mkstemp(tmp.data);
    if (fd < 0) {
        st = err_set_errno(err, "cannot create a temporary file beside '%s'", path);
        goto cleanup;
    }
    st = write_temp(fd, path, bytes, n, err);
    if (st == SNAP_OK)
        st = fs_replace(tmp.data, path, err);
    if (st != SNAP_OK)
        (void)unlink(tmp.data); /* if only the sync failed, the file is already renamed, and
                                   unlink() does nothing */
cleanup:
    buf_release(&tmp);
    return st;
}

static snap_status make_dir(const char *path, snap_err *err) {
    if (mkdir(path, 0755) == 0 || (errno == EEXIST && fs_is_dir(path)))
        return SNAP_OK;
    return err_set_errno(err, "cannot create folder '%s'", path);
}

snap_status fs_mkdirs(const char *path, snap_err *err) {
    char *p = strdup(path);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    snap_status st = SNAP_OK;
    for (char *s = p + 1; *path && st == SNAP_OK; s++) {
        if (*s != '/' && *s != '\0')
            continue;
        char c = *s;
        *s = '\0';
        st = make_dir(p, err);
        *s = c;
        if (c == '\0')
            break;
    }
    free(p);
    return st;
}

bool fs_exists(const char *path) {
    return access(path, F_OK) == 0;
}

bool fs_is_dir(const char *path) {
    struct stat sb;
    return stat(path, &sb) == 0 && S_ISDIR(sb.st_mode);
}

char *fs_join(const char *dir, const char *name) {
    buf b = {0};
    size_t n = strlen(dir);
    (void)buf_printf(&b, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
    char *s = b.failed ? NULL : buf_steal(&b);
    buf_release(&b);
    return s;
}

/* The offset just after the last '\n', found by reading backwards; 0 if there is none, -1 if
 * reading fails. */
static off_t last_line_end(int fd, off_t size) {
    char chunk[4096];
    while (size > 0) {
        off_t from = size > (off_t)sizeof chunk ? size - (off_t)sizeof chunk : 0;
        ssize_t n = pread(fd, chunk, (size_t)(size - from), from);
        if (n <= 0)
            return -1;
        const char *nl = memrchr(chunk, '\n', (size_t)n);
        if (nl)
            return from + (nl - chunk) + 1;
        size = from;
    }
    return 0;
}

snap_status fs_log_open(fs_log *log, const char *path, snap_err *err) {
    *log = (fs_log){.fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
    if (log->fd < 0)
        return err_set_errno(err, "cannot open '%s' for appending", path);
    struct stat sb;
    off_t end = fstat(log->fd, &sb) == 0 ? last_line_end(log->fd, sb.st_size) : -1;
    snap_status st = SNAP_OK;
    if (end >= 0 && !S_ISREG(sb.st_mode))
        st = err_set(err, SNAP_E_IO, "cannot append to '%s': it is not a regular file", path);
    else if (end < 0 || (end < sb.st_size && ftruncate(log->fd, end) != 0))
        st = err_set_errno(err, "cannot remove the incomplete last line of '%s'", path);
    else if (!(log->path = strdup(path)))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    if (st != SNAP_OK)
        fs_log_close(log);
    return st;
}

snap_status fs_log_append(fs_log *log, const void *line, size_t n, snap_err *err) {
    struct stat before;
    snap_status st = fault_of_process(SNAP_OK, err);
    if (st != SNAP_OK)
        return st;
    if (fstat(log->fd, &before) != 0)
        return err_set_errno(err, "cannot append to '%s'", log->path);
    st = write_all(log->fd, log->path, line, n, err);
    if (st != SNAP_OK && ftruncate(log->fd, before.st_size) != 0)
        err_prefix(err, "a partial line is left in '%s'", log->path);
    return st;
}

snap_status fs_log_sync(fs_log *log, snap_err *err) {
    if (fdatasync(log->fd) != 0 && errno != EINVAL)
        return err_set_errno(err, "cannot sync '%s'", log->path);
    return SNAP_OK;
}

void fs_log_close(fs_log *log) {
    if (log->fd >= 0)
        (void)close(log->fd);
    free(log->path);
    *log = (fs_log){.fd = -1};
}

snap_status fs_lock(const char *path, int *fd, snap_err *err) {
    *fd = -1;
    int f = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (f < 0)
        return err_set_errno(err, "cannot open lock file '%s'", path);
    char who[32] = "";
    bool locked = flock(f, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK) {
        snap_status st = err_set_errno(err, "cannot lock '%s'", path);
        (void)close(f);
        return st;
    }
    if (!locked) {
        ssize_t n = pread(f, who, sizeof who - 1, 0);
        who[n > 0 ? n : 0] = '\0';
        (void)close(f);
        return err_set(err, SNAP_E_IO,
                       "'%s' is held by process %s: wait until it ends or choose another folder",
                       path, who[0] ? who : "unknown");
    }
    int n = snprintf(who, sizeof who, "%ld", (long)getpid());
    if (ftruncate(f, 0) != 0 || pwrite(f, who, (size_t)n, 0) != n) {
        (void)close(f);
        return err_set_errno(err, "cannot write lock file '%s'", path);
    }
    *fd = f;
    return SNAP_OK;
}
