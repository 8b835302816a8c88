/* report.h - what a person reads: tables and figures from one or more result files.
 *
 *   report_model_new()  ->  report_write()  ->  report_model_free()
 *
 * Every format shows the same tables, built once (table.h). Names come from outside (tasks, models,
 * reasons) and are escaped by each writer for its own format. Rows of origin "reported" stand in
 * a table of their own, and no figure, mean or ranking has them. */
#ifndef SNAPMLA_HARNESS_VIEW_REPORT_H
#define SNAPMLA_HARNESS_VIEW_REPORT_H

#include "base/buf.h"
#include "harness/record/results.h"

typedef struct report_model report_model;

/**
 * report_model_new - read result files into what the writers show
 *
 * @out:   caller owns it, release with report_model_free(); NULL on failure
 * @runs:  [n] loaded or finished runs; borrowed, must outlive the model
 * @names: [n] what to call them, e.g. their paths; copied
 *
 * Errors: SNAP_E_NOMEM.
 */
snap_status report_model_new(report_model **out, results *const *runs, const char *const *names,
                             int n, snap_err *err) SNAP_CHECK_RESULT;
void report_model_free(report_model *m); /* NULL is allowed */

/**
 * report_model_add_samples - show questions and answers of a run on its page, too
 *
 * @name:         of the run
 * @path:         its samples.jsonl
 * @confidential: also answers to questions whose authors ask not to publish them
 *
 * Errors: as sample_index_open().
 */
snap_status report_model_add_samples(report_model *m, const char *name, const char *path,
                                     bool confidential, snap_err *err) SNAP_CHECK_RESULT;

/**
 * report_compare - put the model's files side by side: tables of machines and cells come first
 *
 * @prices: {"part of a device's name": dollars an hour, ...}, the longest part that fits counts;
 *          NULL = none
 *
 * SNAP_E_ENV where no cell is in two files; SNAP_E_USAGE for a price that is no positive number;
 * SNAP_E_NOMEM.
 */
snap_status report_compare(report_model *m, js *prices, snap_err *err) SNAP_CHECK_RESULT;

/**
 * report_paper - the paper's tables and figures in place of everything: measured, and reported
 * beside
 *
 * What the paper itself reports is built in. Errors: SNAP_E_NOMEM.
 */
snap_status report_paper(report_model *m, snap_err *err) SNAP_CHECK_RESULT;

/* Further reported figures, in the form that paper.h describes; @name is what messages call the
 * document, which is not kept. SNAP_E_INPUT with the row and what is wrong in it; SNAP_E_NOMEM. */
snap_status report_add_reported(report_model *m, const js *doc, const char *name,
                                snap_err *err) SNAP_CHECK_RESULT;

/* What `bench model` wrote to --out, or printed with --json; not kept. Errors as
 * report_add_reported(). */
snap_status report_add_e2e(report_model *m, const js *doc, const char *name,
                           snap_err *err) SNAP_CHECK_RESULT;

enum {
    REPORT_HTML = 1 << 0, /* report.html: one page, no request leaves it */
    REPORT_MD = 1 << 1,   /* report.md */
    REPORT_CSV = 1 << 2,  /* report.csv: a line a row of the result files, full precision */
    REPORT_TEX = 1 << 3, /* compare.tex, speed.tex, ablation.tex, parity.tex, model.tex: for \input;
                   of report_paper() paper.tex */
    REPORT_SVG = 1 << 4, /* the figures as files */
    REPORT_DEFAULT = REPORT_HTML | REPORT_MD | REPORT_CSV | REPORT_TEX,
};

/* "html,md" -> REPORT_HTML | REPORT_MD. SNAP_E_USAGE names an unknown one. */
snap_status report_parse_formats(const char *list, unsigned *formats,
                                 snap_err *err) SNAP_CHECK_RESULT;

/**
 * report_write - write the files of these formats into a folder
 *
 * @dir:   created when absent
 * @paths: the files written, one a line, appended; may be NULL
 *
 * A file without content is left out: no parity.tex where nothing was evaluated. Each file is
 * replaced atomically. Errors: SNAP_E_IO, SNAP_E_NOMEM.
 */
snap_status report_write(const report_model *m, const char *dir, unsigned formats, buf *paths,
                         snap_err *err) SNAP_CHECK_RESULT;

/* The Markdown on its own, appended. */
void report_markdown(const report_model *m, buf *out);

#endif
