/* run_report.h - the report of one run: what eval_run() writes beside a result file and what a
 * bundle holds. */
#ifndef SNAPMLA_HARNESS_VIEW_RUN_REPORT_H
#define SNAPMLA_HARNESS_VIEW_RUN_REPORT_H

#include "harness/record/results.h"

/**
 * run_report_write - write the pages and tables of an evaluation into its RUN folder
 *
 * @dir:            the RUN folder; its samples.jsonl gives the page questions and answers
 * @keep_gpqa_text: also show the answers to GPQA, which may quote it
 *
 * Errors: as report_model_add_samples() and report_write().
 */
snap_status run_report_write(results *r, const char *dir, bool keep_gpqa_text,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Appends the report of a result file as Markdown. @name: what the report calls the file. */
snap_status run_report_markdown(results *r, const char *name, buf *out,
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
