#include "harness/test/eval_place.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/term.h"
#include "harness/view/run_report.h"

void eval_write_text(const char *path, const buf *text) {
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, buf_str(text), text->len, NULL), SNAP_OK);
}

void eval_record_arm(const char *path, const char *arm, bool worse) {
    buf rows = {0};
    for (int i = 0; i < PROBLEMS; i++)
        for (int k = 0; k < SAMPLES; k++) {
            bool wrong = i % 3 == 0 && (k == 0 || worse);
            (void)buf_printf(&rows,
                             "{\"task\": \"synth_aime\", \"problem\": \"q%d\", \"sample\": %d, "
                             "\"arm\": \"%s\", \"response\": \"by way %d of %s, \\\\boxed{%d}\", "
                             "\"finish_reason\": \"stop\", \"completion_tokens\": %d}\n",
                             i, k, arm, k, arm, wrong ? 999 : i, 100 + i + (worse ? 10 : 0));
        }
    eval_write_text(path, &rows);
    buf_release(&rows);
}

void eval_place_open(eval_place *p) {
    *p = (eval_place){0};
    temp_folder_open(p->dir, "eval");
    (void)snprintf(p->data, sizeof p->data, "%s/problems.jsonl", p->dir);
    (void)snprintf(p->run, sizeof p->run, "%s/run", p->dir);
    (void)snprintf(p->samples, sizeof p->samples, "%s/samples.jsonl", p->run);
    (void)snprintf(p->arm_a, sizeof p->arm_a, "a=replay:%s/a.jsonl", p->dir);
    (void)snprintf(p->arm_b, sizeof p->arm_b, "b=replay:%s/b.jsonl", p->dir);
    buf rows = {0};
    for (int i = 0; i < PROBLEMS; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"is it %d?\", \"answer\": %d}\n",
                         i, i, i);
    eval_write_text(p->data, &rows);
    buf_release(&rows);
    eval_record_arm(strchr(p->arm_a, ':') + 1, "a", false);
    eval_record_arm(strchr(p->arm_b, ':') + 1, "b", true);
    term_set_quiet(true);
}

void eval_place_close(eval_place *p) {
    temp_folder_remove(p->dir);
}

const char *eval_in_run(const eval_place *p, const char *name) {
    static char path[120];
    (void)snprintf(path, sizeof path, "%s/%s", p->run, name);
    return path;
}

eval_options eval_options_of(const eval_place *p) {
    return (eval_options){.report = run_report_write,
                          .suite = "synth_aime",
                          .data = p->data,
                          .arms = {.items = {p->arm_a, p->arm_b}, .n = 2},
                          .out = p->run,
                          .samples = SAMPLES,
                          .seed = 1,
                          .temperature = -1};
}

snap_status eval_evaluate(const eval_options *o, results **out, snap_err *err) {
    return eval_run(o, NULL, out, err);
}

results *eval_complete(const eval_options *o) {
    results *r = NULL;
    snap_err err = {0};
    if (eval_evaluate(o, &r, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL(err.code, SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

void eval_expect(const eval_options *o, snap_status status, const char *message) {
    results *r = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL(eval_evaluate(o, &r, &err), status);
    if (!strstr(err.text, message))
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    results_free(r);
}

char *eval_text_of(const char *path) {
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
    return buf_steal(&text);
}

double eval_number(const js *o, const char *key) {
    return js_get_num(o, key, -1e9);
}

js *eval_pair_of(const results *r) {
    return js_at(js_get_array(js_at(results_section(r, "evals"), 0), "pairs"), 0);
}

snap_status eval_audit(const results *r) {
    verify_findings f = {0};
    verify_document(r, &f);
    snap_status st = verify_status(&f, NULL);
    verify_release(&f);
    return st;
}

void eval_write_problems(const eval_place *p, const char *wording, int add) {
    buf rows = {0};
    for (int i = 0; i < PROBLEMS; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"%s %d?\", \"answer\": %d}\n", i,
                         wording, i, i + add);
    eval_write_text(p->data, &rows);
    buf_release(&rows);
}
