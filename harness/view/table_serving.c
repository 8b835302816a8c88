/* table_serving.c - tables of servers under load: load points, latencies, differences, knees. */
#include <math.h>
#include <string.h>

#include "harness/view/pen.h"

static bool is_kind(const report_serving *r, const char *kind) {
    return strcmp(r->row->kind, kind) == 0;
}

static size_t count(const report_model *m, const char *kind) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_serving; i++)
        n += is_kind(&m->serving[i], kind);
    return n;
}

/* "2.5/s": requests per second; "16 at a time": users of a closed loop. */
static void put_load(pen *p, const serving_record *r) {
    if (isnan(r->load)) {
        pen_put(p, FORMAT_NONE);
        return;
    }
    pen_printf(p, "%.4g%s", r->load, strcmp(r->loop, "open") == 0 ? "/s" : " at a time");
}

static void put_flags(pen *p, const record_texts *flags) {
    buf text = {0};
    for (size_t i = 0; i < flags->n; i++)
        (void)buf_printf(&text, "%s%s", i ? ", " : "", flags->at[i]);
    pen_put(p, buf_str(&text));
    p->failed |= text.failed;
    buf_release(&text);
}

/* A number with three significant digits, or more before the decimal point. */
static void put_scaled(pen *p, double x) {
    format_scale s = {0};
    format_scale_add(&s, fabs(x));
    pen_fixed(p, x, format_scale_decimals(&s));
}

static void put_scaled_range(pen *p, const double x[2]) {
    format_scale s = {0};
    format_scale_add(&s, fabs(x[0]));
    pen_range(p, x, format_scale_decimals(&s));
}

static void put_state(pen *p, const serving_record *r) {
    pen_text(p, strcmp(r->state, "meets") == 0   ? "within"
                : strcmp(r->state, "fails") == 0 ? "missed"
                                                 : r->state);
}

bool report_table_serving(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "serving",
                 .caption = "Servers under load",
                 .note = "Rates count requests that were answered in the steady window of each "
                         "block; [ ] are 95 % intervals. Goodput: requests per second that met "
                         "every target. Tokens are those that the server counted. Targets: "
                         "within, missed, or open if the data decide neither. Lag: delay that the "
                         "client itself added (p99).",
                 .columns = {{"load", "", TABLE_NUMBER, true},
                             {"arm", "", TABLE_TEXT, true},
                             {"requests", "", TABLE_NUMBER, false},
                             {"failed", "", TABLE_NUMBER, true},
                             {"cut", "", TABLE_NUMBER, false},
                             {"requests/s", "", TABLE_NUMBER, true},
                             {"output tokens/s", "", TABLE_NUMBER, true},
                             {"95 %", "", TABLE_NUMBER, false},
                             {"tokens/s per user", "", TABLE_NUMBER, true},
                             {"tokens/s per GPU", "", TABLE_NUMBER, false},
                             {"goodput/s", "", TABLE_NUMBER, true},
                             {"95 %", "", TABLE_NUMBER, false},
                             {"targets", "", TABLE_TEXT, true},
                             {"lag ms", "", TABLE_NUMBER, false},
                             {"flags", "", TABLE_FLAGS, true},
                             {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, count(m, "load")))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_serving; i++) {
        const serving_record *r = m->serving[i].row;
        if (!is_kind(&m->serving[i], "load"))
            continue;
        put_load(&p, r);
        pen_text(&p, r->arm);
        pen_fixed(&p, (double)r->requests, 0);
        pen_fixed(&p, (double)r->failed, 0);
        pen_fixed(&p, (double)r->cut, 0);
        put_scaled(&p, r->requests_s);
        put_scaled(&p, r->output_tok_s);
        put_scaled_range(&p, r->output_tok_s_ci95);
        put_scaled(&p, r->user_tok_s);
        put_scaled(&p, r->gpu_tok_s);
        put_scaled(&p, r->goodput_s);
        put_scaled_range(&p, r->goodput_s_ci95);
        put_state(&p, r);
        put_scaled(&p, r->lag_p99_ms);
        put_flags(&p, &r->flags);
        if (m->n_files > 1)
            pen_file(&p, m, m->serving[i].file);
    }
    return !p.failed;
}

/* A percentile, or how many values it needs. @k: place in `needed`. */
static void put_percentile(pen *p, const serving_record *r, double x, size_t k) {
    if (isnan(x) && k < r->needed.n && r->needed.at[k] > 0)
        pen_printf(p, "needs %.0f", r->needed.at[k]);
    else
        put_scaled(p, x);
}

/* The interval of p99, or its lower end if the upper one is unknown. */
static void put_percentile_range(pen *p, const serving_record *r) {
    format_scale s = {0};
    char text[FORMAT_MAX];
    bool open = isnan(r->p99_ms_ci95[0]) && r->least_ms.n > 3 && r->least_ms.at[3] > 0;
    if (open) {
        format_scale_add(&s, r->least_ms.at[3]);
        format_fixed(r->least_ms.at[3], format_scale_decimals(&s), text);
        pen_printf(p, "at least %s", text);
    } else {
        put_scaled_range(p, r->p99_ms_ci95);
    }
}

bool report_table_latencies(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "latencies",
        .caption = "Latencies under load, in ms",
        .note = "ttft: time to the first piece of text; itl: between pieces; tpot: per "
                "output token after the first; e2e: the whole answer; normalised: e2e "
                "per output token. A percentile with less than five values above it is "
                "not stated. \"At least\": too few independent values lie above the percentile "
                "for an upper end of its interval, as values of requests that wait in one queue "
                "are not independent. The values of itl "
                "are gaps, the others are requests. "
                "\"late\": the client's own delay may have changed the latency by more than 1 %.",
        .columns = {{"load", "", TABLE_NUMBER, true},
                    {"arm", "", TABLE_TEXT, true},
                    {"latency", "", TABLE_TEXT, true},
                    {"values", "", TABLE_NUMBER, false},
                    {"mean", "", TABLE_NUMBER, true},
                    {"p50", "", TABLE_NUMBER, true},
                    {"p90", "", TABLE_NUMBER, true},
                    {"p95", "", TABLE_NUMBER, false},
                    {"p99", "", TABLE_NUMBER, true},
                    {"95 % of p99", "", TABLE_NUMBER, false},
                    {"p99.9", "", TABLE_NUMBER, false},
                    {"flags", "", TABLE_FLAGS, false},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, count(m, "latency")))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_serving; i++) {
        const serving_record *r = m->serving[i].row;
        if (!is_kind(&m->serving[i], "latency"))
            continue;
        put_load(&p, r);
        pen_text(&p, r->arm);
        pen_text(&p, r->metric);
        pen_fixed(&p, (double)r->values, 0);
        put_scaled(&p, r->mean_ms);
        put_percentile(&p, r, r->p50_ms, 0);
        put_percentile(&p, r, r->p90_ms, 1);
        put_percentile(&p, r, r->p95_ms, 2);
        put_percentile(&p, r, r->p99_ms, 3);
        put_percentile_range(&p, r);
        put_percentile(&p, r, r->p999_ms, 4);
        pen_put(&p, r->late ? "late" : "");
        if (m->n_files > 1)
            pen_file(&p, m, m->serving[i].file);
    }
    return !p.failed;
}

/* The latency row of the arm and load point of a row of kind load; NULL if there is none. */
static const serving_record *latency_of(const report_model *m, const report_serving *load,
                                        const char *metric) {
    for (size_t i = 0; i < m->n_serving; i++) {
        const report_serving *s = &m->serving[i];
        if (is_kind(s, "latency") && s->file == load->file && s->row->point == load->row->point &&
            strcmp(s->row->arm, load->row->arm) == 0 && strcmp(s->row->metric, metric) == 0)
            return s->row;
    }
    return NULL;
}

static void put_latencies_of(pen *p, const report_model *m, const report_serving *load) {
    static const char *const metrics[] = {"ttft", "itl", "tpot", "e2e"};
    buf late = {0};
    for (size_t k = 0; k < sizeof metrics / sizeof *metrics; k++) {
        const serving_record *r = latency_of(m, load, metrics[k]);
        put_scaled(p, r ? r->p50_ms : (double)NAN);
        put_scaled(p, r ? r->p99_ms : (double)NAN);
        if (r && r->late)
            (void)buf_printf(&late, "%s%s", late.len ? ", " : "late: ", metrics[k]);
    }
    pen_put(p, buf_str(&late));
    p->failed |= late.failed;
    buf_release(&late);
}

bool report_table_latencies_brief(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "latencies-brief",
                 .caption = "Latencies under load, in ms",
                 .columns = {{"load", "", TABLE_NUMBER, true},
                             {"arm", "", TABLE_TEXT, true},
                             {"ttft p50", "", TABLE_NUMBER, true},
                             {"p99", "", TABLE_NUMBER, true},
                             {"itl p50", "", TABLE_NUMBER, true},
                             {"p99", "", TABLE_NUMBER, true},
                             {"tpot p50", "", TABLE_NUMBER, true},
                             {"p99", "", TABLE_NUMBER, true},
                             {"e2e p50", "", TABLE_NUMBER, true},
                             {"p99", "", TABLE_NUMBER, true},
                             {"flags", "", TABLE_FLAGS, false},
                             {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, count(m, "load")))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_serving; i++) {
        if (!is_kind(&m->serving[i], "load"))
            continue;
        put_load(&p, m->serving[i].row);
        pen_text(&p, m->serving[i].row->arm);
        put_latencies_of(&p, m, &m->serving[i]);
        if (m->n_files > 1)
            pen_file(&p, m, m->serving[i].file);
    }
    return !p.failed;
}

bool report_table_serving_parts(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "serving-parts",
                 .caption = "Processes that sent the load",
                 .note = "The load of this run came from several processes (--part). Lag: delay "
                         "that the process itself added.",
                 .columns = {{"load", "", TABLE_NUMBER, true},
                             {"arm", "", TABLE_TEXT, true},
                             {"part", "", TABLE_NUMBER, true},
                             {"requests", "", TABLE_NUMBER, true},
                             {"lag p50 ms", "", TABLE_NUMBER, false},
                             {"lag p99 ms", "", TABLE_NUMBER, true},
                             {"lag max ms", "", TABLE_NUMBER, false},
                             {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, count(m, "part")))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_serving; i++) {
        const serving_record *r = m->serving[i].row;
        if (!is_kind(&m->serving[i], "part"))
            continue;
        put_load(&p, r);
        pen_text(&p, r->arm);
        pen_fixed(&p, (double)r->part, 0);
        pen_fixed(&p, (double)r->requests, 0);
        put_scaled(&p, r->lag_p50_ms);
        put_scaled(&p, r->lag_p99_ms);
        put_scaled(&p, r->lag_max_ms);
        if (m->n_files > 1)
            pen_file(&p, m, m->serving[i].file);
    }
    return !p.failed;
}

static bool is_judged(const report_serving *r) {
    return is_kind(r, "difference") && r->row->verdict[0];
}

bool report_table_serving_pairs(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "serving-pairs",
                 .caption = "Arms compared under the same load",
                 .note = "The arms took turns with the same prompts and arrivals. Ratio: the arm's "
                         "value over the baseline's. Equal: the 90 % interval of the ratio lies "
                         "within the margin. Faster or slower: the 95 % interval excludes 1, and p "
                         "is at most 0.05 after Holm's correction over all verdicts of the load "
                         "point. A lower latency and a higher rate are faster. Reason: the flag "
                         "that prevents a verdict.",
                 .columns = {{"load", "", TABLE_NUMBER, true},
                             {"arm", "", TABLE_TEXT, true},
                             {"baseline", "", TABLE_TEXT, true},
                             {"metric", "", TABLE_TEXT, true},
                             {"ratio", "", TABLE_NUMBER, true},
                             {"95 %", "", TABLE_NUMBER, true},
                             {"margin %", "", TABLE_NUMBER, false},
                             {"p (Holm)", "", TABLE_NUMBER, false},
                             {"verdict", "", TABLE_VERDICT, true},
                             {"reason", "", TABLE_FLAGS, true},
                             {"file", "", TABLE_TEXT, false}}};
    size_t n = 0;
    pen_drop_last_unless(t, m->n_files > 1);
    for (size_t i = 0; i < m->n_serving; i++)
        n += is_judged(&m->serving[i]);
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_serving; i++) {
        const serving_record *r = m->serving[i].row;
        if (!is_judged(&m->serving[i]))
            continue;
        put_load(&p, r);
        pen_text(&p, r->arm);
        pen_text(&p, r->baseline);
        pen_text(&p, r->metric);
        pen_times(&p, r->ratio);
        pen_range(&p, r->ratio_ci95, 2);
        pen_fixed(&p, r->margin_pct, 0);
        pen_p(&p, r->p_holm);
        pen_text(&p, r->verdict);
        pen_put(&p, r->reason);
        if (m->n_files > 1)
            pen_file(&p, m, m->serving[i].file);
    }
    return !p.failed;
}

static void put_end(pen *p, double load) {
    if (isnan(load))
        pen_put(p, "not found");
    else
        put_scaled(p, load);
}

static void put_knee(pen *p, const serving_record *r) {
    pen_text(p, r->arm);
    put_end(p, r->knee_lo);
    put_end(p, r->knee_hi);
    pen_put(p, strcmp(r->loop, "open") == 0 ? "requests/s" : "requests at a time");
    pen_put(p, "");
}

static void put_ratio(pen *p, const serving_record *r) {
    const double range[2] = {r->ratio_lo, r->ratio_hi};
    pen_printf(p, "%s / %s", r->arm, r->baseline);
    put_end(p, range[0]);
    put_end(p, range[1]);
    pen_put(p, "ratio");
    pen_text(p, r->headline);
}

bool report_table_knees(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "knees",
                 .caption = "The highest load within the targets",
                 .note = "It lies between the highest load that was shown to meet every target and "
                         "the lowest that was shown to miss one.",
                 .columns = {{"arm", "", TABLE_TEXT, true},
                             {"from", "", TABLE_NUMBER, true},
                             {"to", "", TABLE_NUMBER, true},
                             {"unit", "", TABLE_TEXT, true},
                             {"result", "", TABLE_TEXT, true},
                             {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, count(m, "knee") + count(m, "ratio")))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_serving; i++) {
        bool knee = is_kind(&m->serving[i], "knee");
        if (!knee && !is_kind(&m->serving[i], "ratio"))
            continue;
        (knee ? put_knee : put_ratio)(&p, m->serving[i].row);
        if (m->n_files > 1)
            pen_file(&p, m, m->serving[i].file);
    }
    return !p.failed;
}
