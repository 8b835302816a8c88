/* replicas.h - on which devices a checkpoint runs, from the options `device` and `layout`.
 *
 * With a layout TPn, one replica is split over n ranks (split.h), each with a device of its own.
 *
 * A replica is a runner with a cache and an engine of its own. Replicas in one process share the
 * checkpoint's files and the tokenizer, and on the CPU also the weights. Each request runs on one
 * replica. On the CPU its answer is the same on every replica. */
#ifndef SNAPMLA_GENERATOR_LOCAL_REPLICAS_H
#define SNAPMLA_GENERATOR_LOCAL_REPLICAS_H

#include "base/err.h"

enum { LOCAL_REPLICAS = 16 }; /* most replicas of a process, and most ranks of a split one */

typedef struct {
    const char *device;         /* as in runner_options; borrowed from the option */
    int n;                      /* replicas, at least 1 */
    int parts;                  /* ranks of the only replica, if it is split; else 1 */
    int number[LOCAL_REPLICAS]; /* "cuda": the number of the device of each replica or rank */
} replica_devices;

/* Replicas or ranks: how many elements of `number` are used. */
static inline int replica_devices_count(const replica_devices *d) {
    return d->n * d->parts;
}

/**
 * replica_devices_parse - read which devices the replicas of a checkpoint use
 *
 * @device: a device of runner_options; "cuda:3" for CUDA device 3; "cuda:0,1" for one replica or
 *          rank on each device of the list, in which a device may occur twice
 * @layout: "DPn" for n replicas; "TPn" for one replica that is split over n ranks; NULL = "DP1".
 *          With "cuda" they use the devices 0 .. n - 1
 *
 * SNAP_E_USAGE if one of them is malformed, if they state different numbers of devices, or for
 * several replicas or ranks on another device than "cpu" and "cuda". SNAP_E_UNSUPPORTED for several
 * replicas that are split (DP2/TP2).
 */
snap_status replica_devices_parse(replica_devices *out, const char *device, const char *layout,
                                  snap_err *err) SNAP_CHECK_RESULT;

#endif
