/* Tests models that read the answers of another model, against answers that they give themselves
 * and against identities of likelihood ratios. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "generator/local/answer.h"
#include "generator/local/follow.h"
#include "generator/test/tiny_model.h"

enum { kModels = 2, kAnswers = 16, kPrompts = 24 };

typedef struct {
    char dir[64];
    local_model model[kModels]; /* bf16 and int4 */
} fixture;

static void set_up(fixture *x) {
    static const char *const precisions[kModels] = {"bf16", "int4"};
    tiny_folder(x->dir, "v3");
    for (int i = 0; i < kModels; i++) {
        const local_options how = {.precision = precisions[i], .sequences = kAnswers, .threads = 1};
        CU_ASSERT_EQUAL_FATAL(local_open(&x->model[i], x->dir, &how, NULL), SNAP_OK);
    }
}

static void tear_down(fixture *x) {
    for (int i = 0; i < kModels; i++)
        local_close(&x->model[i]);
    tiny_remove(x->dir);
}

static follow *open_follow(local_model *models, int n, int answers) {
    const follow_options o = {.models = models, .n = n, .answers = answers};
    follow *f = NULL;
    CU_ASSERT_EQUAL_FATAL(follow_create(&f, &o, NULL), SNAP_OK);
    return f;
}

static const follow_answer *ask(follow *f, int prompt, const sampling *how, int max_tokens) {
    char text[200];
    (void)snprintf(text, sizeof text, "%*dth question", 1 + prompt * 5, prompt);
    const gen_message m = {"user", text};
    const follow_answer *a;
    CU_ASSERT_EQUAL_FATAL(follow_prompt(f, &m, 1, how, 7 + (uint64_t)prompt, max_tokens, &a, NULL),
                          SNAP_OK);
    return a;
}

/* The tokens of the greedy answer of one model, by the engine. */
static js *answer_by_engine(local_model *m, int prompt, int max_tokens, buf *out) {
    char text[200];
    (void)snprintf(text, sizeof text, "%*dth question", 1 + prompt * 5, prompt);
    const gen_message message = {"user", text};
    const answer_options o = {
        .sampling = {.top_p = 1}, .samples = 1, .max_tokens = max_tokens, .keep_ids = true};
    local_answers a;
    CU_ASSERT_EQUAL_FATAL(local_answer_prompt(m, &message, 1, &o, &a, NULL), SNAP_OK);
    (void)buf_append(out, a.all[0].text.data, a.all[0].text.len);
    js *ids = js_copy(a.all[0].ids);
    local_answers_release(&a);
    return ids;
}

/* A greedy answer of the second model differs exactly if the reading says so. */
static void test_greedy_answers_that_change(void) {
    const sampling greedy = {.top_p = 1};
    fixture x;
    int changed = 0;
    set_up(&x);
    for (int i = 0; i < kPrompts; i++) {
        buf first = {0}, second = {0};
        js *a_ids = answer_by_engine(&x.model[0], i, 2, &first),
           *b_ids = answer_by_engine(&x.model[1], i, 2, &second);
        follow *f = open_follow(x.model, kModels, 1);
        const follow_answer *a = ask(f, i, &greedy, 2);
        bool differ = !js_equal(a_ids, b_ids);
        CU_ASSERT_STRING_EQUAL(buf_str(&a->text), buf_str(&first));
        CU_ASSERT(a->reading[1].diverged == (differ ? 1 : 0));
        CU_ASSERT(a->reading[1].unseen == (differ ? 1 : 0));
        CU_ASSERT(differ ? isinf(a->reading[1].log_ratio) : a->reading[1].log_ratio == 0);
        CU_ASSERT(a->reading[1].kl > 0 && a->reading[0].kl == 0);
        changed += differ;
        follow_free(f);
        js_free(a_ids);
        js_free(b_ids);
        buf_release(&first);
        buf_release(&second);
    }
    CU_ASSERT(changed > 2 && changed < kPrompts - 2);
    tear_down(&x);
}

/* Sum and sum of squares of numbers with a known mean. */
typedef struct {
    double sum, square;
    int n;
} tally;

static void add(tally *t, double x) {
    t->sum += x;
    t->square += x * x;
    t->n++;
}

static bool mean_is_zero(const tally *t) {
    double mean = t->sum / t->n, variance = t->square / t->n - mean * mean;
    return fabs(mean) < 4.5 * sqrt(variance / t->n) + 1e-12;
}

/* The mean of the likelihood ratio over the answers of the first model is the probability that the
 * second model gives an answer which the first one can give, too. The probability to diverge is the
 * sum over all answers of the probability that the two models do not share. So it stays the same if
 * the models change places. */
static void test_ratios_of_samples(void) {
    static const sampling hows[] = {{.temperature = 1, .top_p = 1},
                                    {.temperature = 0.7, .top_p = 0.6},
                                    {.temperature = 1, .top_p = 1, .top_k = 4}};
    fixture x;
    set_up(&x);
    local_model swapped[kModels] = {x.model[1], x.model[0]};
    follow *f = open_follow(x.model, kModels, kAnswers),
           *back = open_follow(swapped, kModels, kAnswers);
    for (size_t h = 0; h < sizeof hows / sizeof *hows; h++) {
        tally ratio = {0}, apart = {0};
        double unseen = 0, diverged = 0;
        for (int i = 0; i < kPrompts; i++) {
            const follow_answer *a = ask(f, i, &hows[h], 3), *b = ask(back, i, &hows[h], 3);
            for (int k = 0; k < kAnswers; k++) {
                const follow_reading *r = &a[k].reading[1];
                CU_ASSERT(a[k].tokens <= 3 && r->diverged >= 0 && r->diverged <= 1);
                add(&ratio, exp(r->log_ratio) + r->unseen - 1);
                add(&apart, r->diverged - b[k].reading[1].diverged);
                unseen += r->unseen;
                diverged += r->diverged;
            }
        }
        CU_ASSERT(mean_is_zero(&ratio));
        CU_ASSERT(mean_is_zero(&apart));
        CU_ASSERT(h ? unseen > 0 : unseen == 0);
        CU_ASSERT(diverged > 0.01 * kPrompts * kAnswers);
    }
    follow_free(f);
    follow_free(back);
    tear_down(&x);
}

/* Answers do not depend on the models that read them, and streams differ. */
static void test_answers(void) {
    const sampling how = {.temperature = 1, .top_p = 1};
    fixture x;
    set_up(&x);
    follow *alone = open_follow(x.model, 1, kAnswers), *both = open_follow(x.model, 2, kAnswers);
    const follow_answer *a = ask(both, 3, &how, 20), *b = ask(alone, 3, &how, 20);
    int differ = 0;
    for (int k = 0; k < kAnswers; k++) {
        CU_ASSERT_STRING_EQUAL(buf_str(&a[k].text), buf_str(&b[k].text));
        CU_ASSERT_EQUAL(a[k].truncated, a[k].tokens == 20);
        differ += strcmp(buf_str(&a[k].text), buf_str(&a[0].text)) != 0;
    }
    CU_ASSERT(differ > kAnswers / 2);
    follow_free(alone);
    follow_free(both);
    tear_down(&x);
}

static void test_refusals(void) {
    static const gen_message m = {"user", "a question"};
    const sampling how = {.temperature = 1, .top_p = 1};
    static char text[600];
    volatile sig_atomic_t cancel = 1;
    const follow_answer *a;
    fixture x;
    set_up(&x);
    follow *f = open_follow(x.model, 2, 2);
    memset(text, 'x', sizeof text - 1);
    const gen_message too_long = {"user", text};
    CU_ASSERT_EQUAL(follow_prompt(f, &too_long, 1, &how, 1, 8, &a, NULL), SNAP_E_INPUT);
    CU_ASSERT_EQUAL(follow_prompt(f, &m, 1, &how, 1, 8, &a, NULL), SNAP_OK);
    follow_free(f);
    const follow_options o = {.models = x.model, .n = 2, .answers = 2, .cancel = &cancel};
    CU_ASSERT_EQUAL_FATAL(follow_create(&f, &o, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(follow_prompt(f, &m, 1, &how, 1, 8, &a, NULL), SNAP_E_CANCELLED);
    follow_free(f);
    tear_down(&x);
}

CU_TestInfo tests_follow[] = {
    {"greedy answers change at the predicted tokens", test_greedy_answers_that_change},
    {"likelihood ratios of samples", test_ratios_of_samples},
    {"answers do not depend on the models that read them", test_answers},
    {"a prompt that is too long, and a cancelled run", test_refusals},
    CU_TEST_INFO_NULL,
};
