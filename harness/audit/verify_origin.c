/* verify_origin.c - the files behind a result: a plugin's shared object, checkpoints. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/checkpoint/digest.h"
#include "harness/audit/audit.h"

static const char *text_of(const js *o, const char *key) {
    const char *s = js_get_str(o, key);
    return s ? s : "";
}

static bool is_ours(const char *backend) {
    static const char *const ours[] = {"cpu", "cuda", "opencl"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(backend, ours[i]) == 0)
            return true;
    return false;
}

static const js *plugin_of(const results *r) {
    const js *p = js_get_object(results_document(r), "provenance");
    return js_get_object(js_get_object(p, "backend"), "plugin");
}

/* ---- in the document ---- */

static void check_backend(const results *r, verify_findings *f) {
    const js *p = js_get_object(results_document(r), "provenance");
    const js *backend = js_get_object(p, "backend");
    const char *name = text_of(backend, "name");
    f->checks += backend != NULL;
    if (backend && !plugin_of(r) && !is_ours(name))
        verify_add(f, VERIFY_FORM, "provenance.backend",
                   "'%s' is no backend of the program, and no plugin is named that it came from",
                   name);
    if (plugin_of(r) && is_ours(name))
        verify_add(f, VERIFY_FORM, "provenance.backend", "'%s' is not what a plugin may be called",
                   name);
}

/* The code that was measured is the plugin's file. */
static void check_rows(const results *r, verify_findings *f) {
    const js *rows = results_section(r, "bench");
    const char *sha256 = text_of(plugin_of(r), "sha256");
    char where[64];
    for (size_t i = 0; i < js_len(rows) && plugin_of(r); i++) {
        const char *hash = js_get_str(js_at(rows, i), "kernel_hash");
        (void)snprintf(where, sizeof where, "bench[%zu]", i);
        f->checks++;
        if (hash && strcmp(hash, sha256) != 0)
            verify_add(f, VERIFY_FORM, where, "code with the hash %.12s, the plugin's is %.12s",
                       hash, sha256);
    }
}

/* One folder is one checkpoint, and two arms of a comparison have the same one. */
static void check_arm(const js *arms, size_t a, const char *where, verify_findings *f) {
    const js *arm = js_at(arms, a), *first = js_at(arms, 0);
    const char *digest = js_get_str(arm, "checkpoint_sha256");
    const char *other = js_get_str(first, "checkpoint_sha256");
    f->checks += digest != NULL;
    if (!digest && text_equal(js_get_str(arm, "generator"), "local"))
        verify_add(f, VERIFY_NOTE, where, "arm '%s': which checkpoint answered is not told",
                   text_of(arm, "name"));
    if (!digest || !other || strcmp(digest, other) == 0)
        return;
    bool folder = text_equal(js_get_str(arm, "source"), js_get_str(first, "source"));
    verify_add(f, folder ? VERIFY_MIXED : VERIFY_NOTE, where,
               "arms '%s' and '%s' are of two checkpoints, %.12s and %.12s", text_of(first, "name"),
               text_of(arm, "name"), other, digest);
}

void verify_origin(const results *r, verify_findings *f) {
    const js *evals = results_section(r, "evals");
    char where[64];
    check_backend(r, f);
    check_rows(r, f);
    for (size_t i = 0; i < js_len(evals); i++) {
        const js *arms = js_get_array(js_at(evals, i), "arms");
        (void)snprintf(where, sizeof where, "evals[%zu]", i);
        for (size_t a = 0; a < js_len(arms); a++)
            check_arm(arms, a, where, f);
    }
}

/* ---- against files ---- */

static bool any_model_has(const results *r, const char *checkpoint) {
    const js *rows = results_section(r, "model_fidelity");
    for (size_t i = 0; i < js_len(rows); i++)
        if (text_equal(js_get_str(js_at(rows, i), "checkpoint_sha256"), checkpoint))
            return true;
    return false;
}

static bool any_arm_has(const results *r, const char *plugin, const char *checkpoint) {
    const js *evals = results_section(r, "evals");
    for (size_t i = 0; i < js_len(evals); i++) {
        const js *arms = js_get_array(js_at(evals, i), "arms");
        for (size_t a = 0; a < js_len(arms); a++) {
            const js *arm = js_at(arms, a);
            if (plugin && text_equal(js_get_str(js_get_object(arm, "plugin"), "sha256"), plugin))
                return true;
            if (checkpoint && text_equal(js_get_str(arm, "checkpoint_sha256"), checkpoint))
                return true;
        }
    }
    return false;
}

snap_status verify_plugin(const results *r, const char *path, verify_findings *f, snap_err *err) {
    char hex[HASH_HEX];
    snap_status st = hash_file(path, hex, err);
    if (st != SNAP_OK)
        return st;
    f->checks++;
    if (!text_equal(js_get_str(plugin_of(r), "sha256"), hex) && !any_arm_has(r, hex, NULL))
        verify_add(f, VERIFY_FORM, "provenance", "'%.200s', sha256 %.12s, is not what was measured",
                   path, hex);
    return SNAP_OK;
}

snap_status verify_checkpoint(const results *r, const char *dir, verify_findings *f,
                              snap_err *err) {
    char hex[HASH_HEX];
    snap_status st = checkpoint_digest(dir, hex, err);
    if (st != SNAP_OK)
        return st;
    f->checks++;
    if (!any_arm_has(r, NULL, hex) && !any_model_has(r, hex))
        verify_add(f, VERIFY_FORM, "evals",
                   "the checkpoint in '%.200s', %.12s, is not what was run", dir, hex);
    return SNAP_OK;
}
