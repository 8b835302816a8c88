/* extract_letter.c - multiple choice: finds the option that a response chooses. */
#include <string.h>

#include "evals/answer_labels.h"
#include "evals/extract.h"

enum { kJoinMax = 64 }; /* bytes from one letter to the next that it is joined to */

/* What may come between a declaration and its letter, and before a bare letter: layout, quotes, and
 * words without content. The repetition is bounded, so no text can make the search slow. */
#define QUOTES "\xE2\x80[\x98\x99\x9C\x9D]|\xEF\xBC[\x88\x89\x9A]|\xE3\x80[\x8C\x8D\x90\x91]"
#define DECORATION                                                                                 \
    "(?:</?[a-z]{1,9}>|[\\s*_$({\\[\"'`:|<]|" QUOTES                                               \
    "|\\\\[(\\[]|\\\\(?:text|textbf|mathrm|mathbf|boxed|fbox)\\b"                                  \
    "|(?i:the|option|choice|letter|clearly|therefore|thus|probably|likely|most)\\b){0,24}+"

/* What may come between a bare letter and the end of the text or line. */
#define CLOSING "(?:</[a-z]{1,9}>|[ \\t\\r)}\\]*_$.\"'`!:|>]|" QUOTES "|\xE3\x80\x82|\\\\[)\\]])*+"

/* Matches after a letter that is joined to another one, as in "(A) or (B)" and "\boxed{A},
 * \boxed{B}". Such a statement chooses nothing. A comma joins only if a mark such as "(" follows,
 * because a sentence may go on with a capital letter. The pronoun in "and I am sure" is no
 * letter. */
#define JOINED                                                                                     \
    "(?=[\\s)}\\]*_$\"'`]{0,8}+(?:/|(?:or|and)\\b|\\\\?&|[,;]\\s*+(?=[*_$({\\[\\\\]))" DECORATION  \
    "(?!I\\s+[a-z])[A-Z](?![A-Za-z0-9]))"

/* A letter that does not start a word or an expression and is not joined to another one. An "A"
 * before white space and a small letter is taken for the article, unless what follows begins with
 * "because" or another of the listed words. */
#define ALONE                                                                                      \
    "(?![A-Za-z0-9_^'=+])"                                                                         \
    "(?!\\s*(?:[/,&]|(?:or|and|nor)\\b|" ANSWER_OR_AND ")\\s*\\(?[A-Z]\\b)(?!" JOINED ")"
#define LETTER                                                                                     \
    "([A-Z])" ALONE                                                                                \
    "(?!(?<=A)\\s++(?!because|since|as|which|based|due|from|for|with|given|and|is)[a-z])"

/* Letters of other scripts: full-width Latin, Arabic and Bengali. */
#define NATIVE "(\xEF\xBC[\xA1-\xAA]|أ|ب|ج|د|অ|ব|ড|ঢ)"

/* A letter that the text chooses. */
typedef struct {
    const char *at; /* its place in the text; NULL: none */
    span letter;    /* one byte: of the text, or static for a letter of another script */
} choice;

/* The Latin letter of a letter that NATIVE matches. */
static span latin_letter(span s) {
    static const char *const natives[] = {"أ", "ب", "ج", "د", "অ", "ব", "ড", "ঢ"};
    static const char latin[] = "ABCDEFGHIJ";
    if (memcmp(s.s, "\xEF\xBC", 2) == 0)
        return (span){latin + ((unsigned char)s.s[2] - 0xA1), 1};
    for (size_t i = 0; i < sizeof natives / sizeof *natives; i++)
        if (memcmp(s.s, natives[i], s.n) == 0)
            return (span){latin + i % 4, 1};
    return (span){NULL, 0};
}

static bool is_option(span s, char last) {
    char c = s.n ? s.s[0] : '\0';
    return (c >= 'A' && c <= last) || (c >= 'a' && c <= last - 'A' + 'a');
}

/* The choice of a match: group 1 if it took part, else group 2. at is NULL if the letter is not an
 * option. */
static choice choice_of(const span groups[PATTERN_GROUPS], char last) {
    span s = groups[1].n ? groups[1] : groups[2];
    span letter = s.n > 1 ? latin_letter(s) : s;
    return is_option(letter, last) ? (choice){s.s, letter} : (choice){0};
}

/* The last match whose letter is an option. */
static choice find_option(pattern *p, span text, char last) {
    span groups[PATTERN_GROUPS];
    choice found = {0};
    for (size_t from = 0; from <= text.n && pattern_find(p, text, from, groups);) {
        choice c = choice_of(groups, last);
        found = c.at ? c : found;
        from = (size_t)(groups[0].s - text.s) + groups[0].n + (groups[0].n == 0);
    }
    return found;
}

bool extract_bare_letter(span answer, char last, extraction *out) {
    static pattern bare = {.regex = "^" DECORATION "([A-Za-z])(?!" JOINED ")(?:" CLOSING "\\s*+$"
                                    "|[).:}\\]]++[\\s*]|\\s++-)"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&bare, answer, 0, groups) || !is_option(groups[1], last))
        return false;
    out->answer = groups[1];
    return true;
}

/* ---- declared answers ---- */

typedef struct {
    const char *rule;
    pattern pattern;
    choice (*at_line)(span text, char last); /* if not NULL, used instead of the pattern */
} letter_rule;

static letter_rule declarations[] = {
    /* "The answer is C", "Answer: C", "Ans. C" */
    {.rule = "answer",
     .pattern = {.regex = "(?i:(?<![A-Za-z0-9])(?:(?:answer|ans|option|choice)[*_]*+\\s*+"
                          "(?:(?:'s|\xE2\x80\x99s|is|(?:would|must|should)\\s+"
                          "(?:(?:therefore|thus|then|hence|clearly)\\s+)?be)\\b|[:=]"
                          "|\xE2\x80[\x93\x94])|ans\\.))" DECORATION "(?:" LETTER
                          "|([a-z])(?=" CLOSING "(?:\\n|$)))"}},
    /* "La respuesta correcta es la C" */
    {.rule = "label",
     .pattern = {.regex = "(?:" ANSWER_NOUNS ")[*_]*+\\s*+(?:(?:" ANSWER_ADJECTIVES
                          ")(?![A-Za-z])\\s*+)?[*_]*+(?:(?:" ANSWER_VERBS
                          ")(?![a-z])|[:=-]|\xE2\x80[\x93\x94]|\xEF\xBC\x9A)?" DECORATION
                          "(?:(?:" ANSWER_ADVERBS "|" ANSWER_ARTICLES ")\\s++|" QUOTES
                          "|[*_(:\\s]){0,8}+"
                          "(?:" LETTER "|" NATIVE ")"}},
    /* "<answer>C</answer>" */
    {.rule = "tag",
     .pattern = {.regex = "<(?i:final|answer|choice|(?:final|correct)_?answer)>" DECORATION
                          "([A-Za-z])(?:[).:][^<\\n]{0,200}+|" CLOSING ")\\s*+</"}},
    /* {"answer": "C"} */
    {.rule = "json",
     .pattern =
         {.regex =
              "[\"'](?i:(?:final_?|correct_?)?(?:answer|choice|option)(?:_?(?:letter|choice))?)"
              "[\"']\\s*+:\\s*+[\"'][\\s(*]{0,4}+([A-Za-z])"
              "(?:[).:][^\"\\n]{0,200}+|[\\s)*.]{0,4}+)[\"']"}},
};

/* The declared answer that comes last. *rule: the name of the rule that found it. */
static choice find_declared(span text, char last, const char **rule) {
    choice found = {0};
    for (size_t i = 0; i < sizeof declarations / sizeof *declarations; i++) {
        choice c = find_option(&declarations[i].pattern, text, last);
        if (c.at && (!found.at || c.at > found.at)) {
            found = c;
            *rule = declarations[i].rule;
        }
    }
    return found;
}

/* ---- answers that are not declared ---- */

/* The last line before @end that is neither empty nor the fence of a code block. */
static span line_before(span text, const char *end) {
    for (;;) {
        span before = span_trim((span){text.s, (size_t)(end - text.s)});
        size_t start = before.n;
        while (start && before.s[start - 1] != '\n')
            start--;
        span line = {before.s + start, before.n - start};
        if (line.n != 3 || memcmp(line.s, "```", 3) != 0)
            return line;
        end = line.s;
    }
}

/* The line of @text that contains the byte @at. */
static span line_of(span text, const char *at) {
    const char *end = memchr(at, '\n', (size_t)(text.s + text.n - at));
    return line_before(text, end ? end : text.s + text.n);
}

static span without_marks(span line) {
    while (line.n && strchr("#>- \t|*+", line.s[0]))
        line = (span){line.s + 1, line.n - 1};
    return line;
}

/* True if @line and the line before it start with different options. Then both belong to a list of
 * the options, and @line chooses nothing. */
static bool in_list(span text, span line, char last) {
    extraction own, other;
    return extract_bare_letter(without_marks(line), last, &own) &&
           extract_bare_letter(without_marks(line_before(text, line.s)), last, &other) &&
           own.answer.s[0] != other.answer.s[0];
}

/* True if the words before a letter take the choice back, leave it open, or name something that is
 * no option: "do not choose C", "let us examine option C", "equation (C)". */
static bool is_refuted(span line, const char *at) {
    static pattern refuted = {
        .regex =
            "(?i:(?:\\b(?:not|never|examin\\w++|consider\\w*+|check\\w*+|test\\w*+|try"
            "|evaluat\\w++|analy\\w++|discuss\\w*+|look\\w*+\\s++at|about|exclud\\w++"
            "|reject\\w*+|eliminat(?:e|es|ed|ing)|rul\\w++\\s++out|than|unlike|wrong"
            "|incorrect|equations?|eqs?\\.?|fig(?:ure)?s?\\.?|parts?|cases?|points?|steps?|appendix"
            "|section|table|compounds?|reactions?|vitamin|plan)"
            "|n't|n\xE2\x80\x99t)[:,]?+"
            "(?:\\s++(?:the|be|choose|pick|select|option|choice|answer|with|is)\\b){0,4}+"
            "[\\s*_(\"'`$]{0,8}+$)"};
    return pattern_find(&refuted, (span){line.s, (size_t)(at - line.s)}, 0, NULL);
}

/* The start of the last paragraph, that is, the text after the last empty line. */
static const char *last_paragraph(span text) {
    text = span_trim(text);
    for (size_t i = text.n; i > 1; i--)
        if (text.s[i - 1] == '\n' && text.s[i - 2] == '\n')
            return text.s + i;
    return text.s;
}

/* True if the letter at @a is joined to another one, and the letter at @b is the next that is
 * marked. */
static bool are_joined(span text, const char *a, const char *b) {
    static pattern joined = {.regex = "^[A-Z]" JOINED};
    return b - a <= kJoinMax &&
           pattern_find(&joined, (span){a, text.n - (size_t)(a - text.s)}, 0, NULL);
}

/* True if the marked letters choose @found, the last of them. Models may also mark every option in
 * turn. So if the letters differ, the last one must be in the last paragraph, and it must not be
 * joined to the one before. */
static bool marks_choose(pattern *mark, span text, char last, choice found) {
    span groups[PATTERN_GROUPS];
    choice before = {0};
    bool agree = true, joined = false;
    for (size_t from = 0; pattern_find(mark, text, from, groups);) {
        choice c = choice_of(groups, last);
        from = (size_t)(groups[0].s - text.s) + groups[0].n;
        if (!c.at)
            continue;
        agree = agree && c.letter.s[0] == found.letter.s[0];
        joined = c.at == found.at && before.at && before.letter.s[0] != c.letter.s[0] &&
                 are_joined(text, before.at, c.at);
        before = c;
    }
    return !joined && (agree || found.at >= last_paragraph(text));
}

/* Finds an option that is marked. */
static choice find_marked(pattern *mark, span text, char last) {
    choice found = find_option(mark, text, last);
    if (!found.at || !marks_choose(mark, text, last, found))
        return (choice){0};
    span line = line_of(text, found.at);
    return is_refuted(line, found.at) || in_list(text, line, last) ? (choice){0} : found;
}

static choice find_in_last_line(span text, char last) {
    static pattern closing = {
        .regex =
            "(?i:\\b(?:option|choice|choose|choosing|chose|pick|select|say|is|it's|answer"
            "|therefore|thus|so|hence|elimination|conclusion|definitely|correct"
            "|confident\\s++in|(?:go|going|stick|sticking|us)\\s++with"
            "|(?:must|should|would|could\\s++only|can\\s++only|has\\s++to)\\s++be)\\b[,:]?"
            "|[:=]|->|=>|\\\\rightarrow|\xE2\x86\x92|\xE2\x88\xB4|\xE2\x80\x99s\\b)" DECORATION
            "([A-Z])(?:(?i:\\s++it\\s++is|\\s++as\\s++the\\s++(?:\\w{1,9}\\s++)?answer))?" CLOSING
            "$"};
    extraction x;
    text = span_trim(text);
    span line = line_before(text, text.s + text.n);
    if (in_list(text, line, last))
        return (choice){0};
    if (extract_bare_letter(without_marks(line), last, &x))
        return (choice){x.answer.s, x.answer};
    choice c = find_option(&closing, line, last);
    return c.at && !is_refuted(line, c.at) ? c : (choice){0};
}

/* Finds a bare letter as the first line, before an explanation. */
static choice find_in_first_line(span text, char last) {
    static pattern first = {.regex = "^" DECORATION "([A-Z])" CLOSING "\\n[ \\t\\r]*+\\n"};
    return find_option(&first, text, last);
}

/* Rules for answers that are not declared, the most reliable ones first. */
static letter_rule guesses_in_order[] = {
    /* "C is the correct answer", "option C is correct" */
    {.rule = "called_correct",
     .pattern =
         {.regex =
              "(?i:^|[.,:;!?*(\\n]\\s*+|\\b(?:option|choice|answer|therefore|thus|so|hence|that"
              "|and|but)\\s++)\\(?([A-Z])\\)?[*_]*+"
              "\\s++(?:is|must\\s++be|would\\s++be|should\\s++be|seems)\\s++"
              "(?:(?:the|indeed|therefore|thus|clearly|only|most|likely|one|probably|single|a)"
              "\\s++){0,5}+(?:correct|right|best|answer)\\b(?!\\s*+(?:if|only|\\?))"}},
    /* "which makes C the correct answer" */
    {.rule = "called_correct",
     .pattern =
         {.regex =
              "\\bmak(?:es|ing)\\s++(?:option\\s++|choice\\s++)?[(*]{0,3}+([A-Z])[)*]{0,3}+\\s++"
              "the\\s++(?:only\\s++|most\\s++likely\\s++)?(?:correct|right|best)\\b"}},
    {.rule = "last_line", .at_line = find_in_last_line},
    /* "Only C satisfies both", "That leaves C" */
    {.rule = "only",
     .pattern = {.regex = "(?i:\\bonly|\\bleav(?:es|ing)(?:\\s++us\\s++with)?)\\s++"
                          "(?:(?i:option|choice|answer)\\s++)?[(*]{0,3}+([A-Z])" ALONE
                          "(?!\\)?[*_]*+\\s++(?:is|seems)\\s++(?:wrong|incorrect|false|not)\\b)"}},
    {.rule = "first_line", .at_line = find_in_first_line},
    {.rule = "bold",
     .pattern = {.regex = "\\*\\*[\\s(]{0,4}+(?:(?i:option|choice)\\s)?[\\s(]{0,4}+"
                          "([A-Z])(?:[).:][^*\\n]{0,200}+|[\\s)]{0,4}+)\\*\\*"}},
    {.rule = "parentheses", .pattern = {.regex = "\\(([A-Z])\\)"}},
};

static choice guess(span text, char last, const char **rule) {
    choice found = {0};
    for (size_t i = 0; i < sizeof guesses_in_order / sizeof *guesses_in_order && !found.at; i++) {
        letter_rule *g = &guesses_in_order[i];
        found = g->at_line ? g->at_line(text, last) : find_marked(&g->pattern, text, last);
        *rule = g->rule;
    }
    return found;
}

bool extract_letter(span text, char last, bool guesses, extraction *out) {
    extraction boxed, x;
    const char *rule = NULL;
    extract_box box = extract_boxed(text, &boxed);
    bool in_box = box != EXTRACT_NO_BOX && box != EXTRACT_OPEN_BOX &&
                  extract_bare_letter(boxed.answer, last, &x);
    choice found = find_declared(text, last, &rule);
    if (in_box && (!found.at || x.answer.s >= found.at)) {
        *out = (extraction){boxed.rule, x.answer};
        return true;
    }
    if (!found.at && guesses)
        found = guess(text, last, &rule);
    *out = (extraction){found.at ? rule : NULL, found.letter};
    return found.at != NULL;
}
