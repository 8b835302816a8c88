#include "harness/measure/device.h"

#include <stdbool.h>
#include <string.h>

/* OpenCL runs on any device, the processor too, so it is used only where it is named. */
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

snap_status device_open(mla_backend **out, const device_options *d, snap_err *err) {
    mla_backend_options wanted = {.isa = d->isa, .threads = (int)d->threads};
    *out = NULL;
    if (strcmp(d->backend, "auto") == 0)
        return open_best(out, &wanted, err);
    return mla_backend_open(out, d->backend, &wanted, err);
}
