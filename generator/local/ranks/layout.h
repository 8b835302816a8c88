/* layout.h - how a model is divided over several GPUs, written "DP2/TP1", "DP1/TP2", "DP2" or
 * "TP4".
 *
 * DP (data parallel): the sequences are divided over replicas of the model. TP (tensor parallel):
 * each replica is split over ranks (comm.h). Ranks of the same replica have consecutive numbers:
 * rank r of DPd/TPt is part r % t of replica r / t. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_LAYOUT_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_LAYOUT_H

#include "generator/local/checkpoint/shape.h"

typedef struct {
    int replicas; /* DP */
    int parts;    /* TP: ranks of one replica */
} rank_layout;

/* Reads "DPd/TPt"; either part may be missing and is 1 then. SNAP_E_USAGE if @text is no layout, or
 * has more than RANKS_MOST ranks. */
snap_status rank_layout_parse(rank_layout *out, const char *text, snap_err *err) SNAP_CHECK_RESULT;

/* How many of @sequences sequences a replica decodes: the first ones get one more if the number
 * cannot be divided. */
static inline int64_t rank_layout_share(const rank_layout *l, int replica, int64_t sequences) {
    return (sequences + l->replicas - 1 - replica) / l->replicas;
}

/* Reduces a shape to that of one of @parts ranks of a replica (comm.h). SNAP_E_UNSUPPORTED, naming
 * the size that @parts does not divide. */
snap_status rank_layout_split(model_shape *shape, int parts, snap_err *err) SNAP_CHECK_RESULT;

#endif
