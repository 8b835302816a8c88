#include "harness/serving/serving_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "harness/eval/run_files.h"
#include "harness/serving/request_lines.h"

enum { kFlushBytes = 1 << 16 };

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for the files of a run");
}

serving_files serving_files_make(const char *dir) {
    return (serving_files){
        .dir = dir, .lines = FS_LOG_CLOSED, .answers = FS_LOG_CLOSED, .log = FS_LOG_CLOSED};
}

void serving_files_close(serving_files *f) {
    fs_log_close(&f->lines);
    fs_log_close(&f->answers);
    fs_log_close(&f->log);
    results_journal_close(f->journal);
    buf_release(&f->pending);
    buf_release(&f->pending_answers);
    *f = serving_files_make(f->dir);
}

char *serving_files_path(const serving_files *f, const char *name) {
    return fs_join(f->dir, name);
}

/* ---- opening ---- */

/* The options that may change when a run continues. All but `out` and `meet` only judge the
 * requests. */
static const char *const kFree[] = {"out", "meet", "slo", "gpus", "margin"};

/* @part: also depends on the option `part`. */
static snap_status config_hash(const js *config, bool part, char hash[HASH_HEX], snap_err *err) {
    buf text = {0};
    js *copy = config ? js_copy(config) : js_new_object();
    snap_status st = copy ? SNAP_OK : no_memory(err);
    for (size_t i = 0; i < sizeof kFree / sizeof *kFree; i++)
        (void)js_delete(copy, kFree[i]);
    if (!part || !js_get_str(copy, "part")) /* a run without parts has the hash of a joined one */
        (void)js_delete(copy, "part");
    if (st == SNAP_OK)
        st = js_write(copy, JS_COMPACT, &text, err);
    if (st == SNAP_OK)
        st = hash_bytes(text.data, text.len, hash, err);
    js_free(copy);
    buf_release(&text);
    return st;
}

snap_status serving_files_settings(const js *config, char hash[HASH_HEX], snap_err *err) {
    return config_hash(config, false, hash, err);
}

snap_status serving_files_open(serving_files *f, const js *config, snap_err *err) {
    char hash[HASH_HEX], *journal = serving_files_path(f, "journal"),
                         *log = serving_files_path(f, "log");
    snap_status st = journal && log ? SNAP_OK : no_memory(err);
    TRY(st);
    TRY(fs_mkdirs(f->dir, err));
    TRY(config_hash(config, true, hash, err));
    TRY(results_journal_open(&f->journal, journal, hash, err));
    TRY(fs_log_open(&f->log, log, err));
cleanup:
    free(journal);
    free(log);
    return st;
}

void serving_block_key(char key[SERVING_BLOCK_KEY], int point, int arm, int block) {
    (void)snprintf(key, SERVING_BLOCK_KEY, "block %d %d %d", point, arm, block);
}

snap_status serving_files_put_part(serving_files *f, const js *config, const char *part,
                                   const char *version, snap_err *err) {
    if (results_journal_find(f->journal, SERVING_PART))
        return SNAP_OK;
    js *row = js_new_object();
    if (row && js_set_str(row, "part", part) && js_set_str(row, "version", version) &&
        js_set_new(row, "config", config ? js_copy(config) : js_new_object()))
        return run_journal_put(f->journal, SERVING_PART, row, err);
    js_free(row);
    return no_memory(err);
}

static bool stores_answers(const serving_files *f) {
    return f->answers.fd >= 0;
}

/* Cuts off the bytes after the first @bytes, which a block that was not complete wrote. */
static snap_status cut_file(const fs_log *log, int64_t bytes, snap_err *err) {
    struct stat sb;
    if (fstat(log->fd, &sb) != 0)
        return err_set_errno(err, "cannot read '%s'", log->path);
    if (sb.st_size < bytes)
        return err_set(err, SNAP_E_INPUT,
                       "'%s' is shorter than the journal says: requests are lost; choose another "
                       "--out",
                       log->path);
    if (ftruncate(log->fd, (off_t)bytes) != 0)
        return err_set_errno(err, "cannot shorten '%s'", log->path);
    return SNAP_OK;
}

static snap_status open_lines(serving_files *f, fs_log *log, const char *name, snap_err *err) {
    char *path = serving_files_path(f, name);
    snap_status st = path ? fs_log_open(log, path, err) : no_memory(err);
    free(path);
    return st;
}

snap_status serving_files_drop_incomplete(serving_files *f, snap_err *err) {
    buf_clear(&f->pending);
    buf_clear(&f->pending_answers);
    f->written = 0;
    snap_status st = cut_file(&f->lines, f->bytes, err);
    if (st == SNAP_OK && stores_answers(f))
        st = cut_file(&f->answers, f->answer_bytes, err);
    return st;
}

snap_status serving_files_resume(serving_files *f, bool answers, int points, int arms, int blocks,
                                 snap_err *err) {
    char key[SERVING_BLOCK_KEY];
    f->bytes = f->answer_bytes = 0;
    for (int i = 0; i < points * arms * blocks; i++) {
        serving_block_key(key, i / (arms * blocks), i / blocks % arms, i % blocks);
        const js *row = results_journal_find(f->journal, key);
        int64_t n = js_get_int(row, "bytes", 0), m = js_get_int(row, "answer_bytes", 0);
        f->bytes = n > f->bytes ? n : f->bytes;
        f->answer_bytes = m > f->answer_bytes ? m : f->answer_bytes;
    }
    snap_status st = open_lines(f, &f->lines, "requests.jsonl", err);
    if (st == SNAP_OK && answers)
        st = open_lines(f, &f->answers, "answers.jsonl", err);
    return st == SNAP_OK ? serving_files_drop_incomplete(f, err) : st;
}

bool serving_files_has(const serving_files *f, int point, int arm, int block) {
    char key[SERVING_BLOCK_KEY];
    serving_block_key(key, point, arm, block);
    return results_journal_find(f->journal, key) != NULL;
}

/* ---- writing ---- */

static snap_status flush(fs_log *log, buf *pending, snap_err *err) {
    snap_status st = buf_check(pending, "the requests", err);
    if (st == SNAP_OK && pending->len)
        st = fs_log_append(log, pending->data, pending->len, err);
    buf_clear(pending);
    return st;
}

static snap_status flush_all(serving_files *f, snap_err *err) {
    snap_status st = flush(&f->lines, &f->pending, err);
    return st == SNAP_OK ? flush(&f->answers, &f->pending_answers, err) : st;
}

snap_status serving_files_add(serving_files *f, const serving_request *r, const task_problem *p,
                              const chat_answer *a, snap_err *err) {
    request_line_append(r, &f->pending);
    if (stores_answers(f) && !r->failed && !r->cut)
        answer_line_append(r, p, a, &f->pending_answers);
    f->written++;
    bool few = f->pending.len < kFlushBytes && f->pending_answers.len < kFlushBytes;
    return few ? SNAP_OK : flush_all(f, err);
}

static snap_status size_of(const fs_log *log, int64_t *bytes, snap_err *err) {
    struct stat sb;
    if (fstat(log->fd, &sb) != 0)
        return err_set_errno(err, "cannot read '%s'", log->path);
    *bytes = sb.st_size;
    return SNAP_OK;
}

/* The journal's row of a block; NULL if memory is exhausted. */
static js *row_of(const serving_files *f, int64_t bytes, int64_t answer_bytes) {
    js *row = js_new_object();
    if (row && js_set_int(row, "bytes", bytes) &&
        (!stores_answers(f) || js_set_int(row, "answer_bytes", answer_bytes)) &&
        js_set_int(row, "requests", f->written))
        return row;
    js_free(row);
    return NULL;
}

snap_status serving_files_finish(serving_files *f, int point, const int *arms, int n, int block,
                                 snap_err *err) {
    char key[SERVING_BLOCK_KEY];
    int64_t bytes = 0, answer_bytes = 0;
    snap_status st;
    TRY(flush_all(f, err));
    TRY(fs_log_sync(&f->lines, err));
    TRY(size_of(&f->lines, &bytes, err));
    if (stores_answers(f)) {
        TRY(fs_log_sync(&f->answers, err));
        TRY(size_of(&f->answers, &answer_bytes, err));
    }
    for (int i = 0; i < n; i++) {
        serving_block_key(key, point, arms[i], block);
        TRY(run_journal_put(f->journal, key, row_of(f, bytes, answer_bytes), err));
    }
    f->bytes = bytes;
    f->answer_bytes = answer_bytes;
    f->written = 0;
cleanup:
    return st;
}
