/* arm_files.h - the files that the arms of a run consist of: plugins, Python files and cache
 * formats, with the hashes that the rows have. A bundle carries them. */
#ifndef SNAPMLA_HARNESS_AUDIT_ARM_FILES_H
#define SNAPMLA_HARNESS_AUDIT_ARM_FILES_H

#include "base/hash.h"
#include "harness/audit/audit.h"
#include "harness/record/arm_file.h"

enum { ARM_FILES_MAX = 96 }; /* more files are not listed */

typedef struct {
    char name[ARM_FILE_NAME]; /* the file's name in the bundle: "arm-mine=mine.so", "plugin-acme.so"
                                 or "format-0123456789ab.json" */
    const char *sha256;
    const char *content; /* for the file of a cache format: its descriptor. NULL for other files */
} arm_file;

typedef struct {
    arm_file at[ARM_FILES_MAX];
    size_t n;
} arm_files;

/* Lists the files of the rows of `bench`, of the backend and of the arms of `evals`. Two files with
 * equal names are both listed. Strings are borrowed from @r. */
void arm_files_list(const run_record *r, arm_files *out);

/* Sets *found, and the hash of the file with that name if it exists. */
typedef snap_status (*arm_file_fn)(void *ctx, const char *name, char hex[HASH_HEX], bool *found,
                                   snap_err *err);

/* Compares the files with the hashes of the rows. A file with another hash is a finding of kind
 * form, and a missing one is a note. Errors: those of @hash. */
snap_status verify_arm_files(const arm_files *files, arm_file_fn hash, void *ctx,
                             verify_findings *f, snap_err *err) SNAP_CHECK_RESULT;

/* Compares the copies of plugins and Python files in a run's folder with the hashes of the rows, as
 * verify_arm_files() does. Formats are not compared, because the folder has no files of them.
 * Errors of reading the files, SNAP_E_NOMEM. */
snap_status verify_folder_files(const results *r, const char *dir, verify_findings *f,
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
