/* bench_devices.c - the backends of a benchmark, copies of the files of arms, and ceilings. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fs.h"
#include "harness/bench/bench_run_inside.h"
#include "harness/bench/load_ceilings.h"
#include "harness/measure/code_hash.h"
#include "harness/record/arm_file.h"
#include "harness/record/device_results.h"
#include "kernels/plugin/attend.h"
#include "kernels/plugin/packed.h"

snap_status bench_probe(bench_device *d, snap_err *err) {
    enum { kRounds = 3 };
    const double seconds = 0.15;
    return ceilings_measure(&d->ceilings, d->backend, kRounds, seconds, err);
}

static void describe(bench_device *d) {
    mla_backend_describe(d->backend, &d->info);
    d->hashed = code_hash_of(d->device.backend, NULL, d->hash, NULL) == SNAP_OK;
}

/* Arms on the processors that use all of them share one pool of threads: idle threads spin for a
 * moment, so two pools would disturb each other. */
static snap_status open_named(bench *b, bench_device *d, snap_err *err) {
    mla_backend_options wanted = {.isa = d->device.isa, .threads = (int)d->device.threads};
    snap_status st = device_scale(&wanted.scale, d->device.scale, err);
    if (st != SNAP_OK)
        return st;
    if (!wanted.threads || wanted.threads == parallel_cpus())
        wanted.pool = b->pool;
    return mla_backend_open(&d->backend, d->device.backend, &wanted, err);
}

/* Loads the format that --arm names, or else that of the plugin unless --arm names a precision. */
static snap_status find_format(const bench *b, bench_device *d, const arm_spec *spec,
                               sweep_arm *arm, snap_err *err) {
    const char *own = spec->has_precision ? NULL : packed_own_format(d->backend);
    const char *name = spec->format ? spec->format : own;
    snap_status st = SNAP_OK;
    if (!name)
        return SNAP_OK;
    if (!packed_is_supported(d->backend))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "format %s: the plugin has no attend_packed(), which reads caches in any "
                       "format",
                       name);
    TRY(arm_format_load(&d->format, name, b->grid.d_c, b->grid.d_r, err));
    arm->format = d->format;
    arm->kind = arm_format_kind(&d->format->format);
cleanup:
    return st;
}

void bench_device_close(bench_device *d) {
    mla_backend_close(d->backend);
    arm_format_free(d->format);
    d->backend = NULL;
    d->format = NULL;
}

static mla_backend_info describe_built_in(const bench_device *d) {
    mla_backend_info info;
    mla_backend_describe(attend_built_in(d->backend), &info);
    return info;
}

/* The first arm with the same ceilings as arm @i. They are those of the device: a plugin or Python
 * file with one function uses the probes of a built-in backend. */
static int rates_of(const bench *b, int i) {
    const mla_backend_info x = describe_built_in(&b->devices[i]);
    for (int k = 0; k < i; k++) {
        if (!b->devices[k].backend)
            continue;
        const mla_backend_info y = describe_built_in(&b->devices[k]);
        if (strcmp(x.name, y.name) == 0 && strcmp(x.device, y.device) == 0 &&
            strcmp(x.kernel, y.kernel) == 0)
            return k;
    }
    return i;
}

/* Opens the backend of each named arm. An arm that cannot be opened keeps its error. */
static snap_status open_arms(bench *b, snap_err *err) {
    snap_status st = parallel_create(&b->pool, 0, err);
    for (int i = 0; i < b->o->arms.n && st == SNAP_OK; i++) {
        const arm_spec *spec = &b->specs[i];
        bench_device *d = &b->devices[b->n++];
        sweep_arm *arm = &b->arms[i];
        *arm = (sweep_arm){
            .name = spec->name, .options = spec->options, .kind = spec->kind, .rates = i};
        d->device = spec->device;
        if (open_named(b, d, &arm->why) == SNAP_OK &&
            find_format(b, d, spec, arm, &arm->why) == SNAP_OK) {
            describe(d);
            arm->backend = d->backend;
            arm->kernel_hash = d->hashed ? d->hash : NULL;
            arm->code_is_file = code_is_file(d->device.backend);
            arm->rates = rates_of(b, i);
        } else {
            bench_device_close(d);
            st = fault_of_process(SNAP_OK, err);
            term_warn("arm %s cannot be opened: %s", spec->name, arm->why.text);
        }
    }
    return st;
}

const bench_device *bench_main_device(const bench *b) {
    for (int i = 0; i < b->n; i++)
        if (b->devices[i].backend)
            return &b->devices[i];
    return NULL;
}

static snap_status no_device(const bench *b, snap_err *err) {
    return err_set(err, b->arms[0].why.code, "no arm can be opened, first: %s: %s", b->arms[0].name,
                   b->arms[0].why.text);
}

/* Copies the plugin or Python file of an arm to the run's folder, so that `pack` finds the version
 * that was measured. */
static snap_status keep_file(const bench *b, int i, snap_err *err) {
    const bench_device *d = &b->devices[i];
    char name[ARM_FILE_NAME], hex[HASH_HEX];
    buf bytes = {.limit = (size_t)1 << 30};
    char *to = NULL;
    snap_status st = SNAP_OK;
    if (!d->backend || !d->hashed || !arm_file_name(b->arms[i].name, b->arms[i].options, name))
        return SNAP_OK;
    to = fs_join(b->o->out, name);
    TRY(to ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a path"));
    TRY(fs_read_regular(strchr(d->device.backend, ':') + 1, &bytes, err));
    TRY(hash_bytes(buf_str(&bytes), bytes.len, hex, err));
    if (strcmp(hex, d->hash) != 0)
        TRY(err_set(err, SNAP_E_ENV, "the file of arm %s changes while the run begins",
                    b->arms[i].name));
    TRY(fs_write_atomic(to, bytes.data, bytes.len, err));
cleanup:
    buf_release(&bytes);
    free(to);
    return st;
}

/* A run whose result is a single file keeps no copies. */
static snap_status keep_files(const bench *b, snap_err *err) {
    char *file = b->o->out ? results_file_of(b->o->out) : NULL;
    bool folder = file && strcmp(file, b->o->out) != 0;
    snap_status st = SNAP_OK;
    if (b->o->out && !file)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    for (int i = 0; folder && st == SNAP_OK && i < b->o->arms.n; i++)
        st = keep_file(b, i, err);
    free(file);
    return st;
}

snap_status bench_open_devices(bench *b, const js *config, snap_err *err) {
    const bench_options *o = b->o;
    const bench_device *d = NULL;
    snap_status st = SNAP_OK;
    if (o->arms.n) {
        TRY(open_arms(b, err));
    } else {
        b->n = 1;
        b->devices[0].device = o->device;
        TRY(device_open(&b->devices[0].backend, &o->device, err));
        describe(&b->devices[0]);
    }
    d = bench_main_device(b);
    if (!d)
        return no_device(b, err);
    TRY(results_of_device(&b->results, d->backend, &d->device, "bench", config, (int64_t)b->seed,
                          err));
    if (o->out)
        TRY(bench_journal_open(&b->journal, o->out, config, err));
    TRY(keep_files(b, err));
cleanup:
    return st;
}

bool bench_has_ceilings(const bench *b, int i) {
    return b->devices[i].backend && (!b->o->arms.n || b->arms[i].rates == i);
}

snap_status bench_find_ceilings(bench *b, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < b->n && st == SNAP_OK; i++) {
        bench_device *d = &b->devices[i];
        if (!bench_has_ceilings(b, i))
            continue;
        if (b->o->ceilings_path)
            st = load_ceilings(&d->ceilings, d->backend, b->o->ceilings_path, err);
        else
            st = bench_probe(d, err);
        if (st != SNAP_OK && b->o->arms.n)
            err_prefix(err, "arm %s: ceilings", b->arms[i].name);
    }
    return st;
}
