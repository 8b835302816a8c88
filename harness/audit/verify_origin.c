/* verify_origin.c - checks the hashes of files: a plugin's shared object, checkpoints. */
#include <stdio.h>
#include <string.h>

#include "generator/local/checkpoint/digest.h"
#include "harness/audit/audit.h"

static bool is_ours(const char *backend) {
    static const char *const ours[] = {"cpu", "cuda", "opencl"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(backend, ours[i]) == 0)
            return true;
    return false;
}

/* ---- origins of rows and arms ---- */

static void check_backend(const origin_backend *backend, verify_findings *f) {
    f->checks += backend->exists;
    if (backend->exists && !backend->plugin.exists && !is_ours(backend->name))
        verify_add(f, VERIFY_FORM, "provenance.backend",
                   "'%s' is not a backend of the program, and no plugin is named", backend->name);
    if (backend->plugin.exists && is_ours(backend->name))
        verify_add(f, VERIFY_FORM, "provenance.backend",
                   "a plugin must not have the name of the built-in backend '%s'", backend->name);
}

/* With a plugin, a row that has a hash of its code must have that of the plugin's file. The arms of
 * a run with named arms may run on different plugins, so their rows are not checked. */
static void check_rows(const run_record *r, verify_findings *f) {
    const plugin_record *plugin = &r->provenance.backend.plugin;
    char where[64];
    for (size_t i = 0; i < r->bench.n && plugin->exists; i++) {
        const char *hash = r->bench.at[i].name[0] ? "" : r->bench.at[i].kernel_hash;
        (void)snprintf(where, sizeof where, "bench[%zu]", i);
        f->checks++;
        if (hash[0] && strcmp(hash, plugin->sha256) != 0)
            verify_add(f, VERIFY_FORM, where,
                       "the code has the hash %.12s, but the plugin has %.12s", hash,
                       plugin->sha256);
    }
}

/* Compares the checkpoint of an arm with that of the first arm. Different hashes are a note or, if
 * both arms name the same source, a finding of kind mixed. A local arm without a hash is a note. */
static void check_arm(const arm_list *arms, size_t a, const char *where, verify_findings *f) {
    const arm_record *arm = &arms->at[a], *first = &arms->at[0];
    const char *digest = arm->checkpoint_sha256, *other = first->checkpoint_sha256;
    f->checks += digest[0] != '\0';
    if (!digest[0] && strcmp(arm->generator, "local") == 0)
        verify_add(f, VERIFY_NOTE, where, "arm '%s': its checkpoint is not recorded", arm->name);
    if (!digest[0] || !other[0] || strcmp(digest, other) == 0)
        return;
    bool folder = strcmp(arm->source, first->source) == 0;
    verify_add(f, folder ? VERIFY_MIXED : VERIFY_NOTE, where,
               "arms '%s' and '%s' have different checkpoints, %.12s and %.12s", first->name,
               arm->name, other, digest);
}

void verify_origin(const run_record *r, verify_findings *f) {
    char where[64];
    check_backend(&r->provenance.backend, f);
    check_rows(r, f);
    for (size_t i = 0; i < r->evals.n; i++) {
        (void)snprintf(where, sizeof where, "evals[%zu]", i);
        for (size_t a = 0; a < r->evals.at[i].arms.n; a++)
            check_arm(&r->evals.at[i].arms, a, where, f);
    }
}

/* ---- origins compared with files ---- */

static bool any_model_has(const run_record *r, const char *checkpoint) {
    for (size_t i = 0; i < r->model_fidelity.n; i++)
        if (strcmp(r->model_fidelity.at[i].checkpoint_sha256, checkpoint) == 0)
            return true;
    return false;
}

static bool any_arm_has_plugin(const run_record *r, const char *sha256) {
    for (size_t i = 0; i < r->evals.n; i++)
        for (size_t a = 0; a < r->evals.at[i].arms.n; a++)
            if (strcmp(r->evals.at[i].arms.at[a].plugin.sha256, sha256) == 0)
                return true;
    return false;
}

/* Whether a plugin with that hash was measured as a named arm of `bench`. */
static bool any_cell_has_plugin(const run_record *r, const char *sha256) {
    for (size_t i = 0; i < r->bench.n; i++)
        if (r->bench.at[i].name[0] && strcmp(r->bench.at[i].kernel_hash, sha256) == 0)
            return true;
    return false;
}

static bool any_arm_has_checkpoint(const run_record *r, const char *sha256) {
    for (size_t i = 0; i < r->evals.n; i++)
        for (size_t a = 0; a < r->evals.at[i].arms.n; a++)
            if (strcmp(r->evals.at[i].arms.at[a].checkpoint_sha256, sha256) == 0)
                return true;
    return false;
}

snap_status verify_plugin(const results *r, const char *path, verify_findings *f, snap_err *err) {
    char hex[HASH_HEX];
    arena mem = {0};
    run_record run;
    snap_status st = SNAP_OK;
    TRY(hash_file(path, hex, err));
    TRY(run_read(&run, r, &mem, err));
    f->checks++;
    if (strcmp(run.provenance.backend.plugin.sha256, hex) != 0 && !any_arm_has_plugin(&run, hex) &&
        !any_cell_has_plugin(&run, hex))
        verify_add(f, VERIFY_FORM, "provenance", "'%.200s', sha256 %.12s, is not what was measured",
                   path, hex);
cleanup:
    arena_release(&mem);
    return st;
}

snap_status verify_checkpoint(const results *r, const char *dir, verify_findings *f,
                              snap_err *err) {
    char hex[HASH_HEX];
    arena mem = {0};
    run_record run;
    snap_status st = SNAP_OK;
    TRY(checkpoint_digest(dir, hex, err));
    TRY(run_read(&run, r, &mem, err));
    f->checks++;
    if (!any_arm_has_checkpoint(&run, hex) && !any_model_has(&run, hex))
        verify_add(f, VERIFY_FORM, "evals",
                   "the checkpoint in '%.200s', %.12s, is not what was run", dir, hex);
cleanup:
    arena_release(&mem);
    return st;
}
