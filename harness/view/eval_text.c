#include "harness/view/eval_text.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "harness/record/run.h"
#include "harness/view/writers.h"

static void cell_difference(table *t, double pp) {
    if (isnan(pp))
        table_cell(t, "-");
    else
        table_cell(t, "%+.2f", pp);
}

static void cell_interval(table *t, const double ci[2], int decimals) {
    if (isnan(ci[0]) || isnan(ci[1]))
        table_cell(t, "-");
    else
        table_cell(t, "[%+.*f, %+.*f]", decimals, ci[0], decimals, ci[1]);
}

static void arm_cells(table *t, const arm_record *a) {
    table_cell(t, "%s", a->name);
    table_number(t, a->accuracy_pct, 2);
    if (isnan(a->ci95_pct[0]) || isnan(a->ci95_pct[1]))
        table_cell(t, "-");
    else
        table_cell(t, "%.1f..%.1f", a->ci95_pct[0], a->ci95_pct[1]);
    table_number(t, arm_pass_of_all(a), 2);
    table_number(t, a->maj_at_k_pct, 2);
    table_number(t, a->truncated_pct, 1);
    table_number(t, a->empty_pct, 1);
    table_number(t, a->unparsed_pct, 1);
    table_number(t, a->failed_pct, 1);
    table_number(t, a->repaired_pct, 1);
    table_number(t, a->completion_tokens_mean, 0);
    table_number(t, a->ttft_ms_median, 0);
    table_number(t, a->itl_ms_median, 1);
    table_number(t, a->tok_s, 1);
    table_number(t, record_count(a->samples), 0);
}

static snap_status arms_table(const eval_record *row, bool color, buf *out, snap_err *err) {
    static const char *const heads[] = {"arm",      "accuracy %",  "95 % CI", "pass@K %",
                                        "maj@K %",  "truncated %", "empty %", "unparsed %",
                                        "failed %", "repaired %",  "tokens",  "ttft ms",
                                        "itl ms",   "tok/s",       "samples"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (size_t i = 0; i < row->arms.n; i++)
        arm_cells(&t, &row->arms.at[i]);
    snap_status st = write_text(&t, color, out, err);
    for (size_t i = 0; i < row->arms.n; i++)
        if (row->arms.at[i].shared_with[0]) {
            text_append_shown_printf(out, "no times: %s and %s shared a server or processor",
                                     row->arms.at[i].name, row->arms.at[i].shared_with);
            (void)buf_puts(out, "\n");
            break;
        }
    table_release(&t);
    return st;
}

/* The lengths of the reasoning and of the answers; nothing if no arm has the counts. */
static snap_status reasoning_table(const eval_record *row, bool color, buf *out, snap_err *err) {
    static const char *const heads[] = {"arm", "reasoning tokens", "answer tokens",
                                        "reasoning characters", "answer characters"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    size_t shown = 0;
    for (size_t i = 0; i < row->arms.n; i++) {
        const arm_record *a = &row->arms.at[i];
        if (isnan(a->reasoning_tokens_mean) && isnan(a->reasoning_chars_mean))
            continue;
        shown++;
        table_cell(&t, "%s", a->name);
        table_number(&t, a->reasoning_tokens_mean, 0);
        table_number(&t, a->answer_tokens_mean, 0);
        table_number(&t, a->reasoning_chars_mean, 0);
        table_number(&t, a->answer_chars_mean, 0);
    }
    (void)buf_puts(out, shown ? "\n" : "");
    snap_status st = shown ? write_text(&t, color, out, err) : SNAP_OK;
    table_release(&t);
    return st;
}

/* The second opinions of a judge model; nothing if no arm could get one. */
static snap_status opinions_table(const eval_record *row, bool color, buf *out, snap_err *err) {
    static const char *const heads[] = {"second opinions", "undecided", "asked",
                                        "accepted",        "refused",   "no opinion",
                                        "accuracy %",      "pp",        "95 % CI"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    size_t shown = 0;
    for (size_t i = 0; i < row->arms.n; i++) {
        const opinion_record *o = &row->arms.at[i].opinions;
        const pair_record *pair = NULL;
        for (size_t k = 0; k < row->pairs.n; k++)
            if (strcmp(row->pairs.at[k].arm, row->arms.at[i].name) == 0)
                pair = &row->pairs.at[k];
        if (!o->exists)
            continue;
        shown++;
        table_cell(&t, "%s", row->arms.at[i].name);
        table_number(&t, record_count(o->undecided), 0);
        table_number(&t, record_count(o->asked), 0);
        table_number(&t, record_count(o->accepted), 0);
        table_number(&t, record_count(o->refused), 0);
        table_number(&t, record_count(o->none), 0);
        table_number(&t, o->accuracy_pct, 2);
        cell_difference(&t, pair ? pair->opinions.delta_pp : (double)NAN);
        cell_interval(&t, pair ? pair->opinions.ci95_pp : (const double[]){NAN, NAN}, 2);
    }
    (void)buf_puts(out, shown ? "\n" : "");
    snap_status st = shown ? write_text(&t, color, out, err) : SNAP_OK;
    table_release(&t);
    return st;
}

/* The kind of a control arm, for the table; "" for any other arm. */
static const char *purpose(const pair_record *pair) {
    if (strcmp(pair->control, "seeds") == 0)
        return " (noise floor)";
    return strcmp(pair->control, "damaged") == 0 ? " (damaged)" : "";
}

static void pair_cells(table *t, const pair_record *p) {
    table_cell(t, "%s - %s%s", p->arm, p->baseline, purpose(p));
    cell_difference(t, p->delta_pp);
    cell_interval(t, p->ci90_pp, 2);
    cell_interval(t, p->ci95_pp, 2);
    table_cell(t, "%s", p->sensitivity[0] ? p->sensitivity : p->verdict);
    table_number(t, p->p_tost, 3);
    table_number(t, p->p_holm, 3);
    table_number(t, p->p_sign_flip, 3);
    if (p->discordant.exists)
        table_cell(t, "%lld/%lld", (long long)p->discordant.baseline_only,
                   (long long)p->discordant.arm_only);
    else
        table_cell(t, "-");
    table_number(t, p->length.ratio, 3);
    cell_interval(t, p->length.ci95_tokens, 0);
}

/* Writes a line about a pair of arms that is not compared, or that cannot be "equivalent". */
static void put_note(const pair_record *p, const char *what, const char *why, buf *out) {
    text_append_shown_printf(out, "%s - %s: %s, %s", p->arm, p->baseline, what, why);
    (void)buf_puts(out, "\n");
}

static snap_status pairs_table(const pair_list *pairs, bool color, buf *out, snap_err *err) {
    static const char *const heads[] = {"difference",   "pp",       "90 % CI",       "95 % CI",
                                        "verdict",      "p TOST",   "p Holm",        "p sign flip",
                                        "worse/better", "tokens x", "tokens 95 % CI"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    buf notes = {0};
    size_t shown = 0;
    for (size_t i = 0; i < pairs->n; i++) {
        const pair_record *p = &pairs->at[i];
        if (p->refused[0])
            put_note(p, "not compared", p->refused, &notes);
        else if (++shown)
            pair_cells(&t, p);
        if (strcmp(p->verdict, "equivalent") == 0 && isfinite(p->detectable_pp))
            text_append_shown_printf(
                &notes,
                "%s - %s: a loss of %.2f points would have been seen with probability %.0f %%",
                p->arm, p->baseline, p->detectable_pp, 100 * PAIR_DETECTS);
        if (strcmp(p->verdict, "equivalent") == 0 && isfinite(p->detectable_pp))
            (void)buf_puts(&notes, "\n");
        if (p->withheld[0])
            put_note(p, "'equivalent' cannot be shown", p->withheld, &notes);
        if (p->declared[0])
            put_note(p, "the requests differ as --may-differ allows", p->declared, &notes);
    }
    (void)buf_puts(out, shown ? "\n" : "");
    snap_status st = shown ? write_text(&t, color, out, err) : SNAP_OK;
    (void)buf_puts(out, buf_str(&notes));
    buf_release(&notes);
    table_release(&t);
    return st;
}

static snap_status task_view(const eval_record *row, bool color, buf *out, snap_err *err) {
    (void)buf_puts(out, color ? "\033[1m" : "");
    text_append_shown(out, row->task);
    (void)buf_puts(out, color ? "\033[0m" : "");
    text_append_shown_printf(out, ": %lld problems x %lld samples, T %g, top_p %g, grader %s",
                             (long long)row->problems, (long long)row->samples_per_problem,
                             row->sampling.temperature, row->sampling.top_p, row->grader);
    if (row->pairs.n)
        (void)buf_printf(out, ", margin %g pp", row->pairs.at[0].margin_pp);
    if (eval_data_mark(row)[0])
        (void)buf_printf(out, ", %s", eval_data_mark(row));
    if (row->judge.exists)
        text_append_shown_printf(out, ", judge model %s",
                                 row->judge.model[0] ? row->judge.model : row->judge.source);
    (void)buf_puts(out, "\n\n");
    snap_status st = arms_table(row, color, out, err);
    if (st == SNAP_OK)
        st = reasoning_table(row, color, out, err);
    if (st == SNAP_OK)
        st = pairs_table(&row->pairs, color, out, err);
    return st == SNAP_OK ? opinions_table(row, color, out, err) : st;
}

static snap_status pooled_view(const pair_list *pairs, bool color, buf *out, snap_err *err) {
    const pair_record *first = &pairs->at[0];
    (void)buf_printf(out,
                     "\n%sall %zu tasks together%s: %lld problems, each counts the same, margin "
                     "%g pp\n",
                     color ? "\033[1m" : "", first->tasks.n, color ? "\033[0m" : "",
                     (long long)first->problems, first->margin_pp);
    return pairs_table(pairs, color, out, err);
}

snap_status eval_view(const results *r, bool color, buf *out, snap_err *err) {
    arena mem = {0};
    run_record run;
    snap_status st = SNAP_OK;
    TRY(run_read(&run, r, &mem, err));
    for (size_t i = 0; i < run.evals.n; i++) {
        (void)buf_puts(out, i ? "\n" : "");
        TRY(task_view(&run.evals.at[i], color, out, err));
    }
    if (run.pooled.n)
        TRY(pooled_view(&run.pooled, color, out, err));
    TRY(buf_check(out, "a table", err));
cleanup:
    arena_release(&mem);
    return st;
}
