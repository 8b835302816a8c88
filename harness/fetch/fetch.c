#include "harness/fetch/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/http.h"
#include "base/text.h"
#include "harness/fetch/download.h"
#include "harness/fetch/rows.h"

enum { kRowsLimit = 256 << 20, kPage = 100 };

typedef struct {
    const fetch_options *opt;
    http *engine;
    arena mem; /* paths and URL of the current file */
} fetcher;

/* A file to fetch: its paths, its source and how the download is checked and converted. */
typedef struct {
    const manifest_file *file;
    const char *target, *part, *url;
    int64_t bytes;
    const char *sha256;
    bool convert;
} file_task;

const char *fetch_state_name(fetch_state s) {
    static const char *const names[] = {"absent",  "partial", "there",  "unchecked",
                                        "differs", "fetched", "resumed"};
    return names[s];
}

bool fetch_is_verified(const manifest_file *f, fetch_state state, const char *mirror) {
    bool fetched = state == FETCH_NEW || state == FETCH_RESUMED;
    return state == FETCH_THERE || (fetched && f->sha256 && !(f->convert && (mirror || f->pages)));
}

/* ---- what is in the folder ---- */

static snap_status check_file(const manifest_file *f, const char *target, fetch_state *out,
                              char sum[HASH_HEX], snap_err *err) {
    *out = FETCH_UNCHECKED;
    if (!manifest_is_checked(f))
        return SNAP_OK;
    snap_status st = hash_file(target, sum, err);
    *out = st == SNAP_OK && strcmp(sum, f->sha256) == 0 ? FETCH_THERE : FETCH_DIFFERS;
    return st;
}

snap_status fetch_check(const manifest_file *f, const char *dir, fetch_state *out, snap_err *err) {
    char *target = fs_join(dir, f->path), sum[HASH_HEX];
    buf part = {0};
    snap_status st = SNAP_OK;
    *out = FETCH_ABSENT;
    if (!target || !buf_printf(&part, "%s.part", target))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", f->path);
    else if (fs_exists(target))
        st = check_file(f, target, out, sum, err);
    else if (fs_exists(buf_str(&part)))
        *out = FETCH_PARTIAL;
    buf_release(&part);
    free(target);
    return st;
}

/* ---- one file ---- */

static const char *keep(fetcher *f, buf *text) {
    const char *s = text->failed ? NULL : arena_strdup(&f->mem, buf_str(text));
    buf_release(text);
    return s;
}

/* Fills in @e. Returns false when out of memory. */
static bool prepare(fetcher *f, const manifest_file *file, file_task *e) {
    const char *mirror = f->opt->mirror;
    buf target = {0}, part = {0}, url = {0};
    *e = (file_task){.file = file, .bytes = file->bytes, .sha256 = file->sha256};
    e->convert = file->convert && !mirror; /* A mirror holds the converted file. */
    if (file->convert && mirror) {
        e->bytes = -1;
        e->sha256 = NULL;
    }
    (void)buf_printf(&target, "%s/%s", f->opt->dir, file->path);
    (void)buf_printf(&part, "%s.part", buf_str(&target));
    if (mirror)
        (void)buf_printf(&url, "%s%s%s", mirror, text_ends(mirror, "/") ? "" : "/", file->path);
    else
        (void)buf_puts(&url, file->url);
    e->target = keep(f, &target);
    e->part = keep(f, &part);
    e->url = keep(f, &url);
    return e->target && e->part && e->url;
}

/* Creates the folder of @path. */
static snap_status make_parent(const char *path, snap_err *err) {
    char *dir = strndup(path, (size_t)(strrchr(path, '/') - path));
    if (!dir)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    snap_status st = *dir ? fs_mkdirs(dir, err) : SNAP_OK;
    free(dir);
    return st;
}

/* Reports a disk that is too small before the transfer begins. */
static snap_status check_room(const file_task *e, const char *dir, snap_err *err) {
    struct statvfs disk;
    struct stat part;
    if (e->bytes < 0 || statvfs(dir, &disk) != 0)
        return SNAP_OK;
    int64_t have = stat(e->part, &part) == 0 ? part.st_size : 0;
    double needed = (double)(e->bytes - have);
    double room = (double)disk.f_bavail * (double)disk.f_frsize;
    if (needed <= room)
        return SNAP_OK;
    return err_set(err, SNAP_E_IO,
                   "not enough room for '%s': it needs %.0f more bytes, and '%s' has %.0f",
                   e->target, needed, dir, room);
}

static snap_status sum_part(const file_task *e, char sum[HASH_HEX], bool *right, snap_err *err) {
    *right = true;
    if (!e->sha256)
        return SNAP_OK;
    snap_status st = hash_file(e->part, sum, err);
    *right = st == SNAP_OK && strcmp(sum, e->sha256) == 0;
    return st;
}

static snap_status wrong_sum(const file_task *e, const char *sum, snap_err *err) {
    download_forget(e->part);
    return err_set(
        err, SNAP_E_INPUT,
        "%s has the wrong checksum: sha256 %s, but the manifest says %s; the download was "
        "deleted",
        e->url, sum, e->sha256);
}

static snap_status convert(const file_task *e, snap_err *err) {
    buf text = {.limit = kRowsLimit}, lines = {.limit = kRowsLimit};
    snap_status st = fs_read(e->part, &text, err);
    if (st == SNAP_OK)
        st = rows_to_lines(buf_str(&text), text.len, e->url, &lines, err);
    if (st == SNAP_OK)
        st = fs_write_atomic(e->target, buf_str(&lines), lines.len, err);
    if (st == SNAP_OK || st == SNAP_E_INPUT)
        download_forget(e->part);
    buf_release(&text);
    buf_release(&lines);
    return st;
}

static snap_status put_in_place(const file_task *e, snap_err *err) {
    if (e->convert)
        return convert(e, err);
    snap_status st = fs_replace(e->part, e->target, err);
    if (st == SNAP_OK)
        download_forget(e->part);
    return st;
}

/* Downloads the part file and compares its checksum, if one is known. */
static snap_status download_checked(fetcher *f, const file_task *e, bool *resumed, snap_err *err) {
    snap_status st;
    char sum[HASH_HEX];
    bool right;
    download_request req = {.url = e->url,
                            .part = e->part,
                            .name = e->file->path,
                            .bytes = e->bytes,
                            .checked = e->sha256 != NULL,
                            .retries = f->opt->retries,
                            .wait_s = f->opt->wait_s};
    TRY(download(f->engine, &req, resumed, err));
    TRY(sum_part(e, sum, &right, err));
    if (!right && *resumed) { /* The beginning may belong to another version of the file. */
        download_forget(e->part);
        TRY(download(f->engine, &req, resumed, err));
        TRY(sum_part(e, sum, &right, err));
    }
    if (!right)
        st = wrong_sum(e, sum, err);
cleanup:
    return st;
}

/* Downloads one page of rows and appends them to @lines. */
static snap_status download_page(fetcher *f, const file_task *e, int64_t offset, buf *lines,
                                 int64_t *count, int64_t *total, snap_err *err) {
    buf url = {0}, text = {.limit = kRowsLimit};
    snap_status st;
    download_forget(e->part); /* A page is always downloaded whole. */
    (void)buf_printf(&url, "%s&offset=%lld&length=%d", e->url, (long long)offset, kPage);
    TRY(buf_check(&url, "a URL", err));
    download_request req = {.url = buf_str(&url),
                            .part = e->part,
                            .name = e->file->path,
                            .bytes = -1,
                            .retries = f->opt->retries,
                            .wait_s = f->opt->wait_s};
    TRY(download(f->engine, &req, NULL, err));
    TRY(fs_read(e->part, &text, err));
    TRY(rows_page_to_lines(buf_str(&text), text.len, buf_str(&url), lines, count, total, err));
cleanup:
    buf_release(&text);
    buf_release(&url);
    return st;
}

/* Downloads all pages. An interrupted download starts from the first page again, because the data
 * set may have changed in between. */
static snap_status download_pages(fetcher *f, const file_task *e, snap_err *err) {
    buf lines = {.limit = kRowsLimit};
    int64_t have = 0, all = -1;
    snap_status st = SNAP_OK;
    while (have != all) {
        int64_t count, total;
        TRY(download_page(f, e, have, &lines, &count, &total, err));
        have += count;
        if ((all >= 0 && total != all) || have > total)
            TRY(err_set(err, SNAP_E_INPUT,
                        "%s: the data set changed during the download (%lld rows, then %lld)",
                        e->url, (long long)all, (long long)total));
        all = total;
    }
    TRY(fs_write_atomic(e->target, buf_str(&lines), lines.len, err));
cleanup:
    download_forget(e->part);
    buf_release(&lines);
    return st;
}

static snap_status fetch_missing(fetcher *f, const file_task *e, fetch_state *out, snap_err *err) {
    snap_status st;
    bool resumed;
    TRY(make_parent(e->target, err));
    TRY(check_room(e, f->opt->dir, err));
    *out = FETCH_NEW;
    if (e->convert && e->file->pages)
        return download_pages(f, e, err);
    TRY(download_checked(f, e, &resumed, err));
    TRY(put_in_place(e, err));
    *out = resumed ? FETCH_RESUMED : FETCH_NEW;
cleanup:
    return st;
}

static snap_status fetch_file(fetcher *f, const manifest_file *file, fetch_state *out,
                              snap_err *err) {
    file_task e;
    char sum[HASH_HEX];
    if (!prepare(f, file, &e))
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", file->path);
    if (!fs_exists(e.target))
        return fetch_missing(f, &e, out, err);
    snap_status st = check_file(file, e.target, out, sum, err);
    if (st == SNAP_OK && *out == FETCH_DIFFERS)
        return err_set(err, SNAP_E_INPUT,
                       "'%s' exists with another checksum: sha256 %s, but the manifest says %s; "
                       "delete it to fetch it again",
                       e.target, sum, file->sha256);
    return st;
}

/* ---- all files ---- */

static snap_status fetch_set(fetcher *f, const manifest_set *set, fetch_done_fn done, void *ctx,
                             snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < set->n_files && st == SNAP_OK; i++) {
        fetch_state state = FETCH_ABSENT;
        st = fetch_file(f, &set->files[i], &state, err);
        arena_release(&f->mem);
        if (st == SNAP_OK && done)
            done(ctx, set, &set->files[i], state);
    }
    if (st != SNAP_OK)
        err_prefix(err, "%s", set->name);
    return st;
}

snap_status fetch_sets(const manifest *m, const bool *chosen, const fetch_options *opt,
                       fetch_done_fn done, void *ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    fetcher f = {.opt = opt};
    int lock = -1;
    char *lock_path = fs_join(opt->dir, ".fetch.lock");
    if (!lock_path)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", opt->dir));
    if (opt->mirror)
        TRY(http_check_url(opt->mirror, err));
    TRY(fs_mkdirs(opt->dir, err));
    TRY(fs_lock(lock_path, &lock, err));
    TRY(http_create(&f.engine, 4, opt->cancel, err));
    for (size_t i = 0; i < m->n; i++)
        if (chosen[i])
            TRY(fetch_set(&f, &m->sets[i], done, ctx, err));
cleanup:
    http_free(f.engine);
    if (lock >= 0)
        (void)close(lock);
    free(lock_path);
    return st;
}
