#include "generator/local/engine/pool.h"

#include <stdlib.h>

snap_status pool_init(page_pool *p, int32_t pages, snap_err *err) {
    *p = (page_pool){.pages = pages, .n_free = pages};
    p->holders = calloc((size_t)pages, sizeof *p->holders);
    p->free = calloc((size_t)pages, sizeof *p->free);
    if (!p->holders || !p->free) {
        pool_release(p);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a pool of pages");
    }
    for (int32_t i = 0; i < pages; i++)
        p->free[i] = pages - 1 - i;
    return SNAP_OK;
}

void pool_release(page_pool *p) {
    free(p->holders);
    free(p->free);
    *p = (page_pool){0};
}

int32_t pool_take(page_pool *p) {
    if (!p->n_free)
        return -1;
    int32_t page = p->free[--p->n_free];
    p->holders[page] = 1;
    return page;
}

void pool_hold(page_pool *p, int32_t page) {
    p->holders[page]++;
}

void pool_drop(page_pool *p, int32_t page) {
    if (p->holders[page] < 1)
        SNAP_BUG("a page is dropped that nobody holds");
    if (--p->holders[page] == 0)
        p->free[p->n_free++] = page;
}
