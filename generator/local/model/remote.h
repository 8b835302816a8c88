/* remote.h - a runner whose model is on other ranks, and steps of several runners together.
 *
 * If the experts are divided over several replicas (EP with DP, comm.h), all replicas take every
 * step together, with the same number of rows. One process has the engines of all replicas. The
 * first replica has an ordinary runner there. Each further one has a remote runner, which sends its
 * calls (calls.h) to the ranks of its replica. The first of these ranks answers:
 *
 *   REMOTE_STEP       as CALL_STEP. Then a reading for each row of logits. The answer is the
 *                     statistics of the rank's runner and a reading_result for each row; then the
 *                     lists of these results. After it, an answer of its own follows for each row
 *                     that is READ_LOGITS: its logits
 *   REMOTE_READ_PAGE  page. The answer is its bytes
 *
 * A remote runner can be used like another one in runner_step_read(), runner_step_together(), and
 * for pages. It has no cache in this process: runner_cache() returns NULL. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_REMOTE_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_REMOTE_H

#include "generator/local/model/runner.h"

enum { REMOTE_STEP = 101, REMOTE_READ_PAGE }; /* other numbers than those of call_kind */

/* A connection to the ranks of a replica. split.h implements it. */
typedef struct call_link call_link;
struct call_link {
    call_sender sender; /* must be the first member */
    /* Waits for the next answer of the replica's first rank. *bytes: valid until the next call of
     * any function of this link. SNAP_E_NET: the rank has ended, has not answered in time, or has
     * sent something else. If another rank has failed, returns its failure. */
    snap_status (*receive)(call_link *l, const void **bytes, size_t *n, snap_err *err);
};

/* Makes a remote runner with the limits, the shape and the threads of @first, which must outlive
 * it, and so must @link. Caller owns *out: runner_free(). SNAP_E_NOMEM. */
snap_status runner_create_remote(runner **out, const runner *first, call_link *link,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* The arguments of runner_step_read(). */
typedef struct {
    runner *r;
    const model_piece *pieces;
    int count;
    const reading *wanted;
    reading_result *got;
    float *logits;
} runner_batch;

/**
 * runner_step_together - run one step of several replicas
 *
 * @b: [n] the first runner is an ordinary one, the others are remote. If n > 1, all pieces of a
 *     runner together have as many tokens as those of any other runner
 *
 * The errors of runner_step_read(). SNAP_E_NET for an answer that is malformed: it has the wrong
 * length, a result that does not fit the reading, or a token outside the vocabulary. If n > 1, an
 * error ends all ranks.
 */
snap_status runner_step_together(const runner_batch *b, int n, snap_err *err) SNAP_CHECK_RESULT;

/* The size of a page over all layers in bytes, and copying one to @host [runner_page_bytes()]. For
 * any runner. runner_read_page(): any error of kv_cache_read_page() or of call_link.receive(), and
 * SNAP_E_NET for an answer of the wrong length. An error of a remote runner ends all ranks. */
size_t runner_page_bytes(const runner *r);
snap_status runner_read_page(runner *r, int32_t page, void *host, snap_err *err) SNAP_CHECK_RESULT;

/* Sends one answer. */
typedef snap_status (*runner_answer_fn)(void *ctx, const void *bytes, size_t n, snap_err *err);

/* On a rank: like runner_repeat(), for all calls, also those that have answers. @send: sends the
 * answers to the remote runner; NULL = another rank answers. */
snap_status runner_answer(runner *r, const void *bytes, size_t n, runner_answer_fn send, void *ctx,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
