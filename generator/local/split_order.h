/* split_order.h - what split.c and split_follow.c share: the order that rank 0 sends to a new rank
 * of a split model. */
#ifndef SNAPMLA_GENERATOR_LOCAL_SPLIT_ORDER_H
#define SNAPMLA_GENERATOR_LOCAL_SPLIT_ORDER_H

#include "base/buf.h"
#include "generator/local/ranks/channel.h"
#include "generator/local/split.h"

enum { SPLIT_PATH = 4096 };

/* Sent as it is, because both processes run the same file, which the kernel has opened once. */
typedef struct {
    int rank, port;
    rank_layout layout;
    int device; /* number of the CUDA device */
    bool cuda, random;
    char dir[SPLIT_PATH], precision[SPLIT_PATH];
    model_shape shape;                  /* shape of the whole model, if its weights are random */
    int hidden_size, experts_per_token; /* of the model */
    kv_format format;
    int64_t pages, context;
    int max_rows, max_decode, threads;
} split_order;

extern const char split_address[];   /* host of the control connections */
extern const double split_start_s;   /* limit for a new process until it has joined the group */
extern const double split_weights_s; /* limit for opening the shares */
extern const double split_spin_s;    /* With "cuda", the next message usually comes within this time
                                        after a step or a call: channel.spin_s */

/* Writes the facts that ranks_join() compares: the file of the program, the layout, and sizes and
 * times of the files of the checkpoint. Any error of reading the folder; SNAP_E_NOMEM. */
snap_status split_facts(buf *out, const split_order *o, snap_err *err) SNAP_CHECK_RESULT;

/* The communicators of a rank. NULL: it exchanges nothing of this kind. */
typedef struct {
    comm *sums;    /* TP: with the other ranks of its replica */
    comm *experts; /* EP with several replicas: with the ranks that have the same part of theirs */
} split_comms;

/* Opens the communicators of this rank. @to: as in host_sums_open(). split_close_comms() closes
 * them, also after a failure. */
snap_status split_open_comms(split_comms *out, const split_order *o, ranks *group, channel *to,
                             snap_err *err) SNAP_CHECK_RESULT;
void split_close_comms(const split_comms *c, const split_order *o);

#endif
