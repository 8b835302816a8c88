#include "harness/eval/run_files.h"

#include <stdlib.h>

#include "base/fs.h"
#include "base/hash.h"

const char *run_file(arena *mem, const char *run, const char *name) {
    char *path = fs_join(run, name);
    const char *kept = path ? arena_strdup(mem, path) : NULL;
    free(path);
    return kept;
}

snap_status run_journal_open(results_journal **out, const char *run, snap_err *err) {
    char format[HASH_HEX]; /* equal for all evaluations; plan_check_identity() refuses a run of
                              another configuration */
    char *path = fs_join(run, "journal");
    snap_status st = path ? hash_bytes("eval", 4, format, err)
                          : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", run);
    if (st == SNAP_OK)
        st = results_journal_open(out, path, format, err);
    free(path);
    return st;
}

snap_status run_journal_put(results_journal *j, const char *key, js *row, snap_err *err) {
    snap_status st = row ? results_journal_append(j, key, row, err)
                         : err_set(err, SNAP_E_NOMEM, "out of memory for the journal");
    js_free(row);
    return st;
}
