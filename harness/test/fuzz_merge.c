/* Reads random bytes as the journals and samples of two shards, separated by NUL bytes. They are
 * refused with a message, or merged into a run that is graded and compared. */
#include <stdint.h>

#include "base/fs.h"
#include "base/term.h"
#include "base/test/fuzz_file.h"
#include "base/test/fuzz_tree.h"
#include "harness/eval/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SHARDS = 2 };

static void make_shard(char folder[128], const char *name, const uint8_t *data, size_t size,
                       size_t *rest) {
    static const char *const files[] = {"journal", "samples.jsonl"};
    char path[40];
    (void)snprintf(folder, 128, "%s", fuzz_path(name));
    if (fs_mkdirs(folder, NULL) != SNAP_OK)
        __builtin_trap();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        tree_value v = tree_part(data, size, rest);
        (void)snprintf(path, sizeof path, "%s/%s", name, files[i]);
        (void)fuzz_file(path, data + v.at, v.n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char problems[] = "{\"id\": \"q1\", \"problem\": \"1 + 1?\", \"answer\": 2}\n"
                                   "{\"id\": \"q2\", \"problem\": \"1 + 2?\", \"answer\": 3}\n";
    char shards[SHARDS][128], rows[128], out[128];
    results *r = NULL;
    snap_err err = {0};
    size_t rest = 1;
    if (!size)
        return 0;
    term_set_quiet(true);
    fuzz_remove_folder();
    fuzz_folder[0] = '\0';
    make_shard(shards[0], "s1", data, size, &rest);
    make_shard(shards[1], "s2", data, size, &rest);
    (void)snprintf(rows, sizeof rows, "%s", fuzz_file("rows.jsonl", problems, sizeof problems - 1));
    (void)snprintf(out, sizeof out, "%s", fuzz_path("out"));
    const char *const folders[] = {shards[0], shards[1]};
    const merge_options o = {
        .shards = folders, .n = SHARDS, .out = out, .data = rows, .partial = data[0] & 1};
    snap_status st = merge_shards(&o, NULL, &r, &err);
    if (st == SNAP_OK ? !r : !err.text[0])
        __builtin_trap();
    results_free(r);
    return 0;
}
