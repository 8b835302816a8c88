/* Answers that are words: "an even function", "all real numbers". */
#include <string.h>

#include "evals/math/math_spelling.h"
#include "evals/math/math_wording.h"

enum { kPhrase = 128 };

static bool is_harmless(const char *s, size_t n) {
    static const char *const harmless[] = {
        "a",      "an",       "the",    "is",    "are",   "it",  "its",       "this",
        "on",     "in",       "at",     "graph", "shape", "due", "direction", "color",
        "colour", "function", "number", "curve", "conic", "day", "named",     "triangle"};
    for (size_t i = 0; i < COUNT(harmless); i++)
        if (span_is(s, n, harmless[i]))
            return true;
    return false;
}

/* A reader of words. */
typedef struct {
    const char *s, *end;
    char word[kPhrase]; /* in lower case */
    size_t n;
    bool other; /* something else than words and whole numbers was found */
} words;

/* Skips a backslash and the macro or the sign after it. */
static void skip_macro(words *w) {
    const char *from = ++w->s;
    while (w->s < w->end && is_letter(*w->s))
        w->s++;
    const math_spelling *c = math_find_command(from, (size_t)(w->s - from));
    bool text = c && (c->kind == kText || c->kind == kBold);
    bool sign = w->s == from && w->s < w->end && strchr(" ,;!$()[]", *w->s);
    w->other |= !text && !sign;
    w->s += sign;
}

/* True if the character may stand between words. */
static bool is_separator(const words *w) {
    bool decimal = *w->s == '.' && w->s + 1 < w->end && is_digit(w->s[1]);
    return !decimal && (is_space(*w->s) || strchr("{}$.,;!*\"'()", *w->s));
}

/* Reads the next word or whole number. False at the end and if there is anything else. */
static bool next_word(words *w) {
    w->n = 0;
    while (w->s < w->end && !w->other && !is_letter(*w->s) && !is_digit(*w->s)) {
        if (*w->s == '\\') {
            skip_macro(w);
        } else {
            w->other = !is_separator(w);
            w->s++;
        }
    }
    for (; !w->other && w->s < w->end && (is_letter(*w->s) || is_digit(*w->s)); w->s++) {
        w->other = w->n == kPhrase;
        if (!w->other)
            w->word[w->n++] = is_letter(*w->s) ? (char)(*w->s | 32) : *w->s;
    }
    return w->n > 0 && !w->other;
}

/* Writes the words of an answer in lower case, each after a space, without macros for text, without
 * punctuation and without the words of is_harmless(). Returns the length; 0 if there is anything
 * else than words and whole numbers, or no word of three letters. */
static size_t spell_words(const char *s, size_t n, char out[kPhrase]) {
    words w = {.s = s, .end = s + n};
    size_t used = 0;
    bool meaning = false;
    while (next_word(&w)) {
        if (is_harmless(w.word, w.n))
            continue;
        if (used + w.n + 1 > kPhrase)
            return 0;
        meaning |= w.n >= 3 && is_letter(w.word[0]);
        out[used++] = ' ';
        memcpy(out + used, w.word, w.n);
        used += w.n;
    }
    return meaning && !w.other ? used : 0;
}

const char *math_find_phrase(const char *s, size_t n) {
    /* as spell_words() writes them */
    static const char *const table[][2] = {
        {" empty set", "\\emptyset"},
        {" null set", "\\emptyset"},
        {" no solution", "\\emptyset"},
        {" no solutions", "\\emptyset"},
        {" no real solution", "\\emptyset"},
        {" no real solutions", "\\emptyset"},
        {" there no solution", "\\emptyset"},
        {" there no solutions", "\\emptyset"},
        {" there no real solutions", "\\emptyset"},
        {" all real numbers", "\\mathbb{R}"},
        {" all reals", "\\mathbb{R}"},
        {" all real x", "\\mathbb{R}"},
        {" all real values of x", "\\mathbb{R}"},
        {" set of all real numbers", "\\mathbb{R}"},
        {" set of real numbers", "\\mathbb{R}"},
        {" real numbers", "\\mathbb{R}"},
        {" any real", "\\mathbb{R}"},
        {" infinite", "\\infty"},
        {" infinitely many", "\\infty"},
    };
    char phrase[kPhrase];
    size_t used = spell_words(s, n, phrase);
    for (size_t i = 0; i < COUNT(table); i++)
        if (span_is(phrase, used, table[i][0]))
            return table[i][1];
    return NULL;
}

bool math_phrases_equal(const char *g, size_t gn, const char *a, size_t an) {
    char s[kPhrase], t[kPhrase];
    size_t n = spell_words(g, gn, s), m = spell_words(a, an, t);
    return n > 0 && n == m && memcmp(s, t, n) == 0;
}
