/* Tests the control arms of an evaluation. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/test/temp_folder.h"
#include "harness/eval/planning.h"
#include "harness/test/eval_place.h"
#include "harness/view/eval_text.h"
#include "harness/view/run_report.h"

static void with_control(eval_options *o, const char *kind) {
    o->controls.items[o->controls.n++] = kind;
}

/* A control is refused if it wants other seeds of a recording, or has an unknown kind, a bad
 * generator or a name in use. */
static void test_controls_that_cannot_be(void) {
    static const struct {
        const char *kind, *message;
    } bad[] = {{"seeds", "--control seeds: arm 'a' is recorded"},
               {"noise", "--control 'noise' is neither 'seeds' nor"},
               {"damaged", "--control 'damaged' is neither"},
               {"damaged=auto", "--control damaged=auto: arm 'a' is not local"},
               {"damaged=", "--control damaged: generator '' must be http"},
               {"damaged=replay:f,color=red", "--control damaged: unknown key 'color'"}};
    eval_place p;
    eval_place_open(&p);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        eval_options o = eval_options_of(&p);
        with_control(&o, bad[i].kind);
        eval_expect(&o, SNAP_E_USAGE, bad[i].message);
    }
    eval_options o = eval_options_of(&p);
    o.arms.items[0] = "x=http://127.0.0.1:9/v1";
    o.arms.items[1] = "x.control=http://127.0.0.1:9/v1";
    with_control(&o, "seeds");
    eval_expect(&o, SNAP_E_USAGE, "--control seeds: the name 'x.control' is taken");
    o.arms.items[1] = "y=http://127.0.0.1:9/v1";
    with_control(&o, "seeds");
    eval_expect(&o, SNAP_E_USAGE, "--control seeds: the name 'x.control' is taken");
    eval_place_close(&p);
}

/* A recording of an arm that is wrong on the first @wrong problems, in every sample. */
static void record_damaged(const eval_place *p, int wrong) {
    buf rows = {0}, path = {0};
    for (int i = 0; i < PROBLEMS; i++)
        for (int k = 0; k < SAMPLES; k++)
            (void)buf_printf(&rows,
                             "{\"task\": \"synth_aime\", \"problem\": \"q%d\", \"sample\": %d, "
                             "\"response\": \"hm %d, \\\\boxed{%d}\", \"finish_reason\": "
                             "\"stop\", \"completion_tokens\": 100}\n",
                             i, k, k, i < wrong ? 999 : i);
    (void)buf_printf(&path, "%s/damaged.jsonl", p->dir);
    eval_write_text(buf_str(&path), &rows);
    buf_release(&path);
    buf_release(&rows);
}

/* Damage of 8 or 9 problems of 9 is detected; no damage and one damaged problem are not. The
 * damaged arm does not change the comparison of the others. */
static void test_a_damaged_arm_shows_what_is_seen(void) {
    static const struct {
        int wrong;
        const char *sensitivity;
    } cases[] = {{8, "sees damage"}, {9, "sees damage"}, {0, "blind"}, {1, "blind"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        eval_place p;
        char control[120];
        eval_place_open(&p);
        record_damaged(&p, cases[i].wrong);
        eval_options o = eval_options_of(&p);
        results *alone = eval_complete(&o);
        temp_folder_remove(p.run);
        (void)snprintf(control, sizeof control,
                       "damaged=replay:%s/damaged.jsonl,precision=config-a", p.dir);
        with_control(&o, control);
        results *r = eval_complete(&o);
        const js *row = js_at(results_section(r, "evals"), 0);
        const js *first = js_at(js_get_array(row, "pairs"), 0);
        const js *damaged = js_at(js_get_array(row, "pairs"), 1);
        CU_ASSERT(js_equal(
            first, js_at(js_get_array(js_at(results_section(alone, "evals"), 0), "pairs"), 0)));
        CU_ASSERT_PTR_NULL(js_get(first, "control"));
        CU_ASSERT_PTR_NULL(js_get(first, "sensitivity"));
        CU_ASSERT_STRING_EQUAL(js_get_str(damaged, "control"), "damaged");
        CU_ASSERT_STRING_EQUAL(js_get_str(damaged, "sensitivity"), cases[i].sensitivity);
        const js *arm = js_at(js_get_array(row, "arms"), 2);
        CU_ASSERT_STRING_EQUAL(js_get_str(arm, "precision"), "config-a");
        buf view = {0};
        CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "damaged - a (damaged)"));
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), cases[i].sensitivity));
        buf_release(&view);
        results_free(r);
        results_free(alone);
        o = (eval_options){.report = run_report_write,
                           .out = p.run,
                           .regrade = true}; /* needs no --control: the run folder records it */
        r = eval_complete(&o);
        row = js_at(results_section(r, "evals"), 0);
        damaged = js_at(js_get_array(row, "pairs"), 1);
        CU_ASSERT_STRING_EQUAL(js_get_str(damaged, "sensitivity"), cases[i].sensitivity);
        results_free(r);
        eval_place_close(&p);
    }
}

/* Checks the precision of the arm "damaged", which --control damaged=auto adds. */
static void expect_damage(const eval_place *p, const char *suite, const char *data,
                          const char *precision) {
    eval_options o = eval_options_of(p);
    eval_plan plan = {0};
    arena mem = {0};
    snap_err err = {0};
    o.suite = suite;
    o.data = data;
    o.arms.items[0] = "a=local:/nonexistent,threads=1";
    o.arms.items[1] = "b=local:/nonexistent,threads=1,precision=fp8";
    with_control(&o, "damaged=auto");
    CU_ASSERT_EQUAL(planning_make(&plan, &o, &mem, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT_EQUAL_FATAL(plan.n_arms, 3);
    CU_ASSERT_STRING_EQUAL(plan.arms[2].name, "damaged");
    CU_ASSERT_STRING_EQUAL(plan.arms[2].spec, plan.arms[0].spec);
    CU_ASSERT_STRING_EQUAL(plan.arms[2].precision, precision);
    CU_ASSERT_EQUAL(plan.arms[2].control, CONTROL_DAMAGED);
    plan_release(&plan);
    arena_release(&mem);
}

static void test_the_damage_that_is_made(void) {
    static const char task[] =
        "{\"task\": \"mine\", \"data\": \"mine.jsonl\", \"prompt\": \"{{q}}\", \"answer\": "
        "\"{{a}}\", \"grader\": \"exact\", \"damaged\": \"kivi2\"}";
    eval_place p;
    buf text = {0};
    char task_file[120], data_file[120];
    eval_place_open(&p);
    expect_damage(&p, "synth_aime", p.data, "int4");
    (void)snprintf(task_file, sizeof task_file, "%s/mine.json", p.dir);
    (void)snprintf(data_file, sizeof data_file, "%s/mine.jsonl", p.dir);
    (void)buf_puts(&text, task);
    eval_write_text(task_file, &text);
    buf_clear(&text);
    (void)buf_puts(&text, "{\"q\": \"1?\", \"a\": \"1\"}\n{\"q\": \"2?\", \"a\": \"2\"}\n");
    eval_write_text(data_file, &text);
    expect_damage(&p, task_file, p.dir, "kivi2");
    buf_release(&text);
    eval_place_close(&p);
}

/* A damaged arm with other sampling is not compared, so it has no sensitivity. */
static void test_a_damaged_arm_can_be_refused(void) {
    eval_place p;
    char control[120];
    eval_place_open(&p);
    record_damaged(&p, PROBLEMS);
    eval_options o = eval_options_of(&p);
    (void)snprintf(control, sizeof control, "damaged=replay:%s/damaged.jsonl,top_p=0.5", p.dir);
    with_control(&o, control);
    results *r = eval_complete(&o);
    const js *row = js_at(results_section(r, "evals"), 0);
    const js *pair = js_at(js_get_array(row, "pairs"), 1);
    CU_ASSERT_STRING_EQUAL(js_get_str(pair, "control"), "damaged");
    CU_ASSERT_PTR_NULL(js_get(pair, "sensitivity"));
    CU_ASSERT_STRING_EQUAL(js_get_str(pair, "refused"), "top_p differs: 0.95 against 0.5");
    results_free(r);
    eval_place_close(&p);
}

CU_TestInfo tests_eval_controls[] = {
    {"impossible controls are refused", test_controls_that_cannot_be},
    {"a damaged arm shows which loss is detected", test_a_damaged_arm_shows_what_is_seen},
    {"the precision of the arm of damaged=auto", test_the_damage_that_is_made},
    {"a damaged arm with other sampling is not compared", test_a_damaged_arm_can_be_refused},
    CU_TEST_INFO_NULL,
};
