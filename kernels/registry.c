#include <stdio.h>
#include <string.h>

#include "kernels/plugin/attend.h"

static const char kPlugin[] = "plugin:", kPython[] = "python:";

static const char *const kNames[] = {
    "cpu",
#ifdef SNAPMLA_CUDA
    "cuda",
#endif
    "opencl",
    NULL,
};
static const mla_backend_opener kOpeners[] = {
    cpu_backend_open,
#ifdef SNAPMLA_CUDA
    cuda_backend_open,
#endif
    opencl_backend_open,
};

const char *const *mla_backend_list(void) {
    return kNames;
}

static snap_status unknown(const char *name, snap_err *err) {
    char all[64] = "";
    for (int i = 0; kNames[i]; i++) {
        size_t n = strlen(all);
        (void)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", kNames[i]);
    }
    return err_set(err, SNAP_E_USAGE,
                   "unknown backend '%s'; this build has: %s, plugin:PATH, python:FILE", name, all);
}

snap_status mla_backend_open(mla_backend **out, const char *name, const mla_backend_options *opt,
                             snap_err *err) {
    static const mla_backend_options defaults = {0};
    *out = NULL;
    if (strncmp(name, kPlugin, sizeof kPlugin - 1) == 0)
        return plugin_backend_open(out, name + sizeof kPlugin - 1, opt ? opt : &defaults, err);
    if (strncmp(name, kPython, sizeof kPython - 1) == 0)
        return python_backend_open(out, name + sizeof kPython - 1, opt ? opt : &defaults, err);
    for (int i = 0; kNames[i]; i++)
        if (strcmp(name, kNames[i]) == 0)
            return kOpeners[i](out, opt ? opt : &defaults, err);
    return unknown(name, err);
}

void mla_backend_close(mla_backend *be) {
    if (be)
        be->ops->close(be);
}
