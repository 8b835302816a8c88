#include "harness/eval/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "harness/eval/clients.h"
#include "harness/eval/judge_model.h"
#include "harness/eval/merge_arms.h"
#include "harness/eval/origins.h"
#include "harness/eval/run_files.h"
#include "harness/eval/shard.h"

typedef struct {
    const char *folder;
    results_journal *journal; /* open; its lock is held */
    const js *options, *identity, *config;
    eval_shard part;
} source;

typedef struct {
    const merge_options *opt;
    arena mem;
    source *shards; /* [opt->n] */
    results_journal *journal;
} merge;

/* ---- the shards ---- */

static snap_status open_shard(merge *m, source *s, snap_err *err) {
    snap_status st;
    const char *path = run_file(&m->mem, s->folder, "journal");
    if (!path || !fs_exists(path))
        return err_set(err, SNAP_E_USAGE, "'%s' has no run", s->folder);
    TRY(run_journal_open(&s->journal, s->folder, err));
    s->options = results_journal_find(s->journal, RUN_OPTIONS);
    s->identity = results_journal_find(s->journal, RUN_IDENTITY);
    s->config = results_journal_find(s->journal, RUN_CONFIG);
    if (!s->options || !s->identity || !s->config || !js_get_str(s->options, "shard"))
        TRY(err_set(err, SNAP_E_USAGE, "'%s' is not a shard: it was made without --shard",
                    s->folder));
    TRY(shard_parse(js_get_str(s->options, "shard"), &s->part, err));
cleanup:
    return st;
}

static const source *find_part(const merge *m, int index) {
    for (size_t i = 0; i < m->opt->n; i++)
        if (m->shards[i].part.index == index)
            return &m->shards[i];
    return NULL;
}

/* Checks that all shards are parts of the same N, and that each part is given exactly once; with
 * --partial, at most once. */
static snap_status check_parts(const merge *m, snap_err *err) {
    int of = m->shards[0].part.of;
    for (size_t i = 0; i < m->opt->n; i++) {
        const source *s = &m->shards[i], *first = find_part(m, s->part.index);
        if (s->part.of != of)
            return err_set(err, SNAP_E_USAGE, "'%s' is one of %d shards, '%s' one of %d",
                           m->shards[0].folder, of, s->folder, s->part.of);
        if (first != s)
            return err_set(err, SNAP_E_USAGE, "'%s' and '%s' are both shard %d/%d", first->folder,
                           s->folder, s->part.index, of);
    }
    for (int i = 1; i <= of && !m->opt->partial; i++)
        if (!find_part(m, i))
            return err_set(err, SNAP_E_USAGE,
                           "shard %d/%d is missing: merge all %d, or give --partial", i, of, of);
    return SNAP_OK;
}

/* Options that may differ between shards: the part itself, where the data are, and the arms, whose
 * servers may differ (merge_arms() compares the rest). */
static bool may_differ(const char *key) {
    return text_equal(key, "shard") || text_equal(key, "data") || text_equal(key, "arms");
}

/* Null and absent are equal. */
static bool same(const js *a, const js *b) {
    bool no_a = !a || js_is_null(a), no_b = !b || js_is_null(b);
    return no_a || no_b ? no_a && no_b : js_equal(a, b);
}

/* Returns SNAP_E_USAGE, naming the first key of @a that must not differ and has another value in
 * @b. SNAP_E_NOMEM. */
static snap_status check_equal(const char *of_a, const js *a, const char *of_b, const js *b,
                               snap_err *err) {
    snap_status st = SNAP_OK;
    js *copy = js_copy(a);
    if (!copy)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the shards");
    for (void *it = js_first(copy); it && st == SNAP_OK; it = js_next(copy, it))
        if (!same(js_value(it), js_get(b, js_key(it))) && !may_differ(js_key(it)))
            st = err_set(err, SNAP_E_USAGE, "'%s' and '%s' belong to different runs: %s differs",
                         of_a, of_b, js_key(it));
    js_free(copy);
    return st;
}

static snap_status check_same_run(const source *a, const source *b, snap_err *err) {
    snap_status st = check_equal(a->folder, a->identity, b->folder, b->identity, err);
    if (st == SNAP_OK)
        st = check_equal(b->folder, b->identity, a->folder, a->identity, err);
    return st == SNAP_OK ? check_equal(a->folder, a->options, b->folder, b->options, err) : st;
}

static snap_status open_shards(merge *m, snap_err *err) {
    snap_status st = SNAP_OK;
    m->shards = calloc(m->opt->n, sizeof *m->shards);
    if (!m->shards)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the shards");
    for (size_t i = 0; i < m->opt->n; i++) {
        m->shards[i].folder = m->opt->shards[i];
        TRY(open_shard(m, &m->shards[i], err));
        TRY(check_same_run(&m->shards[0], &m->shards[i], err));
    }
    TRY(check_parts(m, err));
cleanup:
    return st;
}

/* ---- the merged run ---- */

/* Opens the target folder. A folder with samples that were generated there, or with another run, is
 * refused. */
static snap_status open_target(merge *m, snap_err *err) {
    snap_status st;
    const char *samples = run_file(&m->mem, m->opt->out, "samples.jsonl");
    struct stat sb;
    TRY(fs_mkdirs(m->opt->out, err));
    TRY(run_journal_open(&m->journal, m->opt->out, err));
    if (samples && stat(samples, &sb) == 0 && sb.st_size &&
        js_get_int(results_journal_find(m->journal, RUN_MERGED), "shards", 0) == 0)
        TRY(err_set(err, SNAP_E_USAGE,
                    "'%s' has samples that were generated there (choose another --out)",
                    m->opt->out));
    const js *was = results_journal_find(m->journal, RUN_IDENTITY);
    if (was)
        TRY(check_equal(m->opt->out, was, m->shards[0].folder, m->shards[0].identity, err));
cleanup:
    return st;
}

static snap_status copy_bytes(FILE *from, const char *path, fs_log *to, snap_err *err) {
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    snap_status st = SNAP_OK;
    while (st == SNAP_OK && (n = getline(&line, &room, from)) > 0)
        if (line[n - 1] == '\n') /* skip the incomplete row of a killed process */
            st = fs_log_append(to, line, (size_t)n, err);
    if (st == SNAP_OK && !feof(from)) /* getline() also ends the loop when memory runs out */
        st = err_set_errno(err, "cannot read '%s'", path);
    free(line);
    return st;
}

static snap_status copy_samples(merge *m, const source *s, fs_log *to, snap_err *err) {
    const char *path = run_file(&m->mem, s->folder, "samples.jsonl");
    FILE *f;
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", s->folder);
    if (!fs_exists(path))
        return SNAP_OK; /* for example a shard without questions */
    snap_status st = fs_stream_regular(path, &f, err);
    if (st != SNAP_OK)
        return st;
    st = copy_bytes(f, path, to, err);
    (void)fclose(f);
    return st;
}

/* Writes all rows to a new file, which then replaces the old one. */
static snap_status write_samples(merge *m, snap_err *err) {
    snap_status st;
    fs_log log = FS_LOG_CLOSED;
    const char *path = run_file(&m->mem, m->opt->out, "samples.jsonl");
    const char *new = run_file(&m->mem, m->opt->out, "samples.jsonl.merged");
    if (!path || !new)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", m->opt->out);
    if (unlink(new) != 0 && errno != ENOENT) /* left by a merge that was killed */
        return err_set_errno(err, "cannot remove '%s'", new);
    TRY(fs_log_open(&log, new, err));
    for (size_t i = 0; i < m->opt->n; i++)
        TRY(copy_samples(m, &m->shards[i], &log, err));
    TRY(fs_log_sync(&log, err));
    TRY(fs_replace(new, path, err));
cleanup:
    fs_log_close(&log);
    return st;
}

/* ---- the journal of the merged run ---- */

/* The options for grading the merged run again: those of the first shard, with the servers of all
 * shards. */
static js *options_of_all(merge *m, const js *arms) {
    js *options = js_copy(m->shards[0].options);
    if (options && js_set_str(options, "shard", NULL) && js_set_new(options, "arms", js_copy(arms)))
        return options;
    js_free(options);
    return NULL;
}

static js *config_of_all(const merge *m, const js *arms) {
    js *config = js_copy(m->shards[0].config);
    js *folders = js_new_array();
    bool ok = config && folders;
    for (size_t i = 0; i < m->opt->n && ok; i++)
        ok = js_push_new(folders, js_new_str(m->opt->shards[i]));
    if (!ok) {
        js_free(folders);
        folders = NULL;
    }
    if (js_set_new(config, "shards", folders) && ok && js_set_str(config, "shard", NULL) &&
        js_set_new(config, "arm", js_copy(arms)))
        return config;
    js_free(config);
    return NULL;
}

/* Adds the client statistics and the file origins of an arm from all shards. */
static snap_status add_clients(merge *m, const char *arm, snap_err *err) {
    generator_load all = {.lag_p99_ns = -1, .lag_max_ns = -1};
    bool any = false;
    for (size_t i = 0; i < m->opt->n; i++) {
        snap_status st = origins_add(m->journal, arm, m->shards[i].journal, m->opt->shards[i], err);
        if (st != SNAP_OK)
            return st;
        any |= clients_add(m->shards[i].journal, arm, &all);
    }
    return any ? clients_record(m->journal, arm, &all, err) : SNAP_OK;
}

static snap_status add_all_clients(merge *m, snap_err *err) {
    snap_status st = SNAP_OK;
    js *identity = js_copy(m->shards[0].identity);
    for (void *it = js_first(identity); it && st == SNAP_OK; it = js_next(identity, it))
        if (text_starts(js_key(it), "arm "))
            st = add_clients(m, js_key(it) + 4, err);
    js_free(identity);
    return st;
}

static snap_status write_journal(merge *m, snap_err *err) {
    snap_status st;
    js *arms = NULL, *merged = js_new_object();
    bool ok = merged && js_set_int(merged, "shards", m->shards[0].part.of);
    TRY(run_journal_put(m->journal, RUN_MERGED, ok ? js_copy(merged) : NULL, err));
    for (size_t i = 0; i < m->opt->n; i++)
        TRY(merge_arms(&arms, js_get_array(m->shards[i].options, "arms"), m->opt->shards[i], err));
    TRY(run_journal_put(m->journal, RUN_IDENTITY, js_copy(m->shards[0].identity), err));
    TRY(run_journal_put(m->journal, RUN_OPTIONS, options_of_all(m, arms), err));
    TRY(run_journal_put(m->journal, RUN_CONFIG, config_of_all(m, arms), err));
    TRY(add_all_clients(m, err));
    for (size_t i = 0; i < m->opt->n; i++)
        TRY(judge_model_add(m->journal, m->shards[i].journal, m->opt->shards[i], err));
cleanup:
    js_free(arms);
    js_free(merged);
    return st;
}

static void release(merge *m) {
    results_journal_close(m->journal);
    for (size_t i = 0; m->shards && i < m->opt->n; i++)
        results_journal_close(m->shards[i].journal);
    free(m->shards);
    arena_release(&m->mem);
}

snap_status merge_shards(const merge_options *o, const js *config, results **out, snap_err *err) {
    snap_status st;
    merge m = {.opt = o};
    *out = NULL;
    TRY(shard_check_folders(o->shards, o->n, o->out, err));
    TRY(open_shards(&m, err));
    TRY(open_target(&m, err));
    TRY(write_journal(&m, err));
    TRY(write_samples(&m, err));
cleanup:
    release(&m);
    if (st != SNAP_OK)
        return st;
    const eval_options whole = {.out = o->out,
                                .data = o->data,
                                .gpqa_password = o->gpqa_password,
                                .max_lost_pct = -1,
                                .regrade = true,
                                .keep_verdicts = true,
                                .generate = {.cancel = o->cancel},
                                .report = o->report};
    return eval_run(&whole, config, out, err);
}
