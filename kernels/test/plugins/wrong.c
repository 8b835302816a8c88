/* wrong.c - the example plugin with one fault, selected by -DFAULT=WRONG_name. It can
 * be loaded. sysconf() reports no cache size, so that tests need only one set of inputs. */
#include <unistd.h>
#define sysconf(name)     (-1L)
#define snapmla_plugin_v1 example_plugin
#include "kernels/plugin/example/example.c"
#undef snapmla_plugin_v1

#include "kernels/test/plugins/wrong.h"

static mla_backend_ops faulty_ops;

static snap_status open_wrong(mla_backend **out, const mla_backend_options *opt, snap_err *err) {
    snap_status st = example_plugin.open(out, opt, err);
    if (st != SNAP_OK)
        return st;
    faulty_ops = wrong_ops((*out)->ops, FAULT);
    (*out)->ops = &faulty_ops;
    return SNAP_OK;
}

const snapmla_plugin snapmla_plugin_v1 = {SNAPMLA_PLUGIN, "wrong", open_wrong};
