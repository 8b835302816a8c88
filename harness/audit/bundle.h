/* bundle.h - a run as one zip file with a manifest, for an archive, a reviewer or another machine.
 *
 *   manifest.json   {"schema": {"name": "snapmla.bundle", ...}, "program",
 *                    "files": [{"name", "bytes", "sha256"}]}
 *   run.json        the result file
 *   config.json     the resolved configuration that run.json has
 *   report.md       a copy if the run has one, else made from run.json
 *   samples.jsonl, log, report.html, report.csv, parity.tex, speed.tex: copies, if the run has them
 *   journal         if the run has one, with absolute paths shortened to their last name
 *   arm-NAME=FILE, plugin-FILE
 *                   the plugin or Python file of an arm, with the hash that its rows have
 *   format-HASH.json
 *                   the descriptor of a cache format, as the rows have it
 *
 * The zip has no folders. The same build makes the same bytes from the same files. */
#ifndef SNAPMLA_HARNESS_AUDIT_BUNDLE_H
#define SNAPMLA_HARNESS_AUDIT_BUNDLE_H

#include "harness/audit/audit.h"

/* Appends a Markdown report of a result file. @name: name of that file in the report. */
typedef snap_status (*bundle_report_fn)(results *r, const char *name, buf *out, snap_err *err);

typedef struct {
    bundle_report_fn report;  /* writes report.md if there is none */
    const char *const *files; /* [n_files] paths of plugins and Python files that the run's folder
                                 does not have */
    int n_files;
} bundle_options;

/* Packs a RUN folder or a result file into @path. Warns about each file of an arm that is not
 * there. Errors: those of results_load() and `report`; SNAP_E_INPUT if the journal is not valid, or
 * if a file of an arm is not the one that was measured; SNAP_E_IO, also if one of these files of a
 * RUN folder is a symbolic link or not a regular file: a bundle must not hold what lies outside of
 * the folder; SNAP_E_NOMEM. */
snap_status bundle_pack(const char *run, const char *path, const bundle_options *opt,
                        snap_err *err) SNAP_CHECK_RESULT;

/**
 * bundle_open - read a bundle and check it against its manifest
 *
 * @out:     its result file; caller owns it, results_free()
 * @samples: samples.jsonl; caller owns it, empty if the bundle has none
 * @f:       findings about the files of arms are added: see verify_arm_files()
 *
 * SNAP_E_INPUT: the message names the file that is damaged, missing, not in the manifest, has
 * another hash, or was refused by zip_each_member(); or config.json differs from run.json. Also the
 * errors of results_parse(), and SNAP_E_IO.
 */
snap_status bundle_open(const char *path, results **out, buf *samples, verify_findings *f,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Computes from the samples what the result states about each arm: the numbers of scored, failed
 * and repaired samples, the accuracy, the second opinions, the reasons of failures, and the hash of
 * its requests' settings. Adds a finding where the result differs. SNAP_E_INPUT: a malformed line.
 * SNAP_E_NOMEM. */
snap_status verify_samples(const results *r, const buf *samples, const char *name,
                           verify_findings *f, snap_err *err) SNAP_CHECK_RESULT;

#endif
