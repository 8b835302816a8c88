/* coverage.c - how often the 95 % intervals of a serving benchmark hold the truth, on simulated
 * queues (serving_sim.h).
 *
 *   coverage [--servers K] [--load X] [--arrivals SHAPE] [--service SHAPE] [--blocks N]
 *            [--seconds S] [--runs N] [--seed N]
 *
 * The load is the rate of arrivals times the mean service time (1 s) per server. The true values
 * come from one long simulation. For each metric the program prints the share of the stated
 * intervals that contain the true value, in how many runs an interval was stated, and the median of
 * the width divided by the value. The limits of targets are the true percentile times 0.99, 1.01
 * and 1.5. For each target, the program prints how often it was decided, and how often only by the
 * values (slo_test_values()). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/stats.h"
#include "harness/serving/measured.h"
#include "harness/test/serving_sim.h"

enum { kMetrics = 6, kTruthRequests = 2000000, kTargets = 6 };

/* Targets of the latency e2e: a percentile, and the limit as a multiple of its true value. */
static const struct {
    double quantile, times;
} kTarget[kTargets] = {{0.75, 0.99}, {0.75, 1.01}, {0.75, 1.5},
                       {0.9, 0.99},  {0.9, 1.01},  {0.9, 1.5}};

typedef struct {
    sim_queue queue;
    double load, seconds;
    int blocks, runs;
    uint64_t seed;
} setting;

static int metric_of(int k) {
    static const serving_statistic of[] = {SERVING_MEAN, SERVING_P50, SERVING_P90, SERVING_P95,
                                           SERVING_P99};
    return k < 5 ? serving_metric_of(SERVING_E2E, of[k]) : serving_metric_of_rate(SERVING_REQUESTS);
}

static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void simulate(sim_log *log, const setting *s, double seconds, int block, uint64_t seed) {
    sim_gamma_queue(log,
                    &(sim_block){.block = block,
                                 .rate = s->load * s->queue.servers,
                                 .seconds = seconds,
                                 .seed = seed,
                                 .noise = seed + 1000003},
                    &s->queue);
}

static void find_truth(const setting *s, double truth[kMetrics], slo_list *targets) {
    static const double quantiles[] = {0.5, 0.9, 0.95, 0.99};
    double rate = s->load * s->queue.servers, sum = 0;
    sim_log log = {0};
    simulate(&log, s, kTruthRequests / rate, 0, s->seed + 777777777);
    size_t from = log.n / 20, n = log.n - from; /* the queue begins empty */
    double *e2e = malloc(n * sizeof *e2e);
    if (!e2e)
        abort();
    for (size_t i = 0; i < n; i++)
        sum += e2e[i] = log.at[from + i].end_s - log.at[from + i].due_s;
    qsort(e2e, n, sizeof *e2e, by_number);
    truth[0] = sum / (double)n;
    for (int k = 0; k < 4; k++)
        truth[k + 1] = stats_quantile(e2e, n, quantiles[k]);
    truth[5] = rate;
    targets->n = kTargets;
    for (int k = 0; k < kTargets; k++)
        targets->at[k] =
            (slo_target){SERVING_E2E, kTarget[k].quantile,
                         kTarget[k].times * stats_quantile(e2e, n, kTarget[k].quantile)};
    free(e2e);
    sim_release(&log);
}

/* How often each target had each state; [1]: only because of the values. */
typedef int decisions[kTargets][2][3];

static void count_decisions(decisions d, const serving_arm *arm) {
    for (int k = 0; k < kTargets; k++)
        d[k][!isnan(arm->target[k].value)][arm->target[k].state]++;
}

static void print_decisions(decisions d, int runs) {
    for (int k = 0; k < kTargets; k++)
        printf("p%.0f, limit %.2f of the true value: meets %.3f (by values %.3f), fails %.3f (by "
               "values %.3f)\n",
               100 * kTarget[k].quantile, kTarget[k].times,
               (double)(d[k][0][SLO_MEETS] + d[k][1][SLO_MEETS]) / runs,
               (double)d[k][1][SLO_MEETS] / runs,
               (double)(d[k][0][SLO_FAILS] + d[k][1][SLO_FAILS]) / runs,
               (double)d[k][1][SLO_FAILS] / runs);
}

static void run(const setting *s, const double truth[kMetrics], const slo_list *targets) {
    static const char *const names[] = {"mean", "p50", "p90", "p95", "p99", "requests/s"};
    double *width = calloc((size_t)s->runs * kMetrics, sizeof *width);
    int held[kMetrics] = {0}, stated[kMetrics] = {0}, below[kMetrics] = {0};
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    decisions found = {{{0}}};
    o.arms = 1;
    o.targets = *targets;
    for (int i = 0; i < s->runs && width; i++) {
        sim_log log = {0};
        serving_measured *m;
        snap_err err = {0};
        for (int b = 0; b < s->blocks; b++)
            simulate(&log, s, s->seconds, b, s->seed + (uint64_t)(1000 * i + b));
        if (serving_measure_point(log.at, log.n, 0, &o, &m, &err) != SNAP_OK)
            abort();
        for (int k = 0; k < kMetrics; k++) {
            const serving_estimate *e = &m->arm[0].metric[metric_of(k)];
            if (isnan(e->ci95[0]))
                continue;
            width[k * s->runs + stated[k]++] = (e->ci95[1] - e->ci95[0]) / e->value;
            held[k] += e->ci95[0] <= truth[k] && truth[k] <= e->ci95[1];
            below[k] += e->ci95[1] < truth[k];
        }
        count_decisions(found, &m->arm[0]);
        free(m);
        sim_release(&log);
    }
    print_decisions(found, s->runs);
    for (int k = 0; k < kMetrics && width; k++) {
        qsort(width + k * s->runs, (size_t)stated[k], sizeof *width, by_number);
        printf("%-10s true %8.4g  held %.3f  too low %.3f  stated %d of %d  width %.2f\n", names[k],
               truth[k], stated[k] ? (double)held[k] / stated[k] : (double)NAN,
               stated[k] ? (double)below[k] / stated[k] : (double)NAN, stated[k], s->runs,
               stated[k] ? width[k * s->runs + stated[k] / 2] : (double)NAN);
    }
    free(width);
}

static double option(int argc, char **argv, const char *name, double otherwise) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return atof(argv[i + 1]);
    return otherwise;
}

int main(int argc, char **argv) {
    const setting s = {.queue = {.servers = (int)option(argc, argv, "--servers", 1),
                                 .arrival_shape = option(argc, argv, "--arrivals", 1),
                                 .service_shape = option(argc, argv, "--service", 1)},
                       .load = option(argc, argv, "--load", 0.5),
                       .seconds = option(argc, argv, "--seconds", 1000),
                       .blocks = (int)option(argc, argv, "--blocks", 8),
                       .runs = (int)option(argc, argv, "--runs", 100),
                       .seed = (uint64_t)option(argc, argv, "--seed", 1000000)};
    double truth[kMetrics];
    slo_list targets;
    if (s.queue.servers < 1 || s.queue.servers > 64 || !(s.load > 0) || s.load >= 1 ||
        s.blocks < 1 || s.blocks > SLICES_MOST || s.runs < 1)
        return 2;
    find_truth(&s, truth, &targets);
    run(&s, truth, &targets);
    return 0;
}
