/* Tests scores by conversation and by the fields of a task, and the loss that a comparison would
 * have shown. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "evals/score_groups.h"
#include "evals/taskfile/task_file.h"

enum { CONVERSATIONS = 40, TURNS = 4, WRONG = 10, ALL = CONVERSATIONS * TURNS };

static const char kTask[] =
    "{\"task\": \"t\", \"generator\": {\"kind\": \"turns\", \"lengths\": [500, 600], "
    "\"items\": 20, \"turns\": 4}, \"turns\": {\"history\": \"history\", "
    "\"conversation\": \"conversation\"}, "
    "\"system\": \"{{document}}\", \"prompt\": \"{{question}}\", \"answer\": \"{{answer}}\", "
    "\"grader\": \"integer\", \"groups\": [\"turn\", \"length\"]}";

typedef struct {
    task_file *file;
    eval_plan plan;
    sample_outcome *outcomes;
    task_score *scores;
    arena mem;
    group_score *groups;
    size_t n;
} run;

/* Arm 0 is right. Arm 1 is wrong in all turns of the first WRONG conversations. */
static void run_open(run *r) {
    *r = (run){.plan = {.margin = 0.05, .max_lost_pct = 1}};
    CU_ASSERT_EQUAL_FATAL(task_file_parse(kTask, strlen(kTask), "t.json", NULL, &r->file, NULL),
                          SNAP_OK);
    r->plan.tasks = calloc(1, sizeof *r->plan.tasks);
    r->plan.arms = calloc(2, sizeof *r->plan.arms);
    CU_ASSERT_FATAL(r->plan.tasks && r->plan.arms);
    eval_task *t = &r->plan.tasks[r->plan.n_tasks++];
    t->samples = 1;
    CU_ASSERT_EQUAL_FATAL(task_load(task_file_spec(r->file), ".", 0, NULL, &t->set, NULL), SNAP_OK);
    for (; r->plan.n_arms < 2; r->plan.n_arms++)
        r->plan.arms[r->plan.n_arms] = (eval_arm){.name = r->plan.n_arms ? "b" : "a",
                                                  .spec = "replay:x",
                                                  .kind = "replay",
                                                  .temperature = -1};
    r->outcomes = calloc(2 * ALL, sizeof *r->outcomes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r->outcomes);
    for (size_t i = 0; i < 2 * ALL; i++) {
        bool wrong = i >= ALL && i - ALL < WRONG * TURNS;
        r->outcomes[i] = (sample_outcome){.present = true,
                                          .verdict = wrong ? GRADE_WRONG : GRADE_CORRECT,
                                          .text_hash = i + 1,
                                          .prompt_tokens = 100,
                                          .completion_tokens = -1,
                                          .reasoning_tokens = -1,
                                          .reasoning_chars = -1,
                                          .answer_chars = -1,
                                          .ttft_ms = NAN,
                                          .total_ms = NAN,
                                          .itl_ms_p50 = NAN,
                                          .itl_ms_p99 = NAN};
    }
}

static void run_score(run *r) {
    CU_ASSERT_EQUAL_FATAL(score_run(&r->plan, r->outcomes, &r->scores, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(
        score_groups(&r->plan, r->outcomes, 0, &r->scores[0], &r->mem, &r->groups, &r->n, NULL),
        SNAP_OK);
}

static void run_close(run *r) {
    score_release(&r->plan, r->scores);
    arena_release(&r->mem);
    free(r->outcomes);
    plan_release(&r->plan);
    task_file_free(r->file);
}

/* The standard error of a mean of @n values, a share @p of which is 1 and the rest 0. */
static double se_of(double p, double n) {
    return sqrt(p * (1 - p) / (n - 1));
}

static void test_conversations_are_the_unit(void) {
    run r;
    run_open(&r);
    run_score(&r);
    const stats_paired *d = &r.scores[0].pairs[0].diff;
    CU_ASSERT_EQUAL(d->n, CONVERSATIONS);
    CU_ASSERT_DOUBLE_EQUAL(d->delta, -0.25, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(d->se, se_of(0.25, CONVERSATIONS), 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(r.scores[0].arms[1].accuracy.mean, 0.75, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(r.scores[0].arms[1].accuracy.se, se_of(0.25, CONVERSATIONS), 1e-12);
    CU_ASSERT(isnan(r.scores[0].pairs[0].p_mcnemar));
    CU_ASSERT_DOUBLE_EQUAL(score_step(&r.plan.tasks[0]), 0.25, 1e-12);
    run_close(&r);
}

/* With lost turns, the accuracy is still the mean over the problems. */
static void test_lost_turns(void) {
    run r;
    run_open(&r);
    for (int i = 1; i < TURNS; i++)
        r.outcomes[ALL + i].failed = true;
    run_score(&r);
    CU_ASSERT_DOUBLE_EQUAL(r.scores[0].arms[1].accuracy.mean,
                           (double)(ALL - WRONG * TURNS) / (ALL - 3), 1e-12);
    run_close(&r);
}

static void test_groups(void) {
    run r;
    run_open(&r);
    for (int i = 0; i < CONVERSATIONS; i++) /* the last turn of arm b is always wrong */
        r.outcomes[ALL + i * TURNS + TURNS - 1].verdict = GRADE_WRONG;
    run_score(&r);
    CU_ASSERT_EQUAL_FATAL(r.n, TURNS + 2 + TURNS * 2);
    for (int turn = 0; turn < TURNS; turn++) {
        const group_score *g = &r.groups[turn];
        double loss = turn == TURNS - 1 ? 1 : 0.25;
        CU_ASSERT(g->fields == 1 && strcmp(g->by[0], "turn") == 0 && g->at[0][0] == '1' + turn);
        CU_ASSERT(g->problems == CONVERSATIONS && g->arms[1].scored == CONVERSATIONS);
        CU_ASSERT_DOUBLE_EQUAL(g->arms[1].accuracy.mean, 1 - loss, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(g->arms[0].prompt_tokens, 100, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(g->pairs[0].delta, -loss, 1e-12);
        CU_ASSERT_EQUAL(g->pairs[0].n, CONVERSATIONS);
        CU_ASSERT_EQUAL(g->pairs[0].verdict, STATS_DIFFERENT);
        CU_ASSERT(g->arms[1].ci95.lo >= 0 && g->arms[0].ci95.hi <= 1);
    }
    for (int i = 0; i < 2; i++) {
        const group_score *g = &r.groups[TURNS + i];
        CU_ASSERT_STRING_EQUAL(g->by[0], "length");
        CU_ASSERT_STRING_EQUAL(g->at[0], i ? "600" : "500");
        CU_ASSERT(g->problems == ALL / 2 && g->pairs[0].n == CONVERSATIONS / 2);
    }
    const group_score *last = &r.groups[r.n - 1];
    CU_ASSERT(last->fields == 2 && last->problems == CONVERSATIONS / 2);
    CU_ASSERT_STRING_EQUAL(last->at[0], "4");
    CU_ASSERT_STRING_EQUAL(last->at[1], "600");
    CU_ASSERT_DOUBLE_EQUAL(last->pairs[0].delta, -1, 1e-12);
    run_close(&r);
}

/* ---- the loss that would have been shown ---- */

/* How often a true loss is shown, in simulated comparisons with one sample per problem. A share
 * @loss of the problems is lost, and a share @noise differs by chance in each direction. */
static double shown(size_t n, double loss, double noise) {
    enum { kRuns = 1500, kMost = 1000 };
    double a[kMost], b[kMost];
    int found = 0;
    rng r = rng_make(11, n);
    for (int k = 0; k < kRuns; k++) {
        for (size_t i = 0; i < n; i++) {
            double u = rng_uniform(&r);
            a[i] = u < loss + noise ? 1 : 0;
            b[i] = u >= loss + noise && u < loss + 2 * noise ? 1 : 0;
        }
        stats_paired d = stats_compare(a, b, n, 1, 0.05);
        found += stats_detects_loss(&d);
    }
    return (double)found / kRuns;
}

static void test_detectable_loss(void) {
    static const struct {
        size_t n;
        double noise;
    } cases[] = {{100, 0.05}, {300, 0.02}, {1000, 0.1}, {200, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double n = (double)cases[i].n, noise = cases[i].noise;
        stats_paired d = {.n = cases[i].n, .se = sqrt(2 * noise / (n - 1))};
        double x = stats_detectable_loss(&d, 1, 0.9);
        double chance = shown(cases[i].n, x, noise);
        CU_ASSERT(chance > 0.87);
        CU_ASSERT(chance < (noise > 0.04 ? 0.95 : 1));
        CU_ASSERT(shown(cases[i].n, x / 2, noise) < 0.75);
    }
    stats_paired few = {.n = 2, .se = 0.3}, one = {.n = 1, .se = NAN}, same = {.n = 50, .se = 0};
    CU_ASSERT(isnan(stats_detectable_loss(&few, 1, 0.9)));
    CU_ASSERT(isnan(stats_detectable_loss(&one, 1, 0.9)));
    CU_ASSERT(isnan(stats_detectable_loss(&same, 0, 0.9)));
    CU_ASSERT(stats_detectable_loss(&same, 1, 0.9) > 0.05);
}

CU_TestInfo tests_groups[] = {
    {"conversations are the unit", test_conversations_are_the_unit},
    {"with lost turns, the accuracy is the mean over problems", test_lost_turns},
    {"a group is scored by itself", test_groups},
    {"the loss that would have been shown", test_detectable_loss},
    CU_TEST_INFO_NULL};
