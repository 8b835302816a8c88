#include "evals/pattern_memory.h"

#include <stdalign.h>
#include <stddef.h>
#include <sys/mman.h>

/* kBytes are mapped for one pattern. Only pages that are written take memory of the machine. */
enum { kBytes = 64 << 20, kAlign = alignof(max_align_t) };

/* The start of the mapped memory. */
typedef struct {
    size_t used; /* bytes, with this struct */
    int blocks;  /* allocated and not freed; at 0 the memory is unmapped */
} region;

static size_t round_up(size_t n) {
    return (n + kAlign - 1) / kAlign * kAlign;
}

static void *take(size_t n, void *data) {
    region *r = data;
    if (n > kBytes - r->used - kAlign)
        return NULL;
    char *block = (char *)r + r->used;
    r->used += round_up(n);
    r->blocks++;
    return block;
}

static void give_back(void *block, void *data) {
    region *r = data;
    if (block && --r->blocks == 0)
        (void)munmap(r, kBytes);
}

pcre2_compile_context *pattern_memory(void) {
    region *r = mmap(NULL, kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r == MAP_FAILED)
        return NULL;
    *r = (region){.used = round_up(sizeof *r)};
    pcre2_general_context *general = pcre2_general_context_create(take, give_back, r);
    pcre2_compile_context *context = pcre2_compile_context_create(general);
    pcre2_general_context_free(general);
    return context;
}
