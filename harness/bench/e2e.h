/* e2e.h - decode steps and prompts of whole models, in either arm.
 *
 * A model is a config.json; its weights are random, drawn on the device. Every sequence has a context of
 * random rows in the cache, and each step feeds it the token that the step before found likeliest. A step's
 * time is the host's, from one token back to the next: lengths and tables out, the step, tokens in.
 *
 * The floor of a decode step is bytes over bandwidth: the weights that it touches, each once (experts:
 * those that the step's tokens chose), and the cache that it reads. */
#ifndef SNAPMLA_HARNESS_BENCH_E2E_H
#define SNAPMLA_HARNESS_BENCH_E2E_H

#include <signal.h>

#include "generator/local/model/runner.h"
#include "kernels/ceilings.h"

enum { E2E_ROWS = 128, E2E_MOST_BATCH = 1024 };

typedef struct {
    cache_format arm;
    int batch; /* sequences; 0 where there was no room for one */
    int64_t context;
    bool prompt;  /* a prompt of `context` tokens at once instead of a decode step */
    bool largest; /* batch is the most that the memory had room for */
    double median_ns, best_ns, worst_ns;
    int samples;
    double weight_bytes, cache_bytes; /* that a step reads */
    double flop;                      /* of a prompt */
    double floor_ns;
    int cublaslt; /* its version where it did dense products: runner_cublaslt() */
} e2e_row;

typedef struct {
    const model_shape *shape;
    const char *device, *isa;
    cache_format arms[2];
    int n_arms;
    const int64_t *contexts, *batches; /* a batch of 0: as many as fit */
    int n_contexts, n_batches;
    int64_t prompt; /* tokens of a prompt to time; 0 = none */
    int64_t
        cache_bytes; /* of both arms alike; 0 = as much as the BF16 arm needs for the batches named */
    double seconds; /* measured time of a row, at least */
    const mla_ceilings *ceilings;
    const volatile sig_atomic_t *cancel;
} e2e_options;

/* Bytes of weights that a step reads, in BF16, routers in FP32. @experts: routed experts over all layers. */
double e2e_weight_bytes(const model_shape *s, double experts);

/* Multiplications and additions of a prompt of @tokens: products, and attention over expanded heads. */
double e2e_prompt_flop(const model_shape *s, double tokens);

/**
 * e2e_run - all rows, an arm after the other
 *
 * @rows: [E2E_ROWS]; *n of them are filled
 *
 * SNAP_E_USAGE for more rows than that; SNAP_E_NOMEM where weights and cache do not fit; SNAP_E_CANCELLED.
 */
snap_status e2e_run(const e2e_options *opt, e2e_row *rows, int *n, snap_err *err) SNAP_CHECK_RESULT;

#endif
