/* Tests the forecast of an accuracy: by hand, and against small models of which all answers can be
 * enumerated. */
#include <CUnit/CUnit.h>
#include <math.h>

#include "base/rng.h"
#include "evals/distributions.h"
#include "evals/forecast.h"

enum { kTokens = 3, kSteps = 3, kAnswers = 27, kProblems = 60, kSamples = 4, kRuns = 400 };

/* The distribution of the answers to one problem in two formats. */
typedef struct {
    double p[kAnswers], q[kAnswers];
    bool right[kAnswers];
} problem;

static void softmax(double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] = exp(x[i]);
    for (int i = 0; i < n; i++)
        x[i] /= sum;
}

/* Every prefix of an answer has logits of its own, and the second format adds noise to them. The
 * answers that begin with token 0 are right more often, and @shift makes this token likelier. */
static void make_problem(problem *x, rng *r, double noise, double shift) {
    for (int i = 0; i < kAnswers; i++)
        x->p[i] = x->q[i] = 1;
    for (int step = 0, width = kAnswers / kTokens; step < kSteps; step++, width /= kTokens)
        for (int from = 0; from < kAnswers; from += width * kTokens) {
            double p[kTokens], q[kTokens];
            for (int t = 0; t < kTokens; t++) {
                p[t] = 2 * rng_normal(r);
                q[t] = p[t] + noise * rng_normal(r) + (step == 0 && t == 0 ? shift : 0);
            }
            softmax(p, kTokens);
            softmax(q, kTokens);
            for (int i = 0; i < width * kTokens; i++) {
                x->p[from + i] *= p[i / width];
                x->q[from + i] *= q[i / width];
            }
        }
    for (int i = 0; i < kAnswers; i++)
        x->right[i] = rng_uniform(r) < (i < kAnswers / kTokens ? 0.8 : 0.4);
}

static double exact(const problem *x) {
    double sum = 0;
    for (int i = 0; i < kAnswers; i++)
        sum += (x->q[i] - x->p[i]) * (double)x->right[i];
    return sum;
}

static int draw(const double *p, rng *r) {
    double left = rng_uniform(r);
    int i = 0;
    while (i < kAnswers - 1 && (left -= p[i]) >= 0)
        i++;
    return i;
}

/* Draws answers to one problem, and returns what the same number of answers of the other format
 * gives for the difference in accuracy. */
static double sample(const problem *x, forecast_answer *a, rng *r) {
    double direct = 0;
    for (int k = 0; k < kSamples; k++) {
        int i = draw(x->p, r), j = draw(x->q, r);
        double ratio = x->q[i] / x->p[i];
        a[k] =
            (forecast_answer){.ratio = ratio, .diverged = fmax(0, 1 - ratio), .right = x->right[i]};
        direct += ((double)x->right[j] - (double)x->right[i]) / kSamples;
    }
    return direct;
}

/* With small damage the forecast is unbiased, its interval covers the exact difference, and it is
 * nearer to it than the answers of both formats would be. */
static void check_coverage(double noise, double shift) {
    static problem x[kProblems];
    static forecast_answer a[kProblems * kSamples];
    double error = 0, square = 0, direct_square = 0;
    int covered = 0;
    for (int run = 0; run < kRuns; run++) {
        rng r = rng_make(19, (uint64_t)run);
        double want = 0, direct = 0;
        forecast f;
        for (int i = 0; i < kProblems; i++) {
            make_problem(&x[i], &r, noise, shift);
            want += exact(&x[i]) / kProblems;
            direct += sample(&x[i], a + (size_t)i * kSamples, &r) / kProblems;
        }
        CU_ASSERT_EQUAL_FATAL(forecast_make(a, kProblems, kSamples, NULL, &f, NULL), SNAP_OK);
        covered += f.ci95.lo <= want && want <= f.ci95.hi;
        error += (f.delta - want) / kRuns;
        square += pow(f.delta - want, 2) / kRuns;
        direct_square += pow(direct - want, 2) / kRuns;
    }
    CU_ASSERT(fabs(error) < 4 * sqrt(square / kRuns));
    CU_ASSERT(covered >= 0.93 * kRuns);
    CU_ASSERT(square < 0.25 * direct_square);
}

static void test_exact_differences(void) {
    check_coverage(0.1, 0);
    check_coverage(0.3, 0);
    check_coverage(0.1, -0.3);
}

/* The verdicts that a gate with a margin would give at a level of 5 %. */
typedef struct {
    int above, below; /* verdicts "above the exact loss", and "not above the exact loss" */
    int found;        /* verdicts "above 2 points" */
    double loss, se;  /* means of the exact loss and of the standard error */
    double square;    /* mean square of the error */
} rates;

static void count_verdict(rates *n, const forecast_loss *l, double exact_loss) {
    double p = forecast_loss_above(l, exact_loss);
    n->above += p >= 0.95;
    n->below += p <= 0.05;
    n->found += forecast_loss_above(l, 0.02) >= 0.95;
    n->loss += exact_loss / kRuns;
    n->se += l->se / kRuns;
    n->square += pow(l->loss - exact_loss, 2) / kRuns;
}

static rates count_verdicts(double noise, double shift) {
    static problem x[kProblems];
    static forecast_answer a[kProblems * kSamples];
    rates n = {0};
    for (int run = 0; run < kRuns; run++) {
        rng r = rng_make(23, (uint64_t)run);
        double exact_loss = 0;
        forecast f;
        for (int i = 0; i < kProblems; i++) {
            make_problem(&x[i], &r, noise, shift);
            exact_loss -= exact(&x[i]) / kProblems;
            (void)sample(&x[i], a + (size_t)i * kSamples, &r);
        }
        CU_ASSERT_EQUAL_FATAL(forecast_make(a, kProblems, kSamples, NULL, &f, NULL), SNAP_OK);
        const forecast_loss l = {-f.delta, f.se, f.assumed_se, kProblems};
        count_verdict(&n, &l, exact_loss);
    }
    return n;
}

/* At most 5 % of the verdicts are false, up to three standard deviations of the simulation. */
static void check_false_verdicts(const rates *n) {
    double most = (0.05 + 3 * sqrt(0.05 * 0.95 / kRuns)) * kRuns;
    CU_ASSERT(n->above <= most);
    CU_ASSERT(n->below <= most);
}

/* The margin is the exact loss, so that "above" and "not above" are both false. */
static void test_verdict_rates(void) {
    static const double cases[][2] = {{0.1, 0}, {0.1, -0.3}, {0.3, -0.5}, {0.3, -1.5}, {0.7, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rates n = count_verdicts(cases[i][0], cases[i][1]);
        check_false_verdicts(&n);
    }
    /* A loss of 6 points is found as often as follows from a normal error of the observed size. */
    rates n = count_verdicts(0.3, -1.5);
    double chance = normal_cdf((n.loss - 0.02 - 1.671 * n.se) / sqrt(n.square));
    CU_ASSERT(chance > 0.3);
    CU_ASSERT_DOUBLE_EQUAL((double)n.found / kRuns, chance, 0.08);
}

/* Counts the verdicts on two formats with the same noise, of which the second has a shift as
 * well. */
static rates count_verdicts_between(double noise, double shift) {
    static problem x, y;
    static forecast_answer a[2][kProblems * kSamples];
    double seen[2][kProblems];
    rates n = {0};
    for (int run = 0; run < kRuns; run++) {
        rng draws = rng_make(29, (uint64_t)run);
        double exact_loss = 0;
        forecast f[2];
        forecast_loss l;
        for (int i = 0; i < kProblems; i++) {
            rng r = rng_make(31 + (uint64_t)run, (uint64_t)i), same = r, again = draws;
            make_problem(&x, &r, noise, 0);
            make_problem(&y, &same, noise, shift);
            exact_loss += (exact(&x) - exact(&y)) / kProblems;
            (void)sample(&x, a[0] + (size_t)i * kSamples, &draws);
            (void)sample(&y, a[1] + (size_t)i * kSamples, &again); /* the same answers */
        }
        for (int k = 0; k < 2; k++)
            CU_ASSERT_EQUAL_FATAL(forecast_make(a[k], kProblems, kSamples, seen[k], &f[k], NULL),
                                  SNAP_OK);
        const forecast_summary before = {f[0].delta, f[0].se, f[0].assumed_se, seen[0], kProblems};
        const forecast_summary now = {f[1].delta, f[1].se, f[1].assumed_se, seen[1], kProblems};
        CU_ASSERT_EQUAL_FATAL(forecast_loss_between(&before, &now, &l, NULL), SNAP_OK);
        count_verdict(&n, &l, exact_loss);
    }
    return n;
}

/* Between two formats that share their noise, the loss is found more often than against the
 * reference: a prediction against the reference also has the spread of the noise. */
static void test_verdicts_between(void) {
    rates small = count_verdicts_between(0.3, -0.3), large = count_verdicts_between(0.3, -1.5);
    rates alone = count_verdicts(0.3, -0.3);
    check_false_verdicts(&small);
    check_false_verdicts(&large);
    CU_ASSERT(large.loss > 0.04 && large.found > 0.4 * kRuns);
    CU_ASSERT(small.square < 0.5 * alone.square);
    CU_ASSERT(small.se < 0.7 * alone.se);
}

/* Student's t distribution has closed forms for 1 and 2 degrees of freedom. */
static void test_loss_above(void) {
    for (int i = -4; i <= 4; i++) {
        double t = 0.75 * i;
        const forecast_loss two = {.loss = 0.02 + 0.01 * t, .se = 0.01, .problems = 2};
        const forecast_loss three = {.loss = 0.02 + 0.01 * t, .se = 0.01, .problems = 3};
        CU_ASSERT_DOUBLE_EQUAL(forecast_loss_above(&two, 0.02), 0.5 + atan(t) / M_PI, 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(forecast_loss_above(&three, 0.02), 0.5 + t / (2 * sqrt(2 + t * t)),
                               1e-9);
    }
    const forecast_loss none = {.loss = 0, .se = 0, .problems = 40};
    const forecast_loss sure = {.loss = 0.03, .se = 0, .problems = 40};
    CU_ASSERT_EQUAL(forecast_loss_above(&none, 0.02), 0);
    CU_ASSERT_EQUAL(forecast_loss_above(&sure, 0.02), 1);
}

/* How often predictions from @n problems decide, if the loss is that of @l, whose standard error
 * falls with the number of problems. The assumed part of the standard error is not drawn. */
static double rate_of_decisions(const forecast_loss *l, size_t n, double margin) {
    rng r = rng_make(31, n);
    int decided = 0;
    double drawn =
        sqrt((l->se * l->se - l->assumed_se * l->assumed_se) * (double)l->problems / (double)n);
    for (int i = 0; i < 4000; i++) {
        const forecast_loss x = {.loss = l->loss + drawn * rng_normal(&r),
                                 .se = hypot(drawn, l->assumed_se),
                                 .problems = n};
        double p = forecast_loss_above(&x, margin);
        decided += p <= 0.05 || p >= 0.95;
    }
    return decided / 4000.0;
}

static void test_problems_needed(void) {
    static const forecast_loss cases[] = {
        {0.005, 0.02, 0, 40}, {0.05, 0.03, 0.005, 40}, {-0.01, 0.03, 0.01, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = forecast_problems_needed(&cases[i], 0.02, 0.05);
        CU_ASSERT_FATAL(n > cases[i].problems);
        CU_ASSERT_DOUBLE_EQUAL(rate_of_decisions(&cases[i], n, 0.02), 0.9, 0.03);
    }
    /* the assumed part alone hides the difference of 1 point */
    const forecast_loss hidden = {0.03, 0.03, 0.01, 40};
    CU_ASSERT_EQUAL(forecast_problems_needed(&hidden, 0.02, 0.05), 0);
}

static void test_no_difference(void) {
    forecast_answer a[6];
    forecast f;
    for (int i = 0; i < 6; i++)
        a[i] = (forecast_answer){.ratio = 1, .right = i % 2};
    CU_ASSERT_EQUAL_FATAL(forecast_make(a, 3, 2, NULL, &f, NULL), SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(f.accuracy, 0.5, 1e-12);
    CU_ASSERT(f.diverged == 0 && f.unseen == 0 && f.seen_delta == 0 && f.delta == 0);
    CU_ASSERT(f.ci95.lo == 0 && f.ci95.hi == 0);
}

/* Two of eight greedy answers change; one of them was right. */
static void test_greedy(void) {
    forecast_answer a[8];
    forecast f;
    for (int i = 0; i < 8; i++)
        a[i] = (forecast_answer){
            .ratio = i >= 2, .diverged = i < 2, .unseen = i < 2, .right = i != 1 && i != 7};
    CU_ASSERT_EQUAL_FATAL(forecast_make(a, 8, 1, NULL, &f, NULL), SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(f.accuracy, 0.75, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(f.diverged, 0.25, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(f.unseen, 0.25, 1e-12);
    CU_ASSERT_EQUAL(f.seen_delta, 0);
    CU_ASSERT_EQUAL(f.mixed, 0);
    /* half of the changed answers were right */
    CU_ASSERT_DOUBLE_EQUAL(f.delta, -0.25 * 0.5 * (1 - FORECAST_GREEDY_KEPT), 1e-12);
    double rate = 0.5 * FORECAST_GREEDY_KEPT, drawn = 0.25 * (0.5 * 0.5 + rate * (1 - rate)) / 8,
           half = 2.364624 * sqrt(drawn + pow(0.25 * 0.5 * FORECAST_KEPT_SPREAD, 2));
    CU_ASSERT(f.delta + half > 0.25);
    CU_ASSERT_DOUBLE_EQUAL(f.ci95.hi, 0.25, 1e-12); /* all answers would be right */
    CU_ASSERT_DOUBLE_EQUAL(f.delta - f.ci95.lo, half, 1e-6);
}

/* If no answer of the reference is likely in the other format, all of that format's answers are
 * unseen, and nearly all right answers are lost. */
static void test_collapse(void) {
    enum { kAll = 98 }; /* the sum of 98 times 1/98 is not 1 */
    static forecast_answer a[kAll];
    forecast f;
    for (int i = 0; i < kAll; i++)
        a[i] = (forecast_answer){.ratio = 1e-6 * (1 + i), .diverged = 1, .right = i % 7 != 0};
    CU_ASSERT_EQUAL_FATAL(forecast_make(a, kAll / 2, 2, NULL, &f, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(f.diverged, 1);
    CU_ASSERT(f.unseen > 0.9999 && f.unseen <= 1);
    CU_ASSERT_DOUBLE_EQUAL(f.delta, -6.0 / 7, 1e-3);
    CU_ASSERT_EQUAL(f.ci95.lo, -f.accuracy);
    CU_ASSERT(f.ci95.hi < -0.3);
    /* Greedy answers may differ because of ties only, so nothing is predicted. */
    for (int i = 0; i < kAll; i++)
        a[i] = (forecast_answer){.diverged = 1, .unseen = 1, .right = i % 7 != 0};
    CU_ASSERT_EQUAL_FATAL(forecast_make(a, kAll, 1, NULL, &f, NULL), SNAP_OK);
    CU_ASSERT(isnan(f.delta) && isnan(f.ci95.lo) && isnan(f.ci95.hi));
}

/* Few problems are enough to show that a format loses all answers. */
static void test_all_lost(void) {
    enum { kFew = 16, kEach = 8 };
    static forecast_answer a[kFew * kEach];
    forecast f;
    for (int i = 0; i < kFew * kEach; i++)
        a[i] = (forecast_answer){.ratio = 1e-20, .diverged = 1, .right = i % 16 < 5};
    CU_ASSERT_EQUAL_FATAL(forecast_make(a, kFew, kEach, NULL, &f, NULL), SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(f.delta, -0.3125, 1e-6);
    CU_ASSERT(f.ci95.lo == -0.3125 && f.ci95.hi < 0);
    CU_ASSERT_EQUAL(f.mixed,
                    8); /* every second problem has five right answers and three wrong ones */
}

/* If all answers are right, there is no spread, and so no interval. */
static void test_all_right(void) {
    forecast_answer a[8];
    forecast f;
    for (int i = 0; i < 8; i++)
        a[i] = (forecast_answer){.ratio = 0.9 + 0.05 * (i % 4), .diverged = 0.05, .right = true};
    CU_ASSERT_EQUAL_FATAL(forecast_make(a, 4, 2, NULL, &f, NULL), SNAP_OK);
    CU_ASSERT(f.accuracy == 1 && f.seen_delta == 0);
    CU_ASSERT(isnan(f.ci95.lo) && isnan(f.ci95.hi));
}

/* An interval ends where the accuracy would be 0 or 1. */
static void test_ends(void) {
    forecast_answer a[6];
    forecast f;
    for (int i = 0; i < 6; i++)
        a[i] = (forecast_answer){.ratio = i % 2 ? 1.9 : 0.1, .right = i < 5 && i % 2};
    CU_ASSERT_EQUAL_FATAL(forecast_make(a, 3, 2, NULL, &f, NULL), SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(f.accuracy, 1.0 / 3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(f.ci95.hi, 2.0 / 3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(f.ci95.lo, -1.0 / 3, 1e-12);
}

static void test_one_problem(void) {
    const forecast_answer a[2] = {{.ratio = 1.2, .right = true}, {.ratio = 0.9}};
    double seen = 0;
    forecast f;
    CU_ASSERT_EQUAL_FATAL(forecast_make(a, 1, 2, &seen, &f, NULL), SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(seen, 0.15, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(f.seen_delta, 0.15, 1e-12);
    CU_ASSERT(isnan(f.ci95.lo) && isnan(f.ci95.hi) && isnan(f.se) && isnan(f.assumed_se));
}

CU_TestInfo tests_forecast[] = {
    {"enumerated models: no bias, right coverage, smaller error than from answers",
     test_exact_differences},
    {"verdicts about a margin are wrong as rarely as stated", test_verdict_rates},
    {"verdicts about two formats that share their noise", test_verdicts_between},
    {"the probability of a loss, in closed form", test_loss_above},
    {"the number of problems that a decision needs", test_problems_needed},
    {"equal formats: no difference", test_no_difference},
    {"greedy answers: counted by hand", test_greedy},
    {"if all answers are unseen, nearly all right ones are lost", test_collapse},
    {"all answers of a few problems are lost", test_all_lost},
    {"without wrong answers there is no interval", test_all_right},
    {"an interval stays within possible accuracies", test_ends},
    {"one problem has no interval", test_one_problem},
    CU_TEST_INFO_NULL,
};
