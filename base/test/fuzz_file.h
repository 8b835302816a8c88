/* fuzz_file.h - writes the fuzzer's bytes to a file, for readers that need a path. */
#ifndef SNAPMLA_BASE_TEST_FUZZ_FILE_H
#define SNAPMLA_BASE_TEST_FUZZ_FILE_H

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char fuzz_folder[40];

static inline int fuzz_remove_one(const char *path, const struct stat *sb, int flag,
                                  struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static inline void fuzz_remove_folder(void) {
    (void)nftw(fuzz_folder, fuzz_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of @name in a temporary folder, which is removed when the process calls exit(). Static
 * memory, overwritten by the next call. */
static inline const char *fuzz_path(const char *name) {
    static char path[128];
    if (!fuzz_folder[0]) {
        bool memory = access("/dev/shm", W_OK) == 0;
        (void)snprintf(fuzz_folder, sizeof fuzz_folder, "%s/snapmla-fuzz-XXXXXX",
                       memory ? "/dev/shm" : "/tmp");
        if (!mkdtemp(fuzz_folder))
            abort();
        (void)atexit(fuzz_remove_folder);
    }
    (void)snprintf(path, sizeof path, "%s/%s", fuzz_folder, name);
    return path;
}

/* Writes the bytes to fuzz_path(name) and returns that path. */
static inline const char *fuzz_file(const char *name, const void *bytes, size_t n) {
    const char *path = fuzz_path(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || close(fd) != 0)
        abort();
    return path;
}

#endif
