/* fault_wrap.c - functions of libc that note a fault if memory is exhausted (fault.h).
 *
 * The linker option --wrap=F turns each call of F in the linked objects into a call of __wrap_F,
 * and makes F itself available as __real_F. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fault.h"

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
char *__wrap_strndup(const char *s, size_t n);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fdopen(int fd, const char *mode);
FILE *__wrap_fdopen(int fd, const char *mode);
typedef int (*choose_fn)(const struct dirent *entry);
typedef int (*order_fn)(const struct dirent **a, const struct dirent **b);
int __real_scandir(const char *folder, struct dirent ***out, choose_fn choose, order_fn order);
int __wrap_scandir(const char *folder, struct dirent ***out, choose_fn choose, order_fn order);

/* The result of an allocation of n bytes. Of 0 bytes it may be NULL without a failure. */
static void *noted_if_null(void *p, size_t n) {
    if (!p && n) {
        fault_note(SNAP_E_NOMEM, "out of memory for %zu bytes", n);
        errno = ENOMEM;
    }
    return p;
}

void *__wrap_malloc(size_t n) {
    return noted_if_null(__real_malloc(n), n);
}

void *__wrap_calloc(size_t count, size_t size) {
    return noted_if_null(__real_calloc(count, size), count * size);
}

void *__wrap_realloc(void *p, size_t n) {
    return noted_if_null(__real_realloc(p, n), n);
}

char *__wrap_strdup(const char *s) {
    return noted_if_null(__real_strdup(s), strlen(s) + 1);
}

char *__wrap_strndup(const char *s, size_t n) {
    return noted_if_null(__real_strndup(s, n), strnlen(s, n) + 1);
}

/* The functions below can also fail for other reasons, which are not noted. */

static void note_if(bool no_memory, const char *function) {
    if (!no_memory)
        return;
    fault_note(SNAP_E_NOMEM, "out of memory in %s()", function);
    errno = ENOMEM;
}

FILE *__wrap_fopen(const char *path, const char *mode) {
    FILE *f = __real_fopen(path, mode);
    note_if(!f && errno == ENOMEM, "fopen");
    return f;
}

FILE *__wrap_fdopen(int fd, const char *mode) {
    FILE *f = __real_fdopen(fd, mode);
    note_if(!f && errno == ENOMEM, "fdopen");
    return f;
}

int __wrap_scandir(const char *folder, struct dirent ***out, choose_fn choose, order_fn order) {
    int n = __real_scandir(folder, out, choose, order);
    note_if(n < 0 && errno == ENOMEM, "scandir");
    return n;
}
