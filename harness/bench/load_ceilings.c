#include "harness/bench/load_ceilings.h"

#include <stdlib.h>
#include <string.h>

#include "harness/record/results.h"

static snap_status check_device(const results *from, const mla_backend *be, const char *path,
                                snap_err *err) {
    const js *provenance = js_get_object(results_document(from), "provenance");
    const js *backend = js_get_object(provenance, "backend");
    const char *device_name = backend ? js_get_str(backend, "device") : NULL;
    mla_backend_info info;
    mla_backend_describe(be, &info);
    if (device_name && strcmp(device_name, info.device) == 0)
        return SNAP_OK;
    return err_set(err, SNAP_E_ENV, "%s: its ceilings were measured on '%s', this device is '%s'",
                   path, device_name ? device_name : "none", info.device);
}

snap_status load_ceilings(ceilings *c, const mla_backend *be, const char *argument, snap_err *err) {
    results *from = NULL;
    char *path = results_file_of(argument);
    snap_status st = SNAP_OK;
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    TRY(results_load(&from, path, err));
    TRY(check_device(from, be, path, err));
    TRY(ceilings_parse(c, results_section(from, "ceilings"), path, err));
cleanup:
    results_free(from);
    free(path);
    return st;
}
