#include "harness/record/info.h"

#include <dirent.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/parallel.h"
#include "base/share.h"
#include "base/text.h"
#include "evals/code/sandbox.h"
#include "harness/record/origin.h"
#include "harness/record/provenance.h"
#include "harness/record/results.h"
#include "kernels/lab.h"

enum { kConfigLimit = 1 << 20 };

/* ---- backends ---- */

/* Opens a backend and returns {"name", "present", "reason"}. If it opened, the object also has
 * "device", "kernel", "memory_bytes" and "cache_bytes". @shown: the value of "name". */
static js *try_backend(const char *name, const char *isa, const char *shown) {
    mla_backend_options wanted = {.isa = isa};
    mla_backend *be = NULL;
    snap_err why = {0};
    js *o = js_new_object();
    (void)js_set_str(o, "name", shown);
    if (mla_backend_open(&be, name, &wanted, &why) == SNAP_OK) {
        mla_backend_info info;
        mla_backend_describe(be, &info);
        (void)js_set_str(o, "device", info.device);
        (void)js_set_str(o, "kernel", info.kernel);
        (void)js_set_int(o, "memory_bytes", (int64_t)info.memory_bytes);
        (void)js_set_int(o, "cache_bytes", (int64_t)info.cache_bytes);
    }
    (void)js_set_bool(o, "present", be != NULL);
    (void)js_set_new(o, "reason", js_new_str(be ? NULL : why.text));
    mla_backend_close(be);
    return o;
}

static js *cpu_paths(void) {
    static const char *const isas[] = {"amx", "avx512", "avx512f", "avx2", "portable"};
    js *paths = js_new_array();
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        (void)js_push_new(paths, try_backend("cpu", isas[i], isas[i]));
    return paths;
}

static bool in_build(const char *name) {
    for (const char *const *n = mla_backend_list(); *n; n++)
        if (strcmp(*n, name) == 0)
            return true;
    return false;
}

static js *left_out(const char *name, const char *reason) {
    js *o = js_new_object();
    (void)js_set_str(o, "name", name);
    (void)js_set_bool(o, "present", false);
    (void)js_set_str(o, "reason", reason);
    return o;
}

static js *backends(void) {
    js *all = js_new_array();
    for (const char *const *name = mla_backend_list(); *name; name++) {
        js *o = try_backend(*name, "auto", *name);
        if (strcmp(*name, "cpu") == 0)
            (void)js_set_new(o, "isa", cpu_paths());
        (void)js_push_new(all, o);
    }
    if (!in_build("cuda"))
        (void)js_push_new(all, left_out("cuda", "this build has no CUDA backend"));
    return all;
}

/* ---- configurations ---- */

static int is_json(const struct dirent *entry) {
    return text_ends(entry->d_name, ".json");
}

static js *config_row(const char *dir, const char *name) {
    js *o = js_new_object();
    char *path = fs_join(dir, name);
    snap_err err = {0};
    js *file = path ? js_parse_file(path, kConfigLimit, &err) : NULL;
    (void)js_set_new(o, "name", js_new_strn(name, strlen(name) - strlen(".json")));
    (void)js_set_new(o, "path", js_new_str(path));
    (void)js_set_new(o, "why", js_new_str(file ? js_get_str(file, "why") : err.text));
    js_free(file);
    free(path);
    return o;
}

js *shipped_configs(void) {
    char *dir = share_find("configs");
    struct dirent **entries = NULL;
    js *rows = js_new_array();
    int n = dir ? scandir(dir, &entries, is_json, alphasort) : 0;
    for (int i = 0; i < n; i++) {
        (void)js_push_new(rows, config_row(dir, entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
    free(dir);
    return rows;
}

/* {"present", "reason", "missing"}: whether this machine can run the programs that graded answers
 * contain, why it cannot (NULL: it can), and which packages such programs may import but this
 * machine lacks (NULL: none, or it cannot run them). */
static js *code_judge_state(void) {
    js *o = js_new_object();
    sandbox *s = NULL;
    snap_err why = {0};
    buf missing = {0};
    bool can = sandbox_open(&s, NULL, &why) == SNAP_OK;
    if (can)
        packages_append(sandbox_missing(s), "", ", ", &missing);
    sandbox_close(s);
    bool ok = o && !missing.failed && js_set_bool(o, "present", can) &&
              js_set_str(o, "reason", can ? NULL : why.text) &&
              js_set_str(o, "missing", missing.len ? buf_str(&missing) : NULL);
    buf_release(&missing);
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

/* ---- the document ---- */

snap_status machine_info(js **out, snap_err *err) {
    static const char *const parts[] = {"program", "build", "host", "cpu"};
    results *r = NULL;
    snap_status st = results_new(&r, "info", NULL, 0, err);
    if (st != SNAP_OK)
        return st;
    const js *provenance = js_get_object(results_document(r), "provenance");
    js *doc = js_new_object();
    bool ok = doc != NULL;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ok = ok && js_set_new(doc, parts[i], js_copy(js_get(provenance, parts[i])));
    ok = ok && js_set_str(doc, "libc", gnu_get_libc_version()) &&
         js_set_int(doc, "threads", parallel_cpus()) && js_set_new(doc, "backends", backends()) &&
         js_set_new(doc, "code_judge", code_judge_state()) &&
         js_set_new(doc, "configs", shipped_configs());
    results_free(r);
    *out = doc;
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory");
}

/* ---- one backend ---- */

snap_status backend_info(const device_options *device, js **out, snap_err *err) {
    mla_backend *be = NULL;
    mla_backend_info info;
    snap_status st = device_open(&be, device, err);
    if (st != SNAP_OK)
        return st;
    mla_backend_describe(be, &info);
    js *o = js_new_object();
    origin_backend origin = {0};
    arena mem = {0};
    st = provenance_plugin(device->backend, &mem, &origin.plugin, err);
    bool ok = o && js_set_str(o, "name", info.name) && js_set_str(o, "device", info.device) &&
              js_set_str(o, "kernel", info.kernel) &&
              js_set_int(o, "memory_bytes", (int64_t)info.memory_bytes) &&
              js_set_int(o, "cache_bytes", (int64_t)info.cache_bytes) &&
              js_set_bool(o, "host_memory", info.host_memory) &&
              js_set_bool(o, "cold_by_flush", lab_can_flush(be)) &&
              js_set_bool(o, "records_steps", lab_can_record(be)) &&
              js_set_bool(o, "judges_in_fp64", lab_can_attend(be)) &&
              js_set_new(o, "pci", js_new_str(info.pci[0] ? info.pci : NULL)) &&
              js_set_new(o, "plugin", record_value(&origin_backend_type, &origin, "plugin"));
    mla_backend_close(be);
    arena_release(&mem);
    if (st == SNAP_OK && !ok)
        st = err_set(err, SNAP_E_NOMEM, "out of memory");
    *out = o;
    return st;
}
