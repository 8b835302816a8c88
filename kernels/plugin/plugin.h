/* plugin.h - a backend from a shared object that somebody else built: what it exports.
 *
 * The object defines one symbol, data and no function, so that nothing of it has run before its ABI is
 * known:
 *
 *     const snapmla_plugin snapmla_plugin_v1 = {SNAPMLA_PLUGIN, "acme", acme_open};
 *
 * `open` makes a backend as kernels/backend.h describes: mla_backend is the first member of a struct of
 * its own, `ops` points to a table that lives as long as the object is loaded. Every member of the table
 * must be set, save those marked "may be NULL"; the members of `lab` all or none. The object needs no
 * symbol of the program: it is compiled against the headers alone and may be linked with whatever it
 * likes. It stays loaded until the program ends, because runtimes of devices leave threads behind.
 *
 * README.md beside this file is the manual, example/ a whole backend. */
#ifndef SNAPMLA_KERNELS_PLUGIN_PLUGIN_H
#define SNAPMLA_KERNELS_PLUGIN_PLUGIN_H

#include <stdarg.h>
#include <stdio.h>

#include "kernels/backend.h"

/* Raised whenever a struct of mla.h, backend.h, lab.h, draw.h, ceilings.h or err.h changes. */
enum { SNAPMLA_PLUGIN_ABI = 4 };

/* The first three members: what the object was compiled against. */
#define SNAPMLA_PLUGIN SNAPMLA_PLUGIN_ABI, sizeof(mla_backend_ops), sizeof(snap_err)

typedef struct {
    uint32_t abi;       /* SNAPMLA_PLUGIN_ABI */
    uint32_t ops_bytes; /* sizeof(mla_backend_ops) */
    uint32_t err_bytes; /* sizeof(snap_err) */
    const char *name;   /* letters, digits, '-' and '_', at most 31; none of the program's own */
    mla_backend_opener open; /* as of the backends of this program */
} snapmla_plugin;

/* err_set() for a plugin, which has no other part of the program to call. */
SNAP_PRINTF(3, 4)
static inline snap_status plugin_fail(snap_err *err, snap_status code, const char *fmt, ...) {
    if (err && err->code == SNAP_OK) {
        va_list args;
        va_start(args, fmt);
        err->code = code;
        (void)vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
    }
    return code;
}

/* Of the program: the plugin at @path as a backend. SNAP_E_UNSUPPORTED when it can't be loaded, was made
 * for another ABI or leaves out what it must have; else what its own `open` says. */
snap_status plugin_backend_open(mla_backend **out, const char *path, const mla_backend_options *opt,
                                snap_err *err);

#endif
