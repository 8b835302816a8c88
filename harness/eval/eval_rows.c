#include "harness/eval/eval_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/eval/origins.h"
#include "harness/fetch/manifest.h"
#include "harness/record/provenance.h"

/* Fractions 0..1 are shown in percent; NAN becomes null. */
static js *percent(double fraction) {
    return js_new_num(100 * fraction);
}

static js *interval(stats_interval ci, double scale) {
    if (isnan(ci.lo) || isnan(ci.hi))
        return js_new_null();
    js *pair = js_new_array();
    if (pair && js_push_new(pair, js_new_num(scale * ci.lo)) &&
        js_push_new(pair, js_new_num(scale * ci.hi)))
        return pair;
    js_free(pair);
    return NULL;
}

/* What the constructors of rows end with. */
static js *complete(js *row, bool ok) {
    if (ok)
        return row;
    js_free(row);
    return NULL;
}

/* ---- arms ---- */

static bool set_arm_counts(js *o, const arm_score *s) {
    double failed = (double)s->failed / (double)s->samples;
    return js_set_int(o, "samples", (int64_t)s->samples) &&
           js_set_int(o, "scored", (int64_t)s->scored) &&
           js_set_int(o, "failed", (int64_t)s->failed) &&
           js_set_int(o, "identical_samples", (int64_t)s->identical) &&
           js_set_new(o, "truncated_pct", percent(s->truncated)) &&
           js_set_new(o, "empty_pct", percent(s->empty)) &&
           js_set_new(o, "unparsed_pct", percent(s->unparsed)) &&
           js_set_new(o, "failed_pct", percent(failed));
}

/* [{"k": 1, "pct": ...}, ...] */
static js *pass_rows(const arm_score *s) {
    js *list = js_new_array();
    bool ok = list != NULL;
    for (int i = 0; i < s->n_pass && ok; i++) {
        js *o = js_new_object();
        ok = js_push_new(list, o) && js_set_int(o, "k", s->pass[i].k) &&
             js_set_new(o, "pct", percent(s->pass[i].rate));
    }
    return complete(list, ok);
}

/* Which files answered. */
static bool set_origin(js *o, const eval_arm *arm, const results_journal *journal) {
    const js *origin = origins_find(journal, arm->name);
    const char *digest = js_get_str(origin, "checkpoint_sha256");
    const js *plugin = js_get_object(origin, "plugin");
    return provenance_set_path(o, "device", arm->device) &&
           js_set_new(o, "checkpoint_sha256", js_new_str(digest)) &&
           js_set_new(o, "plugin", plugin ? js_copy(plugin) : js_new_null());
}

static js *arm_row(const eval_arm *arm, const arm_score *s, const results_journal *journal) {
    js *o = js_new_object();
    bool http = strcmp(arm->kind, "http") == 0;
    return complete(
        o, o && js_set_str(o, "name", arm->name) && js_set_str(o, "generator", arm->kind) &&
               js_set_str(o, "endpoint", http ? arm->spec : NULL) &&
               provenance_set_path(o, "source", http ? NULL : arm->spec) &&
               provenance_set_path(o, "model", arm->model) &&
               js_set_str(o, "precision", arm->precision) && js_set_str(o, "origin", "measured") &&
               set_origin(o, arm, journal) && set_arm_counts(o, s) &&
               js_set_new(o, "accuracy_pct", percent(s->accuracy.mean)) &&
               js_set_new(o, "se_pct", percent(s->accuracy.se)) &&
               js_set_new(o, "ci95_pct", interval(s->ci95, 100)) &&
               js_set_new(o, "pass_at", pass_rows(s)) &&
               js_set_new(o, "maj_at_k_pct", percent(s->majority)) &&
               js_set_num(o, "sampling_variance", s->sampling_variance) &&
               js_set_num(o, "completion_tokens_mean", s->tokens_mean) &&
               js_set_num(o, "ttft_ms_median", s->ttft_ms_median) &&
               js_set_num(o, "itl_ms_median", s->itl_ms_median) &&
               js_set_num(o, "itl_ms_p99", s->itl_ms_p99) && js_set_num(o, "tok_s", s->tok_s) &&
               js_set_new(o, "client", clients_find(journal, arm->name)));
}

/* ---- pairs ---- */

static js *length_row(const pair_score *p) {
    if (!p->has_length)
        return js_new_null();
    js *o = js_new_object();
    return complete(o, o && js_set_num(o, "ratio", p->length.ratio) &&
                           js_set_new(o, "ci95_ratio", interval(p->length.ci95, 1)) &&
                           js_set_num(o, "delta_tokens", p->length.delta) &&
                           js_set_new(o, "ci95_tokens", interval(p->length.delta_ci95, 1)));
}

static js *discordant_row(const pair_score *p) {
    js *o = js_new_object();
    return complete(o, o && js_set_int(o, "baseline_only", (int64_t)p->diff.a_better) &&
                           js_set_int(o, "arm_only", (int64_t)p->diff.b_better));
}

static bool set_comparison(js *o, const pair_score *p) {
    return js_set_new(o, "delta_pp", percent(p->diff.delta)) &&
           js_set_new(o, "se_pp", percent(p->diff.se)) &&
           js_set_new(o, "ci90_pp", interval(p->diff.ci90, 100)) &&
           js_set_new(o, "ci95_pp", interval(p->diff.ci95, 100)) &&
           js_set_new(o, "bootstrap95_pp", interval(p->bootstrap95, 100)) &&
           js_set_str(o, "verdict", stats_verdict_name(p->diff.verdict)) &&
           js_set_num(o, "p_tost", p->diff.p_tost) &&
           js_set_num(o, "p_sign_flip", p->p_sign_flip) &&
           js_set_num(o, "p_mcnemar", p->p_mcnemar) && js_set_num(o, "p_holm", p->p_holm) &&
           js_set_new(o, "discordant", discordant_row(p)) && js_set_new(o, "length", length_row(p));
}

/* What a damaged arm says of the problems; NULL for any other. */
static const char *sensitivity(const eval_plan *plan, const pair_score *p) {
    if (plan->arms[p->arm].control != CONTROL_DAMAGED || p->refused[0])
        return NULL;
    return stats_detects_loss(&p->diff) ? "sees damage" : "blind";
}

static bool set_no_comparison(js *o, const char *why) {
    static const char *const keys[] = {"delta_pp",       "se_pp",   "ci90_pp",    "ci95_pp",
                                       "bootstrap95_pp", "verdict", "p_tost",     "p_sign_flip",
                                       "p_mcnemar",      "p_holm",  "discordant", "length"};
    bool ok = js_set_str(o, "refused", why);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && ok; i++)
        ok = js_set_new(o, keys[i], js_new_null());
    return ok;
}

static js *pair_row(const eval_plan *plan, const pair_score *p) {
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "baseline", plan->arms[p->baseline].name) &&
              js_set_str(o, "arm", plan->arms[p->arm].name) &&
              js_set_str(o, "control", eval_control_name(plan->arms[p->arm].control)) &&
              js_set_str(o, "sensitivity", sensitivity(plan, p)) &&
              js_set_int(o, "problems", (int64_t)p->diff.n) &&
              js_set_num(o, "margin_pp", 100 * plan->margin) &&
              js_set_new(o, "refused", js_new_null());
    ok = ok && (p->refused[0] ? set_no_comparison(o, p->refused) : set_comparison(o, p));
    return complete(o, ok);
}

/* ---- the task ---- */

static js *dataset_row(const task_set *set) {
    js *o = js_new_object();
    const char *slash = strrchr(set->file, '/');
    return complete(o, o && js_set_str(o, "file", slash ? slash + 1 : set->file) &&
                           js_set_str(o, "sha256", set->sha256) &&
                           js_set_int(o, "rows", (int64_t)set->rows) &&
                           js_set_str(o, "manifest", manifest_check(set->task->name, set->sha256)));
}

static js *sampling_row(gen_sampling s) {
    js *o = js_new_object();
    return complete(o, o && js_set_num(o, "temperature", s.temperature) &&
                           js_set_num(o, "top_p", s.top_p) && js_set_int(o, "top_k", s.top_k) &&
                           js_set_int(o, "max_tokens", s.max_tokens) &&
                           js_set_int(o, "seed", (int64_t)s.seed));
}

/* "ifeval", "ifeval:prompt_loose". */
static bool set_name(js *o, const task_set *set, int metric) {
    const char *name = set->grader->metrics[metric];
    char full[120];
    (void)snprintf(full, sizeof full, "%s%s%s", set->task->name, metric ? ":" : "",
                   metric ? name : "");
    return js_set_str(o, "task", full) && (!name || js_set_str(o, "metric", name));
}

js *eval_row(const eval_plan *plan, size_t index, int metric, const task_score *score,
             const results_journal *journal) {
    const eval_task *t = &plan->tasks[index];
    if (metric)
        score = &score->also[metric - 1];
    js *o = js_new_object();
    bool ok = o && js_set_new(o, "arms", js_new_array()) &&
              js_set_new(o, "pairs", js_new_array()) && set_name(o, &t->set, metric) &&
              js_set_new(o, "dataset", dataset_row(&t->set)) &&
              js_set_str(o, "prompt_sha256", t->set.prompt_sha256) &&
              js_set_str(o, "grader", t->set.grader->id) &&
              js_set_new(o, "sampling", sampling_row(t->sampling)) &&
              js_set_int(o, "problems", (int64_t)t->set.n) &&
              js_set_int(o, "samples_per_problem", t->samples);
    for (size_t a = 0; a < plan->n_arms && ok; a++)
        ok =
            js_push_new(js_get_array(o, "arms"), arm_row(&plan->arms[a], &score->arms[a], journal));
    for (size_t a = 1; a < plan->n_arms && ok; a++)
        ok = js_push_new(js_get_array(o, "pairs"), pair_row(plan, &score->pairs[a - 1]));
    return complete(o, ok);
}
