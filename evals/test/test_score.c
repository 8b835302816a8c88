#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/rng.h"
#include "evals/score.h"
#include "evals/test/task_of.h"

enum { PROBLEMS = 7, SAMPLES = 5, ARMS = 3 };

/* ---- a plan with seven problems in a temporary folder ---- */

typedef struct {
    char folder[40];
    char *samples; /* path */
    eval_plan plan;
} run;

static void run_open(run *r, int samples) {
    char rows[1000] = "";
    *r = (run){.folder = "/tmp/snapmla-score-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(r->folder));
    char *path = fs_join(r->folder, "problems.jsonl");
    r->samples = fs_join(r->folder, "samples.jsonl");
    r->plan = (eval_plan){.margin = 0.05};
    r->plan.tasks = calloc(1, sizeof *r->plan.tasks);
    r->plan.arms = calloc(ARMS, sizeof *r->plan.arms);
    CU_ASSERT_FATAL(path && r->samples && r->plan.tasks && r->plan.arms);
    for (int i = 0; i < PROBLEMS; i++)
        (void)snprintf(rows + strlen(rows), sizeof rows - strlen(rows),
                       "{\"problem\": \"is it %d?\", \"answer\": %d, \"id\": \"q%d\"}\n", i, i, i);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, rows, strlen(rows), NULL), SNAP_OK);
    eval_task *t = &r->plan.tasks[r->plan.n_tasks++];
    t->samples = samples;
    t->sampling = (gen_sampling){.temperature = 1, .top_p = 0.95, .max_tokens = 64, .seed = 5};
    CU_ASSERT_EQUAL_FATAL(task_load(task_of("synth_aime"), path, 0, NULL, &t->set, NULL), SNAP_OK);
    static const char *const names[ARMS] = {"base", "other", "odd"};
    for (int a = 0; a < ARMS; a++)
        r->plan.arms[r->plan.n_arms++] = (eval_arm){.name = names[a],
                                                    .spec = "replay:x",
                                                    .kind = "replay",
                                                    .model = "m",
                                                    .temperature = a == 2 ? 0.5 : -1};
    (void)unlink(path);
    free(path);
}

static void run_close(run *r) {
    plan_release(&r->plan);
    (void)unlink(r->samples);
    (void)rmdir(r->folder);
    free(r->samples);
}

/* ---- the store of samples ---- */

static gen_result answer(const char *text) {
    return (gen_result){.text = text,
                        .finish_reason = "stop",
                        .prompt_tokens = 11,
                        .completion_tokens = 22,
                        .first_token_ns = 3000000,
                        .itl_mean_ns = 800000,
                        .itl_p50_ns = 700000,
                        .itl_p99_ns = 9000000,
                        .total_ns = 50000000,
                        .attempts = 1};
}

static void put(sample_store *s, const eval_plan *p, plan_cell c, gen_result res) {
    gen_request req = plan_request(p, c);
    CU_ASSERT_EQUAL_FATAL(samples_append(s, &req, &res, NULL), SNAP_OK);
}

/* After a restart, appended rows are found again and graded, in the order of the cells. */
static void test_store_survives_a_restart(void) {
    run r;
    run_open(&r, SAMPLES);
    sample_store *s;
    CU_ASSERT_EQUAL_FATAL(samples_open(&s, &r.plan, r.samples, NULL), SNAP_OK);
    plan_cell right = {.arm = 1, .problem = 3, .sample = 2}, wrong = {.problem = 6};
    plan_cell cut = {.problem = 1}, failed = {.problem = 2};
    gen_result cut_result = answer("<think>hm"), failure = {.failed = true, .error = "gone"};
    cut_result.finish_reason = "length";
    put(s, &r.plan, right, answer("\\boxed{3}"));
    put(s, &r.plan, wrong, answer("\\boxed{3}"));
    put(s, &r.plan, cut, cut_result);
    put(s, &r.plan, failed, failure);
    CU_ASSERT_EQUAL(samples_done_count(s), 3);
    samples_close(s);

    CU_ASSERT_EQUAL_FATAL(samples_open(&s, &r.plan, r.samples, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(samples_done_count(s), 3);
    CU_ASSERT_TRUE(samples_done(s, plan_index(&r.plan, right)));
    CU_ASSERT_FALSE(samples_done(s, plan_index(&r.plan, failed)));
    sample_outcome *o = calloc(plan_cells(&r.plan), sizeof *o);
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    for (int again = 0; again < 2; again++) { /* grading is idempotent */
        CU_ASSERT_EQUAL_FATAL(samples_grade(s, o, NULL), SNAP_OK);
        sample_outcome a = o[plan_index(&r.plan, right)], b = o[plan_index(&r.plan, wrong)];
        sample_outcome c = o[plan_index(&r.plan, cut)], d = o[plan_index(&r.plan, failed)];
        CU_ASSERT(a.present && a.verdict == GRADE_CORRECT && a.completion_tokens == 22);
        CU_ASSERT_DOUBLE_EQUAL(a.ttft_ms, 3, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(a.total_ms, 50, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(a.itl_ms_p50, 0.7, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(a.itl_ms_p99, 9, 1e-12);
        CU_ASSERT(a.answer_hash && a.answer_hash == b.answer_hash && !c.answer_hash);
        CU_ASSERT(b.verdict == GRADE_WRONG && b.text_hash == a.text_hash);
        CU_ASSERT(c.truncated && c.empty && c.verdict == GRADE_UNPARSED);
        CU_ASSERT(d.present && d.failed);
        CU_ASSERT_FALSE(o[0].present);
    }
    put(s, &r.plan, failed, answer("\\boxed{2}")); /* the retry succeeds */
    CU_ASSERT_EQUAL(samples_done_count(s), 4);
    put(s, &r.plan, failed, failure); /* a later failure does not replace the success */
    CU_ASSERT_EQUAL_FATAL(samples_grade(s, o, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(o[plan_index(&r.plan, failed)].verdict, GRADE_CORRECT);
    CU_ASSERT_FALSE(o[plan_index(&r.plan, failed)].failed);
    samples_close(s);

    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(r.samples, &text, NULL), SNAP_OK);
    size_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.data[i] == '\n';
    CU_ASSERT_EQUAL(lines, 4); /* superseded rows are not in the new file */
    CU_ASSERT(strstr(buf_str(&text), "\"q1\"") < strstr(buf_str(&text), "\"q2\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "\"reason\":\"the reasoning did not end\""));
    buf_release(&text);
    free(o);
    run_close(&r);
}

/* Grading with a smaller plan keeps the rows that the plan does not contain. */
static void test_rows_outside_the_plan_are_kept(void) {
    run r;
    run_open(&r, SAMPLES);
    sample_store *s;
    CU_ASSERT_EQUAL_FATAL(samples_open(&s, &r.plan, r.samples, NULL), SNAP_OK);
    for (int k = 0; k < SAMPLES; k++)
        put(s, &r.plan, (plan_cell){.problem = 1, .sample = k}, answer("\\boxed{1}"));
    samples_close(s);
    r.plan.tasks[0].samples = 2;
    sample_outcome o[ARMS * PROBLEMS * 2];
    CU_ASSERT_EQUAL_FATAL(samples_open(&s, &r.plan, r.samples, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(samples_done_count(s), 2);
    CU_ASSERT_EQUAL(samples_grade(s, o, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(samples_grade(s, o, NULL), SNAP_OK);
    samples_close(s);
    r.plan.tasks[0].samples = SAMPLES;
    CU_ASSERT_EQUAL_FATAL(samples_open(&s, &r.plan, r.samples, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(samples_done_count(s), SAMPLES);
    samples_close(s);
    run_close(&r);
}

static void test_rows_of_another_run_are_refused(void) {
    static const struct {
        const char *row, *message;
        snap_status status;
    } cases[] = {
        {"{\"task\": \"synth_aime\", \"arm\": \"base\", \"problem\": \"q1\", \"sample\": 0, "
         "\"prompt_sha256\": \"x\"}\n",
         ":1: the row has another prompt", SNAP_E_USAGE},
        {"\n{\"task\": \n", ":2", SNAP_E_INPUT},
        {"[]\n", ":1: a row must be an object", SNAP_E_INPUT},
        {"{\"task\": 5, \"sample\": \"x\"}\n{\"a\"}\n", ":2", SNAP_E_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run r;
        run_open(&r, SAMPLES);
        sample_store *s;
        snap_err err = {0};
        CU_ASSERT_EQUAL_FATAL(fs_write_atomic(r.samples, cases[i].row, strlen(cases[i].row), NULL),
                              SNAP_OK);
        CU_ASSERT_EQUAL(samples_open(&s, &r.plan, r.samples, &err), cases[i].status);
        CU_ASSERT_PTR_NULL(s);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
        run_close(&r);
    }
}

/* ---- scores, compared with a slow and simple computation ---- */

static sample_outcome draw(rng *r) {
    sample_outcome o = {.present = rng_below(r, 20) > 0, .completion_tokens = -1};
    o.total_ms = o.ttft_ms = o.itl_ms_p50 = o.itl_ms_p99 = (double)NAN;
    o.failed = o.present && rng_below(r, 6) == 0;
    if (!o.present || o.failed)
        return o;
    o.truncated = rng_below(r, 5) == 0;
    o.empty = rng_below(r, 9) == 0;
    o.verdict = (grade_verdict)rng_below(r, 3);
    o.text_hash = o.empty ? 0 : 1 + rng_below(r, 6);
    o.answer_hash = o.verdict == GRADE_UNPARSED ? 0 : 100 + 8 * rng_below(r, 3);
    o.completion_tokens = rng_below(r, 4) ? (int64_t)rng_below(r, 900) + 100 : -1;
    o.ttft_ms = rng_below(r, 3) ? 5 * rng_uniform(r) : (double)NAN;
    o.total_ms = 100 * rng_uniform(r) + 1;
    return o;
}

typedef struct {
    double score[PROBLEMS], tokens[PROBLEMS]; /* NAN: no samples */
} slow_arm;

static slow_arm slow(const eval_plan *p, const sample_outcome *o, size_t arm) {
    slow_arm s;
    for (size_t q = 0; q < PROBLEMS; q++) {
        double n = 0, right = 0, known = 0, tokens = 0;
        for (size_t i = 0; i < plan_cells(p); i++) {
            plan_cell c = plan_cell_at(p, i);
            if (c.arm != arm || c.problem != q || !o[i].present || o[i].failed)
                continue;
            n += 1;
            right += o[i].verdict == GRADE_CORRECT ? 1 : 0;
            known += o[i].completion_tokens >= 0 ? 1 : 0;
            tokens += o[i].completion_tokens >= 0 ? (double)o[i].completion_tokens : 0;
        }
        s.score[q] = right / n;
        s.tokens[q] = tokens / known;
    }
    return s;
}

/* Computes pass@2 by enumerating all pairs and maj@k by counting answers. */
static void check_together(const eval_plan *p, const sample_outcome *o, const arm_score *got) {
    double pass = 0, pass_n = 0, majority = 0, majority_n = 0;
    for (size_t q = 0; q < PROBLEMS; q++) {
        sample_outcome kept[SAMPLES];
        int n = 0, votes[4] = {0}; /* votes for the correct answer and for 100, 108, 116 */
        for (size_t i = 0; i < plan_cells(p); i++) {
            plan_cell c = plan_cell_at(p, i);
            if (c.arm == 0 && c.problem == q && o[i].present && !o[i].failed)
                kept[n++] = o[i];
        }
        double pairs = 0, passed = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++) {
                pairs += 1;
                passed += kept[i].verdict == GRADE_CORRECT || kept[j].verdict == GRADE_CORRECT;
            }
        if (pairs > 0) {
            pass += passed / pairs;
            pass_n += 1;
        }
        int best = 0, leaders = 0;
        for (int i = 0; i < n; i++)
            if (kept[i].verdict != GRADE_UNPARSED)
                votes[kept[i].verdict == GRADE_CORRECT
                          ? 0
                          : 1 + (int)(kept[i].answer_hash - 100) / 8]++;
        for (int v = 0; v < 4; v++)
            best = votes[v] > best ? votes[v] : best;
        for (int v = 0; v < 4; v++)
            leaders += best && votes[v] == best;
        majority += best && votes[0] == best ? 1.0 / leaders : 0;
        majority_n += n > 0;
    }
    CU_ASSERT(got->n_pass == 4 && got->pass[1].k == 2 && got->pass[3].k == SAMPLES);
    CU_ASSERT_DOUBLE_EQUAL(got->pass[0].rate, got->accuracy.mean, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(got->pass[1].rate, pass / pass_n, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(got->majority, majority / majority_n, 1e-12);
}

static void check_pair(const pair_score *got, const slow_arm *x, const slow_arm *y, double margin) {
    double a[PROBLEMS], b[PROBLEMS], la[PROBLEMS], lb[PROBLEMS];
    size_t n = 0, m = 0;
    for (size_t q = 0; q < PROBLEMS; q++) {
        if (!isnan(x->score[q]) && !isnan(y->score[q])) {
            a[n] = x->score[q];
            b[n++] = y->score[q];
        }
        if (!isnan(x->tokens[q]) && !isnan(y->tokens[q])) {
            la[m] = x->tokens[q];
            lb[m++] = y->tokens[q];
        }
    }
    stats_paired want = stats_compare(a, b, n, 1.0 / SAMPLES, margin);
    CU_ASSERT_EQUAL(got->diff.n, n);
    CU_ASSERT_DOUBLE_EQUAL(got->diff.delta, want.delta, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(got->diff.se, want.se, 1e-12);
    CU_ASSERT_EQUAL(got->diff.verdict, want.verdict);
    CU_ASSERT(isnan(got->p_mcnemar));
    CU_ASSERT_DOUBLE_EQUAL(got->length.ratio, stats_ratio_of(la, lb, m).ratio, 1e-12);
    CU_ASSERT(got->bootstrap95.lo <= want.delta && want.delta <= got->bootstrap95.hi);
}

static void test_scores_against_recomputation(void) {
    run r;
    run_open(&r, SAMPLES);
    rng random = rng_make(21, 0);
    for (int round = 0; round < 5; round++) {
        sample_outcome o[ARMS * PROBLEMS * SAMPLES];
        double sum = 0;
        size_t n = 0, failed = 0, truncated = 0, scored = 0;
        for (size_t i = 0; i < plan_cells(&r.plan); i++)
            o[i] = draw(&random);
        for (size_t i = 0; i < PROBLEMS * SAMPLES; i++) { /* the cells of the first arm */
            failed += o[i].failed;
            scored += o[i].present && !o[i].failed;
            truncated += o[i].present && !o[i].failed && o[i].truncated;
        }
        slow_arm base = slow(&r.plan, o, 0), other = slow(&r.plan, o, 1);
        for (size_t q = 0; q < PROBLEMS; q++)
            if (!isnan(base.score[q])) {
                sum += base.score[q];
                n++;
            }
        task_score *scores;
        CU_ASSERT_EQUAL_FATAL(score_run(&r.plan, o, &scores, NULL), SNAP_OK);
        const arm_score *got = &scores[0].arms[0];
        CU_ASSERT_EQUAL(got->problems, n);
        CU_ASSERT_EQUAL(got->failed, failed);
        CU_ASSERT_EQUAL(got->scored, scored);
        CU_ASSERT_EQUAL(got->samples + got->missing, PROBLEMS * SAMPLES);
        CU_ASSERT_DOUBLE_EQUAL(got->accuracy.mean, sum / (double)n, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(got->truncated, (double)truncated / (double)scored, 1e-12);
        check_pair(&scores[0].pairs[0], &base, &other, r.plan.margin);
        check_together(&r.plan, o, got);
        CU_ASSERT_STRING_EQUAL(scores[0].pairs[1].refused, "temperature differs: 1 against 0.5");
        score_release(&r.plan, scores);
    }
    run_close(&r);
}

/* Failed samples must not change an accuracy, whatever their verdict field holds. */
static void test_failures_are_excluded(void) {
    run r;
    run_open(&r, 2);
    sample_outcome o[ARMS * PROBLEMS * 2];
    for (size_t i = 0; i < plan_cells(&r.plan); i++)
        o[i] = (sample_outcome){.present = true,
                                .failed = i % 2,
                                .verdict = i % 2 ? GRADE_WRONG : GRADE_CORRECT,
                                .completion_tokens = -1};
    task_score *scores;
    CU_ASSERT_EQUAL_FATAL(score_run(&r.plan, o, &scores, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(scores[0].arms[0].accuracy.mean, 1);
    CU_ASSERT_EQUAL(scores[0].arms[0].failed, PROBLEMS);
    CU_ASSERT_DOUBLE_EQUAL(scores[0].arms[0].ci95.lo, stats_wilson(PROBLEMS, PROBLEMS, 0.95).lo,
                           1e-12);
    CU_ASSERT_FALSE(scores[0].pairs[0].has_length);
    score_release(&r.plan, scores);
    for (size_t i = 0; i < plan_cells(&r.plan); i++)
        o[i].failed = true;
    CU_ASSERT_EQUAL_FATAL(score_run(&r.plan, o, &scores, NULL), SNAP_OK);
    CU_ASSERT(isnan(scores[0].arms[0].accuracy.mean) && isnan(scores[0].arms[0].truncated));
    CU_ASSERT_EQUAL(scores[0].pairs[0].diff.n, 0);
    CU_ASSERT_EQUAL(scores[0].pairs[0].diff.verdict, STATS_NOT_SHOWN);
    score_release(&r.plan, scores);
    run_close(&r);
}

/* One sample per problem: McNemar's test and Wilson's interval apply. */
static void test_single_samples(void) {
    run r;
    run_open(&r, 1);
    sample_outcome o[ARMS * PROBLEMS] = {0};
    for (size_t i = 0; i < plan_cells(&r.plan); i++) {
        plan_cell c = plan_cell_at(&r.plan, i);
        bool right = c.arm == 0 ? c.problem < 6 : c.problem < 2;
        o[i] = (sample_outcome){.present = true,
                                .verdict = right ? GRADE_CORRECT : GRADE_WRONG,
                                .text_hash = 7,
                                .completion_tokens = 10};
    }
    task_score *scores;
    CU_ASSERT_EQUAL_FATAL(score_run(&r.plan, o, &scores, NULL), SNAP_OK);
    const pair_score *p = &scores[0].pairs[0];
    CU_ASSERT_DOUBLE_EQUAL(p->p_mcnemar, stats_mcnemar(4, 0), 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(p->p_sign_flip, p->p_mcnemar, 1e-12);
    CU_ASSERT(p->diff.a_better == 4 && p->diff.b_better == 0);
    CU_ASSERT_DOUBLE_EQUAL(scores[0].arms[0].ci95.hi, stats_wilson(6, 7, 0.95).hi, 1e-12);
    CU_ASSERT_EQUAL(scores[0].arms[0].identical, 0); /* equal texts of different problems do not
                                                        count */
    CU_ASSERT(scores[0].arms[0].n_pass == 1 && isnan(scores[0].arms[0].majority));
    CU_ASSERT(isnan(scores[0].arms[0].sampling_variance));
    CU_ASSERT_DOUBLE_EQUAL(p->p_holm, p->diff.p_tost, 1e-12);
    score_release(&r.plan, scores);
    run_close(&r);
}

CU_TestInfo tests_score[] = {
    {"store survives a restart", test_store_survives_a_restart},
    {"rows outside the plan are kept", test_rows_outside_the_plan_are_kept},
    {"rows of another run are refused", test_rows_of_another_run_are_refused},
    {"scores against recomputation", test_scores_against_recomputation},
    {"failures are excluded", test_failures_are_excluded},
    {"single samples", test_single_samples},
    CU_TEST_INFO_NULL,
};
