/* audit.h - can a result file be what it says? Asked of files from elsewhere, before anybody compares with
 * them.
 *
 *   form         keys and types (results_load() has seen to these), hashes, order of times, sums     3
 *   correctness  a speed without a passed check, or one judged by too generous a tolerance           7
 *   physics      faster than the file's own ceilings admit and not flagged, rates that don't follow
 *                from time and shape, a speed-up that two floors rule out and no flag says so        7
 *   mixed        rows of one run under different conditions                                          6
 *   note         nothing wrong, but to be known: an uncommitted build, other work on the machine     0
 *
 * The number is the exit code; of several 3, 7, 6 in that order. What is not checked: whether somebody
 * measured at all. A consistent invention passes. */
#ifndef SNAPMLA_HARNESS_AUDIT_AUDIT_H
#define SNAPMLA_HARNESS_AUDIT_AUDIT_H

#include "harness/record/run.h"

/* What was found: an array of {"kind", "where", "what"}, the first VERIFY_MAX of each kind, and how many of
 * each there are. */
enum { VERIFY_MAX = 40 };
typedef enum {
    VERIFY_FORM,
    VERIFY_CORRECTNESS,
    VERIFY_PHYSICS,
    VERIFY_MIXED,
    VERIFY_NOTE
} verify_kind;
enum { VERIFY_KINDS = 5 };
const char *verify_kind_name(verify_kind k);

typedef struct {
    js *rows; /* owned */
    size_t n[VERIFY_KINDS];
    size_t checks; /* statements of the file that were compared with something */
    bool failed;   /* out of memory */
} verify_findings;
void verify_release(verify_findings *f);

/* Notes one finding. */
void verify_add(verify_findings *f, verify_kind kind, const char *where, const char *fmt, ...)
    SNAP_PRINTF(4, 5);

/* Checks everything in a document and adds what it finds. */
void verify_document(const results *r, verify_findings *f);

/* Its parts: rows of bench and ceilings; of evals and verdicts; which plugin and checkpoints. */
void verify_bench(const run_record *r, verify_findings *f);
void verify_quality(const run_record *r, verify_findings *f);
void verify_origin(const run_record *r, verify_findings *f);

/* Is that file or folder what the run had? A finding of form where not. SNAP_E_IO where it can't be read. */
snap_status verify_plugin(const results *r, const char *path, verify_findings *f,
                          snap_err *err) SNAP_CHECK_RESULT;
snap_status verify_checkpoint(const results *r, const char *dir, verify_findings *f,
                              snap_err *err) SNAP_CHECK_RESULT;

/* SNAP_OK, or the status of the table above with the first finding. SNAP_E_NOMEM. */
snap_status verify_status(const verify_findings *f, snap_err *err) SNAP_CHECK_RESULT;

#endif
