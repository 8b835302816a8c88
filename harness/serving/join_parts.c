#include "harness/serving/join_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/eval/run_files.h"
#include "harness/eval/shard.h"
#include "harness/serving/meeting.h"
#include "harness/serving/serving_files.h"

typedef struct {
    const char *folder;
    results_journal *journal; /* open; its lock is held */
    const js *config, *prompts;
    const char *version;
    eval_shard part;
    int64_t bytes; /* size of requests.jsonl up to the end of the last complete block */
} source;

typedef struct {
    const join_options *opt;
    source *parts; /* [opt->n] */
    serving_options options;
    load_points points;
} join;

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for the parts");
}

bool serving_has_requests(const char *folder) {
    char *path = fs_join(folder, "requests.jsonl");
    bool found = path && fs_exists(path);
    free(path);
    return found;
}

/* ---- options ---- */

static const char *text_of(const js *config, const char *key) {
    const char *text = js_get_str(config, key);
    return text && *text ? text : NULL;
}

snap_status serving_options_read(const js *config, serving_options *out, snap_err *err) {
    const js *arms = js_get_array(config, "arm");
    *out = (serving_options){.concurrency = text_of(config, "concurrency"),
                             .rate = text_of(config, "rate"),
                             .ramp = text_of(config, "ramp"),
                             .speed = text_of(config, "speed"),
                             .arrivals = text_of(config, "arrivals"),
                             .trace = text_of(config, "trace"),
                             .input = text_of(config, "input"),
                             .output = text_of(config, "output"),
                             .prompts = text_of(config, "prompts"),
                             .turns = js_get_int(config, "turns", 1),
                             .blocks = js_get_int(config, "blocks", 0),
                             .seed = js_get_int(config, "seed", 1),
                             .margin_pp = js_get_num(config, "margin", 2),
                             .out = text_of(config, "out")};
    for (size_t i = 0; i < js_len(arms) && i < OPT_LIST_MAX; i++)
        if ((out->arms.items[out->arms.n] = js_str(js_at(arms, i))))
            out->arms.n++;
    if (!out->arms.n || out->arms.n > SERVING_ARMS_MAX || out->blocks < 1 ||
        out->blocks > SLICES_MOST)
        return err_set(err, SNAP_E_INPUT,
                       "the journal has no arms, or numbers of arms or blocks that cannot be "
                       "compared (at most %d and %d)",
                       SERVING_ARMS_MAX, SLICES_MOST);
    return SNAP_OK;
}

/* ---- reading and comparing the parts ---- */

static snap_status open_part(source *s, snap_err *err) {
    char *path = fs_join(s->folder, "journal");
    snap_status st = SNAP_OK;
    TRY(path ? SNAP_OK : no_memory(err));
    if (!fs_exists(path))
        TRY(err_set(err, SNAP_E_USAGE, "'%s' has no run", s->folder));
    TRY(results_journal_open(&s->journal, path, NULL, err));
    const js *row = results_journal_find(s->journal, SERVING_PART);
    s->config = js_get_object(row, "config");
    s->version = js_get_str(row, "version");
    s->prompts = results_journal_find(s->journal, "prompts");
    if (!s->config || !s->version || !js_get_str(row, "part"))
        TRY(err_set(err, SNAP_E_USAGE,
                    "'%s' is not a part of a serving run: it was made without --part", s->folder));
    TRY(shard_parse(js_get_str(row, "part"), &s->part, err));
cleanup:
    free(path);
    return st;
}

static bool may_differ(const char *key) {
    return text_equal(key, "out") || text_equal(key, "part") || text_equal(key, "meet");
}

/* Null and absent are equal. */
static bool same(const js *a, const js *b) {
    bool no_a = !a || js_is_null(a), no_b = !b || js_is_null(b);
    return no_a || no_b ? no_a && no_b : js_equal(a, b);
}

/* SNAP_E_USAGE if @b lacks an option of @a or has another value of it, except options that may
 * differ. */
static snap_status check_options(const source *a, const source *b, snap_err *err) {
    snap_status st = SNAP_OK;
    js *copy = js_copy(a->config);
    if (!copy)
        return no_memory(err);
    for (void *it = js_first(copy); it && st == SNAP_OK; it = js_next(copy, it)) {
        if (!may_differ(js_key(it)) && !same(js_value(it), js_get(b->config, js_key(it))))
            st = err_set(err, SNAP_E_USAGE, "'%s' and '%s' belong to different runs: --%s differs",
                         a->folder, b->folder, js_key(it));
    }
    js_free(copy);
    return st;
}

static snap_status check_same_run(const source *a, const source *b, snap_err *err) {
    if (strcmp(a->version, b->version) != 0)
        return err_set(err, SNAP_E_USAGE,
                       "'%s' and '%s' were made by different versions of snapmla: %s and %s",
                       a->folder, b->folder, a->version, b->version);
    if (a->part.of != b->part.of)
        return err_set(err, SNAP_E_USAGE, "'%s' is one of %d parts, '%s' one of %d", a->folder,
                       a->part.of, b->folder, b->part.of);
    snap_status st = check_options(a, b, err);
    if (st == SNAP_OK)
        st = check_options(b, a, err);
    if (st == SNAP_OK && !same(a->prompts, b->prompts))
        st = err_set(err, SNAP_E_USAGE,
                     "'%s' and '%s' have prompts of different lengths: the servers counted their "
                     "tokens differently",
                     a->folder, b->folder);
    return st;
}

/* The first of the first @n folders that is part @index; NULL: none is. */
static const source *find_part(const join *j, size_t n, int index) {
    for (size_t i = 0; i < n; i++)
        if (j->parts[i].part.index == index)
            return &j->parts[i];
    return NULL;
}

/* Checks that each part is given exactly once. */
static snap_status check_parts(const join *j, snap_err *err) {
    int of = j->parts[0].part.of;
    for (size_t i = 0; i < j->opt->n; i++) {
        const source *s = &j->parts[i], *first = find_part(j, i, s->part.index);
        if (first)
            return err_set(err, SNAP_E_USAGE, "'%s' and '%s' are both part %d/%d", first->folder,
                           s->folder, s->part.index, of);
    }
    for (int i = 1; i <= of; i++)
        if (!find_part(j, j->opt->n, i))
            return err_set(err, SNAP_E_USAGE, "part %d/%d is missing: join all %d", i, of, of);
    return SNAP_OK;
}

/* Checks that all blocks of a part are complete, and finds the size of their requests. */
static snap_status check_blocks(const join *j, source *s, snap_err *err) {
    char key[SERVING_BLOCK_KEY];
    for (int p = 0; p < j->points.n; p++)
        for (int a = 0; a < j->options.arms.n; a++)
            for (int b = 0; b < (int)j->options.blocks; b++) {
                serving_block_key(key, p, a, b);
                const js *row = results_journal_find(s->journal, key);
                int64_t bytes = js_get_int(row, "bytes", -1);
                if (bytes < 0)
                    return err_set(err, SNAP_E_USAGE,
                                   "part %d/%d in '%s' is not complete: continue it first",
                                   s->part.index, s->part.of, s->folder);
                s->bytes = bytes > s->bytes ? bytes : s->bytes;
            }
    return SNAP_OK;
}

static snap_status open_parts(join *j, snap_err *err) {
    snap_status st;
    for (size_t i = 0; i < j->opt->n; i++) {
        j->parts[i].folder = j->opt->parts[i];
        TRY(open_part(&j->parts[i], err));
        TRY(check_same_run(&j->parts[0], &j->parts[i], err));
    }
    TRY(check_parts(j, err));
    const serving_options *o = &j->options;
    TRY(serving_options_read(j->parts[0].config, &j->options, err));
    TRY(load_points_parse(o->concurrency, o->rate, o->ramp, o->speed, o->arrivals, &j->points,
                          err));
    for (size_t i = 0; i < j->opt->n; i++)
        TRY(check_blocks(j, &j->parts[i], err));
cleanup:
    return st;
}

/* ---- the joined run ---- */

static js *joined_config(const join *j) {
    js *config = js_copy(j->parts[0].config);
    bool ok = config && js_set_str(config, "out", j->opt->out);
    (void)js_delete(config, "part");
    (void)js_delete(config, "meet");
    if (ok)
        return config;
    js_free(config);
    return NULL;
}

/* Appends the requests of the complete blocks of a part. */
static snap_status copy_requests(const source *s, fs_log *to, snap_err *err) {
    enum { kChunk = 1 << 20 };
    buf text = {.limit = (size_t)4 << 30};
    char *path = fs_join(s->folder, "requests.jsonl");
    snap_status st = path ? fs_read_regular(path, &text, err) : no_memory(err);
    if (st == SNAP_OK &&
        (text.len < (size_t)s->bytes || (s->bytes && text.data[s->bytes - 1] != '\n')))
        st = err_set(err, SNAP_E_INPUT, "'%s' is not what the journal says: requests are lost",
                     path);
    for (size_t at = 0; st == SNAP_OK && at < (size_t)s->bytes; at += kChunk) {
        size_t left = (size_t)s->bytes - at;
        st = fs_log_append(to, text.data + at, left < kChunk ? left : kChunk, err);
    }
    buf_release(&text);
    free(path);
    return st;
}

static snap_status put_block(const join *j, results_journal *journal, const char *key,
                             int64_t bytes, snap_err *err) {
    int64_t requests = 0;
    js *row = js_new_object();
    for (size_t i = 0; i < j->opt->n; i++)
        requests += js_get_int(results_journal_find(j->parts[i].journal, key), "requests", 0);
    if (row && js_set_int(row, "bytes", bytes) && js_set_int(row, "requests", requests))
        return run_journal_put(journal, key, row, err);
    js_free(row);
    return no_memory(err);
}

static snap_status put_blocks(const join *j, results_journal *journal, snap_err *err) {
    char key[SERVING_BLOCK_KEY];
    int64_t bytes = 0;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < j->opt->n; i++)
        bytes += j->parts[i].bytes;
    if (j->parts[0].prompts)
        st = results_journal_append(journal, "prompts", j->parts[0].prompts, err);
    for (int p = 0; p < j->points.n; p++)
        for (int a = 0; a < j->options.arms.n; a++)
            for (int b = 0; b < (int)j->options.blocks && st == SNAP_OK; b++) {
                serving_block_key(key, p, a, b);
                st = put_block(j, journal, key, bytes, err);
            }
    return st;
}

static snap_status write_joined(join *j, const js *config, snap_err *err) {
    fs_log lines = FS_LOG_CLOSED;
    serving_files f = serving_files_make(j->opt->out);
    char *path = fs_join(j->opt->out, "requests.jsonl");
    snap_status st = path ? SNAP_OK : no_memory(err);
    TRY(st);
    if (serving_has_requests(j->opt->out))
        TRY(err_set(err, SNAP_E_USAGE, "'%s' has a run already: choose another --out",
                    j->opt->out));
    TRY(serving_files_open(&f, config, err));
    TRY(fs_log_open(&lines, path, err));
    for (int i = 1; i <= j->parts[0].part.of; i++)
        TRY(copy_requests(find_part(j, j->opt->n, i), &lines, err));
    TRY(fs_log_sync(&lines, err));
    TRY(put_blocks(j, f.journal, err));
cleanup:
    fs_log_close(&lines);
    serving_files_close(&f);
    free(path);
    return st;
}

snap_status serving_join(const join_options *o, js **config, snap_err *err) {
    join j = {.opt = o, .parts = calloc(o->n, sizeof(source))};
    js *joined = NULL;
    snap_status st;
    *config = NULL;
    if (!j.parts)
        return no_memory(err);
    TRY(shard_check_folders(o->parts, o->n, o->out, err));
    TRY(open_parts(&j, err));
    joined = joined_config(&j);
    TRY(joined ? SNAP_OK : no_memory(err));
    TRY(write_joined(&j, joined, err));
    *config = joined;
    joined = NULL;
cleanup:
    js_free(joined);
    for (size_t i = 0; i < o->n; i++)
        results_journal_close(j.parts[i].journal);
    free(j.parts);
    return st;
}
