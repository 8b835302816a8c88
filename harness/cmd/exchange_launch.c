#include "harness/cmd/exchange_arguments.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "generator/local/ranks/launch.h"
#include "harness/cmd/cmd.h"
#include "kernels/mla.h"

static const double kGrace = 8; /* seconds after a failure; ranks end by themselves before */

static bool has_cuda(void) {
    for (const char *const *name = mla_backend_list(); *name; name++)
        if (strcmp(*name, "cuda") == 0)
            return true;
    return false;
}

/* The arguments of this process, from /proc. They point into @text. */
static snap_status read_arguments(buf *text, char ***argv, snap_err *err) {
    size_t n = 0;
    snap_status st = fs_read("/proc/self/cmdline", text, err);
    *argv = NULL;
    if (st != SNAP_OK)
        return st;
    for (size_t i = 0; i < text->len; i++)
        n += text->data[i] == '\0';
    char **list = malloc((n + 1) * sizeof *list);
    if (!list)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the arguments of a rank");
    char *at = text->data;
    for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
        list[i] = at;
    list[n] = NULL;
    *argv = list;
    return SNAP_OK;
}

snap_status exchange_launch(const exchange_arguments *a, snap_err *err) {
    buf text = {0};
    char **argv = NULL;
    launch_options how = {.size = a->n_devices, .grace_s = kGrace, .cancel = &cmd_cancelled};
    if (a->n_devices < 2)
        return err_set(err, SNAP_E_USAGE,
                       "bench exchange needs at least two GPUs: --devices 0,1, or a launcher that "
                       "sets RANK and WORLD_SIZE");
    if (!has_cuda())
        return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
    snap_status st = read_arguments(&text, &argv, err);
    if (st == SNAP_OK)
        st = launch_ranks(&how, "/proc/self/exe", argv, err);
    free(argv);
    buf_release(&text);
    return st;
}
