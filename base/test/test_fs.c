#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"

static char dir[64];

static char *in_dir(const char *name) {
    if (!dir[0]) {
        (void)strcpy(dir, "/tmp/snapmla-fs-XXXXXX");
        CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    }
    char *path = fs_join(dir, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    return path;
}

static void expect_content(const char *path, const char *want) {
    buf b = {0};
    CU_ASSERT_EQUAL(fs_read(path, &b, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&b), want);
    buf_release(&b);
}

static void test_atomic_write_replaces(void) {
    char *path = in_dir("a/b/c.txt");
    char *parent = in_dir("a/b");
    snap_err err = {0};
    CU_ASSERT_EQUAL(fs_write_atomic(path, "x", 1, &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    CU_ASSERT_EQUAL(fs_mkdirs(parent, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(fs_mkdirs(parent, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(fs_write_atomic(path, "one", 3, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(fs_write_atomic(path, "two", 3, NULL), SNAP_OK);
    expect_content(path, "two");
    struct stat sb;
    CU_ASSERT_EQUAL(stat(path, &sb), 0);
    CU_ASSERT_EQUAL(sb.st_mode & 0777, 0644);
    (void)unlink(path);
    CU_ASSERT_EQUAL(rmdir(parent), 0); /* no temporary file is left behind */
    free(path);
    free(parent);
}

static void test_read_has_a_ceiling(void) {
    buf b = {.limit = 1000};
    snap_err err = {0};
    char *path = in_dir("large");
    CU_ASSERT_EQUAL(fs_write_atomic(path, "x", 1, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(truncate(path, (off_t)1 << 40), 0); /* zeros that take no room */
    CU_ASSERT_EQUAL(fs_read(path, &b, &err), SNAP_E_NOMEM);
    (void)unlink(path);
    free(path);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "1000 bytes"));
    buf_release(&b);
    err = (snap_err){0};
    CU_ASSERT_EQUAL(fs_read("/nonexistent/x", &b, &err), SNAP_E_IO);
    CU_ASSERT_STRING_EQUAL(err.text, "cannot open '/nonexistent/x': No such file or directory");
}

static void expect_not_regular(const char *path) {
    int fd = 7;
    buf b = {.limit = 1000};
    snap_err err = {0};
    CU_ASSERT_EQUAL(fs_open_regular(path, &fd, &err), SNAP_E_IO);
    CU_ASSERT_EQUAL(fd, -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a regular file"));
    CU_ASSERT_EQUAL(fs_read_regular(path, &b, NULL), SNAP_E_IO);
    CU_ASSERT_EQUAL(fs_read(path, &b, NULL), SNAP_E_IO);
    CU_ASSERT_PTR_NULL(js_parse_file(path, 1000, NULL));
    buf_release(&b);
}

/* A plain open() of the pipe would block, because nothing writes to it. */
static void test_regular_files_only(void) {
    char *pipe = in_dir("pipe"), *sock = in_dir("sock"), *link = in_dir("link"),
         *file = in_dir("f");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", sock);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    CU_ASSERT_EQUAL_FATAL(mkfifo(pipe, 0600), 0);
    CU_ASSERT_EQUAL_FATAL(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    CU_ASSERT_EQUAL_FATAL(symlink(pipe, link), 0);
    expect_not_regular(pipe);
    expect_not_regular(link);
    expect_not_regular(sock);
    expect_not_regular(dir);
    expect_not_regular("/dev/zero");
    fs_log log;
    snap_err refused = {0};
    CU_ASSERT_EQUAL(fs_log_open(&log, pipe, &refused), SNAP_E_IO); /* writing to it would block */
    CU_ASSERT_PTR_NOT_NULL(strstr(refused.text, "not a regular file"));
    (void)close(s);
    (void)unlink(sock);
    (void)unlink(link);
    CU_ASSERT_EQUAL(fs_write_atomic(file, "text", 4, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(symlink(file, link), 0); /* a link to a regular file is one */
    buf b = {0};
    CU_ASSERT_EQUAL(fs_read_regular(link, &b, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&b), "text");
    buf_release(&b);
    int fd = 7;
    snap_err err = {0};
    CU_ASSERT_EQUAL(fs_open_regular("/nonexistent/x", &fd, &err), SNAP_E_IO);
    CU_ASSERT_EQUAL(fd, -1);
    CU_ASSERT_STRING_EQUAL(err.text, "cannot open '/nonexistent/x': No such file or directory");
    (void)unlink(pipe);
    (void)unlink(link);
    (void)unlink(file);
    free(pipe);
    free(sock);
    free(link);
    free(file);
}

/* A path that leads to a pipe, like the one that a shell gives for <(command). */
static void test_anonymous_pipe(void) {
    char path[64];
    buf b = {0};
    int ends[2], fd = -1;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    CU_ASSERT_EQUAL(write(ends[1], "one\ntwo\n", 8), 8);
    CU_ASSERT_EQUAL(fs_read_regular(path, &b, NULL), SNAP_E_IO);
    CU_ASSERT_EQUAL(fs_open_regular(path, &fd, NULL), SNAP_E_IO);
    pid_t child = fork();
    if (child == 0) { /* the rest comes later, so that reading has to wait for it */
        (void)usleep(50000);
        _exit(write(ends[1], "three\n", 6) == 6 ? 0 : 1);
    }
    (void)close(ends[1]);
    CU_ASSERT_EQUAL(fs_read(path, &b, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&b), "one\ntwo\nthree\n");
    int end = -1;
    CU_ASSERT_EQUAL(waitpid(child, &end, 0), child);
    CU_ASSERT_EQUAL(end, 0);
    (void)close(ends[0]);
    buf_release(&b);
}

static void test_log_repairs_a_cut_tail(void) {
    char *path = in_dir("log");
    CU_ASSERT_EQUAL(fs_write_atomic(path, "one\ntwo\nthr", 11, NULL), SNAP_OK);
    fs_log log = FS_LOG_CLOSED;
    CU_ASSERT_EQUAL(fs_log_open(&log, path, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(fs_log_append(&log, "four\n", 5, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(fs_log_sync(&log, NULL), SNAP_OK);
    fs_log_close(&log);
    fs_log_close(&log);
    expect_content(path, "one\ntwo\nfour\n");
    free(path);
}

static void test_log_with_a_long_cut_tail(void) {
    char *path = in_dir("long");
    char *text = malloc(20000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memset(text, 'x', 20000);
    memcpy(text, "a\n", 2);
    CU_ASSERT_EQUAL(fs_write_atomic(path, text, 20000, NULL), SNAP_OK);
    fs_log log = FS_LOG_CLOSED;
    CU_ASSERT_EQUAL(fs_log_open(&log, path, NULL), SNAP_OK);
    fs_log_close(&log);
    expect_content(path, "a\n");
    free(text);
    free(path);
}

static void test_lock_names_its_holder(void) {
    char *path = in_dir("lock");
    int fd, ready[2], done[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
    CU_ASSERT_EQUAL_FATAL(pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        char c = fs_lock(path, &fd, NULL) == SNAP_OK ? 'y' : 'n';
        _exit(write(ready[1], &c, 1) != 1 || read(done[0], &c, 1) != 1);
    }
    char c = 0;
    CU_ASSERT_EQUAL(read(ready[0], &c, 1), 1);
    CU_ASSERT_EQUAL(c, 'y');
    snap_err err = {0};
    char holder[40];
    (void)snprintf(holder, sizeof holder, "process %ld:", (long)child);
    CU_ASSERT_EQUAL(fs_lock(path, &fd, &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, holder));
    CU_ASSERT_EQUAL(write(done[1], "x", 1), 1);
    (void)waitpid(child, NULL, 0);
    CU_ASSERT_EQUAL(fs_lock(path, &fd, NULL), SNAP_OK); /* the lock of a dead process is released */
    (void)close(fd);
    for (int i = 0; i < 2; i++) {
        (void)close(ready[i]);
        (void)close(done[i]);
    }
    free(path);
}

CU_TestInfo tests_fs[] = {
    {"an atomic write replaces", test_atomic_write_replaces},
    {"a read has a size limit", test_read_has_a_ceiling},
    {"only regular files are opened", test_regular_files_only},
    {"an anonymous pipe is read to its end", test_anonymous_pipe},
    {"opening a log removes an incomplete last line", test_log_repairs_a_cut_tail},
    {"a log whose incomplete last line is long", test_log_with_a_long_cut_tail},
    {"a lock names its holder", test_lock_names_its_holder},
    CU_TEST_INFO_NULL};
