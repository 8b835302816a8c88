/* fetch.h - downloads the data sets of a manifest into a folder.
 *
 * A file is downloaded to PATH.part and checked against the manifest's checksum, if there is one.
 * Then it is renamed to PATH, or PATH is written from it if its rows must be converted. Rows that
 * come in several pages are downloaded page by page, without a checksum, and PATH is written after
 * the last one. So a file that was fetched to PATH is complete. Files that exist already are not
 * downloaded again. */
#ifndef SNAPMLA_HARNESS_FETCH_FETCH_H
#define SNAPMLA_HARNESS_FETCH_FETCH_H

#include <signal.h>

#include "harness/fetch/manifest.h"

typedef struct {
    const char *dir;    /* created if it does not exist */
    const char *mirror; /* URL of a folder with the same layout as dir; NULL = none */
    int retries;        /* see download.h */
    double wait_s;      /* see download.h */
    const volatile sig_atomic_t *cancel; /* may be NULL */
} fetch_options;

typedef enum {
    FETCH_ABSENT,
    FETCH_PARTIAL,   /* PATH.part exists, but not PATH */
    FETCH_THERE,     /* present, and its checksum is right */
    FETCH_UNCHECKED, /* present, but there is no checksum to compare */
    FETCH_DIFFERS,   /* present, with another checksum */
    FETCH_NEW,       /* just fetched */
    FETCH_RESUMED,   /* just fetched; its beginning came from an earlier attempt */
} fetch_state;

const char *fetch_state_name(fetch_state s); /* "absent", "partial", ... */

/* True if the file in the folder has been compared with a checksum of the manifest: of the file
 * itself or, for rows that were just downloaded and converted, of the download. @mirror: as in
 * fetch_options; a mirror holds converted files, whose checksums are not known. */
bool fetch_is_verified(const manifest_file *f, fetch_state state, const char *mirror);

/* Sets *out to the state of file @f in folder @dir. SNAP_E_IO; SNAP_E_NOMEM. */
snap_status fetch_check(const manifest_file *f, const char *dir, fetch_state *out,
                        snap_err *err) SNAP_CHECK_RESULT;

typedef void (*fetch_done_fn)(void *ctx, const manifest_set *set, const manifest_file *f,
                              fetch_state state);

/**
 * fetch_sets - download every missing file of the chosen sets
 *
 * @chosen: [m->n]; true for each set to fetch
 * @done:   called after each file, also for files that existed already; may be NULL
 *
 * Stops at the first failure. The same call continues from there. Errors are those of download()
 * and these: SNAP_E_USAGE for a bad mirror; SNAP_E_INPUT, with both checksums, if that of the
 * download is wrong (the download is deleted) or if the folder holds a file with another checksum
 * (that file is kept); SNAP_E_INPUT if the rows cannot be converted (rows.h); SNAP_E_IO if the disk
 * has too little room, or if another process is fetching into @opt->dir (the message has its
 * process id).
 */
snap_status fetch_sets(const manifest *m, const bool *chosen, const fetch_options *opt,
                       fetch_done_fn done, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
