#include "harness/record/device_results.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/parallel.h"
#include "harness/measure/gpu.h"

snap_status results_of_device(results **out, const mla_backend *be, const device_options *d,
                              const char *command, const js *config, int64_t seed, snap_err *err) {
    mla_backend_info info;
    mla_backend_describe(be, &info);
    int threads = d->threads ? (int)d->threads : parallel_cpus();
    if (strcmp(info.name, "cpu") != 0)
        threads = 0;
    snap_status st = results_new(out, command, config, seed, err);
    if (st == SNAP_OK)
        st = results_set_backend(*out, info.name, info.device, info.kernel, threads, err);
    if (st == SNAP_OK)
        st = results_set_plugin(*out, d->backend, err);
    gpu *g = gpu_open(info.pci);
    if (st == SNAP_OK && g)
        st = results_set_gpu(*out, gpu_json(g), err);
    gpu_close(g);
    return st;
}

/* Writes the result file. @has: what the result of an interrupted run has; NULL if the run is
 * complete. */
static snap_status save_as(results *r, const char *has, const char *out_path, snap_err *err) {
    char *path = results_file_of(out_path);
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    snap_status st = SNAP_OK;
    char *slash = strrchr(path, '/');
    if (slash && slash != path) {
        *slash = '\0';
        st = fs_mkdirs(path, err);
        *slash = '/';
    }
    if (st == SNAP_OK)
        st = has ? results_save_unfinished(r, has, path, err) : results_save(r, path, err);
    free(path);
    return st;
}

snap_status results_save_run(results *r, const char *out_path, snap_err *err) {
    return save_as(r, NULL, out_path, err);
}

snap_status results_save_run_unfinished(results *r, const char *has, const char *out_path,
                                        snap_err *err) {
    return save_as(r, has, out_path, err);
}
