/* audit.h - checks whether a result file is consistent with itself. It is for files from other
 * people, before anything is compared with them. There are five kinds of findings. The number is
 * the exit code, and the texts are examples:
 *
 *   form         3  wrong keys or types (results_load() checks these), hashes, order of times,
 *                   statistics that the samples do not give
 *   correctness  7  a speed without a passed check, or checked with too large a tolerance; an
 *                   accuracy or a verdict that does not follow from its data
 *   physics      7  a time below the floor that the file's own ceilings set; rates that do not
 *                   follow from time and shape; a speed-up above the ratio of the two floors
 *                   without the flag weak_baseline
 *   mixed        6  rows of one run under different conditions
 *   note         0  not an error, but worth knowing: an uncommitted build, other work
 *
 * With several kinds the exit code is the first of 3, 7, 6. The audit cannot find out whether
 * anything was measured: a consistent invention passes. */
#ifndef SNAPMLA_HARNESS_AUDIT_AUDIT_H
#define SNAPMLA_HARNESS_AUDIT_AUDIT_H

#include "harness/record/run.h"

/* Of each kind, the first VERIFY_MAX findings are kept. All are counted. */
enum { VERIFY_MAX = 40 };
typedef enum {
    VERIFY_FORM,
    VERIFY_CORRECTNESS,
    VERIFY_PHYSICS,
    VERIFY_MIXED,
    VERIFY_NOTE
} verify_kind;
enum { VERIFY_KINDS = 5 };

typedef struct {
    js *rows; /* array of {"kind", "where", "what"}, owned; NULL = no finding */
    size_t n[VERIFY_KINDS];
    size_t checks; /* how many statements of the file were checked */
    bool failed;   /* out of memory */
} verify_findings;
void verify_release(verify_findings *f);

/* Adds one finding. */
void verify_add(verify_findings *f, verify_kind kind, const char *where, const char *fmt, ...)
    SNAP_PRINTF(4, 5);

/* The largest relative difference that rounding in the JSON text may cause, and whether two numbers
 * differ by at most that. */
extern const double verify_rounding; /* 1e-6 */
bool verify_is_near(double a, double b);

/* Checks a whole document and adds the findings to @f. */
void verify_document(const results *r, verify_findings *f);

/* Parts of verify_document(): bench rows; steps of whole models; exchanges between GPUs;
 * predicted decode steps; evals and verdicts; the backend, its plugin, and the checkpoints of
 * arms. */
void verify_bench(const run_record *r, verify_findings *f);
void verify_steps(const run_record *r, verify_findings *f);
void verify_exchange(const run_record *r, verify_findings *f);
void verify_predicted(const run_record *r, verify_findings *f);
void verify_quality(const run_record *r, verify_findings *f);
void verify_origin(const run_record *r, verify_findings *f);

/* Another part of verify_document(). If a row names a challenge (bench/challenge.h), derives it
 * again, and adds a finding for each row that differs from it and for each row whose arm and scope
 * do not have every cell exactly once. */
void verify_challenge(const run_record *r, verify_findings *f);

/* Compare the hash of a plugin's file or of a checkpoint's folder with those in the result. If none
 * is the same, that is a finding of kind form. SNAP_E_IO if the file or folder cannot be read,
 * SNAP_E_INPUT for a folder without checkpoint files, SNAP_E_NOMEM. */
snap_status verify_plugin(const results *r, const char *path, verify_findings *f,
                          snap_err *err) SNAP_CHECK_RESULT;
snap_status verify_checkpoint(const results *r, const char *dir, verify_findings *f,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Computes the rows of servers under load again from the file @requests (requests.jsonl), and
 * compares them. A row that differs, or that the requests do not give, is a finding of kind
 * correctness. Rows that do not fit together, or requests that do not fit them, are one of kind
 * form. Errors: those of request_lines_read(); SNAP_E_NOMEM. */
snap_status verify_serving(const results *r, const char *requests, verify_findings *f,
                           snap_err *err) SNAP_CHECK_RESULT;

/* SNAP_OK, or the status whose exit code the table above names, with the number and the first of
 * its findings as the message. SNAP_E_NOMEM. */
snap_status verify_status(const verify_findings *f, snap_err *err) SNAP_CHECK_RESULT;

#endif
