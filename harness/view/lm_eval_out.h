/* lm_eval_out.h - a run in the files of lm-evaluation-harness, for programs that read those. */
#ifndef SNAPMLA_HARNESS_VIEW_LM_EVAL_OUT_H
#define SNAPMLA_HARNESS_VIEW_LM_EVAL_OUT_H

#include "base/buf.h"

/**
 * lm_eval_write - write OUT/ARM/results_DATE.json and OUT/ARM/samples_TASK_DATE.jsonl of each arm
 *
 * @run:     the folder of a run
 * @data:    the folder of the data, from which the prompts are made again; NULL: the one that the
 *           run names
 * @written: the paths of the written files are appended, one per line
 *
 * The metric is "acc": for a task the accuracy, for a problem the mean score of its samples. The
 * date is when the run started (UTC), in lm-eval's form. Tasks whose authors ask that no text is
 * published have no samples file. Failed samples are left out, and so are problems whose samples
 * all failed. A prompt is "" if the sample does not contain it and the data are not there or give a
 * prompt with another hash. A warning says that the data are not there, or else how many prompts
 * are empty.
 *
 * SNAP_E_INPUT for names that cannot be names of files; errors of results_load() and
 * sample_index_open(); with @data also those of run_prompts_open(); SNAP_E_IO; SNAP_E_NOMEM.
 */
snap_status lm_eval_write(const char *run, const char *data, const char *out, buf *written,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
