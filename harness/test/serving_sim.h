/* serving_sim.h - simulated servers whose truth is known, for tests of the statistics of a serving
 * benchmark. */
#ifndef SNAPMLA_HARNESS_TEST_SERVING_SIM_H
#define SNAPMLA_HARNESS_TEST_SERVING_SIM_H

#include <stddef.h>

#include "harness/serving/request.h"

/* A growing list of requests, which owns their gaps. Release it with sim_release(). */
typedef struct {
    serving_request *at;
    size_t n, capacity;
} sim_log;

void sim_release(sim_log *log);

/* Where the requests belong, and the block's load. */
typedef struct {
    int arm, point, block;
    double rate;    /* Poisson arrivals per second; the same seed gives the same arrivals */
    int concurrent; /* if above 0: a closed loop with this number of slots, instead of arrivals */
    double seconds; /* no request is sent later */
    uint64_t seed;  /* seed of the arrivals */
    uint64_t noise; /* seed of the service times */
} sim_block;

/* An M/M/1 queue, first come first served: e2e is exponential with the rate (service - arrivals),
 * once the queue is stationary. The first piece comes in the middle of the service. The other
 * @pieces - 1 follow at equal steps, the last one at the end of the service. completion_tokens =
 * pieces. */
void sim_mm1(sim_log *log, const sim_block *b, double service_rate, int pieces);

/* A queue with several servers, first come first served. Gaps between arrivals and service times
 * are gamma distributed with these shapes: 1 is exponential, a smaller one gives bursts of arrivals
 * and a heavier tail of service times. The rate of arrivals is that of the block. The mean service
 * time is 1 s. */
typedef struct {
    int servers; /* at most 64 */
    double arrival_shape, service_shape;
} sim_queue;

void sim_gamma_queue(sim_log *log, const sim_block *b, const sim_queue *q);

/* A server that works in steps, as inference engines do. Each step makes one token of each of up to
 * @slots requests and takes step_s + token_s for each of them + prefill_s for each request that
 * begins in it. */
typedef struct {
    int slots, tokens; /* completion tokens of a request */
    double step_s, token_s, prefill_s;
    double jitter; /* standard deviation of the logarithm of a step's time */
} sim_engine;

void sim_batches(sim_log *log, const sim_block *b, const sim_engine *e);

/* A server that works in steps and answers all requests of the same time equally fast, with 32
 * tokens in two pieces. Its time per token drifts slowly around @tpot_s, with a standard deviation
 * @spread of the logarithm. Requests come at equal distances. */
void sim_drifting(sim_log *log, const sim_block *b, double tpot_s, double spread);

/* Like sim_drifting(), but the logarithm of the time per token is a sine with this amplitude and
 * period. The phase is random in each block. */
void sim_wave(sim_log *log, const sim_block *b, double tpot_s, double amplitude, double period_s);

#endif
