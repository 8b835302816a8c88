#include "harness/audit/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/term.h"
#include "base/text.h"
#include "base/zip.h"
#include "harness/audit/arm_files.h"
#include "harness/record/provenance.h"

enum { kMembers = 128, kVersion = 1 };
static const size_t kBytes = (size_t)1 << 30; /* when a bundle is opened, limit on the zip file
                                                 and on all its files unpacked; when it is
                                                 packed, on each file */
static const char *const kParts[] = {"samples.jsonl", "log",        "report.html", "report.md",
                                     "report.csv",    "parity.tex", "speed.tex"};
enum { PARTS = sizeof kParts / sizeof *kParts };

/* A file of a bundle. */
typedef struct {
    char *name; /* owned */
    buf content;
} member;

typedef struct {
    member all[kMembers];
    size_t n;
} members;

static void members_release(members *m) {
    for (size_t i = 0; i < m->n; i++) {
        free(m->all[i].name);
        buf_release(&m->all[i].content);
    }
    m->n = 0;
}

static buf *member_add(members *m, const char *name, snap_err *err) {
    char *copy = strdup(name);
    if (!copy || m->n == kMembers) {
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for a bundle");
        free(copy);
        return NULL;
    }
    member *new_one = &m->all[m->n++];
    *new_one = (member){.name = copy, .content = {.limit = kBytes}};
    return &new_one->content;
}

static const buf *member_find(const members *m, const char *name) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->all[i].name, name) == 0)
            return &m->all[i].content;
    return NULL;
}

/* ---- packing ---- */

static js *file_row(const member *m) {
    char hex[HASH_HEX];
    js *o = js_new_object();
    bool ok = o && hash_bytes(buf_str(&m->content), m->content.len, hex, NULL) == SNAP_OK &&
              js_set_str(o, "name", m->name) && js_set_int(o, "bytes", (int64_t)m->content.len) &&
              js_set_str(o, "sha256", hex);
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static snap_status write_manifest(const members *m, buf *out, snap_err *err) {
    js *o = js_new_object(), *schema = js_new_object(), *files = js_new_array();
    bool ok = files != NULL;
    for (size_t i = 0; i < m->n && ok; i++)
        ok = js_push_new(files, file_row(&m->all[i]));
    ok = schema && js_set_str(schema, "name", "snapmla.bundle") &&
         js_set_int(schema, "major", kVersion) && js_set_int(schema, "minor", 0) && ok;
    ok = js_set_new(o, "schema", schema) && ok;
    ok = js_set_new(o, "files", files) && ok;
    ok = ok && js_set_str(o, "program", results_program_version());
    snap_status st = ok ? js_write(o, JS_PRETTY, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for a manifest");
    js_free(o);
    return st;
}

/* Appends a line of the journal with absolute paths shortened to their last name, as in
 * run.json. */
static snap_status add_journal_line(void *ctx, js *object, long line, snap_err *err) {
    (void)line;
    js *clean = provenance_cut_copy(object);
    snap_status st = clean ? js_write(clean, JS_COMPACT, ctx, err)
                           : err_set(err, SNAP_E_NOMEM, "out of memory for a journal");
    (void)buf_puts(ctx, "\n");
    js_free(clean);
    return st;
}

static snap_status add_journal(members *m, const char *dir, snap_err *err) {
    char *path = fs_join(dir, "journal");
    buf text = {.limit = kBytes}, *to;
    snap_status st = SNAP_OK;
    TRY(path ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a path"));
    if (!fs_exists(path))
        goto cleanup;
    TRY(fs_read_unlinked(path, &text, err));
    to = member_add(m, "journal", err);
    TRY(to ? SNAP_OK : SNAP_E_NOMEM);
    TRY(js_each_line(buf_str(&text), text.len, path, add_journal_line, to, err));
    TRY(buf_check(to, "a journal", err));
cleanup:
    buf_release(&text);
    free(path);
    return st;
}

static snap_status add_parts(members *m, const char *dir, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < PARTS && st == SNAP_OK; i++) {
        char *path = fs_join(dir, kParts[i]);
        if (path && fs_exists(path) && !fs_is_dir(path)) {
            buf *to = member_add(m, kParts[i], err);
            st = to ? fs_read_unlinked(path, to, err) : SNAP_E_NOMEM;
        }
        free(path);
    }
    return st;
}

/* ---- the files of arms ---- */

/* Reads the file if it exists. @own: the file lies in the run's folder and was not named by the
 * user, so it must not be a link. */
static snap_status read_if_there(const char *path, bool own, buf *out, bool *found, snap_err *err) {
    *found = path && fs_exists(path);
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    if (!*found && own)
        return SNAP_OK;
    *found = true;
    return own ? fs_read_unlinked(path, out, err) : fs_read_regular(path, out, err);
}

/* Adds a file with that content for each entry of the list that has the hash. Returns the number of
 * entries in *n. */
static snap_status add_hashed(members *m, const arm_files *files, const char *name,
                              const buf *bytes, size_t *n, snap_err *err) {
    char hex[HASH_HEX];
    snap_status st = hash_bytes(buf_str(bytes), bytes->len, hex, err);
    *n = 0;
    for (size_t i = 0; i < files->n && st == SNAP_OK; i++) {
        const arm_file *file = &files->at[i];
        if (strcmp(file->sha256, hex) != 0 || (name && strcmp(file->name, name) != 0))
            continue;
        ++*n;
        if (member_find(m, file->name))
            continue;
        buf *to = member_add(m, file->name, err);
        if (to)
            (void)buf_append(to, buf_str(bytes), bytes->len);
        st = to ? buf_check(to, file->name, err) : SNAP_E_NOMEM;
    }
    return st;
}

/* Adds the copy that the run's folder has. */
static snap_status add_copy(members *m, const arm_files *files, const char *dir, const char *name,
                            snap_err *err) {
    char *path = fs_join(dir, name);
    buf bytes = {.limit = kBytes};
    bool found;
    size_t n = 0;
    snap_status st = read_if_there(path, true, &bytes, &found, err);
    if (st == SNAP_OK && found)
        st = add_hashed(m, files, name, &bytes, &n, err);
    if (st == SNAP_OK && found && !n)
        st = err_set(err, SNAP_E_INPUT, "'%s' is not the file that was measured", path);
    buf_release(&bytes);
    free(path);
    return st;
}

/* Adds a file that the user names. */
static snap_status add_named(members *m, const arm_files *files, const char *path, snap_err *err) {
    buf bytes = {.limit = kBytes};
    bool found;
    size_t n = 0;
    snap_status st = read_if_there(path, false, &bytes, &found, err);
    if (st == SNAP_OK)
        st = add_hashed(m, files, NULL, &bytes, &n, err);
    if (st == SNAP_OK && !n)
        st = err_set(err, SNAP_E_INPUT, "'%s' is not the file of any arm of the run", path);
    buf_release(&bytes);
    return st;
}

static snap_status add_format(members *m, const arm_files *files, const arm_file *format,
                              snap_err *err) {
    buf text = {0};
    size_t n = 0;
    (void)buf_puts(&text, format->content);
    snap_status st = buf_check(&text, "a format", err);
    if (st == SNAP_OK)
        st = add_hashed(m, files, format->name, &text, &n, err);
    buf_release(&text);
    return st;
}

/* Adds the plugins, Python files and formats of the arms. A file that is not there is left out with
 * a warning. */
static snap_status add_arm_files(members *m, const results *r, const char *dir,
                                 const bundle_options *opt, snap_err *err) {
    arm_files *files = calloc(1, sizeof *files);
    arena mem = {0};
    run_record run;
    snap_status st = SNAP_OK;
    TRY(files ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for files"));
    TRY(run_read(&run, r, &mem, err));
    arm_files_list(&run, files);
    for (int i = 0; i < opt->n_files; i++)
        TRY(add_named(m, files, opt->files[i], err));
    for (size_t i = 0; i < files->n; i++) {
        const arm_file *file = &files->at[i];
        if (file->content)
            TRY(add_format(m, files, file, err));
        else if (dir && !member_find(m, file->name))
            TRY(add_copy(m, files, dir, file->name, err));
        if (!member_find(m, file->name))
            term_warn("'%s', sha256 %.12s, is not in the bundle: give the file with --file",
                      file->name, file->sha256);
    }
cleanup:
    arena_release(&mem);
    free(files);
    return st;
}

static snap_status add_report(members *m, results *r, bundle_report_fn report, snap_err *err) {
    buf *to = member_add(m, "report.md", err);
    return to ? report(r, "run.json", to, err) : SNAP_E_NOMEM;
}

static snap_status add_config(members *m, const results *r, snap_err *err) {
    const js *p = js_get_object(results_document(r), "provenance");
    buf *to = member_add(m, "config.json", err);
    return to ? js_write(js_get_object(p, "config"), JS_PRETTY, to, err) : SNAP_E_NOMEM;
}

static snap_status write_zip(const members *m, const char *path, snap_err *err) {
    zip_entry entries[kMembers + 1];
    buf manifest = {0}, out = {0};
    snap_status st = SNAP_OK;
    TRY(write_manifest(m, &manifest, err));
    entries[0] = (zip_entry){"manifest.json", manifest.data, manifest.len};
    for (size_t i = 0; i < m->n; i++)
        entries[i + 1] =
            (zip_entry){m->all[i].name, buf_str(&m->all[i].content), m->all[i].content.len};
    TRY(zip_pack(entries, m->n + 1, &out, err));
    TRY(fs_write_atomic(path, out.data, out.len, err));
cleanup:
    buf_release(&manifest);
    buf_release(&out);
    return st;
}

static snap_status pack(members *m, const char *run, const char *file, const char *path,
                        const bundle_options *opt, snap_err *err) {
    results *r = NULL;
    snap_status st = SNAP_OK;
    bool whole = fs_is_dir(run);
    buf *to = member_add(m, "run.json", err);
    TRY(to ? SNAP_OK : SNAP_E_NOMEM);
    TRY(whole ? fs_read_unlinked(file, to, err) : fs_read_regular(file, to, err));
    TRY(results_parse(&r, buf_str(to), to->len, file, err));
    TRY(add_config(m, r, err));
    if (whole)
        TRY(add_parts(m, run, err));
    if (whole)
        TRY(add_journal(m, run, err));
    TRY(add_arm_files(m, r, whole ? run : NULL, opt, err));
    if (!member_find(m, "report.md"))
        TRY(add_report(m, r, opt->report, err));
    TRY(write_zip(m, path, err));
cleanup:
    results_free(r);
    return st;
}

snap_status bundle_pack(const char *run, const char *path, const bundle_options *opt,
                        snap_err *err) {
    members *m = calloc(1, sizeof *m);
    char *file = results_file_of(run);
    snap_status st = SNAP_E_NOMEM;
    if (m && file)
        st = pack(m, run, file, path, opt, err);
    else
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for a bundle");
    if (m)
        members_release(m);
    free(m);
    free(file);
    return st;
}

/* ---- opening ---- */

static snap_status take_member(void *ctx, const char *name, const buf *content, snap_err *err) {
    members *m = ctx;
    buf *to = member_add(m, name, err);
    if (!to)
        return SNAP_E_NOMEM;
    (void)buf_append(to, buf_str(content), content->len);
    return buf_check(to, name, err);
}

static snap_status check_file(const members *m, const js *row, const char *path, snap_err *err) {
    const char *name = js_get_str(row, "name"), *sha256 = js_get_str(row, "sha256");
    const buf *content = name ? member_find(m, name) : NULL;
    char hex[HASH_HEX];
    if (!name || !sha256)
        return err_set(err, SNAP_E_INPUT, "%s: a file of the manifest lacks its name or sha256",
                       path);
    if (!content)
        return err_set(err, SNAP_E_INPUT, "%s: '%s', which is in the manifest, is missing", path,
                       name);
    snap_status st = hash_bytes(buf_str(content), content->len, hex, err);
    if (st == SNAP_OK && strcmp(hex, sha256) != 0)
        st = err_set(err, SNAP_E_INPUT, "%s: '%s' has another sha256 than the manifest says", path,
                     name);
    return st;
}

static bool is_listed(const js *files, const char *name) {
    for (size_t i = 0; i < js_len(files); i++)
        if (text_equal(js_get_str(js_at(files, i), "name"), name))
            return true;
    return false;
}

static snap_status check_manifest(const members *m, const char *path, snap_err *err) {
    const buf *text = member_find(m, "manifest.json");
    js *o = NULL;
    snap_status st = SNAP_OK;
    if (!text)
        return err_set(err, SNAP_E_INPUT, "%s: no manifest.json: not a bundle of snapmla", path);
    o = js_parse(buf_str(text), text->len, "manifest.json", err);
    TRY(o ? SNAP_OK : SNAP_E_INPUT);
    const js *schema = js_get_object(o, "schema"), *files = js_get_array(o, "files");
    if (!schema || !files || !text_equal(js_get_str(schema, "name"), "snapmla.bundle") ||
        js_get_int(schema, "major", 0) != kVersion)
        TRY(err_set(err, SNAP_E_INPUT, "%s: not a manifest of this version of snapmla", path));
    for (size_t i = 0; i < js_len(files); i++)
        TRY(check_file(m, js_at(files, i), path, err));
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->all[i].name, "manifest.json") != 0 && !is_listed(files, m->all[i].name))
            TRY(err_set(err, SNAP_E_INPUT, "%s: '%s' is not in the manifest", path,
                        m->all[i].name));
cleanup:
    js_free(o);
    return st;
}

static snap_status check_config(const members *m, const results *r, const char *path,
                                snap_err *err) {
    const buf *text = member_find(m, "config.json");
    const js *stored = js_get_object(js_get_object(results_document(r), "provenance"), "config");
    js *config = text ? js_parse(buf_str(text), text->len, "config.json", err) : NULL;
    bool same = config && js_equal(config, stored);
    js_free(config);
    return same ? SNAP_OK
                : err_set(err, SNAP_E_INPUT, "%s: config.json is missing or differs from run.json",
                          path);
}

/* Reads all files of a bundle and checks them against the manifest. */
static snap_status read_members(members *m, const char *path, snap_err *err) {
    buf bytes = {.limit = kBytes};
    snap_status st = SNAP_OK;
    TRY(fs_read_regular(path, &bytes, err));
    TRY(zip_each_member(bytes.data, bytes.len, path, (zip_limits){kMembers, kBytes}, take_member, m,
                        err));
    TRY(check_manifest(m, path, err));
cleanup:
    buf_release(&bytes);
    return st;
}

static snap_status read_run(const members *m, const char *path, results **r, buf *samples,
                            snap_err *err) {
    const buf *run = member_find(m, "run.json"), *lines = member_find(m, "samples.jsonl");
    if (!run)
        return err_set(err, SNAP_E_INPUT, "%s: no run.json", path);
    snap_status st = results_parse(r, buf_str(run), run->len, "run.json", err);
    if (st == SNAP_OK)
        st = check_config(m, *r, path, err);
    if (lines)
        (void)buf_append(samples, buf_str(lines), lines->len);
    return st == SNAP_OK ? buf_check(samples, "samples", err) : st;
}

static snap_status hash_member(void *ctx, const char *name, char hex[HASH_HEX], bool *found,
                               snap_err *err) {
    const buf *content = member_find(ctx, name);
    *found = content != NULL;
    return content ? hash_bytes(buf_str(content), content->len, hex, err) : SNAP_OK;
}

/* A file that looks like that of an arm, but belongs to none. */
static void check_strangers(const members *m, const arm_files *files, verify_findings *f) {
    static const char *const prefixes[] = {"arm-", "plugin-", "format-"};
    for (size_t i = 0; i < m->n; i++) {
        const char *name = m->all[i].name;
        bool looks = false, known = false;
        for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
            looks |= text_starts(name, prefixes[k]);
        for (size_t k = 0; k < files->n; k++)
            known |= strcmp(files->at[k].name, name) == 0;
        if (looks && !known)
            verify_add(f, VERIFY_FORM, "bundle", "'%.100s' is the file of no arm", name);
    }
}

static snap_status check_arm_files(members *m, const results *r, verify_findings *f,
                                   snap_err *err) {
    arm_files *files = calloc(1, sizeof *files);
    arena mem = {0};
    run_record run;
    snap_status st = SNAP_OK;
    TRY(files ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for files"));
    TRY(run_read(&run, r, &mem, err));
    arm_files_list(&run, files);
    TRY(verify_arm_files(files, hash_member, m, f, err));
    check_strangers(m, files, f);
cleanup:
    arena_release(&mem);
    free(files);
    return st;
}

snap_status bundle_open(const char *path, results **out, buf *samples, verify_findings *f,
                        snap_err *err) {
    members *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a bundle");
    snap_status st = read_members(m, path, err);
    if (st == SNAP_OK)
        st = read_run(m, path, out, samples, err);
    if (st == SNAP_OK)
        st = check_arm_files(m, *out, f, err);
    if (st != SNAP_OK) {
        results_free(*out);
        *out = NULL;
    }
    members_release(m);
    free(m);
    return st;
}
