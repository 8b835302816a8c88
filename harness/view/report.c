#include "harness/view/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "harness/view/outline.h"
#include "harness/view/pages.h"
#include "harness/view/writers.h"

const figure report_figures[] = {{"devices", figure_devices},
                                 {"speedup", figure_speedup},
                                 {"named-arms", figure_named_arms},
                                 {"layouts", figure_layouts},
                                 {"layout-map", figure_layout_map},
                                 {"largest-part", figure_largest_part},
                                 {"axes", figure_axes},
                                 {"roofline", figure_roofline},
                                 {"parity", figure_parity},
                                 {"length", figure_length},
                                 {"heat", figure_heat},
                                 {"fidelity", figure_fidelity},
                                 {"layers", figure_layers},
                                 {"serving-pareto", figure_serving_pareto},
                                 {"serving-goodput", figure_serving_goodput},
                                 {"serving-cdf", figure_serving_cdf},
                                 {"serving-course", figure_serving_course},
                                 {NULL, NULL}};

/* ---- formats ---- */

static const struct {
    const char *name;
    unsigned format;
} kFormats[] = {{"html", REPORT_HTML},
                {"md", REPORT_MD},
                {"csv", REPORT_CSV},
                {"tidy", REPORT_TIDY},
                {"tex", REPORT_TEX},
                {"svg", REPORT_SVG},
                {"all", REPORT_DEFAULT | REPORT_TIDY | REPORT_SVG}};

static snap_status add_format(void *ctx, const char *name, snap_err *err) {
    unsigned *formats = ctx;
    for (size_t i = 0; i < sizeof kFormats / sizeof *kFormats; i++)
        if (strcmp(name, kFormats[i].name) == 0) {
            *formats |= kFormats[i].format;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_USAGE, "unknown format '%s': html, md, csv, tidy, tex, svg or all",
                   name);
}

snap_status report_parse_formats(const char *list, unsigned *formats, snap_err *err) {
    *formats = 0;
    return text_split(list, ',', "--format", add_format, formats, err);
}

/* ---- files ---- */

typedef struct {
    const char *dir;
    buf *paths;
} target;

/* Writes the content to DIR/NAME and empties the buffer. Empty content writes no file. */
static snap_status put_file(const target *to, const char *name, buf *content, snap_err *err) {
    char *path = fs_join(to->dir, name);
    snap_status st = path ? buf_check(content, name, err) : SNAP_E_NOMEM;
    if (st == SNAP_OK && content->len) {
        st = fs_write_atomic(path, content->data, content->len, err);
        if (st == SNAP_OK && to->paths)
            (void)buf_printf(to->paths, "%s\n", path);
    }
    free(path);
    buf_clear(content);
    return path ? st : err_set(err, st, "out of memory for '%s'", name);
}

/* Writes several tables into one file. @builds ends with NULL. */
static snap_status put_latex(const report_model *m, const target *to, const char *name,
                             const report_table_fn *builds, snap_err *err) {
    arena mem = {0};
    buf text = {0};
    table t;
    for (; *builds; builds++) {
        if (!report_build(m, *builds, &mem, &t))
            text.failed = true;
        else if (t.n_rows)
            write_latex(&t, &text);
    }
    snap_status st = put_file(to, name, &text, err);
    buf_release(&text);
    arena_release(&mem);
    return st;
}

static bool shows(const report_outline *o, figure_fn draw) {
    for (const report_section *s = o->sections; s->title; s++)
        for (int i = 0; i < OUTLINE_PARTS; i++)
            if (s->parts[i].draw == draw)
                return true;
    return false;
}

static snap_status put_figures(const report_model *m, const target *to, const figure *f,
                               snap_err *err) {
    buf svg = {0};
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < FIGURES_MAX && st == SNAP_OK && f->draw(m, i, true, &svg); i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s-%zu.svg", f->name, i + 1);
        st = put_file(to, name, &svg, err);
    }
    buf_release(&svg);
    return st;
}

typedef void (*write_fn)(const report_model *m, buf *out);

static snap_status put_whole(const report_model *m, const target *to, const char *name,
                             write_fn write, snap_err *err) {
    buf text = {0};
    write(m, &text);
    snap_status st = put_file(to, name, &text, err);
    buf_release(&text);
    return st;
}

static snap_status put_section(const report_model *m, const target *to, const char *section,
                               snap_err *err) {
    char name[64];
    buf text = {0};
    (void)snprintf(name, sizeof name, "tidy-%s.csv", section);
    write_csv_section(m, section, &text);
    snap_status st = put_file(to, name, &text, err);
    buf_release(&text);
    return st;
}

/* Writes all tables of the outline into one file. */
static snap_status put_outline(const report_model *m, const target *to, const char *name,
                               snap_err *err) {
    report_table_fn builds[64];
    size_t n = 0;
    for (const report_section *s = m->outline->sections; s->title; s++)
        for (int i = 0; i < OUTLINE_PARTS; i++)
            if (s->parts[i].build && n + 1 < sizeof builds / sizeof *builds)
                builds[n++] = s->parts[i].build;
    builds[n] = NULL;
    return put_latex(m, to, name, builds, err);
}

static snap_status put_tables(const report_model *m, const target *to, snap_err *err) {
    static const report_table_fn compare[] = {report_table_devices,
                                              report_table_pairs,
                                              report_table_machines,
                                              report_table_compare,
                                              report_table_devices_loops,
                                              report_table_compare_loops,
                                              report_table_lacking,
                                              NULL},
                                 speed[] = {report_table_speed, NULL},
                                 ablation[] = {report_table_ablation, NULL},
                                 parity[] = {report_table_parity,
                                             report_table_breaks,
                                             report_table_groups,
                                             report_table_arms,
                                             report_table_failures,
                                             report_table_opinions,
                                             report_table_reasoning,
                                             report_table_requests,
                                             report_table_judges,
                                             report_table_mismatches,
                                             NULL},
                                 serving[] = {report_table_knees, report_table_serving,
                                              report_table_serving_pairs, report_table_latencies,
                                              NULL},
                                 fidelity[] = {report_table_predictions, report_table_divergence,
                                               report_table_forecast,    report_table_layers,
                                               report_table_values,      report_table_bounds,
                                               report_table_depth,       NULL};
    snap_status st = SNAP_OK;
    if (m->outline == &report_outline_paper)
        return put_outline(m, to, "paper.tex", err);
    TRY(put_latex(m, to, "compare.tex", compare, err));
    TRY(put_latex(m, to, "speed.tex", speed, err));
    TRY(put_latex(m, to, "ablation.tex", ablation, err));
    TRY(put_latex(m, to, "parity.tex", parity, err));
    TRY(put_latex(m, to, "serving.tex", serving, err));
    TRY(put_latex(m, to, "model.tex", fidelity, err));
cleanup:
    return st;
}

snap_status report_write(const report_model *m, const char *dir, unsigned formats, buf *paths,
                         snap_err *err) {
    target to = {dir, paths};
    snap_status st = SNAP_OK;
    TRY(fs_mkdirs(dir, err));
    if (formats & REPORT_HTML)
        TRY(put_whole(m, &to, "report.html", write_page, err));
    if (formats & REPORT_MD)
        TRY(put_whole(m, &to, "report.md", report_markdown, err));
    if (formats & REPORT_CSV)
        TRY(put_whole(m, &to, "report.csv", write_csv, err));
    for (const char *const *s = csv_sections; (formats & REPORT_TIDY) && *s; s++)
        TRY(put_section(m, &to, *s, err));
    if (formats & REPORT_TEX)
        TRY(put_tables(m, &to, err));
    for (const figure *f = report_figures; (formats & REPORT_SVG) && f->name; f++)
        if (shows(m->outline, f->draw))
            TRY(put_figures(m, &to, f, err));
cleanup:
    return st;
}
