/* run_report.h - the report of one run: as files next to its result file, which eval_run() has
 * written, and as Markdown, which a bundle contains. */
#ifndef SNAPMLA_HARNESS_VIEW_RUN_REPORT_H
#define SNAPMLA_HARNESS_VIEW_RUN_REPORT_H

#include "harness/record/results.h"

/**
 * run_report_write - write the pages and tables of an evaluation into its RUN folder
 *
 * @dir:            the RUN folder; the page shows the questions and answers of its samples.jsonl
 * @keep_gpqa_text: also show the answers to GPQA, which may quote it
 *
 * Errors: as report_model_add_samples() and report_write().
 */
snap_status run_report_write(results *r, const char *dir, bool keep_gpqa_text,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Appends the report of a result file as Markdown. @name: the file's name in the report. */
snap_status run_report_markdown(results *r, const char *name, buf *out,
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
