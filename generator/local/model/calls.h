/* calls.h - the calls of rank 0's runner, which the other ranks of a split model repeat.
 *
 * All ranks of a split model must run the same steps in the same order (comm.h). Only rank 0 has an
 * engine. Before its runner runs a step or changes pages of the cache, it sends the arguments of
 * this call to the other ranks, where runner_repeat() makes the same call. The cache is complete on
 * every rank and has the same page numbers, so the arguments are the same, too. Only what the
 * engine reads (logits, drawn tokens) stays on rank 0.
 *
 * A message is an array of 32-bit integers in the byte order of the machine: all ranks are
 * processes of one program on one machine. The first number is the kind of the call:
 *
 *   CALL_STEP        number of pieces. Then for each piece: number of tokens, position, number of
 *                    logits, 1 for a chunk plus 2 for padding, its tokens, and the pages up to its
 *                    end
 *   CALL_COPY_PAGE   from, to
 *   CALL_WRITE_PAGE  page. Then its bytes, kv_cache_page_bytes() */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_CALLS_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_CALLS_H

#include <stddef.h>

#include "base/err.h"

typedef enum { CALL_STEP = 1, CALL_COPY_PAGE, CALL_WRITE_PAGE } call_kind;

/* Rank 0's connection to the other ranks. split.h implements it. */
typedef struct call_sender call_sender;
struct call_sender {
    /* Sends a message to all other ranks. An error ends the call before it has begun here. */
    snap_status (*send)(call_sender *s, const void *bytes, size_t n, snap_err *err);

    /* Is called after a call that was sent has failed on rank 0. It ends the other ranks, because
     * they no longer make the same calls. If another rank failed earlier, it replaces @err by that
     * failure. */
    void (*fail)(call_sender *s, snap_err *err);
};

typedef struct runner runner;

/* Makes the call of a message on this rank. The results of a step are dropped. SNAP_E_INPUT for a
 * message that is malformed; SNAP_E_NOMEM; any error of the call. After an error, this rank must
 * end. */
snap_status runner_repeat(runner *r, const void *bytes, size_t n, snap_err *err) SNAP_CHECK_RESULT;

#endif
