/* choice.h - the data sets of a manifest that a command line names, and what a folder holds of
 * them. */
#ifndef SNAPMLA_HARNESS_FETCH_CHOICE_H
#define SNAPMLA_HARNESS_FETCH_CHOICE_H

#include "base/json.h"
#include "harness/fetch/manifest.h"

typedef struct {
    manifest all;
    bool *chosen; /* [all.n] */
} fetch_choice;

typedef struct {
    const char *path;         /* path of the manifest; NULL = the program's own
                                 datasets/manifest.json (share.h) */
    const char *const *names; /* [n]; n = 0 chooses all sets, except the large ones if `large` is
                                 false */
    int n;
    bool large; /* n = 0: the large ones, too */
} fetch_wanted;

/* SNAP_E_USAGE if the manifest lacks a name, or if the program's own manifest is not found.
 * SNAP_E_NOMEM. Also the errors of manifest_load(). Release with fetch_choice_release(), also after
 * an error. */
snap_status fetch_choose(fetch_choice *c, const fetch_wanted *w, snap_err *err) SNAP_CHECK_RESULT;
void fetch_choice_release(fetch_choice *c);

/**
 * fetch_list - what a data folder holds of the chosen sets
 *
 * @out: [{"name", "state", "rows", "large", "bytes" (null = unknown), "files", "unverified" (files
 *       without a checksum), "title", "licence", "home", "notice"}]; caller owns it, also after an
 *       error
 *
 * Errors: those of fetch_check().
 */
snap_status fetch_list(const fetch_choice *c, const char *dir, js **out,
                       snap_err *err) SNAP_CHECK_RESULT;

#endif
