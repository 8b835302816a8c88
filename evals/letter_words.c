#include "evals/letter_words.h"

#include <pthread.h>
#include <string.h>

#include "evals/letter_lexicon.h"

enum { SLOTS = 8192, ENTRY_MAX = 48 };

#define HASH_START 2166136261U /* FNV-1a */

typedef struct {
    const char *at; /* NULL: the slot is free */
    unsigned char n;
    bool more;     /* a longer entry begins with these n bytes */
    word_class is; /* 0: the bytes are only the beginning of entries */
} slot;

static slot slots[SLOTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static char small(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Copies at most ENTRY_MAX bytes of @text in small letters: ASCII, Latin-1, Cyrillic, and the D
 * with a stroke. */
static span fold(span text, char out[ENTRY_MAX]) {
    size_t n = text.n < ENTRY_MAX ? text.n : ENTRY_MAX;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text.s[i], before = i ? (unsigned char)text.s[i - 1] : 0;
        out[i] = small((char)c);
        if ((before == 0xC3 && c >= 0x80 && c <= 0x9E) ||
            (before == 0xD0 && c >= 0x90 && c <= 0x9F))
            out[i] = (char)(c + 0x20);
        else if (before == 0xC4 && c == 0x90)
            out[i] = (char)0x91;
        else if (before == 0xD0 && c >= 0xA0 && c <= 0xAF) {
            out[i - 1] = (char)0xD1;
            out[i] = (char)(c - 0x20);
        }
    }
    return (span){out, n};
}

static uint32_t hash_step(uint32_t h, char c) {
    return (h ^ (unsigned char)c) * 16777619U;
}

/* The slot of the text of @n bytes, which has the hash @h, or the free slot where it belongs. */
static slot *find_slot(const char *text, size_t n, uint32_t h) {
    uint32_t i = (h ^ h >> 15) % SLOTS;
    for (;; i = (i + 1) % SLOTS) {
        slot *s = &slots[i];
        if (!s->at || (s->n == n && memcmp(s->at, text, n) == 0))
            return s;
    }
}

static bool is_alnum(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* True if a word of the entry may end before the byte @c. */
static bool is_break(char c) {
    return (unsigned char)c < 0x80 && !is_alnum(c);
}

/* Adds an entry, and its beginnings up to each is_break(). */
static void add_entry(const char *at, size_t n, word_class is) {
    uint32_t h = HASH_START;
    for (size_t i = 0; i < n; i++) {
        h = hash_step(h, at[i]);
        bool whole = i + 1 == n;
        if (!whole && !is_break(at[i + 1]))
            continue;
        slot *s = find_slot(at, i + 1, h);
        word_class had = s->at ? s->is : 0;
        *s = (slot){at, (unsigned char)(i + 1), s->more || !whole, had | (whole ? is : 0)};
    }
}

static void add_lists(const word_list *lists, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (const char *at = lists[i].entries; *at;) {
            size_t length = strcspn(at, "|");
            if (length)
                add_entry(at, length, lists[i].is | WORD_KNOWN);
            at += length + (at[length] == '|');
        }
}

static void build(void) {
    add_lists(letter_english, letter_n_english);
    add_lists(letter_foreign, letter_n_foreign);
}

/* True if the bytes begin a character of a script that is written without spaces between words:
 * Thai, Chinese, Japanese, Korean. */
static bool is_unspaced(const char *s, size_t n) {
    unsigned char a = n ? (unsigned char)s[0] : 0, b = n > 1 ? (unsigned char)s[1] : 0;
    return (a == 0xE0 && (b == 0xB8 || b == 0xB9)) || (a >= 0xE3 && a <= 0xED);
}

/* True if an entry may end before @rest, which follows the byte @before. */
static bool ends_word(char before, span rest, bool unspaced) {
    if (rest.n && ((unsigned char)rest.s[0] & 0xC0) == 0x80)
        return false; /* inside a character */
    if (!rest.n || unspaced || is_unspaced(rest.s, rest.n))
        return true;
    bool inside = is_alnum(before) || (unsigned char)before >= 0x80;
    return !inside || !(is_alnum(rest.s[0]) || (unsigned char)rest.s[0] >= 0xC3);
}

size_t letter_word(span text, word_class *is) {
    (void)pthread_once(&once, build);
    uint32_t h = HASH_START;
    size_t best = 0;
    bool unspaced = is_unspaced(text.s, text.n);
    char window[ENTRY_MAX];
    span folded = fold(text, window);
    for (size_t n = 1; n <= folded.n && text.s[n - 1] != '\n'; n++) {
        h = hash_step(h, folded.s[n - 1]);
        span rest = {text.s + n, text.n - n};
        bool broken = !rest.n || is_break(rest.s[0]);
        if (!broken && !ends_word(text.s[n - 1], rest, unspaced))
            continue;
        const slot *s = find_slot(folded.s, n, h);
        if (s->at && s->is) {
            best = n;
            *is = s->is;
        }
        if (broken && !(s->at && s->more))
            break;
    }
    return best;
}
