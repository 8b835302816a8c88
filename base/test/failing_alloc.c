#include "base/test/failing_alloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_size_t calls;
static size_t fail_at;
static bool armed, fail_after;

void failing_alloc_arm(size_t n, bool all) {
    fail_at = n;
    fail_after = all;
    atomic_store(&calls, 0);
    armed = true;
}

size_t failing_alloc_disarm(void) {
    armed = false;
    return atomic_load(&calls);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

bool failing_alloc_works(void) {
    return true;
}

/* True if this allocation must fail. */
static bool fails(void) {
    if (!armed)
        return false;
    size_t n = atomic_fetch_add(&calls, 1) + 1;
    if (!fail_at || n < fail_at || (n > fail_at && !fail_after))
        return false;
    errno = ENOMEM;
    return true;
}

/* glibc's own functions under names that this file does not replace */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n) {
    return fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t count, size_t size) {
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *p, size_t n) {
    return fails() ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n) {
    return fails() ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n) {
    void *p = fails() ? NULL : __libc_memalign(align, n);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

#else

bool failing_alloc_works(void) {
    return false;
}

#endif

#ifdef FAILING_ALLOC_PRELOAD

/* This file as a preloaded object, for ci/alloc_fail.sh. Environment variables:
 *
 *   ALLOC_FAIL_COUNT=FILE  the number of allocations goes to this file when main() has returned
 *   ALLOC_FAIL_LIST=FILE   runs main() once for each number n of this file, in a process of its
 *                          own. There the n-th allocation fails; if the file has "n+", each later
 *                          one fails, too
 *   ALLOC_FAIL_DIR=DIR     the folder for what these processes write: DIR/n.out, DIR/n.err; and
 *                          DIR/n.files if the program has written DIR/files. The file DIR/results
 *                          gets a line "n exit-code" for each, with 128 + S after signal S.
 *
 *   ALLOC_FAIL_REQUEST=FILE  main() is a server, and a client sends it this request
 *                          (failing_alloc_client.h)
 *
 * Only allocations during main() count: the CUDA runtime allocates before it, in constructors that
 * cannot report a failure. Nothing fails in programs that this one starts. Nothing is synced. */

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/test/failing_alloc_client.h"

enum { kSeconds = 300 }; /* a process that runs longer is killed */

typedef int (*main_fn)(int argc, char **argv, char **env);
static main_fn program_main;

int fsync(int fd) {
    (void)fd;
    return 0;
}

int fdatasync(int fd) {
    (void)fd;
    return 0;
}

static void write_count(const char *path, size_t n) {
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
    if (fd < 0)
        return;
    (void)dprintf(fd, "%zu\n", n);
    (void)close(fd);
}

/* Makes file descriptor @to refer to the new file @path. */
static void redirect(int to, const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || dup2(fd, to) < 0)
        _exit(125);
    (void)close(fd);
}

/* Runs main() so that the @n-th allocation fails or, with @all, also each later one. */
static int armed_main(size_t n, bool all, int argc, char **argv, char **env) {
    const char *request = getenv("ALLOC_FAIL_REQUEST");
    if (request && *request)
        failing_alloc_client(request);
    failing_alloc_arm(n, all);
    return program_main(argc, argv, env);
}

/* The exit code of main() with the failure that @number describes. */
static int run_one(const char *dir, const char *number, int argc, char **argv, char **env) {
    char path[4096], kept[4096];
    int status;
    (void)lseek(STDIN_FILENO, 0, SEEK_SET);
    pid_t pid = fork();
    if (pid == 0) {
        (void)snprintf(path, sizeof path, "%s/%s.out", dir, number);
        redirect(STDOUT_FILENO, path);
        (void)snprintf(path, sizeof path, "%s/%s.err", dir, number);
        redirect(STDERR_FILENO, path);
        (void)alarm(kSeconds);
        int code =
            armed_main(strtoul(number, NULL, 10), strchr(number, '+') != NULL, argc, argv, env);
        (void)failing_alloc_disarm();
        exit(code);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 125;
    (void)snprintf(path, sizeof path, "%s/files", dir);
    (void)snprintf(kept, sizeof kept, "%s/%s.files", dir, number);
    (void)rename(path, kept);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The list is read whole, because a process that ends with exit() would change the position of an
 * open stream here, too. */
static int run_list(const char *list, const char *dir, int argc, char **argv, char **env) {
    static char text[1 << 20];
    char path[4096], *rest = text;
    (void)snprintf(path, sizeof path, "%s/results", dir);
    int from = open(list, O_RDONLY | O_CLOEXEC);
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (from < 0 || to < 0 || read(from, text, sizeof text - 1) < 0 || close(from) != 0)
        return 125;
    for (char *number; (number = strtok_r(rest, "\n", &rest)) != NULL;)
        (void)dprintf(to, "%s %d\n", number, run_one(dir, number, argc, argv, env));
    return close(to) == 0 ? 0 : 125;
}

static int counted_main(int argc, char **argv, char **env) {
    const char *list = getenv("ALLOC_FAIL_LIST"), *dir = getenv("ALLOC_FAIL_DIR");
    (void)unsetenv("LD_PRELOAD");
    if (list && dir)
        return run_list(list, dir, argc, argv, env);
    int code = armed_main(0, false, argc, argv, env);
    write_count(getenv("ALLOC_FAIL_COUNT"), failing_alloc_disarm());
    return code;
}

/* glibc starts a program through this function. */
int __libc_start_main(main_fn fn, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(main_fn fn, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end) {
    int (*next)(main_fn, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    program_main = fn;
    return next(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

#endif
