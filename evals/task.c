#include "evals/task.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/text.h"
#include "evals/task_rows.h"

enum { kFileLimit = 256 << 20, kRepeated = 24 };

snap_status task_grader(const task_spec *t, const char *data, const task_options *options,
                        const grader **out, snap_err *err) {
    fault_mark before = fault_begin();
    if (t->pick_grader)
        *out = t->pick_grader(data);
    else if (t->by_policy[options->policy])
        *out = t->by_policy[options->policy];
    else
        *out = options->judge == JUDGE_LCB && t->lcb_grader ? t->lcb_grader : t->grader;
    return fault_result(before, SNAP_OK, err);
}

snap_status task_policy_parse(const char *name, math_policy *out, snap_err *err) {
    static const char *const names[] = {
        [MATH_TRUTH] = "truth", [MATH_FIELD] = "field", [MATH_STRICT] = "strict"};
    *out = MATH_TRUTH;
    for (int p = MATH_TRUTH; name && p <= MATH_STRICT; p++)
        if (strcmp(name, names[p]) == 0) {
            *out = (math_policy)p;
            return SNAP_OK;
        }
    if (!name)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "unknown --math-policy '%s' (truth, field, strict)", name);
}

/* ---- finding the data file ---- */

/* Fails with SNAP_E_IO and says how to get the data. `snapmla fetch` is not named for the synth_*
 * sets, which `snapmla synth` makes, and for the user's own tasks. */
SNAP_PRINTF(3, 4)
static snap_status no_data(const task_spec *t, snap_err *err, const char *fmt, ...) {
    char why[sizeof err->text];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    bool own = t->folder || text_starts(t->name, "synth_");
    return err_set(err, SNAP_E_IO, "no data for task '%s' (--data names the folder%s%s): %s",
                   t->name, own ? "" : "; to download it: snapmla fetch ", own ? "" : t->name, why);
}

static void list_places(const task_spec *t, const char *folder, buf *places) {
    for (int i = 0; i < TASK_FILES && t->files[i] && folder; i++)
        (void)buf_printf(places, "%s'%s/%s'", places->len ? " and " : "", folder, t->files[i]);
}

static snap_status not_found(const task_spec *t, const char *data, snap_err *err) {
    buf places = {0};
    list_places(t, data, &places);
    list_places(t, t->folder, &places);
    (void)no_data(t, err, "tried %s", buf_str(&places));
    buf_release(&places);
    return SNAP_E_IO;
}

static bool find_in(const task_spec *t, const char *folder, task_set *set) {
    for (int i = 0; i < TASK_FILES && t->files[i] && !set->file; i++) {
        char *path = fs_join(folder, t->files[i]);
        if (path && fs_exists(path))
            set->file = arena_strdup(&set->mem, path);
        free(path);
    }
    return set->file != NULL;
}

static snap_status find_file(const task_spec *t, const char *data, task_set *set, snap_err *err) {
    if (!fs_exists(data))
        return no_data(t, err, "'%s' does not exist", data);
    if (!fs_is_dir(data))
        set->file = arena_strdup(&set->mem, data);
    else if (!find_in(t, data, set) && t->folder)
        (void)find_in(t, t->folder, set);
    return set->file ? SNAP_OK : not_found(t, data, err);
}

/* ---- rows ---- */

snap_status task_messages_json(const task_problem *p, buf *out, snap_err *err) {
    js *array = js_new_array();
    bool ok = array != NULL;
    for (int i = 0; i < p->n_messages && ok; i++) {
        js *m = js_new_object();
        ok = m && js_set_str(m, "role", p->messages[i].role) &&
             js_set_str(m, "content", p->messages[i].content);
        ok = js_push_new(array, m) && ok;
    }
    snap_status st = ok ? js_write(array, JS_COMPACT, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for a prompt");
    js_free(array);
    return st;
}

static snap_status hash_messages(task_problem *p, snap_err *err) {
    buf text = {0};
    snap_status st = task_messages_json(p, &text, err);
    if (st == SNAP_OK)
        st = hash_bytes(buf_str(&text), text.len, p->prompt_sha256, err);
    buf_release(&text);
    return st;
}

static bool reserve_one(task_rows *r) {
    task_set *set = r->set;
    if (set->n < r->room)
        return true;
    size_t room = r->room ? 2 * r->room : 64;
    task_problem *more = arena_alloc(&set->mem, room, sizeof *more);
    if (!more)
        return false;
    if (set->n)
        memcpy(more, set->problems, set->n * sizeof *more);
    set->problems = more;
    r->room = room;
    return true;
}

/* Sets which conversation the last problem belongs to. */
static void set_turn(task_rows *r, const char *conversation) {
    task_set *set = r->set;
    task_problem *p = &set->problems[set->n - 1];
    bool continues = set->n > 1 && conversation && text_equal(conversation, r->conversation);
    p->conversation = set->n > 1 ? p[-1].conversation + !continues : 0;
    p->turn = continues ? p[-1].turn + 1 : 0;
    set->turns = p->turn + 1 > set->turns ? p->turn + 1 : set->turns;
    r->conversation = conversation;
}

static snap_status add_problem(task_rows *r, const task_row *row, snap_err *err) {
    task_set *set = r->set;
    gen_message *messages = arena_alloc(&set->mem, 2 + (size_t)row->n_history, sizeof *messages);
    int n = 0;
    char number[24];
    (void)snprintf(number, sizeof number, "%zu", set->rows);
    const char *id = row->id ? row->id : arena_strdup(&set->mem, number);
    if (!messages || !id || !reserve_one(r))
        return err_set(err, SNAP_E_NOMEM, "out of memory for the problems of '%s'", set->file);
    if (row->system)
        messages[n++] = (gen_message){"system", row->system};
    for (int i = 0; i < row->n_history; i++)
        messages[n++] = row->history[i];
    messages[n++] = (gen_message){"user", row->prompt};
    task_problem *p = &set->problems[set->n++];
    *p = (task_problem){
        .id = id, .messages = messages, .n_messages = n, .gold = row->gold, .source = r->source};
    memcpy(p->groups, row->groups, sizeof p->groups);
    set_turn(r, row->conversation);
    return hash_messages(p, err);
}

bool task_rows_next(task_rows *r) {
    r->set->rows++;
    return !r->limit || r->set->n < r->limit;
}

snap_status task_rows_add(task_rows *r, const task_row *row, const char *where, snap_err *err) {
    snap_err gold = {0};
    if (grade_check_gold(r->set->grader, row->gold, &gold) != SNAP_OK)
        return err_set(err, gold.code, "%s: %s", where, gold.text);
    return add_problem(r, row, err);
}

snap_status task_rows_digest(task_rows *r, const char *digest, snap_err *err) {
    (void)buf_printf(&r->digests, "%s\n", digest);
    return buf_check(&r->digests, "the digests of a data set", err);
}

snap_status task_rows_also(task_rows *r, const buf *part, snap_err *err) {
    char digest[HASH_HEX];
    snap_status st = hash_bytes(buf_str(part), part->len, digest, err);
    return st == SNAP_OK ? task_rows_digest(r, digest, err) : st;
}

static snap_status load_line(void *ctx, js *object, long line, snap_err *err) {
    task_rows *r = ctx;
    char where[300];
    task_row row = {0};
    if (!task_rows_next(r))
        return SNAP_OK;
    (void)snprintf(where, sizeof where, "%.240s:%ld", r->set->file, line);
    snap_status st = r->set->task->read_row(object, r, &row, where, err);
    return st == SNAP_OK ? task_rows_add(r, &row, where, err) : st;
}

static snap_status read_rows(task_rows *r, const buf *text, snap_err *err) {
    const task_set *set = r->set;
    if (set->task->read_file && !text_ends(set->file, ".jsonl"))
        return set->task->read_file(r, text, err);
    return js_each_line(buf_str(text), text->len, set->file, load_line, r, err);
}

/* ---- loading a whole set ---- */

static int by_id(const void *a, const void *b) {
    const task_problem *const *x = a, *const *y = b;
    return strcmp((*x)->id, (*y)->id);
}

static snap_status check_unique(task_set *set, snap_err *err) {
    set->by_id = arena_alloc(&set->mem, set->n + 1, sizeof(task_problem *));
    if (!set->by_id)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the problems of '%s'", set->file);
    for (size_t i = 0; i < set->n; i++)
        set->by_id[i] = &set->problems[i];
    qsort(set->by_id, set->n, sizeof(task_problem *), by_id);
    for (size_t i = 1; i < set->n; i++)
        if (strcmp(set->by_id[i - 1]->id, set->by_id[i]->id) == 0)
            return err_set(err, SNAP_E_INPUT, "%s: problem id '%.80s' occurs twice", set->file,
                           set->by_id[i]->id);
    return SNAP_OK;
}

static snap_status hash_prompts(task_set *set, snap_err *err) {
    buf all = {0};
    for (size_t i = 0; i < set->n; i++)
        (void)buf_printf(&all, "%s\n", set->problems[i].prompt_sha256);
    snap_status st = buf_check(&all, "prompt hashes", err);
    if (st == SNAP_OK)
        st = hash_bytes(buf_str(&all), all.len, set->prompt_sha256, err);
    buf_release(&all);
    return st;
}

/* If the set has several files, its digest is the hash of all their digests. */
static snap_status hash_files(task_rows *r, snap_err *err) {
    task_set *set = r->set;
    if (!r->digests.len)
        return SNAP_OK;
    (void)buf_printf(&r->digests, "%s\n", set->sha256);
    snap_status st = buf_check(&r->digests, "the digests of a data set", err);
    return st == SNAP_OK ? hash_bytes(buf_str(&r->digests), r->digests.len, set->sha256, err) : st;
}

static snap_status load(const task_spec *t, const char *data, size_t limit,
                        const task_options *options, task_set *out, snap_err *err) {
    static const task_options defaults;
    snap_status st;
    task_rows rows = {.options = options ? options : &defaults,
                      .set = out,
                      .limit = limit,
                      .in_folder = fs_is_dir(data)};
    buf text = {.limit = kFileLimit};
    *out = (task_set){.task = t, .keep_prompts = t->confidential && rows.options->keep_text};
    TRY(task_grader(t, data, rows.options, &out->grader, err));
    if (t->generated)
        out->file = arena_strdup(&out->mem, "(generated)");
    else
        TRY(find_file(t, data, out, err));
    if (!out->file)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for the task '%s'", t->name));
    if (t->load) {
        TRY(t->load(&rows, err));
    } else {
        TRY(fs_read(out->file, &text, err));
        TRY(hash_bytes(buf_str(&text), text.len, out->sha256, err));
        TRY(read_rows(&rows, &text, err));
    }
    if (!out->n)
        TRY(err_set(err, SNAP_E_INPUT, "%s: no problems", out->file));
    TRY(hash_files(&rows, err));
    TRY(check_unique(out, err));
    TRY(hash_prompts(out, err));
cleanup:
    buf_release(&rows.digests);
    buf_release(&text);
    return st;
}

snap_status task_load(const task_spec *t, const char *data, size_t limit,
                      const task_options *options, task_set *out, snap_err *err) {
    fault_mark before = fault_begin();
    snap_status st = load(t, data, limit, options, out, err);
    return fault_result(before, st, err);
}

void task_set_release(task_set *set) {
    arena_release(&set->mem);
    *set = (task_set){0};
}

const task_problem *task_problem_find(const task_set *set, const char *id, size_t *index) {
    const task_problem key = {.id = id}, *wanted = &key;
    const task_problem **found =
        set->n ? bsearch(&wanted, set->by_id, set->n, sizeof(task_problem *), by_id) : NULL;
    if (found && index)
        *index = (size_t)(*found - set->problems);
    return found ? *found : NULL;
}

size_t task_span(const task_set *set, size_t first) {
    size_t n = 1;
    while (set->turns > 1 && first + n < set->n &&
           set->problems[first + n].conversation == set->problems[first].conversation)
        n++;
    return n;
}

const char *task_public_message(const task_set *set, const task_problem *p, const char *message) {
    if (!message || !set->task->confidential || set->keep_prompts)
        return message;
    const char *prompt = p->messages[0].content;
    size_t n = strlen(message), room = strlen(prompt);
    for (size_t i = 0; i + kRepeated <= n; i++)
        if (memmem(prompt, room, message + i, kRepeated))
            return "(a message that repeats the question; not stored)";
    return message;
}
