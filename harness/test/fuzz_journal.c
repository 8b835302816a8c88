/* Reads random bytes as the journal of a run that is resumed. It is refused with a message, or a
 * new row "a" can be appended. After the journal is opened again, row "a" is the new one, and row
 * "b" is as it was. */
#include <stdint.h>

#include "base/test/fuzz_file.h"
#include "base/test/fuzz_tree.h"
#include "harness/record/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char kHash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static results_journal *open_journal(const char *path) {
    results_journal *j;
    snap_err err = {0};
    snap_status st = results_journal_open(&j, path, kHash, &err);
    if (st == SNAP_OK ? !j : j || !err.text[0])
        __builtin_trap();
    return j;
}

static void check_row(const results_journal *j, const char *key, const js *row) {
    const js *found = results_journal_find(j, key);
    if (!found || !js_equal(found, row))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_file("journal", data, size);
    results_journal *j = open_journal(path);
    if (!j)
        return 0;
    const js *old = results_journal_find(j, "b");
    js *before = old ? js_copy(old) : NULL, *row = js_new_object();
    if (!js_set_int(row, "x", 1) || results_journal_append(j, "a", row, NULL) != SNAP_OK)
        __builtin_trap();
    results_journal_close(j);
    j = open_journal(path);
    if (!j)
        __builtin_trap();
    check_row(j, "a", row);
    if (before)
        check_row(j, "b", before);
    else if (results_journal_find(j, "b"))
        __builtin_trap();
    js_free(before);
    js_free(row);
    if (results_journal_remove(j, NULL) != SNAP_OK)
        __builtin_trap();
    return 0;
}
