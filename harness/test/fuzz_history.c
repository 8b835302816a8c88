/* Reads random bytes as a history of times. It is refused with a message, or its changes can be
 * computed and shown, and no cell that changed has a negative spread. */
#include <stdint.h>

#include "base/test/fuzz_file.h"
#include "base/test/fuzz_tree.h"
#include "harness/gate/history.h"
#include "harness/view/gate_verdicts.h"
#include "harness/view/writers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(const gate_history *h) {
    js *rows = NULL;
    buf text = {0};
    results *r = NULL;
    if (history_changes(h, &rows, NULL) != SNAP_OK ||
        results_new(&r, "gate", NULL, 0, NULL) != SNAP_OK ||
        results_add_all(r, "verdicts", js_copy(rows), NULL) != SNAP_OK)
        __builtin_trap(); /* results_add_all() also fails if a row does not fit the schema */
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        int64_t at = js_get_int(row, "at", 0);
        if (at < 1 || at > (int64_t)history_runs(h) ||
            history_spread(h, js_get_str(row, "name")) < 0)
            __builtin_trap();
    }
    table t = changes_table(rows);
    if (write_text(&t, false, &text, NULL) != SNAP_OK)
        __builtin_trap();
    table_release(&t);
    buf_release(&text);
    results_free(r);
    js_free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gate_history *h;
    snap_err err = {0};
    const char *path = fuzz_file("times.jsonl", data, size);
    snap_status st = history_load(&h, path, NULL, false, &err);
    if (st == SNAP_OK ? !h : h || !err.text[0])
        __builtin_trap();
    if (h)
        show(h);
    history_free(h);
    return 0;
}
