/* report.h - the report for people: tables and figures from one or more result files.
 *
 *   report_model_new()  ->  report_write()  ->  report_model_free()
 *
 * HTML, Markdown and LaTeX show tables from the same builders (tables.h). Names come from outside
 * (tasks, models, reasons), and each writer escapes them for its format. Cells of the origin
 * "reported" have a table of their own. No figure, mean or ranking includes them. */
#ifndef SNAPMLA_HARNESS_VIEW_REPORT_H
#define SNAPMLA_HARNESS_VIEW_REPORT_H

#include <stdbool.h>

#include "base/buf.h"
#include "harness/record/results.h"

typedef struct report_model report_model;

/**
 * report_model_new - turn the results of runs into the model that the writers use
 *
 * @out:   caller owns it, release with report_model_free(); NULL on failure
 * @runs:  [n] results, loaded from a file or just measured; borrowed, must outlive the model
 * @names: [n] names of the runs in the report, for instance their paths; copied
 *
 * Errors: SNAP_E_NOMEM.
 */
snap_status report_model_new(report_model **out, results *const *runs, const char *const *names,
                             int n, snap_err *err) SNAP_CHECK_RESULT;
void report_model_free(report_model *m); /* NULL is allowed */

/**
 * report_model_add_samples - also show questions and answers of a run on the page
 *
 * @name:         name of the run
 * @path:         path of its samples.jsonl
 * @confidential: include answers to questions whose authors ask not to publish them
 *
 * Errors: those of sample_index_open(), SNAP_E_NOMEM.
 */
snap_status report_model_add_samples(report_model *m, const char *name, const char *path,
                                     bool confidential, snap_err *err) SNAP_CHECK_RESULT;

/* Whether @file has rows with the scope, shape and precision of rows in earlier files, and all of
 * them differ from those in the input or in the arithmetic of the arm. Then the files cannot be
 * compared, and a sentence that names both files, the conditions and their values is appended to
 * @why. Rows of files with @refused[file] do not count. */
bool report_unlike(const report_model *m, int file, const bool *refused, buf *why);

/**
 * report_group - say which files of the model belong to one device, before report_compare()
 *
 * @device_of: [files of the model] ascending numbers of devices, from 0; copied
 * @given:     [n] how the user named the files of each device; copied
 *
 * Without it, each file is a device of its own. Errors: SNAP_E_NOMEM.
 */
snap_status report_group(report_model *m, const int *device_of, const char *const *given, int n,
                         snap_err *err) SNAP_CHECK_RESULT;

/* A file that a comparison leaves out, and the reason. The strings are borrowed. */
typedef struct {
    const char *file, *why;
} report_refused;

/**
 * report_compare - compare the devices of the model; tables of devices and cells come first
 *
 * @prices:  {"part of a device's name": {"usd_per_hour": number, "date": text, "source": text},
 *           ...}; the longest part that matches is used; NULL = no prices
 * @refused: [n_refused] files that are not in the model, for a table of their own; borrowed until
 *           report_model_free()
 *
 * SNAP_E_ENV if no measured cell is in files of two devices; SNAP_E_USAGE for a price of another
 * form or without date or source; SNAP_E_NOMEM.
 */
snap_status report_compare(report_model *m, js *prices, const report_refused *refused,
                           size_t n_refused, snap_err *err) SNAP_CHECK_RESULT;

/**
 * report_paper - show the paper's tables and figures, measured and reported, instead of the full
 * report
 *
 * The figures that the paper itself reports are built in. Errors: those of report_add_reported().
 */
snap_status report_paper(report_model *m, snap_err *err) SNAP_CHECK_RESULT;

/* Adds more reported figures, in the form of paper.h. @name names the document in messages. @doc is
 * not kept. SNAP_E_INPUT, with the row and its error; SNAP_E_NOMEM. */
snap_status report_add_reported(report_model *m, const js *doc, const char *name,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Adds the output of the whole-model benchmark: the file from --out or the text from --json. @doc
 * is not kept. Errors as in report_add_reported(). */
snap_status report_add_e2e(report_model *m, const js *doc, const char *name,
                           snap_err *err) SNAP_CHECK_RESULT;

enum {
    REPORT_HTML = 1 << 0, /* report.html: one page that loads nothing from elsewhere */
    REPORT_MD = 1 << 1,   /* report.md */
    REPORT_CSV = 1 << 2,  /* report.csv (csv.c): the rows of the files, at full precision */
    /* compare.tex, speed.tex, ablation.tex, parity.tex, serving.tex, model.tex, for \input; after
     * report_paper() only paper.tex. Files without a table are left out. */
    REPORT_TEX = 1 << 3,
    REPORT_SVG = 1 << 4, /* each figure as a file */
    /* tidy-SECTION.csv: the rows of report.csv, one file for each kind of row, with the columns of
     * that kind */
    REPORT_TIDY = 1 << 5,
    REPORT_DEFAULT = REPORT_HTML | REPORT_MD | REPORT_CSV | REPORT_TEX,
};

/* Parses "html,md" to REPORT_HTML | REPORT_MD; "all" means all six. SNAP_E_USAGE, naming an
 * unknown format. */
snap_status report_parse_formats(const char *list, unsigned *formats,
                                 snap_err *err) SNAP_CHECK_RESULT;

/**
 * report_write - write the files of these formats into a folder
 *
 * @dir:   created if it does not exist
 * @paths: the paths of the files are appended, one per line; may be NULL
 *
 * A file without content is not written: there is no parity.tex if nothing was evaluated. Each file
 * is replaced atomically. Errors: SNAP_E_IO, SNAP_E_NOMEM.
 */
snap_status report_write(const report_model *m, const char *dir, unsigned formats, buf *paths,
                         snap_err *err) SNAP_CHECK_RESULT;

/* Appends the report in Markdown. */
void report_markdown(const report_model *m, buf *out);

#endif
