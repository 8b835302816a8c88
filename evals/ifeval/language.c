#include "evals/ifeval/language.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/json.h"
#include "evals/ifeval/letters.h"
#include "evals/ifeval/small_words.h"

/* kText: only this many characters of a text are used. kSmoothing: added to each frequency. Both
 * values are langdetect's. */
enum { kLanguages = 64, kGroup = 3, kProfileLimit = 8 << 20, kText = 10000, kBits = 21 };
static const double kSmoothing = 0.5 / 10000;
static const char kInstalled[] = "/usr/lib/python3/dist-packages/langdetect/profiles";

/* How frequent a group of letters is in a language. A group is packed with kBits bits per
 * letter. */
typedef struct {
    uint64_t group;
    float gain; /* log of (frequency + smoothing) / smoothing */
    int language;
} entry;

struct language_profiles {
    char codes[kLanguages][LANGUAGE_CODE];
    int n;
    entry *entries; /* sorted by group */
    size_t n_entries, room;
};

/* ---- reading profiles ---- */

static uint64_t pack(const uint32_t *letters, int n) {
    uint64_t group = 0;
    for (int i = 0; i < n; i++)
        group = group << kBits | letters[i];
    return group;
}

static bool add_entry(language_profiles *p, entry e) {
    if (p->n_entries == p->room) {
        size_t room = p->room ? 2 * p->room : 1 << 16;
        entry *more = fault_realloc(p->entries, room * sizeof *more);
        if (!more)
            return false;
        p->entries = more;
        p->room = room;
    }
    p->entries[p->n_entries++] = e;
    return true;
}

/* Stores the letters of a key in @out and returns their number; 0 if there are more than kGroup. */
static int letters_of(const char *key, uint32_t out[kGroup]) {
    const span text = {key, strlen(key)};
    int n = 0;
    for (size_t at = 0; at < text.n; n++) {
        uint32_t c = letters_next(text, &at);
        if (n == kGroup)
            return 0;
        out[n] = c;
    }
    return n;
}

static snap_status add_groups(language_profiles *p, js *freq, const double totals[kGroup],
                              const char *path, snap_err *err) {
    uint32_t letters[kGroup];
    for (void *it = js_first(freq); it; it = js_next(freq, it)) {
        int n = letters_of(js_key(it), letters);
        double rate = n ? js_num(js_value(it)) / totals[n - 1] : 0;
        if (!(rate > 0 && rate <= 1))
            continue;
        const entry e = {pack(letters, n), (float)log((rate + kSmoothing) / kSmoothing), p->n};
        if (!add_entry(p, e))
            return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    }
    return SNAP_OK;
}

static snap_status add_language(language_profiles *p, const js *profile, const char *path,
                                snap_err *err) {
    const char *name;
    js *freq, *words;
    double totals[kGroup];
    snap_status st;
    TRY(js_need_str(profile, "name", &name, path, err));
    TRY(js_need_object(profile, "freq", &freq, path, err));
    TRY(js_need_array(profile, "n_words", &words, path, err));
    if (strlen(name) >= LANGUAGE_CODE || p->n == kLanguages)
        TRY(err_set(
            err, SNAP_E_INPUT,
            "%s: the name of language '%.20s' is too long, or there are more than %d languages",
            path, name, kLanguages));
    for (int i = 0; i < kGroup; i++)
        totals[i] = js_num(js_at(words, (size_t)i));
    (void)snprintf(p->codes[p->n], LANGUAGE_CODE, "%s", name);
    TRY(add_groups(p, freq, totals, path, err));
    p->n++;
cleanup:
    return st;
}

static snap_status read_profile(language_profiles *p, const char *folder, const char *name,
                                snap_err *err) {
    char *path = fs_join(folder, name);
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", folder);
    js *profile = fs_is_dir(path) ? NULL : js_parse_file(path, kProfileLimit, err);
    snap_status st = SNAP_OK;
    if (profile)
        st = add_language(p, profile, path, err);
    else if (!fs_is_dir(path))
        st = err_set(err, SNAP_E_INPUT, "cannot read '%s'", path);
    js_free(profile);
    free(path);
    return st;
}

static int by_group(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->language - y->language;
}

static int visible(const struct dirent *e) {
    return e->d_name[0] != '.';
}

snap_status language_open(language_profiles **out, const char *folder, snap_err *err) {
    struct dirent **names = NULL;
    snap_status st = SNAP_OK;
    *out = NULL;
    language_profiles *p = fault_calloc(1, sizeof *p);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", folder);
    int n = scandir(folder, &names, visible, alphasort); /* sorted, so the order is the same on
                                                            every machine */
    if (n < 0)
        TRY(err_set_errno(err, "cannot read the folder '%s'", folder));
    for (int i = 0; i < n; i++)
        TRY(read_profile(p, folder, names[i]->d_name, err));
    if (!p->entries) {
        st = err_set(err, SNAP_E_INPUT, "'%s' holds no language profiles", folder);
        goto cleanup;
    }
    qsort(p->entries, p->n_entries, sizeof *p->entries, by_group);
    *out = p;
    p = NULL;
cleanup:
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    language_close(p);
    return st;
}

void language_close(language_profiles *p) {
    if (p)
        free(p->entries);
    free(p);
}

/* Reads the profiles of this machine into *out; NULL if the machine has none, which is no fault. */
static void read_installed(language_profiles **out) {
    const char *named = getenv("SNAPMLA_LANGDETECT");
    snap_err err = {0};
    if (!named && !fs_exists(kInstalled))
        return;
    fault_mark before = fault_begin();
    snap_status st = language_open(out, named ? named : kInstalled, &err);
    if (st != SNAP_OK && !fault_since(before))
        fault_note(st, "%s%s", err.text, named ? " (SNAPMLA_LANGDETECT names the folder)" : "");
}

const language_profiles *language_installed(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static language_profiles *installed;
    static bool known;
    (void)pthread_mutex_lock(&lock);
    if (!known) {
        fault_mark before = fault_begin();
        read_installed(&installed);
        known = !fault_since(before); /* after a fault, the next call tries again */
    }
    (void)pthread_mutex_unlock(&lock);
    return installed;
}

/* ---- preparing the text ---- */

static span replace_all(pattern *p, span text, buf *out) {
    span at[PATTERN_GROUPS];
    size_t from = 0;
    buf_clear(out);
    while (pattern_find(p, text, from, at)) {
        (void)buf_append(out, text.s + from, (size_t)(at[0].s - text.s) - from);
        (void)buf_puts(out, " ");
        from = (size_t)(at[0].s - text.s) + at[0].n;
    }
    (void)buf_append(out, text.s + from, text.n - from);
    return (span){buf_str(out), out->len};
}

/* Reads characters as langdetect does: without URLs and mail addresses, with single spaces, at most
 * kText. */
static size_t read_text(span text, uint32_t *out) {
    static pattern url = {.regex = "https?://[-_.?&~;+=/#0-9A-Za-z]{1,2076}"};
    static pattern mail = {.regex =
                               "[-_.0-9A-Za-z]{1,64}@[-_0-9A-Za-z]{1,255}[-_.0-9A-Za-z]{1,255}"};
    buf first = {0}, second = {0};
    uint32_t before = 0;
    size_t n = 0, taken = 0;
    text = replace_all(&url, text, &first);
    text = replace_all(&mail, text, &second);
    for (size_t at = 0; at < text.n && taken < kText; taken++) {
        uint32_t c = letters_next(text, &at);
        if (c != ' ' || before != ' ')
            out[n++] = c;
        before = c;
    }
    buf_release(&first);
    buf_release(&second);
    return n;
}

static bool is_latin(uint32_t c) {
    return c >= 'A' && c <= 'z';
}

/* Removes Latin letters from a text that is mostly in another script: there they are names and
 * terms. */
static size_t drop_latin(uint32_t *text, size_t n) {
    size_t latin = 0, other = 0, kept = 0;
    for (size_t i = 0; i < n; i++) {
        latin += is_latin(text[i]);
        other += !is_latin(text[i]) && text[i] >= 0x300 && (text[i] < 0x1e00 || text[i] > 0x1eff);
    }
    if (2 * latin >= other)
        return n;
    for (size_t i = 0; i < n; i++)
        if (!is_latin(text[i]))
            text[kept++] = text[i];
    return kept;
}

/* Maps letters that langdetect's profiles do not distinguish to one letter, and signs to spaces. */
static uint32_t normal(uint32_t c) {
    static const struct {
        uint32_t from, to, as;
    } classes[] = {
        {0, 'A' - 1, ' '},        {'Z' + 1, 'a' - 1, ' '},  {'z' + 1, 0x7f, ' '},
        {0xa0, 0xa0, ' '},        {0xab, 0xab, ' '},        {0xb0, 0xb0, ' '},
        {0xbb, 0xbb, ' '},        {0x219, 0x219, 0x15f},    {0x21b, 0x21b, 0x163},
        {0x6cc, 0x6cc, 0x64a},    {0x1ea0, 0x1eff, 0x1ec3}, {0x2000, 0x206f, ' '},
        {0x3040, 0x309f, 0x3042}, {0x30a0, 0x30ff, 0x30a2}, {0x3100, 0x312f, 0x3105},
        {0x31a0, 0x31bf, 0x3105}, {0xac00, 0xd7af, 0xac00},
    };
    for (size_t i = 0; i < sizeof classes / sizeof *classes && c >= classes[i].from; i++)
        if (c <= classes[i].to)
            return classes[i].as;
    return c;
}

/* ---- rating groups of letters ---- */

/* The last letters of the current word, including the space before it. */
typedef struct {
    uint32_t letters[kGroup];
    int n;
    bool capitals; /* inside a run of capitals; its groups are not rated */
} window;

static void push(window *w, uint32_t c) {
    uint32_t last = w->letters[w->n - 1];
    if (last == ' ') {
        *w = (window){.letters = {' '}, .n = 1};
        if (c == ' ')
            return;
    } else if (w->n == kGroup) {
        memmove(w->letters, w->letters + 1, (kGroup - 1) * sizeof *w->letters);
        w->n--;
    }
    w->letters[w->n++] = c;
    if (!letters_is_upper(c))
        w->capitals = false;
    else if (letters_is_upper(last))
        w->capitals = true;
}

/* Adds a group's gain to the score of every language that has it; false if none has it. */
static bool score_group(const language_profiles *p, uint64_t group, double score[kLanguages]) {
    size_t lo = 0, hi = p->n_entries;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (p->entries[mid].group < group)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool known = lo < p->n_entries && p->entries[lo].group == group;
    for (; lo < p->n_entries && p->entries[lo].group == group; lo++)
        score[p->entries[lo].language] += (double)p->entries[lo].gain;
    return known;
}

static bool score_window(const language_profiles *p, const window *w, double score[kLanguages]) {
    bool known = false;
    for (int n = 1; n <= w->n && !w->capitals; n++) {
        const uint32_t *last = w->letters + w->n - n;
        if (n > 1 || *last != ' ')
            known |= score_group(p, pack(last, n), score);
    }
    return known;
}

/* Detects the language and stores its code; false if the text has no group of letters that is
 * known. */
static bool detect(const language_profiles *p, span text, char code[LANGUAGE_CODE]) {
    double score[kLanguages] = {0};
    window w = {.letters = {' '}, .n = 1};
    bool known = false;
    int best = 0;
    if (!p)
        return small_words_detect(text, code);
    uint32_t *letters = fault_calloc(kText, sizeof *letters);
    size_t n = letters ? drop_latin(letters, read_text(text, letters)) : 0;
    for (size_t i = 0; i < n; i++) {
        push(&w, normal(letters[i]));
        known |= score_window(p, &w, score);
    }
    free(letters);
    for (int i = 1; i < p->n; i++)
        if (score[i] > score[best])
            best = i;
    (void)snprintf(code, LANGUAGE_CODE, "%s", known ? p->codes[best] : "");
    return known;
}

bool language_is(const language_profiles *p, span text, const char *code) {
    char found[LANGUAGE_CODE];
    return !detect(p, text, found) || strcmp(found, code) == 0;
}
