/* Packs and opens bundles. The first byte selects what the other bytes are.
 *   0  a bundle. It is refused with a message, or can be verified.
 *   1  manifest.json, run.json, config.json and samples.jsonl of a bundle, separated by NUL bytes.
 *   2  run.json, samples.jsonl, journal and report.md of a RUN folder, separated by NUL bytes. It
 *      is refused with a message, or packed. What was packed must be opened as the same run. */
#include <stdint.h>

#include "base/fs.h"
#include "base/test/fuzz_file.h"
#include "base/test/fuzz_tree.h"
#include "base/zip.h"
#include "harness/audit/bundle.h"
#include "harness/view/run_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARTS = 4 };

static const bundle_options kPack = {.report = run_report_markdown};

static results *open_bundle(const char *path, buf *samples, verify_findings *f) {
    results *r;
    snap_err err = {0};
    snap_status st = bundle_open(path, &r, samples, f, &err);
    if (st == SNAP_OK ? !r : r || !err.text[0])
        __builtin_trap();
    return r;
}

static void verify(const char *path) {
    buf samples = {0};
    verify_findings f = {0};
    snap_err err = {0};
    results *r = open_bundle(path, &samples, &f);
    if (r && verify_samples(r, &samples, "samples.jsonl", &f, &err) != SNAP_OK && !err.text[0])
        __builtin_trap();
    verify_release(&f);
    buf_release(&samples);
    results_free(r);
}

static void open_members(const uint8_t *data, size_t size) {
    static const char *const names[PARTS] = {"manifest.json", "run.json", "config.json",
                                             "samples.jsonl"};
    zip_entry entries[PARTS];
    buf zip = {0};
    size_t rest = 0, n = 0;
    while (n < PARTS && rest <= size) {
        tree_value v = tree_part(data, size, &rest);
        entries[n] = (zip_entry){names[n], data + v.at, v.n};
        n++;
    }
    if (zip_pack(entries, n, &zip, NULL) != SNAP_OK)
        __builtin_trap();
    verify(fuzz_file("run.zip", zip.data, zip.len));
    buf_release(&zip);
}

static void check_same(const char *run, const char *zip, tree_value samples) {
    buf found = {0};
    verify_findings f = {0};
    results *before = NULL, *packed = open_bundle(zip, &found, &f);
    char *file = results_file_of(run);
    if (!packed || !file || results_load(&before, file, NULL) != SNAP_OK ||
        !js_equal(results_document(packed), results_document(before)) || found.len != samples.n)
        __builtin_trap();
    free(file);
    verify_release(&f);
    results_free(before);
    results_free(packed);
    buf_release(&found);
    verify(zip);
}

static void pack_folder(const uint8_t *data, size_t size) {
    static const char *const names[PARTS] = {"run/run.json", "run/samples.jsonl", "run/journal",
                                             "run/report.md"};
    tree_value parts[PARTS];
    char run[128], zip[128];
    snap_err err = {0};
    size_t rest = 0;
    (void)snprintf(run, sizeof run, "%s", fuzz_path("run"));
    (void)snprintf(zip, sizeof zip, "%s", fuzz_path("run.zip"));
    if (fs_mkdirs(run, NULL) != SNAP_OK)
        __builtin_trap();
    for (int i = 0; i < PARTS; i++) {
        (void)unlink(fuzz_path(names[i]));
        parts[i] = tree_part(data, size, &rest);
        if (rest <= size + 1 && (parts[i].n || parts[i].at < size))
            (void)fuzz_file(names[i], data + parts[i].at, parts[i].n);
    }
    if (bundle_pack(run, zip, &kPack, &err) == SNAP_OK)
        check_same(run, zip, parts[1]);
    else if (!err.text[0])
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size)
        return 0;
    switch (data[0] % 3) {
    case 0:
        verify(fuzz_file("run.zip", data + 1, size - 1));
        break;
    case 1:
        open_members(data + 1, size - 1);
        break;
    default:
        pack_folder(data + 1, size - 1);
    }
    return 0;
}
