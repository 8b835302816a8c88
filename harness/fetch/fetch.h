/* fetch.h - the data sets of a manifest into a folder.
 *
 * A file is collected in PATH.part, checked against the manifest, and only then put in its place:
 * what lies in its place is whole and right. Files that are there are left alone. */
#ifndef SNAPMLA_HARNESS_FETCH_FETCH_H
#define SNAPMLA_HARNESS_FETCH_FETCH_H

#include <signal.h>

#include "harness/fetch/manifest.h"

typedef struct {
    const char *dir;    /* created when absent */
    const char *mirror; /* a URL whose folders look like a filled dir; NULL = none */
    int retries;        /* see download.h */
    double wait_s;      /* the same */
    const volatile sig_atomic_t *cancel; /* may be NULL */
} fetch_options;

typedef enum {
    FETCH_ABSENT,
    FETCH_PARTIAL,   /* begun; the rest is asked for next */
    FETCH_THERE,     /* and as the manifest says */
    FETCH_UNCHECKED, /* there; the manifest has no checksum */
    FETCH_DIFFERS,   /* there, with another checksum */
    FETCH_NEW,       /* now fetched */
    FETCH_RESUMED,   /* now fetched, going on with what an earlier attempt had brought */
} fetch_state;

const char *fetch_state_name(fetch_state s); /* "absent", "partial", ... */

/* What is in @dir of a file. SNAP_E_IO; SNAP_E_NOMEM. */
snap_status fetch_check(const manifest_file *f, const char *dir, fetch_state *out,
                        snap_err *err) SNAP_CHECK_RESULT;

typedef void (*fetch_done_fn)(void *ctx, const manifest_set *set, const manifest_file *f,
                              fetch_state state);

/**
 * fetch_sets - bring every file of the chosen sets that is not there
 *
 * @chosen: [m->n], which
 * @done:  called for each file as it is done, also for those that were there; may be NULL
 *
 * Stops at the first failure; the same call goes on from there. As download() fails; SNAP_E_USAGE
 * for a bad mirror; SNAP_E_INPUT with both checksums when the download's is wrong (it is deleted)
 * and when the folder holds a file of another one (it is left alone); SNAP_E_IO when the disk has
 * too little room, and with the holder's process id while another process fetches into @dir.
 */
snap_status fetch_sets(const manifest *m, const bool *chosen, const fetch_options *opt,
                       fetch_done_fn done, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
