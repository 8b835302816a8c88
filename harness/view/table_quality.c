#include <math.h>
#include <string.h>

#include "harness/view/pen.h"

static void put_verdict(pen *p, const pair_record *pair) {
    if (pair->refused[0])
        pen_printf(p, "refused: %s", pair->refused);
    else if (pair->withheld[0] && !pair->sensitivity[0])
        pen_printf(p, "%s: %s", pair->verdict, pair->withheld);
    else
        pen_text(p, pair->sensitivity[0] ? pair->sensitivity : pair->verdict);
}

static void put_comparison(pen *p, const pair_record *pair) {
    const char *why = "";
    if (strcmp(pair->control, "seeds") == 0)
        why = " (control: other seeds)";
    else if (strcmp(pair->control, "damaged") == 0)
        why = " (control: damaged)";
    const char *declared = pair->declared;
    pen_printf(p, "%s vs %s%s%s%s%s", pair->arm, pair->baseline, why,
               declared[0] ? " (requests differ in " : "", declared, declared[0] ? ")" : "");
}

static void put_discordant(pen *p, const pair_record *pair) {
    if (pair->discordant.exists)
        pen_printf(p, "%lld / %lld", (long long)pair->discordant.baseline_only,
                   (long long)pair->discordant.arm_only);
    else
        pen_text(p, "");
}

static void put_accuracy(pen *p, const eval_record *e, const char *arm) {
    const arm_record *a = e ? eval_arm_of(e, arm) : NULL;
    pen_fixed(p, a ? a->accuracy_pct : (double)NAN, 2);
}

/* @e: the task; NULL for a comparison over several tasks */
static void put_pair(pen *p, const report_model *m, int file, const eval_record *e,
                     const pair_record *pair) {
    if (e)
        pen_task(p, e);
    else
        pen_printf(p, "all %zu tasks", pair->tasks.n);
    put_comparison(p, pair);
    pen_fixed(p, (double)pair->problems, 0);
    pen_fixed(p, e ? (double)e->samples_per_problem : (double)NAN, 0);
    put_accuracy(p, e, pair->baseline);
    put_accuracy(p, e, pair->arm);
    pen_signed(p, pair->delta_pp, 2);
    pen_interval(p, pair->ci90_pp, 2);
    pen_interval(p, pair->ci95_pp, 2);
    pen_fixed(p, pair->margin_pp, 1);
    put_verdict(p, pair);
    pen_fixed(p, pair->detectable_pp, 2);
    pen_p(p, pair->p_tost);
    pen_p(p, pair->p_holm);
    pen_p(p, pair->p_sign_flip);
    put_discordant(p, pair);
    pen_fixed(p, pair->length.ratio, 3);
    pen_p(p, pair->p_failed);
    pen_p(p, pair->p_repaired);
    if (m->n_files > 1)
        pen_file(p, m, file);
}

#define PARITY_NOTE                                                                                \
    "Accuracies are in percent, Δ and the margin in percentage points. Differences are paired "   \
    "by problem. Equivalent: both of two one-sided tests give p < 5 % (p TOST); then the 90 % "    \
    "interval lies within ±margin. Not shown: the data do not decide. Different: the 95 % "       \
    "interval excludes 0. Loss seen: a true loss of so many points would have been found with "    \
    "probability 90 %. All tasks: the mean difference over all problems, each of which "           \
    "counts the same. An arm that lost too many samples is not called equivalent. p failed and "   \
    "p repaired test whether the arms differ in failed or repaired answers."

static bool any_control(const report_model *m) {
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->pairs.n; k++)
            if (m->evals[i].row->pairs.at[k].control[0])
                return true;
    return false;
}

static const char *parity_note(const report_model *m) {
    return any_control(m) ? PARITY_NOTE
               " Controls: other seeds show how large differences by chance are. A damaged arm "
               "shows whether these problems and samples can detect damage: 'sees damage' if "
               "its 95 % interval lies below 0, 'blind' if not."
                          : PARITY_NOTE;
}

bool report_table_parity(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "parity",
                 .caption = "Quality parity: paired differences of accuracy",
                 .note = parity_note(m),
                 .columns = {{"task", "", TABLE_TEXT, true},
                             {"comparison", "", TABLE_TEXT, true},
                             {"n", "", TABLE_NUMBER, true},
                             {"K", "", TABLE_NUMBER, true},
                             {"baseline", "accuracy, %", TABLE_NUMBER, true},
                             {"arm", "accuracy, %", TABLE_NUMBER, true},
                             {"Δ", "", TABLE_NUMBER, true},
                             {"90 % CI", "", TABLE_NUMBER, true},
                             {"95 % CI", "", TABLE_NUMBER, false},
                             {"margin", "", TABLE_NUMBER, true},
                             {"verdict", "", TABLE_VERDICT, true},
                             {"loss seen", "", TABLE_NUMBER, true},
                             {"p TOST", "", TABLE_NUMBER, false},
                             {"p Holm", "", TABLE_NUMBER, false},
                             {"p sign flip", "", TABLE_NUMBER, false},
                             {"baseline / arm", "problems better in", TABLE_NUMBER, false},
                             {"length ratio", "", TABLE_NUMBER, false},
                             {"p failed", "", TABLE_NUMBER, false},
                             {"p repaired", "", TABLE_NUMBER, false},
                             {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    size_t n = m->n_pooled;
    for (size_t i = 0; i < m->n_evals; i++)
        n += m->evals[i].row->pairs.n;
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->pairs.n; k++)
            put_pair(&p, m, m->evals[i].file, m->evals[i].row, &m->evals[i].row->pairs.at[k]);
    for (size_t i = 0; i < m->n_pooled; i++)
        put_pair(&p, m, m->pooled[i].file, NULL, m->pooled[i].row);
    return !p.failed;
}

static bool any_title(const report_model *m) {
    for (size_t i = 0; i < m->n_evals; i++)
        if (m->evals[i].row->title[0])
            return true;
    return false;
}

static void put_eval_arm(pen *p, const report_model *m, const report_eval *from,
                         const arm_record *a, bool titled) {
    const eval_record *e = from->row;
    pen_task(p, e);
    pen_text(p, a->name);
    pen_text(p, a->model);
    pen_fixed(p, a->accuracy_pct, 2);
    pen_range(p, a->ci95_pct, 2);
    pen_fixed(p, arm_pass_of_all(a), 2);
    pen_fixed(p, a->maj_at_k_pct, 2);
    pen_fixed(p, (double)a->scored, 0);
    pen_fixed(p, a->truncated_pct, 2);
    pen_fixed(p, a->empty_pct, 2);
    pen_fixed(p, a->unparsed_pct, 2);
    pen_fixed(p, a->failed_pct, 2);
    pen_fixed(p, a->repaired_pct, 2);
    pen_fixed(p, a->completion_tokens_mean, 0);
    pen_fixed(p, record_count(a->identical_samples), 0);
    pen_fixed(p, a->ttft_ms_median, 1);
    pen_fixed(p, a->itl_ms_median, 1);
    pen_fixed(p, a->tok_s, 1);
    pen_fixed(p, a->client.lag_ms_p99, 2);
    pen_text(p, strcmp(a->origin, "reported") == 0 ? "reported" : a->generator);
    if (m->n_files > 1)
        pen_file(p, m, from->file);
    if (titled)
        pen_text(p, e->title);
}

bool report_table_arms(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "arms",
        .caption = "Accuracy of each arm, and the outcome of its answers",
        .note =
            "Truncated, empty and unparsed answers count as wrong. Failed requests are left out "
            "of the accuracy; their percentage is of all samples. A repaired answer had text that "
            "is not Unicode; it is judged with U+FFFD in its place. Accuracy is the mean over "
            "problems of the mean of their K samples (mean@K). The client lag is the time from "
            "the arrival of bytes until the client handles them. TTFT and ITL include it. Arms "
            "that shared a server or processor have no times.",
        .columns = {{"task", "", TABLE_TEXT, true},
                    {"arm", "", TABLE_TEXT, true},
                    {"model", "", TABLE_TEXT, false},
                    {"accuracy", "", TABLE_NUMBER, true},
                    {"95 % CI", "", TABLE_NUMBER, false},
                    {"pass@K", "", TABLE_NUMBER, false},
                    {"maj@K", "", TABLE_NUMBER, false},
                    {"scored", "", TABLE_NUMBER, true},
                    {"truncated", "% of answers", TABLE_NUMBER, true},
                    {"empty", "% of answers", TABLE_NUMBER, true},
                    {"unparsed", "% of answers", TABLE_NUMBER, true},
                    {"failed", "% of answers", TABLE_NUMBER, true},
                    {"repaired", "% of answers", TABLE_NUMBER, true},
                    {"mean tokens", "", TABLE_NUMBER, true},
                    {"identical samples", "", TABLE_NUMBER, false},
                    {"median TTFT, ms", "", TABLE_NUMBER, false},
                    {"median ITL, ms", "", TABLE_NUMBER, false},
                    {"tokens/s", "", TABLE_NUMBER, false},
                    {"client lag p99, ms", "", TABLE_NUMBER, false},
                    {"generator", "", TABLE_TEXT, false},
                    {"file", "", TABLE_TEXT, false},
                    {"title of the task", "", TABLE_TEXT, false}}};
    bool titled = any_title(m);
    pen_drop_last_unless(t, titled);
    pen_drop_unless(t, "file", m->n_files > 1);
    size_t n = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        n += m->evals[i].row->arms.n;
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++)
            put_eval_arm(&p, m, &m->evals[i], &m->evals[i].row->arms.at[k], titled);
    return !p.failed;
}

bool report_table_fidelity(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "fidelity",
        .caption = "Numerical error against FP64 attention without quantisation",
        .note = "Relative L2 error, RMSE and 1 − cosine similarity of the output, and the largest "
                "absolute error of the log-sum-exp.",
        .columns = {{"configuration", "", TABLE_TEXT, true},
                    {"computed by", "", TABLE_TEXT, true},
                    {"input", "", TABLE_TEXT, true},
                    {"context", "", TABLE_NUMBER, true},
                    {"heads", "", TABLE_NUMBER, true},
                    {"relative L2", "", TABLE_NUMBER, true},
                    {"RMSE", "", TABLE_NUMBER, true},
                    {"1 − cosine", "", TABLE_NUMBER, true},
                    {"LSE error", "", TABLE_NUMBER, true},
                    {"max error", "", TABLE_NUMBER, false},
                    {"rows", "", TABLE_NUMBER, false},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, m->n_fidelity))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_fidelity; i++) {
        const fidelity_record *f = m->fidelity[i].row;
        pen_text(&p, f->config);
        pen_text(&p, f->source);
        pen_text(&p, f->distribution);
        pen_context(&p, f->context);
        pen_fixed(&p, (double)f->heads, 0);
        pen_science(&p, f->rel_l2);
        pen_science(&p, f->rmse);
        pen_science(&p, f->cosine_diff);
        pen_science(&p, f->lse_error);
        pen_science(&p, f->max_abs);
        pen_fixed(&p, (double)f->rows, 0);
        if (m->n_files > 1)
            pen_file(&p, m, m->fidelity[i].file);
    }
    return !p.failed;
}
