/* Tests what an evaluation refuses to mix or to compare: other configurations, prompts, data and
 * sampling. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/test/eval_place.h"
#include "harness/view/eval_text.h"

static void test_another_configuration_is_refused(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p), other = o;
    results_free(eval_complete(&o));
    char *before = eval_text_of(p.samples);
    other.temperature = 0.5;
    eval_expect(&other, SNAP_E_USAGE, "temperature 0.5");
    other = o;
    other.seed = 2;
    eval_expect(&other, SNAP_E_USAGE, "seed 2");
    other = o;
    other.max_tokens = 9;
    eval_expect(&other, SNAP_E_USAGE, "max_tokens 9");
    other = o;
    other.arms.items[1] = "b=replay:elsewhere";
    eval_expect(&other, SNAP_E_USAGE, "arm b, generator was 'replay:");
    other = o;
    other.arms.items[0] = "c=replay:x";
    eval_expect(&other, SNAP_E_USAGE, "no arm c");
    buf rows = {0};
    for (int i = 0; i < PROBLEMS; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"it is?\", \"answer\": %d}\n", i,
                         i);
    eval_write_text(p.data, &rows);
    buf_release(&rows);
    eval_expect(&o, SNAP_E_USAGE, "dataset_sha256 was");
    char *after = eval_text_of(p.samples);
    CU_ASSERT_STRING_EQUAL(before, after);
    free(before);
    free(after);
    eval_place_close(&p);
}

/* Runs arms a and b. Returns the options of a second run, whose arms replay the samples of the
 * first run as models a and b. */
static eval_options replayed(eval_place *p) {
    static char a[160], b[160], run[100];
    eval_options o = eval_options_of(p);
    results_free(eval_complete(&o));
    (void)snprintf(a, sizeof a, "a=replay:%s,model=a", p->samples);
    (void)snprintf(b, sizeof b, "b=replay:%s,model=b", p->samples);
    (void)snprintf(run, sizeof run, "%s/again", p->dir);
    o.arms.items[0] = a;
    o.arms.items[1] = b;
    o.out = run;
    return o;
}

static void test_another_prompt_is_refused(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = replayed(&p);
    eval_write_problems(&p, "is it not", 0); /* another template or problem gives another prompt */
    eval_expect(&o, SNAP_E_USAGE, "recorded with another prompt: not an answer");
    eval_place_close(&p);
}

static void test_other_sampling_is_refused(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = replayed(&p), other = o;
    other.temperature = 0.5;
    eval_expect(&other, SNAP_E_USAGE, "recorded with temperature 1, the request has 0.5");
    eval_place_close(&p);
    eval_place_open(&p);
    o = replayed(&p);
    o.top_p = 0.5;
    eval_expect(&o, SNAP_E_USAGE, "recorded with top_p 0.95, the request has 0.5");
    eval_place_close(&p);
    eval_place_open(&p);
    o = replayed(&p);
    o.max_tokens = 9;
    eval_expect(&o, SNAP_E_USAGE, "recorded with max_tokens 32768, the request has 9");
    eval_place_close(&p);
}

/* Replayed answers are graded with the reference answers of the present data file, not with those
 * of the recording. If the file changes but its prompts do not, a new run grades both arms with the
 * new reference answers and stores the hash of the new file. Continuing a run whose data file has
 * changed is refused. */
static void test_other_data_is_refused_or_shared(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = replayed(&p);
    results *r = eval_complete(&o);
    js *first = js_copy(js_at(results_section(r, "evals"), 0));
    results_free(r);
    eval_write_problems(&p, "is it", 1); /* all reference answers differ */
    eval_expect(&o, SNAP_E_USAGE, "dataset_sha256 was");
    eval_options fresh = o;
    char run[100];
    (void)snprintf(run, sizeof run, "%s/fresh", p.dir);
    fresh.out = run;
    r = eval_complete(&fresh);
    const js *row = js_at(results_section(r, "evals"), 0);
    for (size_t a = 0; a < 2; a++)
        CU_ASSERT_EQUAL(eval_number(js_at(js_get_array(row, "arms"), a), "accuracy_pct"), 0);
    CU_ASSERT_STRING_NOT_EQUAL(js_get_str(js_get_object(row, "dataset"), "sha256"),
                               js_get_str(js_get_object(first, "dataset"), "sha256"));
    results_free(r);
    js_free(first);
    eval_place_close(&p);
}

/* Whatever grader graded a recording before, this run's grader grades both arms, and every row says
 * so. */
static void test_one_grader_judges_all_arms(void) {
    static const char *const policies[] = {"strict", "field"};
    static const char *const graders[] = {"math-strict-10", "math-field-10"};
    eval_place p;
    eval_place_open(&p);
    buf rows = {0};
    (void)buf_puts(&rows, "{\"problem\": \"half?\", \"answer\": \"1/2\", \"unique_id\": \"q0\"}\n");
    eval_write_text(p.data, &rows);
    for (int arm = 0; arm < 2; arm++) { /* 2/4: accepted by "field", not by "strict" */
        buf_clear(&rows);
        (void)buf_printf(&rows,
                         "{\"task\": \"math500\", \"problem\": \"q0\", \"sample\": 0, "
                         "\"grader\": \"math-other-9\", \"verdict\": \"%s\", "
                         "\"response\": \"\\\\boxed{2/4}\"}\n",
                         arm ? "correct" : "wrong");
        eval_write_text(strchr(arm ? p.arm_b : p.arm_a, ':') + 1, &rows);
    }
    buf_release(&rows);
    eval_options o = eval_options_of(&p);
    o.suite = "math500";
    o.samples = 1;
    for (int i = 0; i < 2; i++) {
        o.math_policy = policies[i];
        o.regrade = i > 0;
        results *r = eval_complete(&o);
        const js *row = js_at(results_section(r, "evals"), 0);
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "grader"), graders[i]);
        for (size_t a = 0; a < 2; a++)
            CU_ASSERT_EQUAL(eval_number(js_at(js_get_array(row, "arms"), a), "accuracy_pct"),
                            i ? 100 : 0);
        char *text = eval_text_of(p.samples);
        CU_ASSERT_PTR_NULL(strstr(text, "math-other-9"));
        CU_ASSERT_PTR_NULL(strstr(text, graders[1 - i]));
        free(text);
        results_free(r);
    }
    eval_place_close(&p);
}

/* Replayed samples of the same questions are compared, with the same result. */
static void test_the_same_question_is_compared(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    results *r = eval_complete(&o);
    js *pair = js_copy(eval_pair_of(r));
    results_free(r);
    o = replayed(&p);
    r = eval_complete(&o);
    CU_ASSERT(js_equal(pair, eval_pair_of(r)));
    js_free(pair);
    results_free(r);
    eval_place_close(&p);
}

static void test_arms_of_other_sampling_are_not_compared(void) {
    static const struct {
        const char *key, *refused;
    } cases[] = {{"top_p=0.5", "top_p differs: 0.95 against 0.5"},
                 {"temperature=0.6", "temperature differs: 1 against 0.6"},
                 {"max_tokens=100", "max_tokens differs: 32768 against 100"},
                 {"seed=77", NULL}}; /* other seeds: another sample of the same arm */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        eval_place p;
        eval_place_open(&p);
        eval_options o = eval_options_of(&p);
        char arm[160];
        (void)snprintf(arm, sizeof arm, "%s,%s", p.arm_b, cases[i].key);
        o.arms.items[1] = arm;
        results *r = eval_complete(&o);
        const js *row = js_at(results_section(r, "evals"), 0);
        const js *pair = js_at(js_get_array(row, "pairs"), 0);
        const char *refused = js_get_str(pair, "refused");
        CU_ASSERT((refused != NULL) == (cases[i].refused != NULL));
        CU_ASSERT((js_get_str(pair, "verdict") == NULL) == (cases[i].refused != NULL));
        if (refused && cases[i].refused)
            CU_ASSERT_STRING_EQUAL(refused, cases[i].refused);
        buf view = {0};
        CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
        CU_ASSERT((strstr(buf_str(&view), "not compared") != NULL) == (cases[i].refused != NULL));
        buf_release(&view);
        results_free(r);
        eval_place_close(&p);
    }
}

CU_TestInfo tests_eval_refused[] = {
    {"another configuration is refused", test_another_configuration_is_refused},
    {"another prompt is refused", test_another_prompt_is_refused},
    {"other sampling is refused", test_other_sampling_is_refused},
    {"other data is refused or shared", test_other_data_is_refused_or_shared},
    {"one grader judges all arms", test_one_grader_judges_all_arms},
    {"the same question is compared", test_the_same_question_is_compared},
    {"arms of other sampling are not compared", test_arms_of_other_sampling_are_not_compared},
    CU_TEST_INFO_NULL,
};
