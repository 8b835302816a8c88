/* verify_quality.c - accuracies, their comparisons, and the verdicts of gates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/audit/audit.h"
#include "harness/measure/rank.h"

static const double kSlack = 1e-6; /* points */

static const char *text_of(const js *o, const char *key) {
    const char *s = js_get_str(o, key);
    return s ? s : "";
}

static bool interval_of(const js *o, const char *key, double out[2]) {
    const js *a = js_get_array(o, key);
    for (size_t i = 0; i < 2; i++)
        out[i] = js_len(a) == 2 ? js_num(js_at(a, i)) : (double)NAN;
    return js_len(a) == 2;
}

static bool lies_in(double x, const double ci[2]) {
    return x >= ci[0] - kSlack && x <= ci[1] + kSlack;
}

/* ---- evals ---- */

static void check_arm(const js *arm, const char *where, verify_findings *f) {
    int64_t samples = js_get_int(arm, "samples", 0), scored = js_get_int(arm, "scored", 0);
    double ci[2], accuracy = js_get_num(arm, "accuracy_pct", (double)NAN);
    f->checks += 2;
    if (scored + js_get_int(arm, "failed", 0) > samples)
        verify_add(f, VERIFY_FORM, where, "%s: more scored and failed samples than samples",
                   text_of(arm, "name"));
    if (!isnan(accuracy) && interval_of(arm, "ci95_pct", ci) && !lies_in(accuracy, ci))
        verify_add(f, VERIFY_FORM, where, "%s: an accuracy of %.2f outside its interval",
                   text_of(arm, "name"), accuracy);
    if (!isnan(accuracy) && scored == 0)
        verify_add(f, VERIFY_CORRECTNESS, where, "%s: an accuracy without a scored sample",
                   text_of(arm, "name"));
}

/* A verdict must follow from its intervals and margin. */
static void check_verdict(const js *pair, const char *where, verify_findings *f) {
    double ci90[2], ci95[2], margin = js_get_num(pair, "margin_pp", 0);
    const char *verdict = text_of(pair, "verdict");
    bool has90 = interval_of(pair, "ci90_pp", ci90), has95 = interval_of(pair, "ci95_pp", ci95);
    f->checks++;
    if (strcmp(verdict, "equivalent") == 0 && has90 &&
        (ci90[0] < -margin - kSlack || ci90[1] > margin + kSlack))
        verify_add(f, VERIFY_CORRECTNESS, where,
                   "'equivalent' with a 90 %% interval of [%.2f, %.2f] and a margin of %.2f",
                   ci90[0], ci90[1], margin);
    if (strcmp(verdict, "different") == 0 && has95 && ci95[0] < -kSlack && ci95[1] > kSlack)
        verify_add(f, VERIFY_CORRECTNESS, where, "'different' with a 95 %% interval around 0");
    if (has90 && has95 && (ci90[0] < ci95[0] - kSlack || ci90[1] > ci95[1] + kSlack))
        verify_add(f, VERIFY_FORM, where, "the 90 %% interval is wider than the 95 %% one");
}

static bool has_arm(const js *eval, const char *name) {
    const js *arms = js_get_array(eval, "arms");
    for (size_t i = 0; i < js_len(arms); i++)
        if (text_equal(js_get_str(js_at(arms, i), "name"), name))
            return true;
    return false;
}

static void check_pairs(const js *eval, const char *where, verify_findings *f) {
    const js *pairs = js_get_array(eval, "pairs");
    for (size_t i = 0; i < js_len(pairs); i++) {
        const js *pair = js_at(pairs, i);
        f->checks++;
        if (!has_arm(eval, text_of(pair, "arm")) || !has_arm(eval, text_of(pair, "baseline")))
            verify_add(f, VERIFY_FORM, where, "a comparison of arms that are not there");
        check_verdict(pair, where, f);
    }
}

static void check_eval(const js *eval, const char *where, verify_findings *f) {
    const js *arms = js_get_array(eval, "arms");
    for (size_t i = 0; i < js_len(arms); i++)
        check_arm(js_at(arms, i), where, f);
    check_pairs(eval, where, f);
    if (text_equal(js_get_str(js_get_object(eval, "dataset"), "manifest"), "differs"))
        verify_add(f, VERIFY_NOTE, where, "%s: the data are not the manifest's",
                   text_of(eval, "task"));
}

/* ---- verdicts of a gate ---- */

static void check_gate_row(const js *row, const char *where, verify_findings *f) {
    const js *x = js_get_array(row, "log_ratios");
    double values[RANK_MAX], said = js_get_num(row, "ratio", (double)NAN);
    size_t n = js_len(x);
    rank_estimate e;
    if (!n || n > RANK_MAX)
        return;
    for (size_t i = 0; i < n; i++)
        values[i] = js_num(js_at(x, i));
    f->checks++;
    if (rank_centre(values, n, 0.05, &e, NULL) != SNAP_OK)
        f->failed = true;
    else if (!isnan(said) && fabs(said - exp(e.centre)) > 1e-6 * said)
        verify_add(f, VERIFY_FORM, where, "a ratio of %.6g; its sessions say %.6g", said,
                   exp(e.centre));
}

void verify_quality(const results *r, verify_findings *f) {
    const js *evals = results_section(r, "evals"), *verdicts = results_section(r, "verdicts");
    char where[32];
    for (size_t i = 0; i < js_len(evals); i++) {
        (void)snprintf(where, sizeof where, "evals[%zu]", i);
        check_eval(js_at(evals, i), where, f);
    }
    for (size_t i = 0; i < js_len(verdicts); i++) {
        (void)snprintf(where, sizeof where, "verdicts[%zu]", i);
        check_gate_row(js_at(verdicts, i), where, f);
    }
}
