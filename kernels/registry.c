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

static snap_status open_named(mla_backend **out, const char *name, const mla_backend_options *opt,
                              snap_err *err) {
    if (strncmp(name, kPlugin, sizeof kPlugin - 1) == 0)
        return plugin_backend_open(out, name + sizeof kPlugin - 1, opt, err);
    if (strncmp(name, kPython, sizeof kPython - 1) == 0)
        return python_backend_open(out, name + sizeof kPython - 1, opt, err);
    for (int i = 0; kNames[i]; i++)
        if (strcmp(name, kNames[i]) == 0)
            return kOpeners[i](out, opt, err);
    return unknown(name, err);
}

/* A backend that does not know the member `scale`, such as a plugin, leaves it 0 when it describes
 * itself. */
static snap_status check_scale(const mla_backend *be, const char *name, mla_scale wanted,
                               snap_err *err) {
    mla_backend_info info;
    mla_backend_describe(be, &info);
    if (info.scale == wanted)
        return SNAP_OK;
    return err_set(err, SNAP_E_UNSUPPORTED, "backend '%s' quantises with scale=%s only", name,
                   mla_scale_name(info.scale));
}

snap_status mla_backend_open(mla_backend **out, const char *name, const mla_backend_options *opt,
                             snap_err *err) {
    static const mla_backend_options defaults = {0};
    if (!opt)
        opt = &defaults;
    *out = NULL;
    snap_status st = open_named(out, name, opt, err);
    if (st == SNAP_OK)
        st = check_scale(*out, name, opt->scale, err);
    if (st != SNAP_OK) {
        mla_backend_close(*out);
        *out = NULL;
    }
    return st;
}

void mla_backend_close(mla_backend *be) {
    if (be)
        be->ops->close(be);
}
