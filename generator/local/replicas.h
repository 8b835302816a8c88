/* replicas.h - on which devices a checkpoint runs, from the options `device` and `layout`.
 *
 * A replica is a runner with a cache and an engine of its own. Replicas in one process share the
 * checkpoint's files and the tokenizer, and on the CPU also the weights. Each request runs on one
 * replica. On the CPU its answer is the same on every replica.
 *
 * With a layout TPn, the replica is split over n ranks (split.h), each with a device of its own.
 * With DPm/TPn, there are m such replicas, which exchange nothing. With EP, the routed experts are
 * divided over all ranks of the layout. Its replicas then take all steps together, so they have one
 * engine (engine.h), and count as one replica here. */
#ifndef SNAPMLA_GENERATOR_LOCAL_REPLICAS_H
#define SNAPMLA_GENERATOR_LOCAL_REPLICAS_H

#include "generator/local/ranks/layout.h"

enum { LOCAL_REPLICAS = 16 }; /* most ranks of all replicas of a process together */

typedef struct {
    const char *device; /* as in runner_options; borrowed from the option */
    int n;              /* replicas that are independent of each other, at least 1 */
    rank_layout ranks;  /* how each of them is divided over ranks: TP, or any layout with
                                   EP */
    int number
        [LOCAL_REPLICAS]; /* "cuda": the numbers of the devices of the ranks of replica 0, then
                                   those of replica 1, and so on */
} replica_devices;

/* The ranks of one replica; those of all replicas, that is, how many elements of `number` are
 * used; and the numbers of the devices of replica @i. */
static inline int replica_devices_ranks(const replica_devices *d) {
    return rank_layout_size(&d->ranks);
}
static inline int replica_devices_count(const replica_devices *d) {
    return d->n * replica_devices_ranks(d);
}
static inline const int *replica_devices_of(const replica_devices *d, int i) {
    return d->number + i * replica_devices_ranks(d);
}

/**
 * replica_devices_parse - read which devices the replicas of a checkpoint use
 *
 * @device: a device of runner_options; "cuda:3" for CUDA device 3; "cuda:0,1" for one rank on each
 *          device of the list, in which a device may occur twice
 * @layout: as rank_layout_parse() reads it, with at most LOCAL_REPLICAS ranks; NULL = "DP1". With
 *          "cuda" the ranks use the devices 0 .. n - 1
 *
 * SNAP_E_USAGE if one of them is malformed, if they state different numbers of devices, or for
 * several ranks on another device than "cpu" and "cuda".
 */
snap_status replica_devices_parse(replica_devices *out, const char *device, const char *layout,
                                  snap_err *err) SNAP_CHECK_RESULT;

#endif
