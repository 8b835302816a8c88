#include "evals/sample_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/rng.h"
#include "base/text.h"

enum { kShown = 80 };
static const size_t kRowLimit = (size_t)256 << 20; /* bytes; samples.c has the same limit */

const char *const sample_kinds[] = {"differs", "wrong",  "unparsed", "truncated",
                                    "empty",   "failed", "correct",  NULL};

/* ---- problems: a hash table from (task, id) to the order of appearance ---- */

typedef struct {
    const char *id; /* NULL: unused slot */
    int task;
    int64_t order;
} place;

typedef struct {
    place *slots; /* open addressing; size is a power of two; at most half full */
    size_t room, used;
} places;

static size_t slot_of(const places *p, int task, const char *id) {
    size_t i = (size_t)(rng_stream_of(id) + (uint64_t)task * 0x9E3779B97F4A7C15u) & (p->room - 1);
    while (p->slots[i].id && (p->slots[i].task != task || strcmp(p->slots[i].id, id) != 0))
        i = (i + 1) & (p->room - 1);
    return i;
}

static bool places_grow(places *p) {
    places more = {.room = p->room ? 2 * p->room : 1024, .used = p->used};
    more.slots = calloc(more.room, sizeof *more.slots);
    if (!more.slots)
        return false;
    for (size_t i = 0; i < p->room; i++)
        if (p->slots[i].id)
            more.slots[slot_of(&more, p->slots[i].task, p->slots[i].id)] = p->slots[i];
    free(p->slots);
    *p = more;
    return true;
}

/* Looks a problem up and adds it if it is new; NULL if memory is exhausted. */
static const place *place_of(places *p, arena *mem, int task, const char *id) {
    if (2 * p->used >= p->room && !places_grow(p))
        return NULL;
    place *at = &p->slots[slot_of(p, task, id)];
    if (!at->id) {
        *at = (place){arena_strdup(mem, id), task, (int64_t)p->used++};
        if (!at->id)
            return NULL;
    }
    return at;
}

/* ---- one row ---- */

/* Looks a name up and adds it if it is new. *out: its index. */
static snap_status name_of(const char *names[SAMPLE_NAMES], int *n, arena *mem, const char *name,
                           const char *where, int *out, snap_err *err) {
    for (*out = 0; *out < *n; (*out)++)
        if (strcmp(names[*out], name) == 0)
            return SNAP_OK;
    if (*n == SAMPLE_NAMES)
        return err_set(err, SNAP_E_INPUT, "%s: more than %d tasks or arms", where, SAMPLE_NAMES);
    if (!(names[*n] = arena_strdup(mem, name)))
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    (*n)++;
    return SNAP_OK;
}

static const char *verdict_of(const js *row) {
    const char *v = js_get_str(row, "verdict");
    for (int i = 0; v && sample_kinds[i]; i++)
        if (strcmp(v, sample_kinds[i]) == 0)
            return sample_kinds[i];
    return NULL;
}

/* The first kShown bytes of a text, without an incomplete character at the end. */
static const char *start_of(arena *mem, const char *s) {
    if (!s)
        return NULL;
    size_t n = strlen(s);
    if (n > kShown)
        for (n = kShown; n && ((unsigned char)s[n] & 0xC0) == 0x80;)
            n--;
    return arena_strndup(mem, s, n);
}

static bool push(sample_index *x, sample_row row) {
    if (x->n_rows == x->room) {
        size_t room = x->room ? 2 * x->room : 256;
        sample_row *more = realloc(x->rows, room * sizeof *more);
        if (!more)
            return false;
        x->rows = more;
        x->room = room;
    }
    x->rows[x->n_rows++] = row;
    return true;
}

static snap_status add_row(sample_index *x, places *p, const js *o, sample_row r, const char *where,
                           snap_err *err) {
    const char *task, *arm, *problem;
    int64_t sample;
    snap_status st;
    TRY(js_need_str(o, "task", &task, where, err));
    TRY(js_need_str(o, "arm", &arm, where, err));
    TRY(js_need_str(o, "problem", &problem, where, err));
    TRY(js_need_int(o, "sample", &sample, where, err));
    if (sample < 0 || sample > INT32_MAX)
        TRY(err_set(err, SNAP_E_INPUT, "%s: a sample's number must not be negative", where));
    r.sample = (int)sample;
    TRY(name_of(x->tasks, &x->n_tasks, &x->mem, task, where, &r.task, err));
    TRY(name_of(x->arms, &x->n_arms, &x->mem, arm, where, &r.arm, err));
    const place *at = place_of(p, &x->mem, r.task, problem);
    r.problem = at ? at->id : NULL;
    r.order = at ? at->order : 0;
    r.verdict = verdict_of(o);
    r.extracted = start_of(&x->mem, js_get_str(o, "extracted"));
    r.gold = start_of(&x->mem, js_get_str(o, "gold"));
    r.failed = js_get_bool(o, "failed", false);
    r.truncated = js_get_bool(o, "truncated", false);
    r.empty = js_get_bool(o, "empty", false);
    r.tokens = js_get_int(o, "completion_tokens", -1);
    if (!at || !push(x, r))
        TRY(err_set(err, SNAP_E_NOMEM, "%s: out of memory", where));
cleanup:
    return st;
}

/* ---- the file ---- */

static snap_status add_line(sample_index *x, places *p, const char *line, sample_row at,
                            const char *where, snap_err *err) {
    snap_err why = {0};
    js *o = js_parse(line, at.len, where, &why);
    snap_status st = SNAP_OK;
    TRY(o ? SNAP_OK : err_set(err, why.code, "%s", why.text));
    TRY(js_is_object(o) ? SNAP_OK
                        : err_set(err, SNAP_E_INPUT, "%s: a row must be an object", where));
    TRY(add_row(x, p, o, at, where, err));
cleanup:
    js_free(o);
    return st;
}

static snap_status read_lines(sample_index *x, places *p, FILE *f, snap_err *err) {
    char *line = NULL, where[300];
    size_t room = 0;
    ssize_t n;
    sample_row at = {0};
    snap_status st = SNAP_OK;
    for (long number = 1; st == SNAP_OK && (n = getline(&line, &room, f)) > 0; number++) {
        (void)snprintf(where, sizeof where, "%.240s:%ld", x->path, number);
        at.len = (size_t)n;
        if (line[n - 1] == '\n' && !text_is_blank(line, at.len))
            st = add_line(x, p, line, at, where, err);
        at.at += n;
    }
    if (st == SNAP_OK && !feof(f)) /* getline() also ends the loop when memory runs out */
        st = err_set_errno(err, "cannot read '%s'", x->path);
    free(line);
    return st;
}

/* ---- questions ---- */

static int compare_int(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare_questions(const sample_row *a, const sample_row *b) {
    int by_task = compare_int(a->task, b->task), by_order = compare_int(a->order, b->order);
    return by_task ? by_task : by_order ? by_order : compare_int(a->sample, b->sample);
}

/* Sorts by question, then arm. Among the rows of one arm for one question, the row that counts
 * comes first: answers before failures, later rows before earlier ones. */
static int compare_rows(const void *x, const void *y) {
    const sample_row *a = x, *b = y;
    int c = compare_questions(a, b);
    c = c ? c : compare_int(a->arm, b->arm);
    c = c ? c : compare_int(a->failed, b->failed);
    return c ? c : compare_int(b->at, a->at);
}

static void drop_superseded(sample_index *x) {
    size_t kept = 0;
    for (size_t i = 0; i < x->n_rows; i++) {
        const sample_row *last = kept ? &x->rows[kept - 1] : NULL;
        if (!last || last->arm != x->rows[i].arm || compare_questions(last, &x->rows[i]) != 0)
            x->rows[kept++] = x->rows[i];
    }
    x->n_rows = kept;
}

static bool differs(const sample_question *q) {
    size_t right = 0, judged = 0;
    for (size_t i = 0; i < q->n; i++) {
        right += q->rows[i].verdict && strcmp(q->rows[i].verdict, "correct") == 0;
        judged += q->rows[i].verdict != NULL;
    }
    return right > 0 && right < judged;
}

static snap_status group(sample_index *x, snap_err *err) {
    if (x->n_rows)
        qsort(x->rows, x->n_rows, sizeof *x->rows, compare_rows);
    drop_superseded(x);
    x->questions = calloc(x->n_rows + 1, sizeof *x->questions);
    if (!x->questions)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", x->path);
    for (size_t i = 0, n; i < x->n_rows; i += n) {
        for (n = 1; i + n < x->n_rows && compare_questions(&x->rows[i], &x->rows[i + n]) == 0;)
            n++;
        sample_question q = {.rows = &x->rows[i], .n = n};
        q.differs = differs(&q);
        x->questions[x->n_questions++] = q;
    }
    return SNAP_OK;
}

/* ---- the interface ---- */

snap_status sample_index_open(sample_index *x, const char *path, snap_err *err) {
    places p = {0};
    *x = (sample_index){.fd = -1};
    snap_status st = fs_open_regular(path, &x->fd, err);
    if (st != SNAP_OK)
        return st;
    x->path = strdup(path);
    int copy = fcntl(x->fd, F_DUPFD_CLOEXEC, 0);
    FILE *f = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!f && copy >= 0)
        (void)close(copy);
    if (!f || !x->path)
        TRY(err_set_errno(err, "cannot read '%s'", path));
    TRY(read_lines(x, &p, f, err));
    TRY(group(x, err));
cleanup:
    free(p.slots);
    if (f)
        (void)fclose(f);
    return st;
}

void sample_index_close(sample_index *x) {
    if (x->fd >= 0)
        (void)close(x->fd);
    free(x->rows);
    free(x->questions);
    free(x->path);
    arena_release(&x->mem);
    *x = (sample_index){.fd = -1};
}

js *sample_index_read(const sample_index *x, const sample_row *row, snap_err *err) {
    if (row->len > kRowLimit)
        return (void)err_set(err, SNAP_E_INPUT, "%s: a row is too long", x->path), NULL;
    char *line = malloc(row->len);
    size_t have = 0;
    js *o = NULL;
    if (!line)
        return (void)err_set(err, SNAP_E_NOMEM, "out of memory for a sample"), NULL;
    while (have < row->len) {
        ssize_t n = pread(x->fd, line + have, row->len - have, (off_t)row->at + (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    if (have == row->len)
        o = js_parse(line, have, x->path, err);
    else
        (void)err_set_errno(err, "cannot read '%s' at byte %lld", x->path, (long long)row->at);
    free(line);
    return o;
}

static bool row_is(const sample_row *r, const char *kind) {
    if (strcmp(kind, "failed") == 0)
        return r->failed;
    if (strcmp(kind, "truncated") == 0)
        return r->truncated;
    if (strcmp(kind, "empty") == 0)
        return r->empty;
    return r->verdict && strcmp(r->verdict, kind) == 0;
}

bool sample_question_is(const sample_question *q, const char *kind) {
    if (strcmp(kind, "differs") == 0)
        return q->differs;
    for (size_t i = 0; i < q->n; i++)
        if (row_is(&q->rows[i], kind))
            return true;
    return false;
}
