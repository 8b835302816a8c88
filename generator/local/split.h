/* split.h - a model that is divided over several ranks, each a process of its own: layouts with TP
 * or EP (ranks/layout.h).
 *
 * Rank 0 is this process. It has the tokenizer, the engine and the runner of the first replica. The
 * other ranks are helper processes of the same program on the same machine. Each opens its share of
 * the checkpoint, and repeats the calls of its replica's runner (model/calls.h). If there are
 * several replicas (EP), rank 0 has a remote runner for each further one (model/remote.h). Then the
 * first rank of that replica answers the calls.
 *
 * All ranks exchange numbers inside the steps: on GPUs through cuda/sums.h, on the CPU through
 * ranks/host_sums.h.
 *
 *   split_set_program()  once, in main()
 *   split_open() -> runner_create() with split_connect() -> split_wait() -> steps
 *     -> runner_free() -> split_close()
 *
 * If a rank dies, hangs or fails, all ranks end (ranks/ranks.h). The next step of rank 0 returns an
 * error that names the rank. If no step runs within 5 s of the failure, the program ends itself
 * through split_program.end(), because nothing else would find the failure. The helper processes
 * ignore SIGINT and SIGTERM. They end with rank 0. */
#ifndef SNAPMLA_GENERATOR_LOCAL_SPLIT_H
#define SNAPMLA_GENERATOR_LOCAL_SPLIT_H

#include "generator/local/model/remote.h"
#include "generator/local/ranks/layout.h"

typedef struct {
    char *const *argv;                  /* name and arguments, NULL-terminated, with which this
                                           program calls split_follow() */
    void (*end)(const snap_err *error); /* ends rank 0's process with the error */
} split_program;

/* How this program starts a helper process. A program that does not call it cannot split models. */
void split_set_program(const split_program *p);

/* Ends this program with an error, through split_program.end(). Does nothing if the program has not
 * called split_set_program(). */
void split_end_program(const snap_err *error);

typedef struct split split;

typedef struct {
    const char *name;             /* name of the replica. A message about a failure that ends the
                                     program begins with it; "" = none */
    const char *dir;              /* the checkpoint; not read if the weights are random, and may be
                                     NULL then */
    const model_shape *random;    /* the weights are random, see local.h; NULL = they are not */
    const model_shape *shape;     /* of the whole model */
    rank_layout layout;           /* of all ranks */
    const int *devices;           /* [ranks] with "cuda": the number of each rank's device */
    const runner_options *runner; /* options of the runner of rank 0; the other ranks have the same
                                     limits */
} split_options;

/**
 * split_open - start the other ranks, and connect with them
 *
 * @out: caller owns it: split_close(); NULL on failure
 *
 * Call it from a thread that lives as long as the split model. The other ranks then open their
 * shares, while rank 0 opens its own. SNAP_E_UNSUPPORTED without split_set_program(), and for the
 * errors of sums_cuda_open(). SNAP_E_SHAPE: a path is too long. SNAP_E_USAGE: a rank runs another
 * program or has found another checkpoint. SNAP_E_NET, SNAP_E_IO, SNAP_E_NOMEM, and the failure of
 * another rank.
 */
snap_status split_open(split **out, const split_options *o, snap_err *err) SNAP_CHECK_RESULT;

/* Sets the communicators and the calls of rank 0's runner. */
void split_connect(split *s, runner_options *r);

/* The connection of a remote runner to replica @i, 1 .. replicas - 1. */
call_link *split_link(split *s, int i);

/* The part of the model's weights that rank @rank has. */
weights_share split_share(const rank_layout *l, int rank);

/* Waits until all ranks have opened their shares. Returns the failure of another rank. */
snap_status split_wait(split *s, snap_err *err) SNAP_CHECK_RESULT;

/* Ends the other ranks after an error of this one, and replaces @err by the failure of the group:
 * that of another rank, if one has failed before, or else @err as that of rank 0. @err may be
 * NULL. */
void split_fail(split *s, snap_err *err);

/* Call it before the runner is freed. If the model has failed, the program ends itself when it has
 * not called and left split_close() within 15 s, for example because the GPU hangs and freeing the
 * runner waits for it. NULL is allowed. */
void split_begin_close(split *s);

/* Ends the other ranks and waits for their processes. Free the runner before. NULL is allowed. */
void split_close(split *s);

/* Runs one of the other ranks, until rank 0 ends. Returns false, and does nothing, if rank 0 has
 * not started this process. @end: ends this process after a failure of the group, if the model
 * hangs. @err: an error of this rank, which has been sent to rank 0. */
bool split_follow(void (*end)(const snap_err *error), snap_err *err) SNAP_CHECK_RESULT;

#endif
