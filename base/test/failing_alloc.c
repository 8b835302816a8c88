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

/* As a preloaded object: the environment variable ALLOC_FAIL_AT is n, with a "+" at its end if all
 * later allocations fail as well. When main() returns, the number of allocations goes to the file
 * that ALLOC_FAIL_COUNT names. Only allocations during main() count: the CUDA runtime allocates
 * before it, in constructors that cannot report a failure. Nothing fails in processes that this one
 * starts. */

typedef int (*main_fn)(int argc, char **argv, char **env);
static main_fn program_main;

static void write_count(size_t n) {
    const char *path = getenv("ALLOC_FAIL_COUNT");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
    if (fd < 0)
        return;
    (void)dprintf(fd, "%zu\n", n);
    (void)close(fd);
}

static int counted_main(int argc, char **argv, char **env) {
    const char *at = getenv("ALLOC_FAIL_AT");
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("ALLOC_FAIL_AT");
    failing_alloc_arm(at ? strtoul(at, NULL, 10) : 0, at && strchr(at, '+'));
    int code = program_main(argc, argv, env);
    write_count(failing_alloc_disarm());
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
