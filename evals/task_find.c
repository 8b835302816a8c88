/* task_find.c - the tasks by name, and the task files that were opened. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/nearest.h"
#include "base/share.h"
#include "evals/taskfile/task_file.h"

const task_spec *const task_table[] = {
    &task_gpqa_diamond, &task_mmlu_redux,    &task_ifeval, &task_zebralogic,
    &task_arena_hard,   &task_livecodebench, NULL};

const char *const task_known[] = {
    "aime24",        "aime25",        "math500",    "hmmt_feb25",  "gsm8k",       "gpqa_diamond",
    "beyond_aime",   "mmlu_pro",      "mmlu_redux", "ifeval",      "zebralogic",  "arena_hard",
    "livecodebench", "humaneval",     "mbpp",       "synth_aime",  "synth_math",  "synth_gpqa",
    "synth_code",    "long_needle",   "long_keys",  "long_values", "long_lookup", "long_variables",
    "long_count",    "long_frequent", "long_order", "long_copy",   "long_turns",  "long_turns_own",
    "longbench_v2",  "mrcr",          "ruler",      "ruler_qa",    NULL};

enum { kKnown = sizeof task_known / sizeof *task_known };

void task_names(char *out, size_t cap) {
    size_t n = 0;
    out[0] = '\0';
    for (const char *const *t = task_known; *t && n < cap; t++)
        n += (size_t)snprintf(out + n, cap - n, "%s%s", n ? ", " : "", *t);
}

snap_status task_unknown(const char *name, const char *const *others, const char *where,
                         snap_err *err) {
    const char *all[kKnown + TASK_OTHERS + 1];
    char names[600];
    size_t n = 0;
    for (const char *const *t = task_known; *t; t++)
        all[n++] = *t;
    for (size_t i = 0; others && others[i] && i < TASK_OTHERS; i++)
        all[n++] = others[i];
    all[n] = NULL;
    for (const char *const *t = task_known; *t; t++)
        if (strcmp(*t, name) == 0)
            return err_set(err, SNAP_E_USAGE,
                           "%s: the file configs/tasks/%s.json is missing among the files that are "
                           "shipped with the program: set SNAPMLA_SHARE to their folder",
                           where, name);
    const char *similar = nearest_name(name, all);
    task_names(names, sizeof names);
    return err_set(err, SNAP_E_USAGE, "%s: unknown task '%s'%s%s%s (tasks: %s)", where, name,
                   similar ? ", did you mean '" : "", similar ? similar : "", similar ? "'?" : "",
                   names);
}

static const task_spec *in_table(const char *name) {
    for (const task_spec *const *t = task_table; *t; t++)
        if (strcmp((*t)->name, name) == 0)
            return *t;
    return NULL;
}

bool task_is_confidential(const char *name) {
    const task_spec *t = in_table(name);
    return t && t->confidential;
}

/* ---- task files ---- */

typedef struct opened {
    struct opened *next;
    char *path;
    task_file *file;
} opened;

/* The files that were opened. They are kept, because a run may use a task until it ends. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opened *files;

static const task_spec *find_opened(const char *path, const char *sha256) {
    for (const opened *o = files; o; o = o->next)
        if (strcmp(o->path, path) == 0 && strcmp(task_file_spec(o->file)->file_sha256, sha256) == 0)
            return task_file_spec(o->file);
    return NULL;
}

/* Adds a file to the list, which then owns it. On failure, frees the file. */
static snap_status keep(const char *path, task_file *file, snap_err *err) {
    opened *o = calloc(1, sizeof *o);
    char *copy = o ? strdup(path) : NULL;
    if (!copy) {
        free(o);
        task_file_free(file);
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    }
    *o = (opened){files, copy, file};
    files = o;
    return SNAP_OK;
}

/* The file's folder, "." if the path has none. The caller frees it; NULL if memory is exhausted. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

/* Opens a task file while the lock is held. @shipped: it is one of configs/tasks. */
static snap_status open_file(const char *path, bool shipped, const task_spec **out, snap_err *err) {
    buf text = {.limit = TASK_FILE_LIMIT};
    char sha256[HASH_HEX], *folder = shipped ? NULL : folder_of(path);
    task_file *file = NULL;
    snap_status st;
    *out = NULL;
    if (!shipped && !folder)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    TRY(fs_read_regular(path, &text, err));
    TRY(hash_bytes(buf_str(&text), text.len, sha256, err));
    *out = find_opened(path, sha256);
    if (*out)
        goto cleanup;
    TRY(task_file_parse(buf_str(&text), text.len, path, folder, &file, err));
    TRY(keep(path, file, err));
    *out = task_file_spec(file);
cleanup:
    free(folder);
    buf_release(&text);
    return st;
}

static snap_status open_locked(const char *path, bool shipped, const task_spec **out,
                               snap_err *err) {
    (void)pthread_mutex_lock(&lock);
    snap_status st = open_file(path, shipped, out, err);
    (void)pthread_mutex_unlock(&lock);
    return st;
}

snap_status task_open(const char *path, const task_spec **out, snap_err *err) {
    return open_locked(path, false, out, err);
}

/* True for a name without '/' and without '.' at its start, which cannot lead to another folder. */
static bool is_plain(const char *name) {
    return name[0] && name[0] != '.' && !strchr(name, '/');
}

snap_status task_find(const char *name, const task_spec **out, snap_err *err) {
    char path[200];
    snap_status st = SNAP_OK;
    fault_mark before = fault_begin();
    *out = in_table(name);
    if (*out || !is_plain(name) ||
        snprintf(path, sizeof path, "configs/tasks/%s.json", name) >= (int)sizeof path)
        return SNAP_OK;
    char *found = share_find(path);
    if (found)
        st = open_locked(found, true, out, err);
    free(found);
    if (st == SNAP_OK && *out && strcmp((*out)->name, name) != 0) {
        st = err_set(err, SNAP_E_INPUT, "%s: its 'task' is '%s', not the name of the file", path,
                     (*out)->name);
        *out = NULL;
    }
    return fault_result(before, st, err);
}
