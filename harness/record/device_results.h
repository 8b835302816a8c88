/* device_results.h - the result file of a command that measured a device. */
#ifndef SNAPMLA_HARNESS_RECORD_DEVICE_RESULTS_H
#define SNAPMLA_HARNESS_RECORD_DEVICE_RESULTS_H

#include "harness/measure/device.h"
#include "harness/record/results.h"

/* Makes a result document that names the command, its configuration, the backend and, if there is
 * one, the NVIDIA device. *out is NULL or owned by the caller (results_free()), also after an
 * error. */
snap_status results_of_device(results **out, const mla_backend *be, const device_options *d,
                              const char *command, const js *config, int64_t seed,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Writes the result file. @out_path is a file or a run's folder (results_file_of()). Missing
 * folders above the file are created. */
snap_status results_save_run(results *r, const char *out_path, snap_err *err) SNAP_CHECK_RESULT;

/* Writes the result file of a run that was interrupted (results_save_unfinished()). */
snap_status results_save_run_unfinished(results *r, const char *has, const char *out_path,
                                        snap_err *err) SNAP_CHECK_RESULT;

#endif
