#include "harness/view/eval_text.h"

#include <math.h>

#include "base/text.h"
#include "harness/view/writers.h"

static double number(const js *o, const char *key) {
    return js_get_num(o, key, (double)NAN);
}

static void cell_difference(table *t, double pp) {
    if (isnan(pp))
        table_cell(t, "-");
    else
        table_cell(t, "%+.2f", pp);
}

static void cell_interval(table *t, const js *ci, int decimals) {
    if (js_len(ci) == 2)
        table_cell(t, "[%+.*f, %+.*f]", decimals, js_num(js_at(ci, 0)), decimals,
                   js_num(js_at(ci, 1)));
    else
        table_cell(t, "-");
}

/* pass@K of all samples of a problem; NAN where there is one only. */
static double last_pass(const js *arm) {
    const js *pass = js_get_array(arm, "pass_at");
    return js_len(pass) > 1 ? number(js_at(pass, js_len(pass) - 1), "pct") : (double)NAN;
}

static void arm_cells(table *t, const js *arm) {
    const js *ci = js_get_array(arm, "ci95_pct");
    table_cell(t, "%s", js_get_str(arm, "name"));
    table_number(t, number(arm, "accuracy_pct"), 2);
    if (js_len(ci) == 2)
        table_cell(t, "%.1f..%.1f", js_num(js_at(ci, 0)), js_num(js_at(ci, 1)));
    else
        table_cell(t, "-");
    table_number(t, last_pass(arm), 2);
    table_number(t, number(arm, "maj_at_k_pct"), 2);
    table_number(t, number(arm, "truncated_pct"), 1);
    table_number(t, number(arm, "empty_pct"), 1);
    table_number(t, number(arm, "unparsed_pct"), 1);
    table_number(t, number(arm, "failed_pct"), 1);
    table_number(t, number(arm, "completion_tokens_mean"), 0);
    table_number(t, number(arm, "ttft_ms_median"), 0);
    table_number(t, number(arm, "itl_ms_median"), 1);
    table_number(t, number(arm, "tok_s"), 1);
    table_number(t, number(arm, "samples"), 0);
}

static snap_status arms_table(const js *row, bool color, buf *out, snap_err *err) {
    static const char *const heads[] = {
        "arm",        "accuracy %", "95 % CI", "pass@K %", "maj@K %", "truncated %", "empty %",
        "unparsed %", "failed %",   "tokens",  "ttft ms",  "itl ms",  "tok/s",       "samples"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    const js *arms = js_get_array(row, "arms");
    for (size_t i = 0; i < js_len(arms); i++)
        arm_cells(&t, js_at(arms, i));
    snap_status st = write_text(&t, color, out, err);
    table_release(&t);
    return st;
}

/* What a control is there for; "" for any other arm. */
static const char *purpose(const js *pair) {
    if (text_equal(js_get_str(pair, "control"), "seeds"))
        return " (noise floor)";
    return text_equal(js_get_str(pair, "control"), "damaged") ? " (damaged)" : "";
}

static void pair_cells(table *t, const js *pair) {
    const js *odd = js_get_object(pair, "discordant"), *length = js_get_object(pair, "length");
    const char *sees = js_get_str(pair, "sensitivity");
    table_cell(t, "%s - %s%s", js_get_str(pair, "arm"), js_get_str(pair, "baseline"),
               purpose(pair));
    cell_difference(t, number(pair, "delta_pp"));
    cell_interval(t, js_get_array(pair, "ci90_pp"), 2);
    cell_interval(t, js_get_array(pair, "ci95_pp"), 2);
    table_cell(t, "%s", sees ? sees : js_get_str(pair, "verdict"));
    table_number(t, number(pair, "p_tost"), 3);
    table_number(t, number(pair, "p_holm"), 3);
    table_number(t, number(pair, "p_sign_flip"), 3);
    table_cell(t, "%lld/%lld", (long long)js_get_int(odd, "baseline_only", 0),
               (long long)js_get_int(odd, "arm_only", 0));
    table_number(t, number(length, "ratio"), 3);
    cell_interval(t, js_get_array(length, "ci95_tokens"), 0);
}

static snap_status pairs_table(const js *row, bool color, buf *out, snap_err *err) {
    static const char *const heads[] = {"difference",   "pp",       "90 % CI",       "95 % CI",
                                        "verdict",      "p TOST",   "p Holm",        "p sign flip",
                                        "worse/better", "tokens x", "tokens 95 % CI"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    const js *pairs = js_get_array(row, "pairs");
    buf refused = {0};
    size_t shown = 0;
    for (size_t i = 0; i < js_len(pairs); i++) {
        const js *pair = js_at(pairs, i);
        const char *why = js_get_str(pair, "refused");
        if (why)
            (void)buf_printf(&refused, "%s - %s: not compared, %s\n", js_get_str(pair, "arm"),
                             js_get_str(pair, "baseline"), why);
        else if (++shown)
            pair_cells(&t, pair);
    }
    (void)buf_puts(out, shown ? "\n" : "");
    snap_status st = shown ? write_text(&t, color, out, err) : SNAP_OK;
    (void)buf_puts(out, buf_str(&refused));
    buf_release(&refused);
    table_release(&t);
    return st;
}

static snap_status task_view(const js *row, bool color, buf *out, snap_err *err) {
    const js *sampling = js_get_object(row, "sampling"), *pairs = js_get_array(row, "pairs");
    (void)buf_printf(out, "%s%s%s: %lld problems x %lld samples, T %g, top_p %g, grader %s",
                     color ? "\033[1m" : "", js_get_str(row, "task"), color ? "\033[0m" : "",
                     (long long)js_get_int(row, "problems", 0),
                     (long long)js_get_int(row, "samples_per_problem", 0),
                     number(sampling, "temperature"), number(sampling, "top_p"),
                     js_get_str(row, "grader"));
    if (js_len(pairs))
        (void)buf_printf(out, ", margin %g pp", number(js_at(pairs, 0), "margin_pp"));
    (void)buf_puts(out, "\n\n");
    snap_status st = arms_table(row, color, out, err);
    return st == SNAP_OK ? pairs_table(row, color, out, err) : st;
}

snap_status eval_view(const js *rows, bool color, buf *out, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < js_len(rows) && st == SNAP_OK; i++) {
        (void)buf_puts(out, i ? "\n" : "");
        st = task_view(js_at(rows, i), color, out, err);
    }
    return st == SNAP_OK ? buf_check(out, "a table", err) : st;
}
