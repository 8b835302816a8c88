/* report_files.h - a report from files: `snapmla report` and `snapmla report paper`. */
#ifndef SNAPMLA_HARNESS_VIEW_REPORT_FILES_H
#define SNAPMLA_HARNESS_VIEW_REPORT_FILES_H

#include "base/buf.h"
#include "harness/record/results.h"

typedef struct {
    const char *const *paths;
    int n;
} report_paths;

typedef struct {
    const char *out;            /* the folder to write into; NULL: nothing is written */
    const char *formats;        /* report_parse_formats() */
    bool join;                  /* report all files as one run, and write it to OUT/run.json */
    bool samples;               /* show questions and answers in report.html, if a RUN folder has
                                   them; not with `paper` */
    bool keep_gpqa_text;        /* also show the answers to GPQA, which may quote it */
    bool paper;                 /* make the paper's tables and figures: report_paper() */
    report_paths reported, e2e; /* further input for the paper */
    bool json;        /* print the result document, not Markdown or paths; if there are several
                         files, they are joined first */
    const js *config; /* the resolved options, for a joined document */
} report_files_options;

/**
 * report_files - report result files and RUN folders
 *
 * @files:   may be empty for the paper
 * @printed: the text for standard output is appended: the document (@json), the paths of the
 *           written files (@out), or the report as Markdown
 *
 * SNAP_E_USAGE for an unknown format, for options that contradict each other, and for joining files
 * with ceilings of two machines. Also errors of reading and writing files.
 */
snap_status report_files(report_paths files, const report_files_options *o, buf *printed,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
