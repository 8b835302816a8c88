#include "generator/local/replicas.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/ranks/layout.h"

static const char kCuda[] = "cuda";

static snap_status read_layout(const char *text, int *replicas, snap_err *err) {
    rank_layout l;
    if (rank_layout_parse(&l, text, NULL) != SNAP_OK || l.replicas > LOCAL_REPLICAS)
        return err_set(err, SNAP_E_USAGE,
                       "the layout must be DPn, for n replicas of the model (1 to %d), not '%s'",
                       LOCAL_REPLICAS, text);
    if (l.parts > 1)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "layout '%s': a checkpoint cannot be split over several GPUs (TP); only "
                       "'bench model' splits models",
                       text);
    if (l.whole_experts)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "layout '%s': experts on different GPUs (EP) need the same steps on all "
                       "GPUs, which only 'bench model' runs",
                       text);
    *replicas = l.replicas;
    return SNAP_OK;
}

/* Reads "0,1", the numbers of CUDA devices. */
static snap_status read_numbers(replica_devices *d, const char *device, const char *list,
                                snap_err *err) {
    for (d->n = 0; d->n < LOCAL_REPLICAS; list++) {
        char *end = NULL;
        long number = *list >= '0' && *list <= '9' ? strtol(list, &end, 10) : -1;
        if (number < 0 || number > 255)
            break;
        d->number[d->n++] = (int)number;
        list = end;
        if (!*list)
            return SNAP_OK;
        if (*list != ',')
            break;
    }
    return err_set(err, SNAP_E_USAGE,
                   "the device '%s' must be cuda:N, or a list cuda:N,N with at most %d numbers of "
                   "GPUs",
                   device, LOCAL_REPLICAS);
}

snap_status replica_devices_parse(replica_devices *out, const char *device, const char *layout,
                                  snap_err *err) {
    snap_status st = SNAP_OK;
    bool list = device && text_starts(device, "cuda:");
    int replicas = 1;
    *out = (replica_devices){.device = list ? kCuda : device, .n = 1};
    if (layout)
        TRY(read_layout(layout, &replicas, err));
    if (list)
        TRY(read_numbers(out, device, device + sizeof kCuda, err));
    if (list && out->n != replicas)
        TRY(err_set(
            err, SNAP_E_USAGE,
            "the device '%s' lists %d GPUs, and the layout has %d replicas: the layout DP%d "
            "has one replica on each GPU",
            device, out->n, replicas, out->n));
    if (replicas > 1 && device && strcmp(device, "cpu") != 0 && strcmp(out->device, kCuda) != 0)
        TRY(err_set(err, SNAP_E_USAGE, "the layout '%s' needs the device cpu or cuda, not '%s'",
                    layout, device));
    for (int i = 0; !list && i < replicas; i++)
        out->number[i] = i;
    out->n = replicas;
cleanup:
    return st;
}
