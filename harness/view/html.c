/* html.c - writes the report as an HTML page: summary, warnings, then the sections of the outline
 * and the sources.
 *
 * The page is also well-formed XML. It contains no script but page.js, which only adds controls to
 * the tables, and loads nothing from a server. The content security policy in its head makes the
 * browser enforce this, even if the name of a task or model contains markup. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/assets.h"
#include "harness/view/format.h"
#include "harness/view/outline.h"
#include "harness/view/pages.h"
#include "harness/view/script.h"
#include "harness/view/writers.h"

static void text(buf *out, const char *s) {
    format_xml(out, s);
}

static void add_table(const report_model *m, report_table_fn build, buf *out) {
    arena mem = {0};
    table t;
    if (!report_build(m, build, &mem, &t))
        out->failed = true;
    else if (t.n_rows)
        write_html(&t, out);
    arena_release(&mem);
}

/* The figure is labelled by the title in its SVG. It can get the keyboard focus, because it scrolls
 * if it is wider than the window. */
static void one_figure(buf *out, const buf *svg) {
    static const char kId[] = " id=\"";
    const char *id = strstr(buf_str(svg), kId);
    id = id ? id + sizeof kId - 1 : "";
    (void)buf_printf(out, "<figure tabindex=\"0\" aria-labelledby=\"%.*s-t\">%s</figure>\n",
                     (int)strcspn(id, "\""), id, buf_str(svg));
}

static void add_figures(const report_model *m, figure_fn draw, buf *out) {
    buf svg = {0};
    for (size_t i = 0; i < FIGURES_MAX && draw(m, i, false, &svg); i++) {
        one_figure(out, &svg);
        out->failed |= svg.failed;
        buf_clear(&svg);
    }
    buf_release(&svg);
}

/* ---- summary ---- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median percentage of the roofline over the arm's cells without flags; NAN if there is
 * none. */
static double median_roofline(const report_model *m, const char *arm) {
    double *x = malloc((m->n_measured + 1) * sizeof *x);
    size_t n = 0;
    for (size_t i = 0; x && i < m->n_measured; i++)
        if (strcmp(m->cells[i].row->arm, arm) == 0 && !m->cells[i].row->name[0] &&
            !m->cells[i].flags[0] && !isnan(m->cells[i].perf->roofline_pct))
            x[n++] = m->cells[i].perf->roofline_pct;
    if (x)
        qsort(x, n, sizeof *x, by_value);
    double median = n ? (x[(n - 1) / 2] + x[n / 2]) / 2 : (double)NAN;
    free(x);
    return median;
}

static void card_gains(const report_model *m, buf *out) {
    for (int k = 0; k < REPORT_SCOPES; k++) {
        const report_gain *g = &m->gains[k];
        if (!g->n && !g->flagged)
            continue;
        (void)buf_puts(out, "<li><b>");
        if (g->n)
            (void)buf_printf(out, "%.2f×", g->mean);
        else
            (void)buf_puts(out, FORMAT_NONE);
        (void)buf_printf(out, "</b><span>speed-up of FP8 over BF16, scope %s</span><small>",
                         g->scope);
        report_gain_text(g, out);
        (void)buf_puts(out, "</small></li>\n");
    }
}

static void card_roofline(const report_model *m, buf *out) {
    double bf16 = median_roofline(m, "bf16"), fp8 = median_roofline(m, "fp8");
    char a[FORMAT_MAX], b[FORMAT_MAX];
    if (isnan(bf16) && isnan(fp8))
        return;
    format_fixed(bf16, 0, a);
    format_fixed(fp8, 0, b);
    (void)buf_printf(
        out,
        "<li><b>%s %% · %s %%</b><span>of the roofline, BF16 · FP8</span><small>median over the "
        "cells without flags, relative to measured ceilings</small></li>\n",
        a, b);
}

/* Writes one card for each verdict on the problems of all tasks together, except verdicts on a
 * control and comparisons that were refused. */
static void card_pooled(const report_model *m, buf *out) {
    for (size_t i = 0; i < m->n_pooled; i++) {
        const pair_record *p = m->pooled[i].row;
        char delta[FORMAT_MAX], ci[FORMAT_MAX];
        if (p->control[0] || p->refused[0])
            continue;
        format_signed(p->delta_pp, 2, delta);
        format_interval(p->ci90_pp, 2, ci);
        (void)buf_printf(out, "<li><b>%s</b><span>quality of ", p->verdict);
        text(out, p->arm);
        (void)buf_puts(out, " against ");
        text(out, p->baseline);
        if (m->labels) {
            (void)buf_puts(out, " on ");
            text(out, m->labels[m->device_of[m->pooled[i].file]]);
        }
        (void)buf_printf(out,
                         ", margin ±%g points</span><small>%s points over %zu tasks and %lld "
                         "problems, 90 %% interval %s%s",
                         p->margin_pp, delta, p->tasks.n, (long long)p->problems, ci,
                         p->withheld[0] ? "; " : "");
        text(out, p->withheld);
        (void)buf_puts(out, "</small></li>\n");
    }
}

/* Counts the verdicts on quality. Controls are not counted, because they only test the method. */
static void card_parity(const report_model *m, buf *out) {
    size_t n = 0, equivalent = 0, different = 0, refused = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->pairs.n; k++) {
            const pair_record *p = &m->evals[i].row->pairs.at[k];
            if (p->control[0])
                continue;
            n++;
            equivalent += strcmp(p->verdict, "equivalent") == 0;
            different += strcmp(p->verdict, "different") == 0;
            refused += p->refused[0] != '\0';
        }
    if (n)
        (void)buf_printf(out,
                         "<li><b>%zu of %zu</b><span>comparisons in single tasks show equivalent "
                         "quality</span><small>%zu "
                         "different, %zu not shown to be equivalent, %zu refused</small></li>\n",
                         equivalent, n, different, n - equivalent - different - refused, refused);
}

static void card_damage(const report_model *m, buf *out) {
    size_t n = 0, seen = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->pairs.n; k++) {
            const pair_record *p = &m->evals[i].row->pairs.at[k];
            n += p->sensitivity[0] != '\0';
            seen += strcmp(p->sensitivity, "sees damage") == 0;
        }
    if (n)
        (void)buf_printf(
            out,
            "<li><b>%zu of %zu</b><span>damaged controls were detected</span><small>if a "
            "damaged control is not detected, equivalence is weak evidence</small></li>\n",
            seen, n);
}

/* The largest relative L2 error of a configuration over all rows. */
static double worst_error(const report_model *m, const char *config) {
    double worst = (double)NAN;
    for (size_t i = 0; i < m->n_fidelity; i++)
        if (strcmp(m->fidelity[i].row->config, config) == 0)
            worst = fmax(worst, m->fidelity[i].row->rel_l2);
    return worst;
}

static void card_fidelity(const report_model *m, buf *out) {
    double snapmla = worst_error(m, "snapmla"), bf16 = worst_error(m, "bf16");
    char a[FORMAT_MAX], b[FORMAT_MAX];
    format_science(snapmla, a);
    format_science(bf16, b);
    if (!isnan(snapmla))
        (void)buf_printf(
            out,
            "<li><b>%s</b><span>largest relative L2 error, SnapMLA</span><small>against "
            "FP64; BF16 has %s</small></li>\n",
            a, b);
}

static void cards(const report_model *m, buf *out) {
    buf items = {0};
    if (!m->n_compared) { /* a mean over several machines describes none of them */
        card_gains(m, &items);
        card_roofline(m, &items);
    }
    card_pooled(m, &items);
    card_parity(m, &items);
    card_damage(m, &items);
    card_fidelity(m, &items);
    if (items.len)
        (void)buf_printf(out, "<ul class=\"cards\">\n%s</ul>\n", buf_str(&items));
    buf_release(&items);
}

/* ---- warnings ---- */

static const char *const kFlags[][2] = {
    {"throttled", "the clock fell or the processor throttled during the samples"},
    {"power_capped", "the power limit lowered the clock during the samples"},
    {"below_floor",
     "faster than the roofline allows with a cold cache, which is a measuring error"},
    {"weak_baseline",
     "the speed-up is above the ratio of the shortest possible times of the two arms, so BF16 is "
     "slow there or the measurement is wrong"},
    {"noisy", "the quartiles differ by more than 5 % of the median"},
    {"not_captured", "no CUDA graph could record the step, so the host launches it each time"},
    {"host_limited",
     "the device could begin a step before the host had enqueued all of it, so the times can "
     "contain waiting for the host"},
    {"lse_not_checked", "the arm computes no log-sum-exp"},
    {"shared", "other programs used the processors during the samples"},
};

static size_t cells_with(const report_model *m, const char *flag) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_measured; i++)
        n += strstr(m->cells[i].flags, flag) != NULL;
    return n;
}

static size_t cells_of_status(const report_model *m, const char *status) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_measured; i++)
        n += strcmp(m->cells[i].row->status, status) == 0;
    return n;
}

static bool any_dirty(const report_model *m) {
    for (size_t i = 0; i < m->n_sources; i++)
        if (m->sources[i].row->program.dirty)
            return true;
    return false;
}

static void warnings(const report_model *m, buf *out) {
    buf items = {0};
    size_t wrong = cells_of_status(m, "failed"), errors = cells_of_status(m, "error");
    if (wrong)
        (void)buf_printf(&items,
                         "<li>%zu of %zu cells gave a wrong result and have no speed.</li>\n",
                         wrong, m->n_measured);
    if (errors)
        (void)buf_printf(&items, "<li>%zu of %zu cells ended in an error.</li>\n", errors,
                         m->n_measured);
    for (size_t i = 0; i < sizeof kFlags / sizeof *kFlags; i++) {
        size_t n = cells_with(m, kFlags[i][0]);
        if (n)
            (void)buf_printf(&items,
                             "<li><span class=\"flag\">%s</span> (%zu of %zu cells): %s.</li>\n",
                             kFlags[i][0], n, m->n_measured, kFlags[i][1]);
    }
    for (size_t i = 0; i < m->n_sources; i++)
        if (m->sources[i].row->interrupted[0]) {
            (void)buf_puts(&items, "<li>");
            text(&items, m->files[m->sources[i].file]);
            (void)buf_puts(&items, ": interrupted: ");
            text(&items, m->sources[i].row->interrupted);
            (void)buf_puts(&items, ".</li>\n");
        }
    if (any_dirty(m))
        (void)buf_puts(
            &items,
            "<li>At least one result was measured with uncommitted changes in the source.</li>\n");
    if (items.len)
        (void)buf_printf(out,
                         "<aside class=\"warn\" aria-label=\"Cautions\"><ul>\n%s</ul></aside>\n",
                         buf_str(&items));
    buf_release(&items);
}

static void highlights(const report_model *m, buf *out) {
    cards(m, out);
    warnings(m, out);
}

/* ---- sources ---- */

static void facts(buf *out, const table *t, size_t row) {
    (void)buf_puts(out, "<dl>\n");
    for (int c = 0; c < t->n_columns; c++) {
        (void)buf_puts(out, "<dt>");
        text(out, t->columns[c].head);
        (void)buf_puts(out, "</dt><dd>");
        text(out, table_at(t, row, c));
        (void)buf_puts(out, "</dd>\n");
    }
    (void)buf_puts(out, "</dl>\n");
}

/* Takes ownership of @value. Writes nothing if it is NULL. */
static void json_block(buf *out, const char *summary, js *value) {
    buf json = {0};
    snap_status st = value ? js_write(value, JS_PRETTY, &json, NULL) : SNAP_OK;
    js_free(value);
    out->failed |= st != SNAP_OK;
    if (st != SNAP_OK || !value) {
        buf_release(&json);
        return;
    }
    (void)buf_printf(out, "<details><summary>%s</summary><pre tabindex=\"0\">", summary);
    text(out, buf_str(&json));
    (void)buf_puts(out, "</pre></details>\n");
    buf_release(&json);
}

static void sources(const report_model *m, buf *out) {
    arena mem = {0};
    table t;
    if (!report_table_sources(m, &mem, &t))
        out->failed = true;
    else
        for (size_t i = 0; i < t.n_rows; i++) {
            const origin_record *o = m->sources[i].row;
            (void)buf_puts(out, "<div class=\"source\">\n");
            facts(out, &t, i);
            json_block(out, "Command line", record_value(&origin_type, o, "argv"));
            json_block(out, "Configuration", record_value(&origin_type, o, "config"));
            json_block(out, "Processor", record_value(&origin_type, o, "cpu"));
            (void)buf_puts(out, "</div>\n");
        }
    arena_release(&mem);
}

/* ---- the page ---- */

/* Writes a section with its heading and its link in the navigation, unless it is empty. */
static void section(buf *page, buf *nav, const char *id, const char *title, buf *content) {
    if (content->len) {
        (void)buf_printf(page, "<section id=\"s-%s\"><h2>%s</h2>\n%s</section>\n", id, title,
                         buf_str(content));
        (void)buf_printf(nav, "<li><a href=\"#s-%s\">%s</a></li>\n", id, title);
    }
    page->failed |= content->failed;
    buf_clear(content);
}

static void sections(const report_model *m, buf *page, buf *nav) {
    buf part = {0};
    for (const report_section *s = m->outline->sections; s->title; s++) {
        if (s->absent && !s->measured(m)) {
            (void)buf_puts(&part, "<p>");
            text(&part, s->absent);
            (void)buf_puts(&part, "</p>\n");
        }
        for (int i = 0; i < OUTLINE_PARTS; i++)
            if (s->parts[i].draw)
                add_figures(m, s->parts[i].draw, &part);
            else if (s->parts[i].build)
                add_table(m, s->parts[i].build, &part);
        if (s->samples)
            write_samples(m->samples, &part);
        section(page, nav, s->id, s->title, &part);
        if (m->n_compared && s == m->outline->sections) /* the table of devices is first */
            highlights(m, page);
    }
    sources(m, &part);
    section(page, nav, "sources", "Sources", &part);
    buf_release(&part);
}

/* The names of the devices, and the first and the last day. */
static void lead_of_devices(const report_model *m, buf *out) {
    const char *first = m->sources[0].row->started, *last = first;
    (void)buf_puts(out, "<p class=\"lead\">");
    for (int i = 0; i < m->n_devices; i++) {
        (void)buf_puts(out, i ? " · " : "");
        text(out, m->labels[i]);
    }
    for (size_t i = 1; i < m->n_sources; i++) {
        const char *day = m->sources[i].row->started;
        first = strcmp(day, first) < 0 ? day : first;
        last = strcmp(day, last) > 0 ? day : last;
    }
    (void)buf_printf(out, " · %.10s", first);
    if (strncmp(first, last, 10) != 0)
        (void)buf_printf(out, " to %.10s", last);
    (void)buf_puts(out, "</p>\n");
}

static void lead(const report_model *m, buf *out) {
    if (!m->n_sources)
        return;
    if (m->n_compared) {
        lead_of_devices(m, out);
        return;
    }
    const origin_record *o = m->sources[0].row;
    (void)buf_puts(out, "<p class=\"lead\">");
    text(out, o->backend.exists ? o->backend.device : o->cpu.model);
    (void)buf_printf(out, " · %.10s", o->started);
    if (m->n_sources > 1)
        (void)buf_printf(out, " · %zu runs", m->n_sources);
    (void)buf_puts(out, "</p>\n");
}

static void title_text(const report_model *m, buf *out) {
    buf plain = {0};
    report_title(m, &plain);
    text(out, buf_str(&plain));
    out->failed |= plain.failed;
    buf_release(&plain);
}

void write_page(const report_model *m, buf *out) {
    buf body = {0}, nav = {0}, title = {0}, source = {0};
    sections(m, &body, &nav);
    title_text(m, &title);
    script_source(&source);
    (void)buf_printf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
        "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width\"/>\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src %s; "
        "style-src 'unsafe-inline'; img-src data:\"/>\n<link rel=\"icon\" href=\"data:,\"/>\n"
        "<title>%s</title>\n<style>%s%s</style>\n</head>\n<body>\n"
        "<a class=\"skip\" href=\"#content\">Skip to the content</a>\n"
        "<header><h1>%s</h1>\n",
        buf_str(&source), buf_str(&title), asset_page_css, asset_figure_css, buf_str(&title));
    lead(m, out);
    (void)buf_printf(out, "<nav aria-label=\"Sections\"><ul>\n%s</ul></nav></header>\n",
                     buf_str(&nav));
    (void)buf_puts(out, "<main id=\"content\">\n");
    if (!m->n_compared)
        highlights(m, out);
    (void)buf_printf(out, "%s</main>\n<footer>Made by snapmla %s (%s).</footer>\n", buf_str(&body),
                     results_program_version(), results_program_commit());
    script_element(out);
    (void)buf_puts(out, "</body>\n</html>\n");
    out->failed |= body.failed || nav.failed || title.failed || source.failed;
    buf_release(&source);
    buf_release(&title);
    buf_release(&body);
    buf_release(&nav);
}
