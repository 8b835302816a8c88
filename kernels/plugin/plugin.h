/* plugin.h - the interface of a backend plugin: a shared object that a vendor builds separately.
 *
 * The object defines one symbol. It is data, not a function, so that the program calls no
 * function of the object before it has checked the ABI number:
 *
 *     const snapmla_plugin snapmla_plugin_v1 = {SNAPMLA_PLUGIN, "acme", acme_open};
 *
 * `open` creates a backend as kernels/backend.h describes: mla_backend is the first member of the
 * plugin's own struct, and `ops` points to a table that lives as long as the object is loaded.
 * Every function of the table must be set, except those marked "may be NULL". The same holds for
 * `lab`, unless it is NULL. The object needs no symbol of the program: it is compiled against the
 * headers alone and may be linked with any library. Once its symbol has passed the checks, the
 * object stays loaded until the program ends, because device runtimes leave threads behind.
 *
 * docs/plugin.md is the manual. example/ contains two whole backends: the smallest, and one with
 * both arms. */
#ifndef SNAPMLA_KERNELS_PLUGIN_PLUGIN_H
#define SNAPMLA_KERNELS_PLUGIN_PLUGIN_H

#include <stdarg.h>
#include <stdio.h>

#include "kernels/backend.h"

/* Must be raised when a struct of mla.h, backend.h, lab.h, draw.h, ceilings.h or err.h changes. */
enum { SNAPMLA_PLUGIN_ABI = 6 };

/* Initialises the first three members, which record what the object was compiled against. */
#define SNAPMLA_PLUGIN SNAPMLA_PLUGIN_ABI, sizeof(mla_backend_ops), sizeof(snap_err)

typedef struct {
    uint32_t abi;       /* SNAPMLA_PLUGIN_ABI */
    uint32_t ops_bytes; /* sizeof(mla_backend_ops) */
    uint32_t err_bytes; /* sizeof(snap_err) */
    const char *name;   /* 1..31 letters, digits, '-' and '_'; not the name of a built-in backend */
    mla_backend_opener open; /* opens the backend, like the openers of the built-in backends */
} snapmla_plugin;

/* err_set() for a plugin, which cannot call functions of the program. Unlike that function, it does
 * not escape the text. */
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

/* The program's side: opens the plugin at @path as a backend. SNAP_E_USAGE if @path is empty or too
 * long; SNAP_E_IO if there is no such file; SNAP_E_UNSUPPORTED if it can't be loaded, was built for
 * another ABI or with other headers, has a name that is not allowed or belongs to a built-in
 * backend, leaves out a required member, or its `open` returns no backend. Otherwise the error that
 * its `open`, or attend_backend_open(), returns. */
snap_status plugin_backend_open(mla_backend **out, const char *path, const mla_backend_options *opt,
                                snap_err *err);

#endif
