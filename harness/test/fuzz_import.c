/* Reads random bytes as a log of another program. It must be refused with a message, or give rows.
 * The rows can be written as a task and a recording, or that is refused with a message. */
#include <stdint.h>
#include <string.h>

#include "base/test/fuzz_file.h"
#include "harness/eval/foreign_log.h"
#include "harness/eval/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rows(const js *rows) {
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        if (!js_get_str(row, "problem") || !js_get_str(row, "prompt") ||
            !js_get_str(row, "where") || js_get_int(row, "sample", -1) < 0 ||
            (!js_get_str(row, "response") && !js_get_str(row, "error")))
            __builtin_trap();
    }
}

static void import(const char *path, import_options o) {
    char log[160];
    const char *logs[] = {log};
    snap_err err = {0};
    js *summary;
    (void)snprintf(log, sizeof log, "a=%s", path);
    o.logs = logs;
    o.n = 1;
    if (import_logs(&o, &summary, &err) != SNAP_OK && !err.text[0])
        __builtin_trap();
    js_free(summary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    foreign_log log;
    snap_err err = {0};
    char out[160], path[160];
    snap_status st = foreign_log_parse(&log, (const char *)data, size, "samples_t.jsonl", &err);
    if ((st == SNAP_OK) != (err.code == SNAP_OK))
        __builtin_trap();
    if (st == SNAP_OK) {
        check_rows(log.rows);
        (void)snprintf(out, sizeof out, "%s", fuzz_path("out"));
        (void)snprintf(path, sizeof path, "%s", fuzz_file("samples_t.jsonl", data, size));
        import(path, (import_options){.out = out, .metric = "acc"});
        import(path, (import_options){.out = out, .task = "gsm8k"});
    }
    foreign_log_release(&log);
    return 0;
}
