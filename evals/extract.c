#include "evals/extract.h"

#include <stdint.h>
#include <string.h>

#include "evals/extract_parts.h"

/* most bytes between two boxes that are joined to one answer */
enum { kJoinMax = 48 };

/* number of bytes that are searched for the end of a box without braces */
enum { kBareMax = 500 };

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

span span_trim(span s) {
    for (; s.n && is_space(s.s[0]); s.n--)
        s.s++;
    while (s.n && is_space(s.s[s.n - 1]))
        s.n--;
    return s;
}

static bool starts_with(span s, const char *word) {
    size_t n = strlen(word);
    return s.n >= n && memcmp(s.s, word, n) == 0;
}

static span skip(span s, size_t n) {
    return (span){s.s + n, s.n - n};
}

/* Offset of the last @c among the first @n bytes; n if there is none. A loop instead of memrchr(),
 * because a sanitizer checks all n bytes at each of the many calls. */
static size_t last_index(span text, size_t n, char c) {
    for (size_t i = n; i; i--)
        if (text.s[i - 1] == c)
            return i - 1;
    return n;
}

span extract_last_word(span text, const char *word) {
    size_t end = text.n, at;
    while ((at = last_index(text, end, word[0])) < end) {
        if (starts_with(skip(text, at), word))
            return skip(text, at);
        end = at;
    }
    return (span){text.s + text.n, 0};
}

span extract_visible(span response, bool *unfinished) {
    span text = response, closing = extract_last_word(text, "</think>");
    if (closing.n)
        text = skip(closing, strlen("</think>"));
    const char *opening = text.n ? memmem(text.s, text.n, "<think>", strlen("<think>")) : NULL;
    if (opening)
        text.n = (size_t)(opening - text.s);
    if (unfinished)
        *unfinished = opening != NULL;
    return text;
}

/* ---- boxes ---- */

typedef enum {
    BOX_NONE, /* no answer: empty braces, as in "put the answer in \boxed{}", or prose after the
                 macro */
    BOX_OPEN, /* cut off: the closing brace is missing, or the text ends after the macro */
    BOX_CLOSED,
} box_state;

typedef struct {
    span macro;   /* from the backslash to the end of the text */
    span content; /* valid if BOX_CLOSED */
    size_t end;   /* offset in the text after the closing brace or the bare content; valid if
                     BOX_CLOSED */
    box_state state;
} box;

/* Length of "\boxed", "\fbox" or "\framebox" at the start of @s; 0 if @s starts with anything else,
 * including a longer macro such as "\boxedtext". */
static size_t box_macro(span s) {
    static const char *const names[] = {"\\boxed", "\\fbox", "\\framebox"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (starts_with(s, names[i]))
            return n < s.n && is_letter(s.s[n]) ? 0 : n;
    }
    return 0;
}

/* The last box that starts before offset @before. */
static bool last_box(span text, size_t before, box *out) {
    size_t at;
    for (; (at = last_index(text, before, '\\')) < before; before = at) {
        *out = (box){.macro = skip(text, at)};
        if (box_macro(out->macro))
            return true;
    }
    return false;
}

/* True if the text after \boxed starts an answer without braces, as in "\boxed 5". Prose such as
 * "in a \boxed environment" does not. */
static bool starts_bare_answer(span rest) {
    char c = rest.s[0];
    bool one_letter = is_letter(c) && (rest.n == 1 || !is_letter(rest.s[1]));
    return is_digit(c) || one_letter || c == '-' || c == '+' || c == '\\' || c == '(';
}

static void close_bare(span text, box *b, span rest) {
    size_t line = 0, word = 0;
    while (line < rest.n && line < kBareMax && rest.s[line] != '$' && rest.s[line] != '\n')
        line++;
    while (word < line && !is_space(rest.s[word]))
        word++;
    b->content = (span){rest.s, line < rest.n && rest.s[line] == '$' ? line : word};
    b->end = (size_t)(b->content.s + b->content.n - text.s);
    b->state = BOX_CLOSED;
}

/* Finds the matching brace of a box; @rest starts at the opening one. */
static void close_braced(span text, box *b, span rest, size_t stop) {
    const char *limit = text.s + stop;
    int64_t depth = 0;
    for (const char *c = rest.s; c < limit; c++) {
        if (*c == '\\')
            c++; /* skips the character after the backslash: "\{" and "\}" are not braces */
        else if (*c == '{')
            depth++;
        else if (*c == '}' && --depth == 0) {
            b->content = span_trim((span){rest.s + 1, (size_t)(c - rest.s) - 1});
            b->end = (size_t)(c + 1 - text.s);
            b->state = b->content.n ? BOX_CLOSED : BOX_NONE;
            return;
        }
    }
    b->state = BOX_OPEN;
}

/* Finds the end of a box. A closing brace is not searched beyond offset @stop. */
static void close_box(span text, box *b, size_t stop) {
    span rest = skip(b->macro, box_macro(b->macro));
    while (rest.n && is_space(rest.s[0]))
        rest = skip(rest, 1);
    if (!rest.n)
        b->state = BOX_OPEN;
    else if (rest.s[0] == '{')
        close_braced(text, b, rest, stop);
    else if (starts_bare_answer(rest))
        close_bare(text, b, rest);
}

/* Finds the last closed box that starts before @before. *open counts the unclosed boxes after it.
 * An unclosed box leaves every box around it unclosed too. So the end of an earlier box need only
 * be searched up to the start of the unclosed one, which makes the whole search linear. */
static bool last_closed_box(span text, size_t before, box *out, size_t *open) {
    *open = 0;
    for (size_t stop = text.n; last_box(text, before, out);) {
        close_box(text, out, stop);
        if (out->state == BOX_CLOSED)
            return true;
        before = (size_t)(out->macro.s - text.s);
        if (out->state == BOX_OPEN) {
            stop = before;
            ++*open;
        }
    }
    return false;
}

static bool same(span a, span b) {
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

/* Patterns for the text between two boxes. LAYOUT is white space and what only places text. It may
 * surround a comma, a semicolon, "and", "or" or nothing (also in a text macro), or "\&". "x =" or
 * "the other root is" may stand before the second box. */
#define LAYOUT "(?:[\\s$.~*]|\\\\[][(),;:! ]|\\\\q?quad(?![a-zA-Z]))*+"
#define AND_OR "(?:and|or)(?:,?\\s++(?:else|also|alternatively|equivalently)\\b,?)?(?![a-zA-Z])"
#define AS_TEXT                                                                                    \
    "\\\\(?:text|mathrm|mbox)\\{[\\s\\\\]*+[,;]?[\\s\\\\]*+(?:" AND_OR ")?[\\s\\\\]*+\\}"
#define NAMING                                                                                     \
    "(?:[a-zA-Z]\\s*+=\\s*+|the (?:other|second|third|larger|smaller)(?: (?:root|solution|value|"  \
    "zero|number|one))? is\\s*+\\$?+)?"

/* True if the text between two boxes joins them to one list. */
static bool joins(span gap) {
    static pattern joint = {.regex = "^" LAYOUT "(?:[,;]" LAYOUT "(?:" AND_OR "|" AS_TEXT
                                     ")?|" AND_OR "|" AS_TEXT "|\\\\&)" LAYOUT NAMING "$"};
    return gap.n <= kJoinMax && pattern_find(&joint, gap, 0, NULL);
}

/* Moves *first back over earlier boxes that are joined to it and have other contents than the box
 * after them. True if there are any. */
static bool join_earlier(span text, box *first) {
    bool joined = false;
    box earlier;
    size_t open;
    for (;;) {
        size_t at = (size_t)(first->macro.s - text.s);
        if (!last_closed_box(text, at, &earlier, &open) || open || earlier.end > at)
            return joined;
        span gap = {text.s + earlier.end, at - earlier.end};
        if (!joins(gap) || same(earlier.content, first->content))
            return joined;
        *first = earlier;
        joined = true;
    }
}

extract_box extract_boxed(span text, extraction *out) {
    box last;
    size_t open;
    if (!last_closed_box(text, text.n, &last, &open))
        return open ? EXTRACT_OPEN_BOX : EXTRACT_NO_BOX;
    *out = (extraction){open ? "boxed_earlier" : "boxed", span_trim(last.content)};
    if (open)
        return EXTRACT_EARLIER_BOX;
    box first = last;
    if (join_earlier(text, &first)) {
        span list = {first.macro.s, (size_t)(text.s + last.end - first.macro.s)};
        *out = (extraction){"boxed_list", list};
    }
    return EXTRACT_BOX;
}

size_t extract_list(span list, span *parts, size_t cap) {
    size_t n = 0, open;
    box b;
    for (size_t before = list.n; last_closed_box(list, before, &b, &open); n++) {
        before = (size_t)(b.macro.s - list.s);
        if (n < cap)
            parts[n] = span_trim(b.content);
    }
    for (size_t i = 0, j = n < cap ? n : cap; j > i + 1; i++) {
        span was = parts[i];
        parts[i] = parts[--j];
        parts[j] = was;
    }
    return n;
}

/* ---- formulas and numbers ---- */

/* State of a scan over formula delimiters: one opens a formula, and the next of its kind closes
 * it. */
typedef struct {
    char kind;    /* '(', '[', '$', 'D' for "$$"; 0: not in a formula */
    size_t start; /* offset of its content */
    span last;    /* the last closed formula; s NULL: none */
} formulas;

static size_t formula_dollar(formulas *f, span text, size_t i) {
    size_t n = i + 1 < text.n && text.s[i + 1] == '$' ? 2 : 1;
    char kind = n == 2 ? 'D' : '$';
    if (f->kind == kind) {
        f->last = (span){text.s + f->start, i - f->start};
        f->kind = 0;
    } else {
        f->kind = kind;
        f->start = i + n;
    }
    return n;
}

static size_t formula_backslash(formulas *f, span text, size_t i) {
    char next = i + 1 < text.n ? text.s[i + 1] : ' ';
    if (next == '(' || next == '[') {
        f->kind = next;
        f->start = i + 2;
    } else if ((next == ')' && f->kind == '(') || (next == ']' && f->kind == '[')) {
        f->last = (span){text.s + f->start, i - f->start};
        f->kind = 0;
    }
    return next == '\n' ? 1 : 2;
}

bool extract_formula(span text, extraction *out) {
    formulas f = {0};
    for (size_t i = 0; i < text.n;) {
        if (text.s[i] == '$') {
            i += formula_dollar(&f, text, i);
        } else if (text.s[i] == '\\') {
            i += formula_backslash(&f, text, i);
        } else {
            f.kind = text.s[i] == '\n' && f.kind == '$' ? 0 : f.kind;
            i++;
        }
    }
    *out = (extraction){"formula", span_trim(f.last)};
    return out->answer.n > 0;
}

bool extract_hashes(span text, extraction *out) {
    span found = extract_last_word(text, "####");
    if (!found.n)
        return false;
    found = skip(found, strlen("####"));
    const char *end = memchr(found.s, '\n', found.n);
    if (end)
        found.n = (size_t)(end - found.s);
    *out = (extraction){"hashes", span_trim(found)};
    return true;
}

bool extract_last_number(span text, extraction *out) {
    size_t end = text.n, start;
    while (end && !is_digit(text.s[end - 1]))
        end--;
    for (start = end; start; start--) {
        char c = text.s[start - 1];
        char left = start > 1 ? text.s[start - 2] : ' ';
        bool point = c == '.' && start < end && (is_space(left) || strchr("-$=(", left));
        bool inner = ((c == ',' || c == '.') && is_digit(left)) || point;
        bool power = (c == 'e' || c == 'E') && start < end && is_digit(left); /* 6.02e23 */
        if (!is_digit(c) && !inner && !power)
            break;
    }
    if (start == end)
        return false;
    bool sign = start && text.s[start - 1] == '-';
    bool minus =
        sign && (start == 1 || !(is_digit(text.s[start - 2]) || is_letter(text.s[start - 2])));
    start -= minus;
    *out = (extraction){"last_number", {text.s + start, end - start}};
    return true;
}
