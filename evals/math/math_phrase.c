/* Answers that are words: "an even function", "all real numbers". */
#include <string.h>

#include "evals/math/math_spelling.h"
#include "evals/math/math_wording.h"

enum { kPhrase = 128 };

static bool is_harmless(const char *s, size_t n) {
    static const char *const harmless[] = {
        "a",      "an",    "the",   "is",    "are",   "it",        "its",   "this",    "on",
        "in",     "at",    "graph", "shape", "due",   "direction", "color", "colour",  "function",
        "number", "curve", "conic", "day",   "named", "triangle",  "s",     "integer", "integers"};
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

/* True if the text says that there are no solutions, as "no solution exists" or "there are no such
 * real solutions". @s comes from spell_words(). */
static bool denies_solutions(const char *s, size_t n) {
    static const char *const allowed[] = {
        " there",     " no",    " such",   " real",     " positive", " possible", " solution",
        " solutions", " exist", " exists", " equation", " has",      " have"};
    bool no = false, what = false;
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && s[k] != ' ';)
            k++;
        size_t w = 0;
        while (w < COUNT(allowed) && !span_is(s + i, k - i, allowed[w]))
            w++;
        if (w == COUNT(allowed))
            return false;
        no |= w == 1;
        what |= no && w >= 6 && w <= 9;
    }
    return no && what;
}

const char *math_find_phrase(const char *s, size_t n) {
    /* as spell_words() writes them */
    static const char *const table[][2] = {
        {" empty set", "\\emptyset"},
        {" null set", "\\emptyset"},
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
        {" infinitely many solutions", "\\infty"},
        {" there infinitely many solutions", "\\infty"},
    };
    char phrase[kPhrase];
    size_t used = spell_words(s, n, phrase);
    for (size_t i = 0; i < COUNT(table); i++)
        if (span_is(phrase, used, table[i][0]))
            return table[i][1];
    return denies_solutions(phrase, used) ? "\\emptyset" : NULL;
}

/* Writes "dne" as "does not exist". Returns the new length. */
static size_t spell_out(char s[kPhrase], size_t n) {
    static const char phrase[] = " does not exist";
    if (!span_is(s, n, " dne"))
        return n;
    memcpy(s, phrase, sizeof phrase - 1);
    return sizeof phrase - 1;
}

/* How often the word @w occurs among the words of @s. A space before each word is part of it. */
static int count_word(const char *s, size_t n, const char *w, size_t m) {
    int count = 0;
    for (size_t i = 0; i + m <= n; i++)
        count += memcmp(s + i, w, m) == 0 && (i + m == n || s[i + m] == ' ');
    return count;
}

/* True if two phrases with "all" differ only in the order of the words after it: "all positive even
 * integers", "all even positive integers". */
static bool same_description(const char *s, size_t n, const char *t, size_t m) {
    static const char all[] = " all ";
    static const char *const joints[] = {" not", " but", " of", " than", " and", " or", " if"};
    if (n != m || n < sizeof all || memcmp(s, all, sizeof all - 1) != 0 ||
        memcmp(t, all, sizeof all - 1) != 0)
        return false;
    for (size_t i = 0; i < COUNT(joints); i++)
        if (memmem(s, n, joints[i], strlen(joints[i])))
            return false;
    for (size_t i = 0; i < n; i++)
        if (is_digit(s[i]))
            return false;
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && s[k] != ' ';)
            k++;
        if (count_word(s, n, s + i, k - i) != count_word(t, m, s + i, k - i))
            return false;
    }
    return true;
}

bool math_letters_equal(const char *g, size_t gn, const char *a, size_t an) {
    unsigned sets[2] = {0, 0}; /* a bit for each letter from A to J */
    const char *s[2] = {g, a};
    size_t n[2] = {gn, an};
    static const char macro[] = "\\text{";
    int letters = 0;
    if (gn < sizeof macro || memcmp(g, macro, sizeof macro - 1) != 0)
        return false;
    for (int k = 0; k < 2; k++)
        for (size_t i = k ? 0 : sizeof macro - 1; i < n[k]; i++) {
            char c = s[k][i];
            bool joint = n[k] - i > 4 && memcmp(s[k] + i, " and ", 5) == 0;
            if (c >= 'A' && c <= 'J' && !(sets[k] >> (c - 'A') & 1)) {
                sets[k] |= 1U << (c - 'A');
                letters += !k;
            } else if (joint) {
                i += 4;
            } else if (!strchr(" ,;{}()$&", c) || !c) {
                return false;
            }
        }
    return letters > 1 && sets[0] == sets[1];
}

bool math_phrases_equal(const char *g, size_t gn, const char *a, size_t an) {
    char s[kPhrase], t[kPhrase];
    size_t n = spell_words(g, gn, s), m = spell_words(a, an, t);
    n = spell_out(s, n);
    m = spell_out(t, m);
    return n > 0 && n == m && (memcmp(s, t, n) == 0 || same_description(s, n, t, m));
}
