/* layout.h - how a model is divided over several GPUs, written "DP2/TP1", "DP1/TP2", "DP2", "TP4",
 * "DP2/EP2" or "EP2".
 *
 * DP (data parallel): the sequences are divided over replicas of the model. TP (tensor parallel):
 * each replica is split over ranks (comm.h). Ranks of the same replica have consecutive numbers:
 * rank r of DPd/TPt is part r % t of replica r / t. EP (expert parallel): the routed experts are
 * divided over all ranks of the layout, and each of them is whole on its rank. Without EP, each
 * replica has all experts, and TP splits every expert by its inner width. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_LAYOUT_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_LAYOUT_H

#include "generator/local/checkpoint/shape.h"

typedef struct {
    int replicas;       /* DP */
    int parts;          /* TP: ranks of one replica */
    bool whole_experts; /* EP */
} rank_layout;

enum { RANK_LAYOUT_TEXT = 32 };

static inline int rank_layout_size(const rank_layout *l) {
    return l->replicas * l->parts;
}

/* Reads "DPd/TPt/EPn"; DP and TP may be missing and are 1 then. "EPn" alone is DPn/EPn.
 * SNAP_E_USAGE if @text is no layout, has more than RANKS_MOST ranks, or if n is not the number of
 * all ranks. */
snap_status rank_layout_parse(rank_layout *out, const char *text, snap_err *err) SNAP_CHECK_RESULT;

/* Writes "DPd/TPt" or "DPd/TPt/EPn". */
void rank_layout_text(const rank_layout *l, char out[RANK_LAYOUT_TEXT]);

/* How many of @sequences sequences a replica decodes: the first ones get one more if the number
 * cannot be divided. */
static inline int64_t rank_layout_share(const rank_layout *l, int replica, int64_t sequences) {
    return (sequences + l->replicas - 1 - replica) / l->replicas;
}

/* Reduces a shape to that of one of @parts ranks of a replica (comm.h), without EP.
 * SNAP_E_UNSUPPORTED, naming the size that @parts does not divide. */
snap_status rank_layout_split(model_shape *shape, int parts, snap_err *err) SNAP_CHECK_RESULT;

/* Like rank_layout_split(), for any layout. With EP, the shape keeps the number of routed experts,
 * because each rank has the whole router, and their inner width. SNAP_E_UNSUPPORTED, too, if the
 * ranks do not divide the routed experts, or if there are none. */
snap_status rank_layout_shape(model_shape *shape, const rank_layout *l,
                              snap_err *err) SNAP_CHECK_RESULT;

#endif
