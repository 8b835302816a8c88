/* faulty.c - plugins with one fault each, selected by -DFAULT_name. The loader must refuse each. */
#include "kernels/plugin/plugin.h"

#ifndef FAULT_refuses
#define FAULT_refuses 0
#endif
#ifndef FAULT_nothing
#define FAULT_nothing 0
#endif

static mla_backend backend;

static void close_nothing(mla_backend *be) {
    (void)be;
}

snap_status open_faulty(mla_backend **out, const mla_backend_options *opt, snap_err *err);

static void *absent_alloc(mla_backend *be, size_t bytes, snap_err *err) {
    (void)be;
    (void)plugin_fail(err, SNAP_E_NOMEM, "no memory for %zu bytes", bytes);
    return NULL;
}

static void absent_free(mla_backend *be, void *device) {
    (void)be;
    (void)device;
}

static void absent_describe(const mla_backend *be, mla_backend_info *out) {
    (void)be;
    out->name[0] = 'x';
}

static const mla_backend_ops kOps = {
    .close = close_nothing,
    .describe = absent_describe,
    .alloc = absent_alloc,
    .free = absent_free,
};

snap_status open_faulty(mla_backend **out, const mla_backend_options *opt, snap_err *err) {
    (void)opt;
    backend.ops = &kOps;
    if (FAULT_refuses)
        return plugin_fail(err, SNAP_E_DEVICE, "device %d is on fire", 3);
    if (!FAULT_nothing)
        *out = &backend;
    return SNAP_OK;
}

#if defined FAULT_abi
const snapmla_plugin snapmla_plugin_v1 = {99, 0, 0, "abi", open_faulty};
#elif defined FAULT_headers
const snapmla_plugin snapmla_plugin_v1 = {SNAPMLA_PLUGIN_ABI, 8, 16, "headers", open_faulty};
#elif defined FAULT_open
const snapmla_plugin snapmla_plugin_v1 = {SNAPMLA_PLUGIN, "open", NULL};
#elif defined FAULT_name
const snapmla_plugin snapmla_plugin_v1 = {SNAPMLA_PLUGIN, "a name", open_faulty};
#elif defined FAULT_impostor
const snapmla_plugin snapmla_plugin_v1 = {SNAPMLA_PLUGIN, "cpu", open_faulty};
#else
const snapmla_plugin snapmla_plugin_v1 = {SNAPMLA_PLUGIN, "faulty", open_faulty};
#endif
