#include "generator/local/replicas.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char kCuda[] = "cuda";

static snap_status read_layout(replica_devices *d, const char *text, snap_err *err) {
    rank_layout l;
    if (rank_layout_parse(&l, text, NULL) != SNAP_OK || rank_layout_size(&l) > LOCAL_REPLICAS)
        return err_set(err, SNAP_E_USAGE,
                       "the layout must be DPn (n replicas of the model), TPn (a model that is "
                       "split over n ranks), DPm/TPn, EPn (n replicas that divide the experts), "
                       "TPn/EPn or DPm/TPn/EP(m*n), with at most %d ranks, not '%s'",
                       LOCAL_REPLICAS, text);
    d->n = l.whole_experts ? 1 : l.replicas;
    d->ranks = l;
    if (!l.whole_experts)
        d->ranks.replicas = 1;
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
    *out = (replica_devices){.device = list ? kCuda : device, .n = 1, .ranks = {1, 1, false}};
    if (layout)
        TRY(read_layout(out, layout, err));
    count = replica_devices_count(out);
    if (list)
        TRY(read_numbers(out, &listed, device, device + sizeof kCuda, err));
    if (list && listed != count)
        TRY(err_set(
            err, SNAP_E_USAGE,
            "the device '%s' lists %d GPUs, and the layout has %d ranks: the list must name "
            "one GPU for each rank",
            device, listed, count));
    if (count > 1 && device && strcmp(device, "cpu") != 0 && strcmp(out->device, kCuda) != 0)
        TRY(err_set(err, SNAP_E_USAGE, "the layout '%s' needs the device cpu or cuda, not '%s'",
                    layout, device));
    for (int i = 0; !list && i < count; i++)
        out->number[i] = i;
cleanup:
    return st;
}
