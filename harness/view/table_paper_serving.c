/* table_paper_serving.c - the counterpart of the paper's throughput figure for servers under load:
 * one row for each input length and load, with the throughput or the knee of both arms. */
#include <math.h>
#include <string.h>

#include "harness/view/paper.h"
#include "harness/view/pen.h"

static bool is_kind(const report_serving *s, const char *kind) {
    return strcmp(s->row->kind, kind) == 0;
}

/* A closed loop keeps the servers busy, so its throughput shows what they can do. In an open loop
 * below saturation both arms answer what arrives, and the knee shows it. */
static bool is_throughput(const report_serving *s) {
    return is_kind(s, "difference") && strcmp(s->row->loop, "closed") == 0 &&
           strcmp(s->row->metric, "output_tok_s") == 0;
}

static bool is_shown(const report_serving *s) {
    return is_throughput(s) || is_kind(s, "ratio");
}

/* The row of kind @kind of an arm in the file of @of. If @of belongs to a load point, the row must
 * belong to it, too. NULL if there is none. */
static const serving_record *row_of(const report_model *m, const report_serving *of,
                                    const char *kind, const char *arm) {
    for (size_t i = 0; i < m->n_serving; i++) {
        const report_serving *s = &m->serving[i];
        if (s->file == of->file && is_kind(s, kind) && strcmp(s->row->arm, arm) == 0 &&
            strcmp(s->row->loop, of->row->loop) == 0 &&
            (is_kind(of, "ratio") || s->row->point == of->row->point))
            return s->row;
    }
    return NULL;
}

/* The mean lengths of prompts and answers that the server counted. */
static void put_lengths(pen *p, const serving_record *load) {
    pen_fixed(p, load ? load->prompt_tokens_mean : (double)NAN, 0);
    pen_fixed(p, load ? load->completion_tokens_mean : (double)NAN, 0);
}

/* An end of an interval with three significant digits; "?" if it was not found. */
static void format_end(double load, char out[FORMAT_MAX]) {
    format_scale s = {0};
    format_scale_add(&s, load);
    if (isnan(load))
        memcpy(out, "?", sizeof "?");
    else
        format_fixed(load, format_scale_decimals(&s), out);
}

static void put_ends(pen *p, double from, double to) {
    char lo[FORMAT_MAX], hi[FORMAT_MAX];
    if (isnan(from) && isnan(to)) {
        pen_put(p, "not found");
        return;
    }
    format_end(from, lo);
    format_end(to, hi);
    pen_printf(p, "%s to %s", lo, hi);
}

static void put_knee(pen *p, const serving_record *knee) {
    put_ends(p, knee ? knee->knee_lo : (double)NAN, knee ? knee->knee_hi : (double)NAN);
}

/* The verdict, or "inconclusive" with the flag that prevents one. */
static void put_verdict(pen *p, const serving_record *r, const char *verdict) {
    pen_text(p, r->reason[0] ? "inconclusive" : verdict);
    pen_put(p, r->reason);
}

static void put_throughput(pen *p, const report_model *m, const report_serving *s) {
    const serving_record *r = s->row, *base = row_of(m, s, "load", r->baseline),
                         *arm = row_of(m, s, "load", r->arm);
    put_lengths(p, base);
    pen_printf(p, "%.0f at a time", r->load);
    pen_put(p, "output tokens/s");
    pen_printf(p, "%s, %s", r->baseline, r->arm);
    pen_fixed(p, base ? base->output_tok_s : (double)NAN, 0);
    pen_fixed(p, arm ? arm->output_tok_s : (double)NAN, 0);
    pen_times(p, r->ratio);
    pen_range(p, r->ratio_ci95, 2);
    put_verdict(p, r, r->verdict);
}

static void put_ratio(pen *p, const report_model *m, const report_serving *s) {
    const serving_record *r = s->row;
    put_lengths(p, row_of(m, s, "load", r->baseline));
    pen_put(p, "highest within targets");
    pen_put(p, strcmp(r->loop, "open") == 0 ? "requests/s" : "requests at a time");
    pen_printf(p, "%s, %s", r->baseline, r->arm);
    put_knee(p, row_of(m, s, "knee", r->baseline));
    put_knee(p, row_of(m, s, "knee", r->arm));
    pen_times(p, r->ratio);
    put_ends(p, r->ratio_lo, r->ratio_hi);
    put_verdict(p, r, r->ratio_lo > 1 ? "faster" : r->ratio_hi < 1 ? "slower" : "inconclusive");
}

bool report_table_paper_serving(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "paper-serving",
        .caption = "Throughput of servers, and the highest load within their targets",
        .note =
            "The counterpart of the paper's throughput figure, measured on servers under load. In "
            "closed loops: output tokens/s of all users together, and the 95 % interval of the "
            "ratio. Highest load: it lies between the two numbers, and so does the ratio; ? is an "
            "end that was not found. Lengths are means that the server counted. Reason: the flag "
            "that prevents a verdict.",
        .columns = {{"input tokens", "", TABLE_NUMBER, true},
                    {"output tokens", "", TABLE_NUMBER, false},
                    {"load", "", TABLE_TEXT, true},
                    {"unit", "", TABLE_TEXT, true},
                    {"baseline, arm", "", TABLE_TEXT, true},
                    {"baseline", "", TABLE_NUMBER, true},
                    {"arm", "", TABLE_NUMBER, true},
                    {"ratio", "", TABLE_NUMBER, true},
                    {"interval", "", TABLE_NUMBER, true},
                    {"verdict", "", TABLE_VERDICT, true},
                    {"reason", "", TABLE_FLAGS, true},
                    {"file", "", TABLE_TEXT, true}}};
    size_t n = 0;
    pen_drop_last_unless(t, m->n_files > 1);
    for (size_t i = 0; i < m->n_serving; i++)
        n += is_shown(&m->serving[i]);
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_serving; i++) {
        const report_serving *s = &m->serving[i];
        if (!is_shown(s))
            continue;
        (is_throughput(s) ? put_throughput : put_ratio)(&p, m, s);
        if (m->n_files > 1)
            pen_file(&p, m, s->file);
    }
    return !p.failed;
}
