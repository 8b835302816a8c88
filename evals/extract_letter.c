/* extract_letter.c - multiple choice: finds the option that a response chooses. */
#include <string.h>

#include "evals/extract.h"

enum { kJoinMax = 64 }; /* bytes from one letter to the next that it is joined to */

/* What may come between a declaration and its letter, and before a bare letter. The repetition is
 * bounded, so no text can make the search slow. */
#define DECORATION                                                                                 \
    "(?:[\\s*_$({\\[\"'`:]|\\\\[(\\[]|\\\\(?:text|textbf|mathrm|mathbf|boxed|fbox)\\b"             \
    "|(?i:the|option|choice|letter|clearly|therefore|thus|probably|likely|most)\\b){0,24}+"

/* Matches after a letter that is joined to another one, as in "(A) or (B)" and "\boxed{A},
 * \boxed{B}". Such a statement chooses nothing. A comma joins only if a mark such as "(" follows,
 * because a sentence may go on with a capital letter. The pronoun in "and I am sure" is no
 * letter. */
#define JOINED                                                                                     \
    "(?=[\\s)}\\]*_$\"'`]{0,8}+(?:/|(?:or|and)\\b|\\\\?&|[,;]\\s*+(?=[*_$({\\[\\\\]))" DECORATION  \
    "(?!I\\s+[a-z])[A-Z](?![A-Za-z0-9]))"

/* A letter that does not start a word or an expression. "A or B" chooses nothing. An "A" before
 * white space and a small letter is taken for the article, unless what follows begins with
 * "because" or another of the listed words. */
#define LETTER                                                                                     \
    "([A-Z])(?![A-Za-z0-9_^'=+])(?!\\s*(?:/|,|(?:or|and)\\b)\\s*\\(?[A-Z]\\b)(?!" JOINED ")"       \
    "(?!(?<=A)\\s++(?!because|since|as|which|based|due|from|for|with|given|and|is)[a-z])"

static bool is_option(span s, char last) {
    char c = s.n ? s.s[0] : '\0';
    return (c >= 'A' && c <= last) || (c >= 'a' && c <= last - 'A' + 'a');
}

/* The letter of a match: group 1 if it took part, else group 2. */
static span letter_of(const span groups[PATTERN_GROUPS]) {
    return groups[1].n ? groups[1] : groups[2];
}

/* The last match whose letter is an option. */
static bool find_option(pattern *p, span text, char last, span *out) {
    span groups[PATTERN_GROUPS];
    bool found = false;
    for (size_t from = 0; from <= text.n && pattern_find(p, text, from, groups);) {
        if (is_option(letter_of(groups), last)) {
            *out = letter_of(groups);
            found = true;
        }
        from = (size_t)(groups[0].s - text.s) + groups[0].n + (groups[0].n == 0);
    }
    return found;
}

bool extract_bare_letter(span answer, char last, extraction *out) {
    static pattern bare = {.regex = "^" DECORATION "([A-Za-z])(?!" JOINED
                                    ")(?:[\\s)}\\]*_$.\"'`:]*+$|[).:}\\]]++[\\s*]"
                                    "|\\s++-)"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&bare, answer, 0, groups) || !is_option(groups[1], last))
        return false;
    out->answer = groups[1];
    return true;
}

/* ---- declared answers ---- */

static bool find_stated(span text, char last, span *out) {
    static pattern stated = {.regex =
                                 "(?i:(?<![A-Za-z0-9])(?:answer|option|choice)[*_]*+\\s*+"
                                 "(?:(?:is|would\\s+be|must\\s+be|should\\s+be)\\b|:|=))" DECORATION
                                 "(?:" LETTER "|([a-z])(?=[)}\\]*_$.\"'`]*+[ \\t\\r]*+(?:\\n|$)))"};
    return find_option(&stated, text, last, out);
}

/* ---- answers that are not declared ---- */

static span last_line(span text) {
    text = span_trim(text);
    size_t start = text.n;
    while (start && text.s[start - 1] != '\n')
        start--;
    return (span){text.s + start, text.n - start};
}

static bool find_in_last_line(span text, char last, span *out) {
    static pattern closing = {
        .regex =
            "(?i:\\b(?:option|choice|choose|pick|select|is|be|with|answer|therefore|thus|so|hence)"
            "\\b[,:]?|->|=>|\\\\rightarrow|\xE2\x86\x92)" DECORATION
            "([A-Z])[\\s)}\\]*_$.\"'`!]*+$"};
    extraction x;
    span line = last_line(text), at = line;
    while (at.n && strchr("#>- \t", at.s[0]))
        at = (span){at.s + 1, at.n - 1};
    if (extract_bare_letter(at, last, &x)) {
        *out = x.answer;
        return true;
    }
    return find_option(&closing, line, last, out);
}

/* The start of the last paragraph, that is, the text after the last empty line. */
static const char *last_paragraph(span text) {
    text = span_trim(text);
    for (size_t i = text.n; i > 1; i--)
        if (text.s[i - 1] == '\n' && text.s[i - 2] == '\n')
            return text.s + i;
    return text.s;
}

/* True if the letter @a is joined to another one, and @b is the next letter that is marked. */
static bool are_joined(span text, span a, span b) {
    static pattern joined = {.regex = "^[A-Z]" JOINED};
    return b.s - a.s <= kJoinMax &&
           pattern_find(&joined, (span){a.s, text.n - (size_t)(a.s - text.s)}, 0, NULL);
}

/* Finds an option that is marked. Models may also mark every option in turn. So if the marked
 * letters differ, the last one must be in the last paragraph, and it must not be joined to the one
 * before. */
static bool find_marked(pattern *mark, span text, char last, span *out) {
    span groups[PATTERN_GROUPS], before = {0};
    bool agree = true, joined = false;
    if (!find_option(mark, text, last, out))
        return false;
    for (size_t from = 0; pattern_find(mark, text, from, groups);) {
        span letter = letter_of(groups);
        from = (size_t)(groups[0].s - text.s) + groups[0].n;
        if (!is_option(letter, last))
            continue;
        agree = agree && letter.s[0] == out->s[0];
        joined = letter.s == out->s && before.n && before.s[0] != letter.s[0] &&
                 are_joined(text, before, letter);
        before = letter;
    }
    return !joined && (agree || out->s >= last_paragraph(text));
}

static bool guess(span text, char last, extraction *out) {
    static pattern bold = {.regex = "\\*\\*[\\s(]{0,4}+(?:(?i:option|choice)\\s)?[\\s(]{0,4}+"
                                    "([A-Z])(?:[).:][^*\\n]{0,200}+|[\\s)]{0,4}+)\\*\\*"};
    static pattern parens = {.regex = "\\(([A-Z])\\)"};
    const char *rule = find_in_last_line(text, last, &out->answer)      ? "last_line"
                       : find_marked(&bold, text, last, &out->answer)   ? "bold"
                       : find_marked(&parens, text, last, &out->answer) ? "parentheses"
                                                                        : NULL;
    out->rule = rule;
    return rule != NULL;
}

bool extract_letter(span text, char last, bool guesses, extraction *out) {
    extraction boxed, x;
    span stated;
    extract_box box = extract_boxed(text, &boxed);
    bool in_box = box != EXTRACT_NO_BOX && box != EXTRACT_OPEN_BOX &&
                  extract_bare_letter(boxed.answer, last, &x);
    bool said = find_stated(text, last, &stated);
    if (in_box && (!said || x.answer.s >= stated.s)) {
        *out = (extraction){boxed.rule, x.answer};
        return true;
    }
    if (said) {
        *out = (extraction){"answer", stated};
        return true;
    }
    return guesses && guess(text, last, out);
}
