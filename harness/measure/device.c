#include "harness/measure/device.h"

#include <stdbool.h>
#include <string.h>

/* True for the backends that "auto" tries first. "cpu" is its last resort. "opencl" is used only if
 * the user names it: OpenCL devices may be processors, and its kernels are tuned for no device. */
static bool is_tuned(const char *name) {
    return strcmp(name, "cpu") != 0 && strcmp(name, "opencl") != 0;
}

static snap_status open_best(mla_backend **out, const mla_backend_options *wanted, snap_err *err) {
    for (const char *const *name = mla_backend_list(); *name; name++) {
        snap_err absent = {0};
        if (is_tuned(*name) && mla_backend_open(out, *name, wanted, &absent) == SNAP_OK)
            return SNAP_OK;
    }
    return mla_backend_open(out, "cpu", wanted, err);
}

snap_status device_scale(mla_scale *out, const char *name, snap_err *err) {
    if (mla_scale_parse(name ? name : "max", out))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "the scale must be max or pow2, got '%.40s'", name);
}

snap_status device_open(mla_backend **out, const device_options *d, snap_err *err) {
    mla_backend_options wanted = {.isa = d->isa, .threads = (int)d->threads};
    *out = NULL;
    snap_status st = device_scale(&wanted.scale, d->scale, err);
    if (st != SNAP_OK)
        return st;
    if (strcmp(d->backend, "auto") == 0)
        return open_best(out, &wanted, err);
    return mla_backend_open(out, d->backend, &wanted, err);
}
