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
    const char *out;     /* the folder to write into; NULL: nothing is written */
    const char *formats; /* report_parse_formats() */
    bool join;           /* report all files as one run, and write that as OUT/run.json */
    bool samples;        /* show questions and answers, where a RUN folder has them */
    bool keep_gpqa_text; /* also the answers to GPQA, which may quote it */
    bool paper;          /* the paper's tables and figures (report_paper()), and beside them: */
    report_paths reported, e2e;
    bool json;        /* print the result document in place of Markdown; several are joined */
    const js *config; /* the resolved options, for a joined document */
} report_files_options;

/**
 * report_files - report result files and RUN folders
 *
 * @files:   may be none for the paper
 * @printed: what belongs on standard output, appended: the document (json), the paths of the files
 *           written (out), or the report as Markdown
 *
 * SNAP_E_USAGE for options that contradict each other and for files of two machines that are to be
 * joined; what reading and writing files gives.
 */
snap_status report_files(report_paths files, const report_files_options *o, buf *printed,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
