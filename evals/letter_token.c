/* letter_token.c - splits a response into tokens. A comment that only quotes a text is an example
 * of the case that its line handles. */
#include "evals/letter_token.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fault.h"
#include "evals/letter_text.h"

/* Letters of other scripts, in the order A, B, C, D. */
static const char *const natives[] = {"أ", "ب", "ج",  "د",  "অ",  "ব",  "ড",  "ঢ",  "ক",  "খ", "গ",
                                      "ঘ", "क", "ख",  "ग",  "घ",  "ก",  "ข",  "ค",  "ง",  "А", "Б",
                                      "С", "Г", "ア", "イ", "ウ", "エ", "甲", "乙", "丙", "丁"};

typedef struct {
    span in;
    size_t at;
    bool open; /* in brackets */
    letter_tokens *out;
} reader;

static bool is_small(char c) {
    return c >= 'a' && c <= 'z';
}

static bool is_letter(char c) {
    return is_small(c) || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c) {
    return is_letter(c) || is_digit(c);
}

char letter_option(char c, char last) {
    c = is_small(c) ? (char)(c - 'a' + 'A') : c;
    return c >= 'A' && c <= last ? c : '\0';
}

/* The byte at the offset @i from the current place; '\n' outside of the text. */
static char peek(const reader *r, long i) {
    long at = (long)r->at + i;
    return at >= 0 && at < (long)r->in.n ? r->in.s[at] : '\n';
}

static span rest(const reader *r, size_t from) {
    size_t at = r->at + from < r->in.n ? r->at + from : r->in.n;
    return (span){r->in.s + at, r->in.n - at};
}

static token *add(reader *r, token_kind kind, size_t n) {
    token *t = &r->out->t[r->out->n++];
    *t = (token){.kind = (unsigned char)kind, .at = (unsigned)r->at, .n = (unsigned)n};
    r->at += n;
    return t;
}

/* ---- mentions of options ---- */

/* Length of the word of letters and digits at the start of @s. */
static size_t word_length(span s) {
    size_t n = 0;
    while (n < s.n && (is_alnum(s.s[n]) || (unsigned char)s.s[n] >= 0x80))
        n++;
    return n;
}

/* True if a space and a word that begins with a small letter come after the letter, at the offset
 * @from. *is: the classes of the word; 0 if the lexicon does not have it. */
static bool is_followed_by_word(const reader *r, size_t from, word_class *is) {
    span s = rest(r, from);
    *is = 0;
    if (s.n < 2 || s.s[0] != ' ' || !is_small(s.s[1]))
        return false;
    (void)letter_word((span){s.s + 1, s.n - 1}, is);
    return true;
}

#define AFTER_ARTICLE                                                                              \
    (WORD_BE | WORD_AUX | WORD_FIT | WORD_POINT | WORD_CLAIM | WORD_END | WORD_WHY | WORD_NOT |    \
     WORD_OR | WORD_AND | WORD_BUT | WORD_LEAVE | WORD_MAY | WORD_THAN | WORD_AFTER | WORD_CASE |  \
     WORD_WRONG | WORD_SO | WORD_IF)

/* True if the letter at the current place is the article "A" or the pronoun "I". *unknown: the word
 * after the letter is a WORD_THING, or the lexicon does not have it. */
static bool is_word_of_one_letter(const reader *r, size_t from, bool *unknown) {
    word_class is;
    bool follows = is_followed_by_word(r, from, &is);
    char c = peek(r, 0);
    *unknown = follows && (!is || is & WORD_THING);
    const token *last = r->out->n ? &r->out->t[r->out->n - 1] : NULL;
    if (!follows || (c != 'A' && c != 'I') || (c == 'A' && last && last->is & WORD_OPTION))
        return false;
    span s = rest(r, from + 1);
    size_t n = word_length(s);
    bool am = n == 2 && memcmp(s.s, "am", 2) == 0;
    bool past = n > 0 && (s.s[n - 1] != 's' || (n == 3 && memcmp(s.s, "was", 3) == 0));
    if (c == 'I')
        return !(is & (WORD_BE | WORD_FIT | WORD_LEAVE)) || am || past;
    return !(is & AFTER_ARTICLE);
}

/* True if the characters before a letter make it part of a formula, a number or a name. */
static bool is_glued_before(const reader *r) {
    char before = peek(r, -1), two = peek(r, -2);
    if (before == ' ')
        return is_digit(two) || two == '+' ||
               ((unsigned char)two >= 0xB0 &&
                peek(r, -3) == '\xC2'); /* a degree sign, an exponent */
    if (before == '-')
        return two != ' ' && two != '\n';
    return is_alnum(before) || (before && strchr("_^+%\\", before)) ||
           (before == '(' && is_alnum(two));
}

/* True if the characters after a letter make it part of a formula or a name: "C = 5", "A-type",
 * "C++", "A\u266f". */
static bool is_glued_after(const reader *r) {
    char after = peek(r, 1), next = peek(r, 2);
    switch (after) {
    case ' ':
        return next && strchr("=+<>^", next) && !(next == '=' && peek(r, 3) == '>');
    case '-':
        return is_alnum(next);
    case '\'':
        return is_letter(next) && !strchr("dst", next);
    case '\xE2':
        return next == '\x99';
    default:
        return is_alnum(after) || (after && strchr("_^+(%=", after));
    }
}

/* True if the letter is part of a formula or of a longer name: "C = 5", "A-type", "4.0 J". */
static bool is_in_formula(const reader *r) {
    return is_glued_before(r) || is_glued_after(r);
}

/* Reads "(C)", "[C]" and "( C )". Returns the length; 0 if there is none. */
static size_t framed_letter(const reader *r) {
    char open = peek(r, 0), before = peek(r, -1);
    long i = 1;
    const token *last = r->out->n ? &r->out->t[r->out->n - 1] : NULL;
    bool call = is_alnum(before) && !(last && last->is & WORD_ANSWER); /* P(C), not "answer(C)" */
    if ((open != '(' && open != '[') || call || before == ')')
        return 0;
    i += peek(r, i) == ' ';
    long letter = i++;
    i += peek(r, i) == ' ';
    char close = peek(r, i), after = peek(r, i + 1);
    if (!is_letter(peek(r, letter)) || (close != ')' && close != ']') || after == '(' ||
        is_digit(after) || strchr("^_", after))
        return 0;
    return (size_t)i + 1;
}

static char letter_inside(const reader *r, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (is_letter(peek(r, (long)i)))
            return peek(r, (long)i);
    return '\0';
}

/* True if a title comes before a letter: "Mr. A". */
static bool is_titled(const reader *r) {
    static const char *const titles[] = {"mr", "ms", "mrs", "miss"};
    size_t n = r->out->n;
    n -= n && r->out->t[n - 1].kind == TOKEN_STOP;
    const token *word = n ? &r->out->t[n - 1] : NULL;
    bool title = false;
    for (size_t i = 0; word && i < sizeof titles / sizeof *titles; i++)
        title = title || (word->n == strlen(titles[i]) &&
                          strncasecmp(r->in.s + word->at, titles[i], word->n) == 0);
    return title;
}

/* True if a letter that follows a word names something: "vitamin C", "compound D". */
static bool is_named(const reader *r) {
    const token *t = r->out->n ? &r->out->t[r->out->n - 1] : NULL;
    if (!t || t->kind != TOKEN_WORD || peek(r, -1) != ' ')
        return false;
    unsigned char first = (unsigned char)r->in.s[t->at];
    if (first >= 0x80 || (t->is & WORD_OPTION) || (t->is & WORD_ANSWER))
        return false;
    size_t n = t->n;
    bool adverb = n > 4 && memcmp(r->in.s + t->at + n - 2, "ly", 2) == 0;
    return t->is & WORD_THING || (!t->is && !adverb);
}

/* True for the letter of "a. nitrogen" if the text is this one line, without a second label. Not
 * for "i.". */
static bool is_lone_label(const reader *r) {
    char c = peek(r, 0);
    if (r->at || peek(r, 1) != '.' || peek(r, 2) != ' ' || c == 'i' || peek(r, 4) == '.')
        return false;
    for (long i = 3; i < (long)r->in.n; i++)
        if (peek(r, i) == '\n' ||
            (peek(r, i) == '.' && i > 4 && peek(r, i - 2) == ' ' && is_letter(peek(r, i - 1))))
            return false;
    return true;
}

static bool follows_thing(const reader *r) {
    return r->out->n && r->out->t[r->out->n - 1].is & WORD_THING;
}

/* True if a small letter counts as an option: at the end of a line, as the label of the whole text,
 * or in brackets. In brackets it does not count before most short words, nor does "(a)" before any
 * word in small letters, except after a colon or a verb such as "choose". */
static bool is_small_option(const reader *r, size_t n, bool bracket) {
    span s = rest(r, n);
    const token *last = r->out->n ? &r->out->t[r->out->n - 1] : NULL;
    if (bracket && last && (last->kind == TOKEN_COLON || last->is & WORD_CHOOSE))
        return true;
    if (!bracket) {
        size_t i = 0;
        while (i < s.n && strchr(".!", s.s[i]) && s.s[i])
            i++;
        return i == s.n || s.s[i] == '\n' || is_lone_label(r);
    }
    if (s.n < 2 || s.s[0] != ' ' || !is_small(s.s[1]))
        return true;
    size_t word = word_length((span){s.s + 1, s.n - 1});
    bool the = word == 3 && memcmp(s.s + 1, "the", 3) == 0;
    bool is = r->at == 0 && word == 2 && memcmp(s.s + 1, "is", 2) == 0;
    return letter_inside(r, n) != 'a' && (word > 3 || the || is);
}

/* True if a letter begins a longer word or an entry of the lexicon: "Lösung", "I'd", "C'est". */
static bool is_start_of_word(const reader *r) {
    word_class is;
    unsigned char after = (unsigned char)peek(r, 1);
    if (after >= 0x80)
        return after >= 0xC3 && (after <= 0xDF || after == 0xE1);
    return (after == '\'' || after == ' ') && letter_word(rest(r, 0), &is) > 1;
}

/* True if a letter without a frame is at the current place. */
static bool is_bare_letter(const reader *r) {
    bool alone = is_letter(peek(r, 0)) && !is_alnum(peek(r, -1)) && !is_alnum(peek(r, 1));
    bool suffix = peek(r, -1) == '\'' && is_letter(peek(r, -2)); /* "it's" */
    return alone && !suffix && !is_start_of_word(r);
}

static bool read_letter(reader *r) {
    size_t n = framed_letter(r);
    bool framed = n > 0, unknown = false;
    if (!framed && !is_bare_letter(r))
        return false;
    n = framed ? n : 1;
    bool closed = peek(r, 1) == ')' || peek(r, 1) == ']';
    bool bracket = !framed && closed && peek(r, 2) != '(' && !r->open;
    char c = letter_inside(r, n), letter = letter_option(c, r->out->last);
    bool small = is_small(c);
    bool word = !framed && !bracket && is_word_of_one_letter(r, 1, &unknown);
    if (small ? !is_small_option(r, n + bracket, framed || bracket) : word)
        return false;
    bool named = is_named(r) && (!framed || peek(r, 0) == '[') && (!bracket || follows_thing(r));
    bool other = !letter || (!framed && (is_in_formula(r) || is_titled(r)));
    token *t = add(r, other || named ? TOKEN_NAME : TOKEN_OPTION, n + bracket);
    t->letter = letter;
    t->named = named && !other && !(t[-1].is & WORD_THING);
    t->framed = framed;
    t->bracket = bracket;
    t->small = small;
    t->before_word = unknown && !small;
    return true;
}

static bool read_native(reader *r) {
    span s = rest(r, 0);
    if ((unsigned char)peek(r, 0) < 0x80)
        return false;
    for (size_t i = 0; i < sizeof natives / sizeof *natives; i++) {
        size_t n = strlen(natives[i]);
        char after = peek(r, (long)n);
        if (s.n >= n && memcmp(s.s, natives[i], n) == 0 && !is_alnum(after) &&
            (unsigned char)after < 0x80 && (unsigned char)peek(r, -1) < 0x80) {
            token *t = add(r, TOKEN_OPTION, n);
            t->letter = letter_option((char)('A' + i % 4), r->out->last);
            t->native = true;
            t->kind = t->letter ? TOKEN_OPTION : TOKEN_NAME;
            return true;
        }
    }
    return false;
}

/* ---- numbers, words and signs ---- */

static bool read_number(reader *r) {
    size_t n = 0;
    span s = rest(r, 0);
    if (!is_digit(s.s[0]))
        return false;
    while (n < s.n &&
           (is_alnum(s.s[n]) || (strchr(".,", s.s[n]) && n + 1 < s.n && is_digit(s.s[n + 1]))))
        n++;
    (void)add(r, TOKEN_NUMBER, n);
    return true;
}

/* Joins the words of "the third option" to one token, which mentions an option. */
static void join_ordinal(reader *r) {
    letter_tokens *o = r->out;
    token *t = &o->t[o->n - 1];
    bool one = t->n == 3 && strncasecmp(r->in.s + t->at, "one", 3) == 0;
    if (o->n < 2 || !(t->is & WORD_OPTION || one) || !(t[-1].is & WORD_ORDER))
        return;
    char letter = letter_option((char)('A' - 1 + (t[-1].is >> WORD_RANK_SHIFT & 15)), o->last);
    bool definite = o->n > 2 && t[-2].n == 3 && strncasecmp(r->in.s + t[-2].at, "the", 3) == 0;
    bool plural = r->in.s[t->at + t->n - 1] == 's';
    if (!letter || !definite || plural)
        return;
    t[-1] = (token){.kind = TOKEN_OPTION,
                    .at = t[-1].at,
                    .n = t->at + t->n - t[-1].at,
                    .letter = letter,
                    .framed = true,
                    .ordinal = true};
    o->n--;
}

static bool read_word(reader *r) {
    word_class is = 0;
    span s = rest(r, 0);
    unsigned char c = (unsigned char)s.s[0];
    if (!is_letter(s.s[0]) && c < 0x80 && !(c == '\'' && s.n > 1 && is_letter(s.s[1])))
        return false;
    size_t n = letter_word(s, &is);
    if (!n) {
        bool wide = (c == 0xE0 && s.n > 1 && ((unsigned char)s.s[1] & 0xFE) == 0xB8) ||
                    (c >= 0xE2 && c <= 0xED);
        n = 1;
        while (wide && n < s.n && n < 3 && ((unsigned char)s.s[n] & 0xC0) == 0x80)
            n++;
        while (
            !wide && n < s.n &&
            (is_alnum(s.s[n]) || ((unsigned char)s.s[n] >= 0x80 && (unsigned char)s.s[n] != 0xE2 &&
                                  (unsigned char)s.s[n] != 0xE3)))
            n++;
        while (!wide && n + 1 < s.n && s.s[n] == '\'' && is_small(s.s[n + 1]))
            n += 1 + word_length((span){s.s + n + 1, s.n - n - 1});
    }
    add(r, TOKEN_WORD, n)->is = is;
    join_ordinal(r);
    return true;
}

static void read_sign(reader *r) {
    char c = peek(r, 0), after = peek(r, 1);
    token_kind kind = TOKEN_SIGN;
    size_t n = 1;
    if (c == '\n') {
        kind = TOKEN_LINE;
    } else if (c == '.' || c == '!') {
        bool end = !is_alnum(after);
        kind = end ? TOKEN_STOP : TOKEN_SIGN;
    } else if ((c == '=' || c == '-') && after == '>') {
        kind = TOKEN_ARROW;
        n = 2;
    } else {
        static const struct {
            char c;
            token_kind kind;
        } signs[] = {{'?', TOKEN_ASK},           {';', TOKEN_SEMICOLON},  {',', TOKEN_COMMA},
                     {':', TOKEN_COLON},         {'-', TOKEN_DASH},       {'=', TOKEN_EQUALS},
                     {'/', TOKEN_SLASH},         {'&', TOKEN_SLASH},      {'(', TOKEN_OPEN},
                     {'[', TOKEN_OPEN},          {')', TOKEN_CLOSE},      {']', TOKEN_CLOSE},
                     {LETTER_YES[0], TOKEN_YES}, {LETTER_NO[0], TOKEN_NO}};
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            kind = c == signs[i].c ? signs[i].kind : kind;
    }
    r->open = kind == TOKEN_OPEN || (r->open && kind != TOKEN_CLOSE && kind != TOKEN_LINE);
    (void)add(r, kind, n);
}

bool letter_tokenize(span text, char last, letter_tokens *out) {
    *out = (letter_tokens){.text = text, .last = last};
    out->t = fault_malloc((text.n + 1) * sizeof *out->t);
    if (!out->t)
        return false;
    reader r = {.in = text, .out = out};
    while (r.at < text.n)
        if (text.s[r.at] == ' ')
            r.at++;
        else if (!read_letter(&r) && !read_number(&r) && !read_native(&r) && !read_word(&r))
            read_sign(&r);
    return true;
}

void letter_tokens_release(letter_tokens *t) {
    free(t->t);
    *t = (letter_tokens){0};
}
