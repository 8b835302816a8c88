/* compare_files.h - finds and reads the result files of a comparison, and refuses those that cannot
 * be compared with the others.
 *
 * Each name that the user gives is a device: a result file, the folder of a run, a folder of
 * ci/vendor.sh, or what the names of kept files of such a folder begin with. */
#ifndef SNAPMLA_HARNESS_VIEW_COMPARE_FILES_H
#define SNAPMLA_HARNESS_VIEW_COMPARE_FILES_H

#include "base/arena.h"
#include "harness/record/results.h"
#include "harness/view/report.h"

typedef struct {
    const char *name; /* the file or the run's folder; borrowed, or in `texts` */
    int given;        /* index of the user's name that means this file */
    results *r;       /* NULL: the file could not be read */
    const char *why;  /* why the comparison leaves the file out; NULL = it does not */
} compare_file;

typedef struct {
    compare_file *all; /* [n] */
    int n;
    results **runs;          /* [n_kept]: the files that are compared, in their order */
    const char **names;      /* [n_kept] */
    int *device_of;          /* [n_kept]: ascending, for report_group() */
    const char **given;      /* [n_devices]: what the user gave for the devices with kept files */
    report_refused *refused; /* [n - n_kept] */
    int n_kept, n_devices;
    arena texts; /* owns the reasons and some names */
} compare_files;

/**
 * compare_files_read - find and read files, and sort out those that are refused
 *
 * @names: [n], borrowed; one for each device. A folder without run.json stands for burst.json,
 *         sustained.json, fidelity.json and eval/run.json in it, as far as they exist. A name that
 *         is neither a file nor a folder stands for NAME-burst.json, NAME-sustained.json,
 *         NAME-fidelity.json and NAME-eval.json.
 *
 * A file of another schema or version is refused. So is a file of a run that ended before it began,
 * and a file whose cells all have another input or another arithmetic than the files before it. The
 * others are kept.
 *
 * Errors: SNAP_E_USAGE if files are missing, and the message names them all; SNAP_E_ENV if files
 * were refused and fewer than two are left; SNAP_E_IO, SNAP_E_NOMEM.
 * The caller calls compare_files_release(), also after an error.
 */
snap_status compare_files_read(compare_files *out, const char *const *names, int n,
                               snap_err *err) SNAP_CHECK_RESULT;
void compare_files_release(compare_files *f);

#endif
