#include "harness/bench/bench_journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"

/* The hash of the configuration without `ceilings` and `out`, which the measured rows do not depend
 * on. */
static snap_status rows_hash(const js *config, char hash[HASH_HEX], snap_err *err) {
    buf text = {0};
    js *copy = js_copy(config);
    snap_status st = copy ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory");
    (void)js_delete(copy, "out");
    (void)js_delete(copy, "ceilings");
    if (st == SNAP_OK)
        st = js_write(copy, JS_COMPACT, &text, err);
    if (st == SNAP_OK)
        st = hash_bytes(text.data, text.len, hash, err);
    js_free(copy);
    buf_release(&text);
    return st;
}

snap_status bench_journal_open(results_journal **journal, const char *run, const js *config,
                               snap_err *err) {
    char hash[HASH_HEX];
    buf path = {0};
    char *file = results_file_of(run);
    snap_status st = SNAP_OK;
    if (!file)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    if (strcmp(file, run) == 0) {
        (void)buf_printf(&path, "%s.journal", run);
    } else {
        (void)buf_printf(&path, "%s/journal", run);
        st = fs_mkdirs(run, err);
    }
    TRY(st);
    TRY(buf_check(&path, "a path", err));
    TRY(rows_hash(config, hash, err));
    TRY(results_journal_open(journal, buf_str(&path), hash, err));
cleanup:
    free(file);
    buf_release(&path);
    return st;
}
