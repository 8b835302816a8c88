#include <stdlib.h>
#include <string.h>

#include "generator/local/tokenizer/tokenizer_parts.h"

snap_status tok_ids_append(tok_ids *ids, const int32_t *v, size_t n, snap_err *err) {
    if (n == 0)
        return SNAP_OK;
    if (ids->n + n > ids->cap) {
        size_t cap = 2 * (ids->n + n);
        int32_t *p = realloc(ids->v, cap * sizeof *p);
        if (!p)
            return err_set(err, SNAP_E_NOMEM, "out of memory for %zu token ids", cap);
        ids->v = p;
        ids->cap = cap;
    }
    memcpy(ids->v + ids->n, v, n * sizeof *v);
    ids->n += n;
    return SNAP_OK;
}

void tok_ids_release(tok_ids *ids) {
    free(ids->v);
    *ids = (tok_ids){0};
}
