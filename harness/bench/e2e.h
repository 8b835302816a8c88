/* e2e.h - times decode steps and prompts of whole models, in either arm, on one GPU or on several.
 *
 * A model is a config.json. Its weights are random and drawn on the device. The cache is filled
 * with random rows, and each decode step decodes the tokens that the step before found most likely.
 * The time of a step is measured on the host: copying lengths and block tables to the device, the
 * step, copying tokens back.
 *
 * The floor of a decode step is bytes over bandwidth: each weight of its matrix products, once (of
 * the experts, those that the tokens of a step chose), and the cache that it reads. The floor of a
 * prompt is its floating-point operations over the BF16 rate.
 *
 * With several GPUs, each is a rank of a group (generator/local/ranks). All ranks begin each step
 * together, and the time of the step is that of the slowest rank. The sequences are divided over
 * the replicas of the layout. Bytes, operations and floor are those of rank 0. */
#ifndef SNAPMLA_HARNESS_BENCH_E2E_H
#define SNAPMLA_HARNESS_BENCH_E2E_H

#include <signal.h>

#include "generator/local/model/runner.h"
#include "generator/local/ranks/layout.h"
#include "generator/local/ranks/ranks.h"
#include "harness/bench/step_energy.h"
#include "kernels/ceilings.h"

enum {
    E2E_ROWS = 128,
    E2E_MOST_BATCH = 1024, /* of one replica */
    E2E_RANKS = 64
};

typedef struct {
    kv_format arm;
    int batch; /* sequences of all replicas together; 0 if they do not fit into the memory. For a
                  prompt, each replica has one */
    int64_t context;
    bool prompt;  /* a prompt of `context` tokens at once instead of a decode step */
    bool largest; /* the batch was given as 0: as many sequences as fit */
    double median_ns, best_ns, worst_ns;
    int samples;
    double rank_ns[E2E_RANKS]; /* median time of each rank */
    bool has_parts;
    double part_ns[STEP_PARTS]; /* mean time of the parts of a decode step on rank 0, with events
                                   between them (runner_time_parts()) */
    double waiting_ns;          /* how long rank 0 waits for slower ranks in the exchanges */
    double weight_bytes, cache_bytes; /* bytes that a decode step reads; 0 for a prompt */
    double flop;                      /* floating-point operations of a prompt; 0 for a decode
                                         step */
    double floor_ns;
    int cublaslt; /* version of cuBLASLt if it computed dense products (runner_cublaslt()); else
                     0 */
    step_energy energy; /* steps = 0: not measured */
} e2e_row;

typedef struct {
    const model_shape *shape;
    const char *device, *isa;
    kv_format arms[2];
    int n_arms;
    const int64_t *contexts, *batches; /* a batch of 0 means as many sequences as fit, at most
                                          E2E_MOST_BATCH in each replica */
    int n_contexts, n_batches;
    int64_t prompt;      /* tokens of the prompt to time; 0 = none */
    int64_t cache_bytes; /* bytes of each arm's cache on one GPU; 0 = what its largest given batch
                            or its prompt needs */
    double seconds;      /* least measured time of a row, unless it reaches 2000 samples before */
    const mla_ceilings *ceilings;
    bool parts;          /* also time the parts of decode steps */
    double energy_s;     /* seconds of a loop that also measures the energy of a step; 0 = no */
    energy_meter *meter; /* meter of this rank's GPU; used only if energy_s > 0 */

    /* With several GPUs: the group, the layout, and the communicators that it needs (as in
     * runner_options). @shape is then that of a rank. Without a group these are NULL, {1, 1, false}
     * and NULL. */
    ranks *group;
    rank_layout layout;
    comm *comm, *experts;
    const volatile sig_atomic_t *cancel;
} e2e_options;

/* The most rows of a step with these options: of the largest batch, and of the prompt. */
int64_t e2e_most_rows(const e2e_options *opt);

/**
 * e2e_run - time all rows, first those of the first arm
 *
 * @rows: [E2E_ROWS]; the first *n are filled
 *
 * SNAP_E_USAGE: more than E2E_ROWS rows, the prompt does not fit into cache_bytes, or a batch that
 * the layout cannot divide. SNAP_E_NOMEM: weights and cache do not fit. SNAP_E_CANCELLED.
 * SNAP_E_WRONG: the ranks of a replica have chosen
 * different tokens. Also the errors of runner_create(), of the steps and of the group.
 */
snap_status e2e_run(const e2e_options *opt, e2e_row *rows, int *n, snap_err *err) SNAP_CHECK_RESULT;

#endif
