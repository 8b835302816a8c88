#include "harness/audit/arm_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"

static void add(arm_files *out, const arm_file *file) {
    for (size_t i = 0; i < out->n; i++)
        if (strcmp(out->at[i].name, file->name) == 0 &&
            strcmp(out->at[i].sha256, file->sha256) == 0)
            return;
    if (out->n < ARM_FILES_MAX)
        out->at[out->n++] = *file;
}

static void add_cell(arm_files *out, const cell_record *c) {
    arm_file code = {.sha256 = c->kernel_hash};
    if (c->kernel_hash[0] && arm_file_name(c->name, c->options, code.name))
        add(out, &code);
    if (!c->format.exists)
        return;
    arm_file format = {.sha256 = c->format.sha256, .content = c->format.descriptor};
    (void)snprintf(format.name, sizeof format.name, "format-%.12s.json", c->format.sha256);
    arm_file_clean(format.name);
    add(out, &format);
}

static void add_plugin(arm_files *out, const plugin_record *p) {
    arm_file file = {.sha256 = p->sha256};
    if (!p->exists)
        return;
    int n = snprintf(file.name, sizeof file.name, "plugin-%s", p->file);
    arm_file_clean(file.name);
    if (n < (int)sizeof file.name)
        add(out, &file);
}

/* With named arms, the backend of the provenance is that of an arm, whose file is listed. */
void arm_files_list(const run_record *r, arm_files *out) {
    bool named = false;
    out->n = 0;
    for (size_t i = 0; i < r->bench.n; i++) {
        named |= r->bench.at[i].name[0] != '\0';
        add_cell(out, &r->bench.at[i]);
    }
    if (!named)
        add_plugin(out, &r->provenance.backend.plugin);
    for (size_t i = 0; i < r->evals.n; i++)
        for (size_t a = 0; a < r->evals.at[i].arms.n; a++)
            add_plugin(out, &r->evals.at[i].arms.at[a].plugin);
}

snap_status verify_arm_files(const arm_files *files, arm_file_fn hash, void *ctx,
                             verify_findings *f, snap_err *err) {
    for (size_t i = 0; i < files->n; i++) {
        const arm_file *file = &files->at[i];
        char hex[HASH_HEX] = "";
        bool found = false;
        snap_status st = hash(ctx, file->name, hex, &found, err);
        if (st != SNAP_OK)
            return st;
        f->checks++;
        if (!found)
            verify_add(f, VERIFY_NOTE, file->name, "the file, sha256 %.12s, is missing",
                       file->sha256);
        else if (strcmp(hex, file->sha256) != 0)
            verify_add(f, VERIFY_FORM, file->name,
                       "the file has the sha256 %.12s, but %.12s was measured", hex, file->sha256);
    }
    return SNAP_OK;
}

static snap_status hash_in_folder(void *ctx, const char *name, char hex[HASH_HEX], bool *found,
                                  snap_err *err) {
    char *path = fs_join(ctx, name);
    buf bytes = {.limit = (size_t)1 << 30};
    snap_status st = SNAP_OK;
    TRY(path ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a path"));
    *found = fs_exists(path);
    if (*found)
        TRY(fs_read_unlinked(path, &bytes, err));
    if (*found)
        TRY(hash_bytes(buf_str(&bytes), bytes.len, hex, err));
cleanup:
    buf_release(&bytes);
    free(path);
    return st;
}

snap_status verify_folder_files(const results *r, const char *dir, verify_findings *f,
                                snap_err *err) {
    arm_files *files = calloc(1, sizeof *files);
    char *folder = strdup(dir);
    arena mem = {0};
    run_record run;
    size_t n = 0;
    snap_status st = SNAP_OK;
    if (!files || !folder) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for files");
        goto cleanup;
    }
    TRY(run_read(&run, r, &mem, err));
    arm_files_list(&run, files);
    for (size_t i = 0; i < files->n; i++)
        if (text_starts(files->at[i].name, "arm-"))
            files->at[n++] = files->at[i];
    files->n = n;
    TRY(verify_arm_files(files, hash_in_folder, folder, f, err));
cleanup:
    arena_release(&mem);
    free(folder);
    free(files);
    return st;
}
