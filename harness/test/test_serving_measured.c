/* Checks the metrics of serving benchmarks against NumPy and SciPy (fixtures/serving/make.py), and
 * their intervals, windows and verdicts against simulated servers whose truth is known. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/test/sanitized.h"
#include "harness/serving/flags.h"
#include "harness/test/serving_sim.h"

/* ---- definitions ---- */

static void test_latencies_of_one_request(void) {
    static const float gaps[] = {0.5F, 0.25F, 0.25F};
    serving_request r = {.due_s = 1,
                         .sent_s = 1.5,
                         .first_s = 3,
                         .end_s = 4.5,
                         .prompt_tokens = 10,
                         .completion_tokens = 6,
                         .pieces = 4,
                         .gap_s = gaps};
    CU_ASSERT_DOUBLE_EQUAL(serving_time_of(&r, SERVING_TTFT), 1.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(serving_time_of(&r, SERVING_TTFT_DUE), 2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(serving_time_of(&r, SERVING_TPOT), 0.2, 1e-12); /* 1 s, 5 tokens */
    CU_ASSERT_DOUBLE_EQUAL(serving_time_of(&r, SERVING_E2E), 3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(serving_time_of(&r, SERVING_NORMALISED), 0.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(serving_last_piece(&r), 4, 1e-12);
    CU_ASSERT(isnan(serving_time_of(&r, SERVING_ITL)));
    r.completion_tokens = 1; /* one token has no time per output token */
    CU_ASSERT(isnan(serving_time_of(&r, SERVING_TPOT)));
    r.completion_tokens = -1; /* no usage */
    CU_ASSERT(isnan(serving_time_of(&r, SERVING_NORMALISED)));
    r.cut = true;
    CU_ASSERT_DOUBLE_EQUAL(serving_time_of(&r, SERVING_TTFT), 1.5, 1e-12);
    CU_ASSERT(isnan(serving_time_of(&r, SERVING_E2E)));
    CU_ASSERT(isinf(serving_left(&r)));
    r.failed = true;
    CU_ASSERT(isnan(serving_time_of(&r, SERVING_TTFT)));
}

/* ---- the fixture ---- */

static snap_status read_request(void *ctx, js *o, long line, snap_err *err) {
    sim_log *log = ctx;
    const js *gaps = js_get_array(o, "gap_s");
    float *gap = calloc(js_len(gaps) + 1, sizeof *gap);
    serving_request *more = realloc(log->at, (log->n + 1) * sizeof *more);
    CU_ASSERT_FATAL(gap && more);
    (void)line, (void)err;
    for (size_t i = 0; i < js_len(gaps); i++)
        gap[i] = (float)js_num(js_at(gaps, i));
    log->at = more;
    log->at[log->n++] =
        (serving_request){.block = (int)js_get_int(o, "block", 0),
                          .index = (int)js_get_int(o, "index", 0),
                          .due_s = js_get_num(o, "due_s", 0),
                          .sent_s = js_get_num(o, "sent_s", 0),
                          .first_s = js_get_num(o, "first_s", 0),
                          .end_s = js_get_num(o, "end_s", 0),
                          .prompt_tokens = js_get_int(o, "prompt_tokens", -1),
                          .completion_tokens = js_get_int(o, "completion_tokens", -1),
                          .pieces = (int)js_get_int(o, "pieces", 0),
                          .gap_s = gap,
                          .lag_s = js_get_num(o, "lag_s", 0),
                          .received_lag_s = js_get_num(o, "lag_s", 0),
                          .cut = js_get_bool(o, "cut", false),
                          .failed = js_get_bool(o, "failed", false)};
    return SNAP_OK;
}

static void read_fixture(sim_log *log) {
    buf text = {0};
    snap_err err = {0};
    CU_ASSERT_FATAL(fs_read("harness/test/fixtures/serving/requests.jsonl", &text, &err) ==
                    SNAP_OK);
    CU_ASSERT_FATAL(js_each_line(text.data, text.len, "requests.jsonl", read_request, log, &err) ==
                    SNAP_OK);
    buf_release(&text);
}

static void compare_number(const char *what, double is, double wanted) {
    if (isnan(is) || fabs(is - wanted) > 1e-9 * fmax(1, fabs(wanted))) {
        printf("\n%s: is %.17g, NumPy has %.17g", what, is, wanted);
        CU_FAIL("differs from NumPy");
    }
    CU_ASSERT(true);
}

static void compare_latency(const serving_arm *arm, serving_time l, const js *expected) {
    const js *row = js_get_object(js_get_object(expected, "latency"), serving_time_name(l));
    const js *quantiles = js_get_array(row, "quantiles");
    char name[32];
    CU_ASSERT_EQUAL((int64_t)arm->values[l], js_get_int(row, "n", -1));
    compare_number(serving_time_name(l), arm->metric[serving_metric_of(l, SERVING_MEAN)].value,
                   js_get_num(row, "mean", -1));
    for (int s = SERVING_P50; s < SERVING_STATISTICS; s++) {
        int metric = serving_metric_of(l, (serving_statistic)s);
        const serving_estimate *e = &arm->metric[metric];
        const js *q = js_at(quantiles, (size_t)s - 1);
        serving_metric_name(metric, name);
        CU_ASSERT_EQUAL((int64_t)e->needs, js_get_int(q, "needs", 0));
        CU_ASSERT_EQUAL(isnan(e->value), js_get(q, "value") == NULL);
        CU_ASSERT_EQUAL(isnan(e->ci95[0]), js_has(q, "needs"));
        if (isnan(e->value))
            continue;
        compare_number(name, e->value, js_get_num(q, "value", -1));
        const js *ends = js_get_array(q, "ci95");
        compare_number(name, e->ci95[0], js_num(js_at(ends, 0)));
        CU_ASSERT_EQUAL(isinf(e->ci95[1]), js_is_null(js_at(ends, 1)));
        if (isfinite(e->ci95[1]))
            compare_number(name, e->ci95[1], js_num(js_at(ends, 1)));
    }
}

static const js *of_slices(const js *all, size_t slices) {
    for (size_t i = 0; i < js_len(all); i++)
        if (js_get_int(js_at(all, i), "slices", 0) == (int64_t)slices)
            return js_at(all, i);
    return NULL;
}

static void test_numpy_and_scipy(void) {
    sim_log log = {0};
    snap_err err = {0};
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    serving_measured *l;
    js *all = js_parse_file("harness/test/fixtures/serving/expected.json", 1 << 20, &err);
    o.arms = 1;
    CU_ASSERT_FATAL(all != NULL);
    CU_ASSERT_FATAL(slo_parse("ttft_p90=900ms", &o.targets, &err) == SNAP_OK);
    read_fixture(&log);
    CU_ASSERT_FATAL(serving_measure_point(log.at, log.n, 0, &o, &l, &err) == SNAP_OK);
    const serving_arm *arm = &l->arm[0];
    const js *expected = of_slices(all, arm->slices);
    CU_ASSERT_FATAL(expected != NULL);
    for (int k = 0; k < SERVING_TIMES; k++)
        compare_latency(arm, (serving_time)k, expected);
    const js *rates = js_get_object(expected, "rate"), *target = js_get_object(expected, "target");
    for (int r = 0; r < SERVING_RATES; r++)
        if (js_has(rates, serving_rate_name((serving_rate)r)))
            compare_number(serving_rate_name((serving_rate)r),
                           arm->metric[serving_metric_of_rate((serving_rate)r)].value,
                           js_get_num(rates, serving_rate_name((serving_rate)r), -1));
    compare_number("share", arm->target[0].share, js_get_num(target, "share", -1));
    compare_number("lower end", arm->target[0].lo,
                   js_num(js_at(js_get_array(target, "interval"), 0)));
    compare_number("upper end", arm->target[0].hi,
                   js_num(js_at(js_get_array(target, "interval"), 1)));
    CU_ASSERT_EQUAL(arm->requests, 800);
    CU_ASSERT_EQUAL(arm->failed, 8); /* counted, never dropped */
    CU_ASSERT_EQUAL(arm->cut, 4);
    CU_ASSERT_EQUAL(arm->answered, 788);
    free(l);
    js_free(all);
    sim_release(&log);
}

/* ---- simulated queues ---- */

/* Blocks of M/M/1 queues of two arms with the same arrivals. The second arm is @speed times as
 * fast. */
static serving_measured *queues(double rate, double speed, double seconds, int blocks,
                                uint64_t seed, const serving_measure_options *o) {
    sim_log log = {0};
    snap_err err = {0};
    serving_measured *l = NULL;
    for (int b = 0; b < blocks; b++)
        for (int a = 0; a < o->arms; a++)
            sim_mm1(&log,
                    &(sim_block){.arm = a,
                                 .block = b,
                                 .rate = rate,
                                 .seconds = seconds,
                                 .seed = 1000 * seed + (uint64_t)b,
                                 .noise = 1000 * seed + (uint64_t)(2 * b + a) + 500},
                    a ? speed : 1, 4);
    CU_ASSERT_FATAL(serving_measure_point(log.at, log.n, 0, o, &l, &err) == SNAP_OK);
    sim_release(&log);
    return l;
}

/* Of 40 runs, 95 % intervals must hold the true value in at least 31: with a coverage of 0.90,
 * fewer have a probability of about 0.5 %. Theory: e2e of an M/M/1 queue is exponential with the
 * rate 1 - load. */
static void test_intervals_hold_the_truth(void) {
    enum { kRuns = SIMULATED_RUNS(40), kLeast = 31 };
    const double load = 0.5;
    const struct {
        int metric;
        double truth;
    } cases[] = {{serving_metric_of(SERVING_E2E, SERVING_MEAN), 1 / (1 - load)},
                 {serving_metric_of(SERVING_E2E, SERVING_P50), log(2) / (1 - load)},
                 {serving_metric_of(SERVING_E2E, SERVING_P90), log(10) / (1 - load)},
                 {serving_metric_of(SERVING_ITL, SERVING_P99), log(100) / 6},
                 {serving_metric_of_rate(SERVING_REQUESTS), load},
                 {serving_metric_of_rate(SERVING_OUTPUT), 4 * load}};
    enum { kCases = sizeof cases / sizeof *cases };
    int held[kCases] = {0};
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    o.arms = 1;
    for (uint64_t seed = 1; seed <= kRuns; seed++) {
        serving_measured *l = queues(load, 1, 800, 4, seed, &o);
        for (size_t i = 0; i < kCases; i++) {
            const serving_estimate *e = &l->arm[0].metric[cases[i].metric];
            held[i] += e->ci95[0] <= cases[i].truth && cases[i].truth <= e->ci95[1];
        }
        CU_ASSERT(!l->arm[0].backlog.saturated);
        free(l);
    }
    if (kSanitized) /* too few runs for the limits: see SIMULATED_RUNS() */
        return;
    for (size_t i = 0; i < kCases; i++) {
        char name[32];
        serving_metric_name(cases[i].metric, name);
        if (held[i] < kLeast)
            printf("\n%s: %d of %d", name, held[i], kRuns);
        CU_ASSERT(held[i] >= kLeast);
    }
}

/* Equal arms: a verdict "faster" or "slower" about any metric must stay rare (5 % by design). An
 * arm that serves 1.5 times as fast must be found, and never in the wrong direction. */
static void test_verdicts_between_arms(void) {
    enum { kRuns = SIMULATED_RUNS(40) };
    int alarms = 0, found = 0, wrong = 0;
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    int e2e = serving_metric_of(SERVING_E2E, SERVING_P50);
    for (uint64_t seed = 1; seed <= kRuns; seed++) {
        serving_measured *l = queues(0.5, 1, 300, 8, seed, &o);
        bool alarm = false;
        for (int m = 0; m < SERVING_METRICS; m++)
            alarm |= l->difference[1][m].judged && l->difference[1][m].verdict >= SERVING_FASTER;
        alarms += alarm;
        CU_ASSERT_EQUAL(l->difference[1][serving_metric_of_rate(SERVING_REQUESTS)].verdict ==
                            SERVING_SLOWER,
                        false);
        free(l);
        l = queues(0.5, 1.5, 300, 8, seed, &o);
        found += l->difference[1][e2e].verdict == SERVING_FASTER;
        wrong += l->difference[1][e2e].verdict == SERVING_SLOWER;
        free(l);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    if (kSanitized) /* too few runs for the limits: see SIMULATED_RUNS() */
        return;
    if (alarms > 6 || found < 34)
        printf("\n%d alarms, %d found, of %d", alarms, found, kRuns);
    CU_ASSERT(alarms <= 6);
    CU_ASSERT(found >= 34);
}

/* ---- flags ---- */

/* Two equal arms with two blocks each. In the last block of the baseline, other programs take a
 * third of the machine. */
static serving_measured *disturbed(uint64_t seed, const serving_measure_options *o) {
    sim_log log = {0};
    snap_err err = {0};
    serving_measured *l = NULL;
    for (int b = 0; b < 2; b++)
        for (int a = 0; a < 2; a++)
            sim_mm1(&log,
                    &(sim_block){.arm = a,
                                 .block = b,
                                 .rate = 0.5,
                                 .seconds = 1000,
                                 .seed = 1000 * seed + (uint64_t)b,
                                 .noise = 1000 * seed + (uint64_t)(2 * b + a) + 500},
                    b && !a ? 0.625 : 1, 4);
    CU_ASSERT_FATAL(serving_measure_point(log.at, log.n, 0, o, &l, &err) == SNAP_OK);
    sim_release(&log);
    return l;
}

/* With slices as units, many of these runs would show a difference that does not exist. The slices
 * are correlated, so blocks are the units, and at most 5 % of the runs show one. (More than 4 of 30
 * then have a probability of 2 %.) By the rule of older files, the flag prevents every verdict. */
static void test_disturbed_blocks(void) {
    enum { kRuns = SIMULATED_RUNS(30) };
    int believed = 0, stated = 0, flagged = 0;
    serving_measure_options o = SERVING_MEASURE_DEFAULTS, old = o;
    old.before_units = true;
    for (uint64_t seed = 1; seed <= kRuns; seed++) {
        serving_measured *now = disturbed(seed, &o), *l = disturbed(seed, &old);
        bool excluded = false, differs = false;
        for (int m = 0; m < SERVING_METRICS; m++) {
            const serving_difference *d = &l->difference[1][m];
            if (!d->judged)
                continue;
            excluded |= d->p_holm <= 0.05 && (d->ci95[0] > 1 || d->ci95[1] < 1);
            differs |= now->difference[1][m].verdict >= SERVING_FASTER;
            if (l->arm[0].correlated)
                CU_ASSERT(d->verdict == SERVING_INCONCLUSIVE && d->reason[0]);
        }
        CU_ASSERT_EQUAL(now->arm[0].by_blocks, l->arm[0].correlated);
        CU_ASSERT_FALSE(l->arm[0].by_blocks);
        believed += excluded;
        stated += differs;
        flagged += l->arm[0].correlated;
        free(l);
        free(now);
    }
    if (kSanitized) /* too few runs for the limits: see SIMULATED_RUNS() */
        return;
    if (believed < 10 || stated > 4 || flagged < 28)
        printf("\n%d excluded, %d stated, %d flagged, of %d", believed, stated, flagged, kRuns);
    CU_ASSERT(believed >= 10);
    CU_ASSERT(stated <= 4);
    CU_ASSERT(flagged >= 28);
}

static void test_flags_and_their_verdicts(void) {
    const int ttft = serving_metric_of(SERVING_TTFT, SERVING_P50),
              tpot = serving_metric_of(SERVING_TPOT, SERVING_P99),
              requests = serving_metric_of_rate(SERVING_REQUESTS),
              goodput = serving_metric_of_rate(SERVING_GOODPUT);
    const struct {
        unsigned flag;
        const char *name;
        bool ttft, tpot, requests, goodput; /* verdicts may stand */
    } cases[] = {{SERVING_FLAG_SATURATED, "saturated", false, true, true, false},
                 {SERVING_FLAG_UNSTEADY, "unsteady", false, false, false, false},
                 {SERVING_FLAG_CORRELATED, "correlated", false, false, false, false},
                 {SERVING_FLAG_LAG, "client lag", true, true, true, true},
                 {SERVING_FLAG_FAILED, "failed", false, false, false, true},
                 {SERVING_FLAG_CUT, "cut", false, false, true, true},
                 {SERVING_FLAG_NO_USAGE, "no usage", true, true, true, true},
                 {SERVING_FLAG_NO_INTERVALS, "no intervals", false, false, false, false}};
    CU_ASSERT_EQUAL(sizeof cases / sizeof *cases, SERVING_FLAGS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct {
            int metric;
            bool stands;
        } of[] = {{ttft, cases[i].ttft},
                  {tpot, cases[i].tpot},
                  {requests, cases[i].requests},
                  {goodput, cases[i].goodput}};
        for (size_t k = 0; k < sizeof of / sizeof *of; k++)
            CU_ASSERT_STRING_EQUAL(serving_flag_against(cases[i].flag, of[k].metric),
                                   of[k].stands ? "" : cases[i].name);
    }
}

/* The flag `correlated` prevents nothing where blocks are the units, and puts the state in doubt
 * only if the targets that decide it could not be tested by blocks. */
static void test_flags_where_blocks_are_units(void) {
    serving_arm a = {.steady = true, .slices = 8, .correlated = true};
    CU_ASSERT_EQUAL(serving_doubts_of(&a), SERVING_FLAG_CORRELATED);
    CU_ASSERT_STRING_EQUAL(serving_flag_against_state(&a), "correlated");
    a.by_blocks = true;
    CU_ASSERT_EQUAL(serving_flags_of(&a), SERVING_FLAG_CORRELATED);
    CU_ASSERT_EQUAL(serving_doubts_of(&a), 0);
    CU_ASSERT_STRING_EQUAL(serving_flag_against_state(&a), "correlated");
    a.state_by_blocks = true;
    CU_ASSERT_STRING_EQUAL(serving_flag_against_state(&a), "");
    a.steady = false;
    CU_ASSERT_EQUAL(serving_doubts_of(&a), SERVING_FLAG_UNSTEADY);
    CU_ASSERT_STRING_EQUAL(serving_flag_against_state(&a), "unsteady");
    a.backlog.saturated = true;
    CU_ASSERT_STRING_EQUAL(serving_flag_against_state(&a), "");
}

/* Eight blocks of each of two arms, with half a request per second. The server of the first arm can
 * serve 1 request per second, and that of the second arm @service requests per second. */
static void simulate_arms(sim_log *log, double service) {
    for (int b = 0; b < 8; b++)
        for (int a = 0; a < 2; a++)
            sim_mm1(log,
                    &(sim_block){.arm = a,
                                 .block = b,
                                 .rate = 0.5,
                                 .seconds = 600,
                                 .seed = 1 + (uint64_t)b,
                                 .noise = 100 + (uint64_t)(2 * b + a)},
                    a ? service : 1, 4);
}

/* A request that is sent late has a longer ttft_due. Its other latencies begin when it is sent. A
 * closed loop also has a lower rate. */
static void test_a_delay_before_sending(void) {
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    sim_log log = {0};
    snap_err err = {0};
    serving_measured *l = NULL;
    simulate_arms(&log, 1);
    for (size_t i = 0; i < log.n; i++) {
        log.at[i].lag_s = 0.5;
        log.at[i].received_lag_s = 0;
    }
    CU_ASSERT_FATAL(serving_measure_point(log.at, log.n, 0, &o, &l, &err) == SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(l->arm[0].lag_p99_s, 0.5, 1e-9);
    CU_ASSERT_TRUE(l->arm[0].late[SERVING_TTFT_DUE]);
    CU_ASSERT(l->arm[0].rate_lag_share > 0.01);
    for (int t = 0; t < SERVING_TIMES; t++)
        CU_ASSERT(t == SERVING_TTFT_DUE || !l->arm[0].late[t]);
    free(l);
    sim_release(&log);
}

/* A verdict needs an interval that also excludes the changes that the client's lag can cause. */
static void test_lag_can_prevent_a_verdict(void) {
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    const int e2e = serving_metric_of(SERVING_E2E, SERVING_P50);
    for (int late = 0; late < 3; late++) {
        sim_log log = {0};
        snap_err err = {0};
        serving_measured *l = NULL;
        simulate_arms(&log, 1.5);
        for (size_t i = 0; i < log.n; i++) /* the medians of e2e are about 1.4 s and 0.7 s */
            log.at[i].lag_s = log.at[i].received_lag_s = late == 2 ? 2 : late == 1 ? 0.02 : 0;
        CU_ASSERT_FATAL(serving_measure_point(log.at, log.n, 0, &o, &l, &err) == SNAP_OK);
        const serving_difference *d = &l->difference[1][e2e];
        CU_ASSERT_EQUAL(l->arm[0].late[SERVING_E2E], late > 0);
        CU_ASSERT_EQUAL(d->verdict, late == 2 ? SERVING_INCONCLUSIVE : SERVING_FASTER);
        CU_ASSERT_STRING_EQUAL(d->reason, late == 2 ? "client lag" : "");
        free(l);
        sim_release(&log);
    }
}

/* A delay before sending makes ttft_due longer. In an open loop it prevents no other verdict: tpot
 * and e2e begin after it, and it is a small part of e2e, on which the rate of a closed loop
 * depends. */
static void test_lag_prevents_only_what_it_concerns(void) {
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    const int tpot = serving_metric_of(SERVING_TPOT, SERVING_P50),
              rate = serving_metric_of_rate(SERVING_REQUESTS);
    serving_difference of[2][2];
    for (int late = 0; late < 2; late++) {
        sim_log log = {0};
        snap_err err = {0};
        serving_measured *l = NULL;
        simulate_arms(&log, 1.5);
        for (size_t i = 0; i < log.n && late; i++)
            log.at[i].lag_s = 0.006; /* the medians of ttft and e2e are at least 0.4 s and 0.7 s */
        CU_ASSERT_FATAL(serving_measure_point(log.at, log.n, 0, &o, &l, &err) == SNAP_OK);
        CU_ASSERT_EQUAL((serving_flags_of(&l->arm[1]) & SERVING_FLAG_LAG) != 0, late);
        of[late][0] = l->difference[1][tpot];
        of[late][1] = l->difference[1][rate];
        free(l);
        sim_release(&log);
    }
    CU_ASSERT_EQUAL(of[1][0].verdict, SERVING_FASTER);
    for (int k = 0; k < 2; k++) {
        CU_ASSERT_EQUAL(of[1][k].verdict, of[0][k].verdict);
        CU_ASSERT_STRING_EQUAL(of[1][k].reason, "");
    }
}

static void test_percentiles_are_refused(void) {
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    o.arms = 1;
    serving_measured *l = queues(0.5, 1, 120, 1, 3, &o);
    const serving_estimate *p99 = &l->arm[0].metric[serving_metric_of(SERVING_TTFT, SERVING_P99)];
    CU_ASSERT(isnan(p99->value) && isnan(p99->ci95[0]));
    CU_ASSERT(p99->needs >= 500);
    CU_ASSERT(l->arm[0].metric[serving_metric_of(SERVING_TTFT, SERVING_MEAN)].value > 0);
    free(l);
}

/* The queue grows without bound at a load of 1.2, and does not at 0.8. */
static void test_saturation(void) {
    int over = 0, under = 0;
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    o.arms = 1;
    for (uint64_t seed = 1; seed <= SIMULATED_RUNS(20); seed++) {
        serving_measured *l = queues(1.2, 1, 600, 2, seed, &o);
        over += l->arm[0].backlog.saturated;
        free(l);
        l = queues(0.8, 1, 600, 2, seed, &o);
        under += l->arm[0].backlog.saturated;
        free(l);
    }
    if (kSanitized) /* too few runs for the limits: see SIMULATED_RUNS() */
        return;
    if (over < 18 || under > 1)
        printf("\nsaturated: %d of 20 at 1.2, %d at 0.8", over, under);
    CU_ASSERT(over >= 18);
    CU_ASSERT(under <= 1);
}

/* ---- the steady part ---- */

static void test_mser5(void) {
    double x[STEADY_STEPS];
    for (size_t i = 0; i < STEADY_STEPS; i++) /* rises until step 40, then swings around 10 */
        x[i] = i < 40 ? (double)i / 4 : 10 + ((i / 5) % 2 ? 0.1 : -0.1);
    CU_ASSERT(steady_mser5(x, STEADY_STEPS) >= 35 && steady_mser5(x, STEADY_STEPS) <= 45);
    for (size_t i = 0; i < 40; i++) /* a high begin is not left out */
        x[i] = 20;
    CU_ASSERT_EQUAL(steady_mser5(x, STEADY_STEPS), 0);
    for (size_t i = 0; i < STEADY_STEPS; i++)
        x[i] = 3;
    CU_ASSERT_EQUAL(steady_mser5(x, STEADY_STEPS), 0);
}

/* A closed loop: all requests begin at once. The window leaves out the first wave and the end, and
 * the throughput is that of the engine: 8 slots, 20 tokens in steps of 8 ms + 8 * 1 ms. */
static void test_closed_loop(void) {
    sim_log log = {0};
    snap_err err = {0};
    serving_measured *l;
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    const sim_engine e = {.slots = 8, .tokens = 20, .step_s = 0.008, .token_s = 0.001};
    o.arms = 1;
    o.open = false;
    for (int b = 0; b < 2; b++)
        sim_batches(
            &log,
            &(sim_block){.block = b, .concurrent = 8, .seconds = 60, .noise = 1 + (uint64_t)b}, &e);
    CU_ASSERT_FATAL(serving_measure_point(log.at, log.n, 0, &o, &l, &err) == SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(l->arm[0].metric[serving_metric_of_rate(SERVING_OUTPUT)].value,
                           8 / 0.016, 8 / 0.016 * 0.02);
    CU_ASSERT_DOUBLE_EQUAL(l->arm[0].metric[serving_metric_of(SERVING_TPOT, SERVING_P50)].value,
                           0.016, 1e-6);
    CU_ASSERT(!l->arm[0].backlog.saturated);
    CU_ASSERT(l->arm[0].window_s < l->arm[0].block_s);
    free(l);
    sim_release(&log);
}

/* Clusters follow the order in which requests were due. Indexes in another order, such as those of
 * conversations, must not change an interval. */
static void test_indexes_change_no_interval(void) {
    sim_log log = {0};
    snap_err err = {0};
    serving_measured *l[2];
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    o.arms = 1;
    for (int b = 0; b < 4; b++)
        sim_mm1(&log,
                &(sim_block){.block = b,
                             .rate = 0.8,
                             .seconds = 800,
                             .seed = 1 + (uint64_t)b,
                             .noise = 9 + (uint64_t)b},
                1, 4);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_FATAL(serving_measure_point(log.at, log.n, 0, &o, &l[i], &err) == SNAP_OK);
        for (size_t k = 0; k < log.n; k++) /* indexes as of conversations with 10 turns, whose turns
                                              are due far apart */
            log.at[k].index = log.at[k].index % 100 * 10 + log.at[k].index / 100;
    }
    for (int m = 0; m < SERVING_METRICS; m++)
        for (int end = 0; end < 2; end++) {
            double a = l[0]->arm[0].metric[m].ci95[end], b = l[1]->arm[0].metric[m].ci95[end];
            CU_ASSERT(isfinite(a) ? fabs(a - b) <= 1e-9 * fabs(a) : isnan(a) == isnan(b));
        }
    free(l[0]);
    free(l[1]);
    sim_release(&log);
}

/* ---- hostile input ---- */

static void test_what_cannot_be_measured(void) {
    snap_err err = {0};
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    serving_measured *l;
    serving_request r = {.sent_s = 1, .first_s = -1, .end_s = -1, .failed = true};
    CU_ASSERT_EQUAL(serving_measure_point(&r, 1, 0, &o, &l, &err), SNAP_E_INPUT); /* one arm only */
    o.arms = 1;
    err = (snap_err){0};
    CU_ASSERT_EQUAL(serving_measure_point(&r, 1, 1, &o, &l, &err),
                    SNAP_E_INPUT); /* no such point */
    err = (snap_err){0};
    CU_ASSERT_EQUAL_FATAL(serving_measure_point(&r, 1, 0, &o, &l, &err), SNAP_OK);
    CU_ASSERT_EQUAL(l->arm[0].failed, 1);
    CU_ASSERT_EQUAL(l->arm[0].slices, 0);
    CU_ASSERT(isnan(l->arm[0].metric[serving_metric_of(SERVING_TTFT, SERVING_MEAN)].value));
    free(l);
    r = (serving_request){.due_s = NAN, .sent_s = INFINITY, .first_s = NAN, .end_s = 1e300};
    CU_ASSERT_EQUAL_FATAL(serving_measure_point(&r, 1, 0, &o, &l, &err), SNAP_OK);
    free(l);
}

CU_TestInfo tests_serving_measured[] = {
    {"latencies of one request", test_latencies_of_one_request},
    {"NumPy and SciPy agree", test_numpy_and_scipy},
    {"intervals hold the truth", test_intervals_hold_the_truth},
    {"verdicts between arms", test_verdicts_between_arms},
    {"disturbed blocks", test_disturbed_blocks},
    {"flags and their verdicts", test_flags_and_their_verdicts},
    {"flags where blocks are units", test_flags_where_blocks_are_units},
    {"lag can prevent a verdict", test_lag_can_prevent_a_verdict},
    {"lag prevents only what it concerns", test_lag_prevents_only_what_it_concerns},
    {"a delay before sending", test_a_delay_before_sending},
    {"percentiles of few values are refused", test_percentiles_are_refused},
    {"a load beyond the capacity is found", test_saturation},
    {"the steady part by the rule MSER-5", test_mser5},
    {"the throughput of a closed loop", test_closed_loop},
    {"indexes change no interval", test_indexes_change_no_interval},
    {"what cannot be measured", test_what_cannot_be_measured},
    CU_TEST_INFO_NULL,
};
