#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/share.h"
#include "base/text.h"
#include "base/zip.h"
#include "evals/ifeval/punkt.h"

/* The English files together have 0.2 MB, and the archive with all languages has 4.3 MB. */
enum { kFileLimit = 8 << 20, kArchiveLimit = 64 << 20 };

typedef struct {
    span word; /* the word. For a pair of words: both, with a tab between them */
    unsigned bits;
} entry;

typedef struct {
    entry *list; /* sorted by word */
    size_t n, room;
} table;

struct punkt_params {
    table words, pairs;
    arena mem; /* the texts of the files */
};

/* ---- tables ---- */

static int by_word(const void *a, const void *b) {
    const span x = ((const entry *)a)->word, y = ((const entry *)b)->word;
    int order = memcmp(x.s, y.s, x.n < y.n ? x.n : y.n);
    return order ? order : (x.n > y.n) - (x.n < y.n);
}

static bool add(table *t, span word, unsigned bits) {
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 256;
        entry *more = fault_realloc(t->list, room * sizeof *more);
        if (!more)
            return false;
        t->list = more;
        t->room = room;
    }
    t->list[t->n++] = (entry){word, bits};
    return true;
}

/* Sorts a table and joins the entries of the same word. */
static void finish(table *t) {
    size_t kept = 0;
    if (t->n)
        qsort(t->list, t->n, sizeof *t->list, by_word);
    for (size_t i = 0; i < t->n; i++) {
        if (kept && by_word(&t->list[kept - 1], &t->list[i]) == 0)
            t->list[kept - 1].bits |= t->list[i].bits;
        else
            t->list[kept++] = t->list[i];
    }
    t->n = kept;
}

static unsigned find(const table *t, span word) {
    const entry key = {word, 0};
    const entry *found =
        word.n && t->n ? bsearch(&key, t->list, t->n, sizeof *t->list, by_word) : NULL;
    return found ? found->bits : 0;
}

/* ---- reading a file ---- */

typedef snap_status (*line_fn)(punkt_params *p, span line, const char *where, long number,
                               snap_err *err);

static snap_status bad_line(const char *where, long number, const char *what, snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "%s:%ld: %s", where, number, what);
}

/* SNAP_E_INPUT if @word cannot be a word of a table. */
static snap_status check_word(span word, const char *where, long number, snap_err *err) {
    if (!word.n)
        return bad_line(where, number, "a word is missing", err);
    if (word.n > PUNKT_LONGEST)
        return bad_line(where, number, "the word has more than 64 bytes", err);
    for (size_t i = 0; i < word.n; i++)
        if ((unsigned char)word.s[i] < ' ' || (word.s[i] >= 'A' && word.s[i] <= 'Z'))
            return bad_line(where, number,
                            "a word must be in lower case without control characters", err);
    return SNAP_OK;
}

static snap_status keep(table *t, span word, unsigned bits, const char *where, snap_err *err) {
    return add(t, word, bits) ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
}

static snap_status read_abbreviation(punkt_params *p, span line, const char *where, long number,
                                     snap_err *err) {
    snap_status st = check_word(line, where, number, err);
    return st == SNAP_OK ? keep(&p->words, line, PUNKT_ABBREVIATION, where, err) : st;
}

static snap_status read_starter(punkt_params *p, span line, const char *where, long number,
                                snap_err *err) {
    snap_status st = check_word(line, where, number, err);
    return st == SNAP_OK ? keep(&p->words, line, PUNKT_STARTER, where, err) : st;
}

/* Splits a line at its first tab and checks the first column. */
static snap_status two_columns(span line, span out[2], const char *where, long number,
                               snap_err *err) {
    const char *tab = line.n ? memchr(line.s, '\t', line.n) : NULL;
    if (!tab)
        return bad_line(where, number, "two columns with a tab between them are needed", err);
    out[0] = (span){line.s, (size_t)(tab - line.s)};
    out[1] = (span){tab + 1, line.n - out[0].n - 1};
    return check_word(out[0], where, number, err);
}

static snap_status read_pair(punkt_params *p, span line, const char *where, long number,
                             snap_err *err) {
    span words[2] = {{0}};
    snap_status st = two_columns(line, words, where, number, err);
    if (st == SNAP_OK)
        st = check_word(words[1], where, number, err);
    return st == SNAP_OK ? keep(&p->pairs, line, 1, where, err) : st;
}

static snap_status read_case(punkt_params *p, span line, const char *where, long number,
                             snap_err *err) {
    const unsigned most = PUNKT_STARTER - 1;
    span columns[2] = {{0}};
    unsigned bits = 0;
    snap_status st = two_columns(line, columns, where, number, err);
    if (st != SNAP_OK)
        return st;
    bool good = columns[1].n > 0 && columns[1].n <= 3;
    for (size_t i = 0; i < columns[1].n && good; i++) {
        good = columns[1].s[i] >= '0' && columns[1].s[i] <= '9';
        bits = 10 * bits + (unsigned)(columns[1].s[i] - '0');
    }
    if (!good || bits > most || (bits & PUNKT_ABBREVIATION))
        return bad_line(where, number, "the second column must be an even number, 0 to 126", err);
    return keep(&p->words, columns[0], bits, where, err);
}

static const struct {
    const char *name;
    line_fn read;
} files[] = {{"abbrev_types.txt", read_abbreviation},
             {"sent_starters.txt", read_starter},
             {"collocations.tab", read_pair},
             {"ortho_context.tab", read_case}};
enum { FILES = sizeof files / sizeof *files };

static snap_status read_lines(punkt_params *p, int file, const buf *text, const char *where,
                              snap_err *err) {
    snap_status st = SNAP_OK;
    long number = 0;
    const char *kept = arena_strndup(&p->mem, buf_str(text), text->len);
    if (!kept)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    if (!text_is_utf8(kept, text->len))
        return err_set(err, SNAP_E_INPUT, "%s: not UTF-8", where);
    for (const char *at = kept, *end = kept + text->len; at < end && st == SNAP_OK;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        span line = {at, (size_t)((stop ? stop : end) - at)};
        at = stop ? stop + 1 : end;
        if (line.n && line.s[line.n - 1] == '\r')
            line.n--;
        st = files[file].read(p, line, where, ++number, err);
    }
    if (st == SNAP_OK && !number)
        st = err_set(err, SNAP_E_INPUT, "%s: the file is empty", where);
    return st;
}

/* ---- reading the files ---- */

/* Reads the content of one file from the folder, or from the archive @zip if it is not NULL. */
static snap_status read_file(const char *path, const buf *zip, int file, buf *where, buf *text,
                             snap_err *err) {
    const char *folder = zip ? "punkt_tab/english/" : "";
    buf_clear(where);
    buf_clear(text);
    if (!buf_printf(where, "%s/%s%s", path, folder, files[file].name))
        return buf_check(where, "a path", err);
    if (!zip)
        return fs_read(buf_str(where), text, err);
    const char *member = buf_str(where) + strlen(path) + 1;
    return zip_member_read(zip->data, zip->len, path, member, NULL, text, err);
}

snap_status punkt_open(punkt_params **out, const char *path, snap_err *err) {
    snap_status st = SNAP_OK;
    buf zip = {.limit = kArchiveLimit}, text = {.limit = kFileLimit}, where = {0};
    const bool folder = fs_is_dir(path);
    *out = NULL;
    punkt_params *p = fault_calloc(1, sizeof *p);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    if (!folder)
        TRY(fs_read(path, &zip, err));
    for (int i = 0; i < FILES; i++) {
        TRY(read_file(path, folder ? NULL : &zip, i, &where, &text, err));
        TRY(read_lines(p, i, &text, buf_str(&where), err));
    }
    finish(&p->words);
    finish(&p->pairs);
    *out = p;
    p = NULL;
cleanup:
    buf_release(&zip);
    buf_release(&text);
    buf_release(&where);
    punkt_close(p);
    return st;
}

void punkt_close(punkt_params *p) {
    if (!p)
        return;
    free(p->words.list);
    free(p->pairs.list);
    arena_release(&p->mem);
    free(p);
}

/* ---- the parameters of this machine ---- */

/* The path of punkt_tab.zip in the data folder, or else in the program's own; NULL if neither has
 * it. The caller frees it. */
static char *find_archive(const char *data) {
    static const char name[] = "punkt/punkt_tab.zip";
    char *path = data && fs_is_dir(data) ? fs_join(data, name) : NULL;
    if (path && fs_exists(path))
        return path;
    free(path);
    return share_find("datasets/punkt/punkt_tab.zip");
}

static void read_installed(punkt_params **out, const char *data) {
    const char *named = getenv("SNAPMLA_PUNKT");
    snap_err err = {0};
    char *found = named ? NULL : find_archive(data);
    if (named || found) {
        fault_mark before = fault_begin();
        snap_status st = punkt_open(out, named ? named : found, &err);
        if (st != SNAP_OK && !fault_since(before))
            fault_note(st, "%s%s", err.text, named ? " (SNAPMLA_PUNKT names the path)" : "");
    }
    free(found);
}

const punkt_params *punkt_installed(const char *data) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static punkt_params *installed;
    (void)pthread_mutex_lock(&lock);
    if (!installed)
        read_installed(&installed, data);
    const punkt_params *p = installed;
    (void)pthread_mutex_unlock(&lock);
    return p;
}

/* ---- queries ---- */

unsigned punkt_word(const punkt_params *p, span word) {
    return find(&p->words, word);
}

bool punkt_is_pair(const punkt_params *p, span first, span second) {
    char key[2 * PUNKT_LONGEST + 1];
    if (first.n > PUNKT_LONGEST || second.n > PUNKT_LONGEST || !first.n || !second.n)
        return false;
    memcpy(key, first.s, first.n);
    key[first.n] = '\t';
    memcpy(key + first.n + 1, second.s, second.n);
    return find(&p->pairs, (span){key, first.n + 1 + second.n}) != 0;
}
