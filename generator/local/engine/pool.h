/* pool.h - the pages of the cache, with reference counts. A page may be held by any number of
 * sequences and prompts. It is free when nothing holds it. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_POOL_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_POOL_H

#include <stdint.h>

#include "base/err.h"

typedef struct {
    int32_t *holders; /* [pages] reference counts */
    int32_t *free;    /* [pages] a stack of free pages */
    int32_t pages, n_free;
} page_pool;

snap_status pool_init(page_pool *p, int32_t pages, snap_err *err) SNAP_CHECK_RESULT;
void pool_release(page_pool *p);

int32_t pool_take(page_pool *p); /* a free page, whose count becomes 1; -1 if none is free */
void pool_hold(page_pool *p, int32_t page);
void pool_drop(page_pool *p, int32_t page);

#endif
