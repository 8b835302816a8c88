#include "generator/local/replicas.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/ranks/layout.h"

static const char kCuda[] = "cuda";

static snap_status read_layout(replica_devices *d, const char *text, snap_err *err) {
    rank_layout l;
    if (rank_layout_parse(&l, text, NULL) != SNAP_OK || l.replicas > LOCAL_REPLICAS ||
        l.parts > LOCAL_REPLICAS)
        return err_set(err, SNAP_E_USAGE,
                       "the layout must be DPn, for n replicas of the model, or TPn, for a model "
                       "that is split over n ranks (n is 1 to %d), not '%s'",
                       LOCAL_REPLICAS, text);
    if (l.whole_experts)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "layout '%s': experts on different GPUs (EP) need the same steps on all "
                       "GPUs, which only 'bench model' runs",
                       text);
    if (l.parts > 1 && l.replicas > 1)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "layout '%s': several replicas of a checkpoint cannot be split; use DP%d or "
                       "TP%d",
                       text, l.replicas * l.parts, l.replicas * l.parts);
    d->n = l.replicas;
    d->parts = l.parts;
    return SNAP_OK;
}

/* Reads "0,1", the numbers of CUDA devices. */
static snap_status read_numbers(replica_devices *d, int *n, const char *device, const char *list,
                                snap_err *err) {
    for (*n = 0; *n < LOCAL_REPLICAS; list++) {
        char *end = NULL;
        long number = *list >= '0' && *list <= '9' ? strtol(list, &end, 10) : -1;
        if (number < 0 || number > 255)
            break;
        d->number[(*n)++] = (int)number;
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
    int listed = 0, count;
    *out = (replica_devices){.device = list ? kCuda : device, .n = 1, .parts = 1};
    if (layout)
        TRY(read_layout(out, layout, err));
    count = replica_devices_count(out);
    if (list)
        TRY(read_numbers(out, &listed, device, device + sizeof kCuda, err));
    if (list && listed != count)
        TRY(err_set(err, SNAP_E_USAGE,
                    "the device '%s' lists %d GPUs, and the layout has %d: DPn (replicas) and TPn "
                    "(a split model) need a list of n GPUs",
                    device, listed, count));
    if (count > 1 && device && strcmp(device, "cpu") != 0 && strcmp(out->device, kCuda) != 0)
        TRY(err_set(err, SNAP_E_USAGE, "the layout '%s' needs the device cpu or cuda, not '%s'",
                    layout, device));
    for (int i = 0; !list && i < count; i++)
        out->number[i] = i;
cleanup:
    return st;
}
