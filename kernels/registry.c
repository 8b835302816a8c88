#include <string.h>

#include "kernels/backend.h"

static const char *const kNames[] = {"cpu", NULL};
static const mla_backend_opener kOpeners[] = {cpu_backend_open};

const char *const *mla_backend_list(void) {
    return kNames;
}

snap_status mla_backend_open(mla_backend **out, const char *name, const mla_backend_options *opt,
                             snap_err *err) {
    static const mla_backend_options defaults = {0};
    *out = NULL;
    for (int i = 0; kNames[i]; i++)
        if (strcmp(name, kNames[i]) == 0)
            return kOpeners[i](out, opt ? opt : &defaults, err);
    return err_set(err, SNAP_E_USAGE, "unknown backend '%s'; this build has: cpu", name);
}

void mla_backend_close(mla_backend *be) {
    if (be)
        be->ops->close(be);
}
