#include "harness/cmd/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/parallel.h"
#include "base/term.h"
#include "harness/measure/gpu.h"

/* Backends for a kind of device, tuned for it. OpenCL runs on anything, the processor too, and only when
 * it is named. */
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

snap_status device_results(results **out, const mla_backend *be, const device_options *d,
                           const char *command, const opt_shared *shared, int64_t seed,
                           snap_err *err) {
    mla_backend_info info;
    mla_backend_describe(be, &info);
    int threads = d->threads ? (int)d->threads : parallel_cpus();
    if (strcmp(info.name, "cpu") != 0)
        threads = 0;
    snap_status st = results_new(out, command, shared->resolved, seed, err);
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

snap_status device_save(results *r, const char *out_path, snap_err *err) {
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
        st = results_save(r, path, err);
    free(path);
    return st;
}

snap_status device_finish(results *r, const char *out_path, const opt_shared *shared,
                          const table *t, snap_err *err) {
    buf text = {0};
    snap_status st = SNAP_OK;
    if (out_path)
        TRY(device_save(r, out_path, err));
    if (shared->json)
        TRY(js_write(results_document(r), JS_PRETTY, &text, err));
    else
        TRY(write_text(t, term_use_color(STDOUT_FILENO), &text, err));
    (void)fputs(buf_str(&text), stdout);
    if (shared->json)
        (void)fputs("\n", stdout);
cleanup:
    buf_release(&text);
    return st;
}
