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
    int rank, parts, port;
    int device; /* number of the CUDA device */
    bool cuda, random;
    char dir[SPLIT_PATH], precision[SPLIT_PATH];
    model_shape shape; /* of the whole model, with random weights */
    int hidden_size;
    kv_format format;
    int64_t pages, context;
    int max_rows, max_decode, threads;
} split_order;

extern const char split_address[];   /* host of the control connections */
extern const double split_start_s;   /* limit for a new process until it has joined the group */
extern const double split_weights_s; /* limit for opening the shares */

/* Writes the facts that ranks_join() compares: the file of the program, the layout, and sizes and
 * times of the files of the checkpoint. Any error of reading the folder; SNAP_E_NOMEM. */
snap_status split_facts(buf *out, const split_order *o, snap_err *err) SNAP_CHECK_RESULT;

/* Opens the communicator of this rank. @to: as in host_sums_open(). */
snap_status split_open_comm(comm **out, const split_order *o, ranks *group, channel *to,
                            snap_err *err) SNAP_CHECK_RESULT;
void split_close_comm(comm *c, const split_order *o); /* NULL is allowed */

#endif
