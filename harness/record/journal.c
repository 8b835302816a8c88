/* journal.c - a file with one JSON object in each line: first a header with the version and the
 * hash of the configuration, then the finished rows.
 *
 *   {"config_sha256":"9f86...","journal":1}
 *   {"key":"fp8 served H16 s1 b8 c8192 d512+64 mla, cuda ...","row":{...}}                       */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "harness/record/results.h"

enum { kVersion = 1 };
static const size_t kJournalLimit = (size_t)1 << 30; /* bytes */

struct results_journal {
    fs_log log;
    int lock;        /* descriptor of the lock file */
    char *lock_path; /* owned */
    js *rows;        /* object: key -> row */
};

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for a journal");
}

/* Appends @v as one line and returns when it is on disk. */
static snap_status write_line(results_journal *j, const js *v, snap_err *err) {
    buf line = {0};
    snap_status st = SNAP_OK;
    TRY(js_write(v, JS_COMPACT, &line, err));
    (void)buf_puts(&line, "\n");
    TRY(buf_check(&line, "a row", err));
    TRY(fs_log_append(&j->log, line.data, line.len, err));
    TRY(fs_log_sync(&j->log, err));
cleanup:
    buf_release(&line);
    return st;
}

static snap_status write_header(results_journal *j, const char *sha256, snap_err *err) {
    js *header = js_new_object();
    bool ok = header && js_set_int(header, "journal", kVersion) &&
              js_set_str(header, "config_sha256", sha256);
    snap_status st = ok ? write_line(j, header, err) : no_memory(err);
    js_free(header);
    return st;
}

/* ---- reading an existing journal ---- */

typedef struct {
    results_journal *j;
    const char *path, *sha256;
    bool headed;
} reader;

static snap_status read_header(reader *rd, const js *object, long line, snap_err *err) {
    const char *sha256 = js_get_str(object, "config_sha256");
    if (!sha256 || js_get_int(object, "journal", 0) != kVersion)
        return err_set(err, SNAP_E_INPUT, "%s:%ld: not a journal of this version of snapmla",
                       rd->path, line);
    if (rd->sha256 && strcmp(sha256, rd->sha256) != 0)
        return err_set(err, SNAP_E_USAGE,
                       "'%s' belongs to a run with another configuration: run with the same "
                       "options to go on with it, choose another --out, or delete it",
                       rd->path);
    rd->headed = true;
    return SNAP_OK;
}

static snap_status read_line(void *ctx, js *object, long line, snap_err *err) {
    reader *rd = ctx;
    if (!rd->headed)
        return read_header(rd, object, line, err);
    const char *key = js_get_str(object, "key");
    const js *row = js_get_object(object, "row");
    if (!key || !row)
        return err_set(err, SNAP_E_INPUT,
                       "%s:%ld: a line must have a string 'key' and an object 'row'", rd->path,
                       line);
    return js_set_new(rd->j->rows, key, js_copy(row)) ? SNAP_OK : no_memory(err);
}

static snap_status read_rows(results_journal *j, const char *path, const char *sha256,
                             snap_err *err) {
    buf text = {.limit = kJournalLimit};
    reader rd = {j, path, sha256, false};
    snap_status st = fs_read_regular(path, &text, err);
    while (text.len && text.data[text.len - 1] != '\n')
        text.data[--text.len] = '\0'; /* a line that another process has not finished */
    if (st == SNAP_OK)
        st = js_each_line(buf_str(&text), text.len, path, read_line, &rd, err);
    if (st == SNAP_OK && !rd.headed)
        st = sha256 ? write_header(j, sha256, err)
                    : err_set(err, SNAP_E_INPUT, "'%s' is empty", path);
    buf_release(&text);
    return st;
}

/* ---- the interface ---- */

static snap_status open_locked(results_journal *j, const char *path, const char *sha256,
                               snap_err *err) {
    buf name = {0};
    snap_status st = SNAP_OK;
    (void)buf_printf(&name, "%s.lock", path);
    j->lock_path = name.failed ? NULL : buf_steal(&name);
    buf_release(&name);
    TRY(j->lock_path ? SNAP_OK : no_memory(err));
    TRY(fs_lock(j->lock_path, &j->lock, err));
    TRY(fs_log_open(&j->log, path, err)); /* cuts off an incomplete last line */
    TRY(read_rows(j, path, sha256, err));
cleanup:
    return st;
}

/* A journal without rows, lock and open file. NULL if memory is exhausted. */
static results_journal *new_journal(void) {
    results_journal *j = calloc(1, sizeof *j);
    js *rows = js_new_object();
    if (!j || !rows) {
        free(j);
        js_free(rows);
        return NULL;
    }
    *j = (results_journal){.log = FS_LOG_CLOSED, .lock = -1, .rows = rows};
    return j;
}

/* Passes a journal to the caller, or closes it after a failure. */
static snap_status hand_over(results_journal *j, snap_status st, results_journal **out) {
    if (st == SNAP_OK)
        *out = j;
    else
        results_journal_close(j);
    return st;
}

snap_status results_journal_open(results_journal **out, const char *path, const char *config_sha256,
                                 snap_err *err) {
    results_journal *j = new_journal();
    *out = NULL;
    return j ? hand_over(j, open_locked(j, path, config_sha256, err), out) : no_memory(err);
}

snap_status results_journal_read(results_journal **out, const char *path, snap_err *err) {
    results_journal *j = new_journal();
    *out = NULL;
    return j ? hand_over(j, read_rows(j, path, NULL, err), out) : no_memory(err);
}

const js *results_journal_find(const results_journal *j, const char *key) {
    return js_get_object(j->rows, key);
}

bool results_journal_is_empty(const results_journal *j) {
    return !js_first(j->rows);
}

snap_status results_journal_append(results_journal *j, const char *key, const js *row,
                                   snap_err *err) {
    js *line = js_new_object();
    bool ok = line && js_set_str(line, "key", key) && js_set_new(line, "row", js_copy(row));
    snap_status st = ok ? write_line(j, line, err) : no_memory(err);
    if (st == SNAP_OK && !js_set_new(j->rows, key, js_copy(row)))
        st = no_memory(err);
    js_free(line);
    return st;
}

void results_journal_close(results_journal *j) {
    if (!j)
        return;
    fs_log_close(&j->log);
    js_free(j->rows);
    if (j->lock >= 0)
        (void)close(j->lock);
    free(j->lock_path);
    free(j);
}

snap_status results_journal_remove(results_journal *j, snap_err *err) {
    snap_status st = SNAP_OK;
    if (unlink(j->log.path) != 0 || unlink(j->lock_path) != 0)
        st = err_set_errno(err, "cannot remove '%s'", j->log.path);
    results_journal_close(j);
    return st;
}
