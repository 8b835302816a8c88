#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "base/share.h"
#include "base/text.h"
#include "kernels/plugin/attend.h"

enum { kNameLimit = 31, kPathLimit = 4096 };
static const char kSymbol[] = "snapmla_plugin_v1", kAttention[] = "snapmla_attention_v1";

/* ---- checks of the plugin's tables ----------------------------------------------------------- */

typedef struct {
    const char *name;
    bool there;
} member;

static snap_status check_members(const member *m, size_t n, const char *table, const char *path,
                                 snap_err *err) {
    for (size_t i = 0; i < n; i++)
        if (!m[i].there)
            return err_set(err, SNAP_E_UNSUPPORTED, "plugin '%s': %s.%s is null", path, table,
                           m[i].name);
    return SNAP_OK;
}

static snap_status check_ops(const mla_backend_ops *o, const char *path, snap_err *err) {
    const member members[] = {
        {"close", o->close},
        {"describe", o->describe},
        {"alloc", o->alloc},
        {"free", o->free},
        {"copy_in", o->copy_in},
        {"copy_out", o->copy_out},
        {"sync", o->sync},
        {"timer_start", o->timer_start},
        {"timer_stop", o->timer_stop},
        {"plan_create", o->plan_create},
        {"plan_free", o->plan_free},
        {"schedule", o->schedule},
        {"run", o->run},
        {"quant_q", o->quant_q},
        {"append_kv", o->append_kv},
        {"fetch_kv", o->fetch_kv},
        {"ceilings", o->ceilings},
    };
    return check_members(members, sizeof members / sizeof *members, "ops", path, err);
}

static snap_status check_lab(const mla_lab_ops *l, const char *path, snap_err *err) {
    if (!l)
        return SNAP_OK;
    const member members[] = {
        {"plan_kernel", l->plan_kernel},
        {"fill", l->fill},
        {"flush", l->flush},
        {"draw", l->draw},
        {"unfused", l->unfused},
        {"record", l->record},
        {"record_end", l->record_end},
        {"replay", l->replay},
        {"recording_free", l->recording_free},
        {"attend", l->attend},
    };
    return check_members(members, sizeof members / sizeof *members, "lab", path, err);
}

/* Result files identify a backend by its name, so a plugin must not use the name of a built-in
 * one. */
static snap_status check_name(const char *name, const char *path, snap_err *err) {
    size_t n = name ? strnlen(name, kNameLimit + 1) : 0;
    if (n == 0 || n > kNameLimit ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != n)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "plugin '%s': its name must be 1..%d letters, digits, '-' or '_'", path,
                       kNameLimit);
    for (const char *const *own = mla_backend_list(); *own; own++)
        if (text_equal(name, *own))
            return err_set(err, SNAP_E_UNSUPPORTED,
                           "plugin '%s': its name '%s' is the name of a built-in backend", path,
                           name);
    return SNAP_OK;
}

static snap_status check_attention(const snapmla_attention *p, const char *path, snap_err *err) {
    if (p->abi != SNAPMLA_ATTENTION_ABI)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "plugin '%s' was built for ABI %u of attention.h, this program has ABI %d: "
                       "recompile it",
                       path, p->abi, SNAPMLA_ATTENTION_ABI);
    if (p->table_bytes != sizeof *p || p->err_bytes != sizeof(snap_err))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "plugin '%s' was compiled against other headers: its snapmla_attention has "
                       "%u bytes (here %zu), its snap_err %u (here %zu)",
                       path, p->table_bytes, sizeof *p, p->err_bytes, sizeof(snap_err));
    return check_name(p->name, path, err);
}

static snap_status check_entry(const snapmla_plugin *p, const char *path, snap_err *err) {
    if (p->abi != SNAPMLA_PLUGIN_ABI)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "plugin '%s' was built for ABI %u, this program has ABI %d: recompile it",
                       path, p->abi, SNAPMLA_PLUGIN_ABI);
    if (p->ops_bytes != sizeof(mla_backend_ops) || p->err_bytes != sizeof(snap_err))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "plugin '%s' was compiled against other headers: its mla_backend_ops has %u "
                       "bytes (here %zu), its snap_err %u (here %zu)",
                       path, p->ops_bytes, sizeof(mla_backend_ops), p->err_bytes, sizeof(snap_err));
    if (!p->open)
        return err_set(err, SNAP_E_UNSUPPORTED, "plugin '%s': open is null", path);
    return check_name(p->name, path, err);
}

/* ---- loading a shared object ----------------------------------------------------------------- */

/* Accepts regular files only: opening a pipe would block. */
static snap_status check_file(const char *path, snap_err *err) {
    struct stat s;
    if (!*path)
        return err_set(err, SNAP_E_USAGE, "'plugin:' needs the path of a shared object");
    if (strlen(path) >= kPathLimit - 2)
        return err_set(err, SNAP_E_USAGE, "the plugin's path is too long");
    if (stat(path, &s) != 0)
        return err_set_errno(err, "cannot open plugin '%s'", path);
    if (!S_ISREG(s.st_mode))
        return err_set(err, SNAP_E_UNSUPPORTED, "plugin '%s' is not a file", path);
    return SNAP_OK;
}

/* What a shared object exports. At most one of the two is not NULL. */
typedef struct {
    const snapmla_plugin *backend;
    const snapmla_attention *attention;
} exported;

static snap_status check_exported(const exported *e, const char *path, snap_err *err) {
    if (e->backend)
        return check_entry(e->backend, path, err);
    if (e->attention)
        return check_attention(e->attention, path, err);
    return err_set(err, SNAP_E_UNSUPPORTED,
                   "'%s' is not a snapmla plugin: it has no symbol %s or %s", path, kSymbol,
                   kAttention);
}

/* A path without a slash gets "./" in front, or dlopen() would search the system's library
 * folders. */
static snap_status load(exported *out, const char *path, snap_err *err) {
    char file[kPathLimit];
    (void)snprintf(file, sizeof file, "%s%s", strchr(path, '/') ? "" : "./", path);
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        const char *why = dlerror();
        return err_set(err, fault_of_dlopen(why), "cannot load plugin '%s': %s", path, why);
    }
    out->backend = dlsym(object, kSymbol);
    out->attention = out->backend ? NULL : dlsym(object, kAttention);
    snap_status st = check_exported(out, path, err);
    if (st != SNAP_OK)
        (void)dlclose(object);
    return st;
}

static snap_status open_backend(mla_backend **out, const snapmla_plugin *plugin, const char *path,
                                const mla_backend_options *opt, snap_err *err) {
    mla_backend *be = NULL;
    snap_status st = plugin->open(&be, opt, err);
    if (st != SNAP_OK)
        return err_set(err, st, "plugin '%s' failed to open", path);
    if (!be || !be->ops)
        return err_set(err, SNAP_E_UNSUPPORTED, "plugin '%s': open returned no backend", path);
    TRY(check_ops(be->ops, path, err));
    TRY(check_lab(be->ops->lab, path, err));
    *out = be;
    return SNAP_OK;
cleanup:
    if (be->ops->close)
        be->ops->close(be);
    return st;
}

static snap_status load_checked(exported *e, const char *path, snap_err *err) {
    snap_status st = check_file(path, err);
    return st == SNAP_OK ? load(e, path, err) : st;
}

snap_status plugin_backend_open(mla_backend **out, const char *path, const mla_backend_options *opt,
                                snap_err *err) {
    exported e = {0};
    *out = NULL;
    snap_status st = load_checked(&e, path, err);
    if (st != SNAP_OK)
        return st;
    return e.backend ? open_backend(out, e.backend, path, opt, err)
                     : attend_backend_open(out, e.attention, path, opt, err);
}

/* The path of the object that runs Python files, which the caller frees: $SNAPMLA_PYTHON_ARM, which
 * is not checked here, or else what share_find() finds. NULL if there is none, or if memory is
 * exhausted. */
static char *find_python_arm(void) {
    const char *own = getenv("SNAPMLA_PYTHON_ARM");
    return own && *own ? strdup(own) : share_find("plugins/python-arm.so");
}

snap_status python_backend_open(mla_backend **out, const char *file, const mla_backend_options *opt,
                                snap_err *err) {
    exported e = {0};
    *out = NULL;
    if (!*file)
        return err_set(err, SNAP_E_USAGE, "'python:' needs the path of a Python file");
    char *object = find_python_arm();
    if (!object)
        return err_set(
            err, SNAP_E_UNSUPPORTED,
            "cannot find python-arm.so, which runs Python files: 'make python-arm' in the "
            "sources builds it as build/plugins/python-arm.so; an installed program "
            "needs its path in SNAPMLA_PYTHON_ARM");
    snap_status st = load_checked(&e, object, err);
    if (st == SNAP_OK)
        st = e.attention ? attend_backend_make(out, e.attention, file, opt, err)
                         : err_set(err, SNAP_E_UNSUPPORTED, "'%s' cannot run a file", object);
    free(object);
    return st;
}
