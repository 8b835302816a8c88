/* bundle.h - a run as one zip that says what is in it: for an archive, a reviewer, another machine.
 *
 *   manifest.json   {"schema": {"name": "snapmla.bundle", ...}, "files": [{"name", "bytes", "sha256"}]}
 *   run.json        the result file
 *   config.json     the resolved configuration, as run.json has it
 *   samples.jsonl, log, report.html, report.md, *.tex where the run has them
 *   journal         the same, with the last name only of an absolute path, as run.json
 *
 * Plain names, no folders; the same files give the same bytes. */
#ifndef SNAPMLA_HARNESS_AUDIT_BUNDLE_H
#define SNAPMLA_HARNESS_AUDIT_BUNDLE_H

#include "harness/audit/audit.h"

/* Appends a report of a result file as Markdown. @name: what the report calls the file. */
typedef snap_status (*bundle_report_fn)(results *r, const char *name, buf *out, snap_err *err);

/* Packs a RUN folder or a result file into @path. @report writes report.md for a run that has none. SNAP_E_INPUT where the result file is not valid;
 * SNAP_E_IO, SNAP_E_NOMEM. */
snap_status bundle_pack(const char *run, const char *path, bundle_report_fn report,
                        snap_err *err) SNAP_CHECK_RESULT;

/**
 * bundle_open - read a bundle and check it against its manifest
 *
 * @out:     its result file; caller owns it, results_free()
 * @samples: samples.jsonl; caller owns it, empty where there is none
 *
 * SNAP_E_INPUT naming the member: damaged, missing, not in the manifest, another hash, refused by
 * zip_each_member(), or a configuration that is not run.json's.
 */
snap_status bundle_open(const char *path, results **out, buf *samples,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Do the samples say what the result does? Counts and accuracies are taken again. SNAP_E_INPUT for a malformed
 * line. */
snap_status verify_samples(const results *r, const buf *samples, const char *name,
                           verify_findings *f, snap_err *err) SNAP_CHECK_RESULT;

#endif
