#include "evals/code/code_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/text.h"

enum { kRowLimit = 512 << 20, kPlainLimit = 256 << 20 };

static bool is_packed(const char *path) {
    return text_ends(path, ".gz");
}

/* Opens the file's lines as a stream. For a packed file, @plain holds the unpacked content and must
 * live as long as the stream. */
static snap_status open_rows(const char *path, buf *plain, FILE **out, snap_err *err) {
    buf packed = {.limit = kPlainLimit};
    snap_status st = SNAP_OK;
    plain->limit = kPlainLimit;
    *out = NULL;
    if (!is_packed(path)) {
        TRY(fs_stream_regular(path, out, err));
    } else {
        TRY(fs_read(path, &packed, err));
        TRY(code_gunzip(&packed, plain, path, err));
        *out = plain->len ? fmemopen(plain->data, plain->len, "rb") : fopen("/dev/null", "rb");
        if (!*out)
            st = err_set_errno(err, "cannot open '%s'", path);
    }
cleanup:
    buf_release(&packed);
    return st;
}

/* ---- reading a data set ---- */

static snap_status add_row(task_rows *r, const js *object, const char *where, snap_err *err) {
    task_row row = {0};
    const task_set *set = r->set;
    if (!js_is_object(object))
        return err_set(err, SNAP_E_INPUT, "%s: a row must be an object", where);
    snap_status st = set->task->read_row(object, r, &row, where, err);
    return st == SNAP_OK && !row.skip ? task_rows_add(r, &row, where, err) : st;
}

static snap_status read_line(task_rows *r, const char *line, size_t n, const char *where,
                             snap_err *err) {
    if (n > kRowLimit)
        return err_set(err, SNAP_E_INPUT, "%s: the row exceeds %d MiB", where, kRowLimit >> 20);
    if (text_is_blank(line, n) || !task_rows_next(r))
        return SNAP_OK;
    snap_status st = hash_bytes(line, n, r->gold, err);
    js *object = st == SNAP_OK ? js_parse(line, n, where, err) : NULL;
    if (st == SNAP_OK)
        st = object ? add_row(r, object, where, err) : SNAP_E_INPUT;
    js_free(object);
    return st;
}

static snap_status read_rows(task_rows *r, const char *path, FILE *f, snap_err *err) {
    char *line = NULL, where[300];
    size_t room = 0;
    ssize_t n;
    snap_status st = SNAP_OK;
    r->source = (task_source){.file = path};
    for (long number = 1; st == SNAP_OK && (n = getline(&line, &room, f)) >= 0; number++) {
        size_t end = (size_t)n;
        if (end && line[end - 1] == '\n')
            end--;
        (void)snprintf(where, sizeof where, "%.240s:%ld", path, number);
        r->source.n = end;
        st = read_line(r, line, end, where, err);
        r->source.at += n;
    }
    /* getline() also ends the loop when memory runs out */
    if (st == SNAP_OK && !feof(f))
        st = err_set_errno(err, "cannot read '%s'", path);
    free(line);
    return st;
}

snap_status code_rows_read(task_rows *r, const char *path, char digest[HASH_HEX], snap_err *err) {
    buf plain = {0};
    FILE *f = NULL;
    snap_status st;
    const char *kept = arena_strdup(&r->set->mem, path);
    if (!kept)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    TRY(hash_file(path, digest, err));
    TRY(open_rows(path, &plain, &f, err));
    TRY(read_rows(r, kept, f, err));
cleanup:
    if (f)
        (void)fclose(f);
    buf_release(&plain);
    return st;
}

snap_status code_rows_load(task_rows *r, snap_err *err) {
    return code_rows_read(r, r->set->file, r->set->sha256, err);
}

/* ---- reading one row again ---- */

static snap_status changed(const task_problem *p, snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "'%s' has changed: problem '%.80s' is no longer at its place",
                   p->source.file, p->id);
}

static snap_status read_source(const task_problem *p, char *line, snap_err *err) {
    buf plain = {0};
    FILE *f = NULL;
    char digest[HASH_HEX];
    snap_status st;
    TRY(open_rows(p->source.file, &plain, &f, err));
    if (fseeko(f, (off_t)p->source.at, SEEK_SET) != 0 ||
        fread(line, 1, p->source.n, f) != p->source.n)
        TRY(changed(p, err));
    TRY(hash_bytes(line, p->source.n, digest, err));
    if (strcmp(digest, p->gold) != 0)
        TRY(changed(p, err));
cleanup:
    if (f)
        (void)fclose(f);
    buf_release(&plain);
    return st;
}

snap_status task_tests(const task_set *set, const task_problem *p, code_tests *out, snap_err *err) {
    char where[300];
    fault_mark before = fault_begin();
    *out = (code_tests){0};
    if (!set->task->read_tests || !p->source.file)
        return err_set(err, SNAP_E_INPUT, "task '%s' has no tests", set->task->name);
    (void)snprintf(where, sizeof where, "%.160s, problem '%.80s'", p->source.file, p->id);
    char *line = malloc(p->source.n + 1);
    if (!line)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    snap_status st = read_source(p, line, err);
    js *row = st == SNAP_OK ? js_parse(line, p->source.n, where, err) : NULL;
    if (st == SNAP_OK)
        st = row ? set->task->read_tests(set->task, row, out, where, err) : SNAP_E_INPUT;
    js_free(row);
    free(line);
    return fault_result(before, st, err);
}

/* ---- graders: verdicts come from the judge ---- */

static snap_status check_gold(const char *gold, snap_err *err) {
    if (strlen(gold) == HASH_HEX - 1 && strspn(gold, "0123456789abcdef") == HASH_HEX - 1)
        return SNAP_OK;
    return err_set(err, SNAP_E_INPUT, "the gold of a program must be the SHA-256 of its tests");
}

const grader grader_code_real = {.id = "livecodebench-real-5", .check_gold = check_gold};
const grader grader_code_lcb = {.id = "livecodebench-lcb-2", .check_gold = check_gold};
const grader grader_assertions = {.id = "assertions-6", .check_gold = check_gold};
