/* extract_letter.c - multiple choice: finds the option that a response chooses.
 *
 * The search runs over the plain form of the response (letter_text.h). Rules are patterns for
 * statements with a letter (letter_rules.h). The text around each match may take the statement back
 * (letter_context.h). */
#include <string.h>

#include "evals/extract.h"
#include "evals/letter_context.h"
#include "evals/letter_rules.h"
#include "evals/letter_text.h"

enum { kPart = 12000 }; /* bytes at the end of a text, and at its beginning, that are searched */

/* The last choice in the text from @from on that a rule matches and that is not refuted. *rule gets
 * the name of its rule. *differ: such choices have different letters. There is no choice if two
 * matches begin with conditions ("if ...") and name different letters, and the second follows the
 * first in the search, which goes rule by rule. */
static letter_choice find_statement(const letter_paper *p, letter_rule *rules, size_t n,
                                    size_t from, const char **rule, bool *differ) {
    static pattern when = {
        .regex = "^\\s*+(?i:and |or )?(?i:if|for|when|in case|in the case|under|at|with"
                 "|where)\\b"};
    letter_choice found = {0};
    bool condition = false;
    *differ = false;
    for (size_t i = 0; i < n; i++) {
        span groups[PATTERN_GROUPS];
        for (size_t at = from;
             at <= p->text.n && pattern_find(&rules[i].pattern, p->text, at, groups);) {
            letter_choice c = letter_of_match(p, groups);
            size_t match = (size_t)(groups[0].s - p->text.s);
            at = c.at > at ? c.at : match + 1;
            if (!c.at || letter_is_refuted(p, match, c, rules[i].excludes))
                continue;
            bool conditional = pattern_find(&when, letter_sentence(p->text, match), 0, NULL);
            if (conditional && condition && found.letter != c.letter)
                return (letter_choice){0};
            condition = conditional;
            *differ = *differ || (found.at && found.letter != c.letter);
            if (c.at > found.at) {
                found = c;
                *rule = rules[i].rule;
            }
        }
    }
    return found;
}

/* ---- statements without words ---- */

static size_t last_paragraph(span text) {
    for (size_t i = text.n; i > 1; i--)
        if (text.s[i - 1] == '\n' && text.s[i - 2] == '\n')
            return i;
    return 0;
}

/* The only option whose line has a check mark, or "correct" or a similar word after a colon, a
 * bracket or a dash, or right after the letter: "B: 5 (correct)", "B Yes", "C. Correct". */
static letter_choice find_checked(const letter_paper *p) {
    static pattern yes = {
        .regex = "(?m)^(?:\x01 ?(?i:option |choice |answer )?[(\\[]?([A-J])(?:[)\\].:]| - |$)"
                 "|(?i:option "
                 "|choice |answer )?[(\\[]?([A-J])"
                 "(?:(?=[)\\].:]| -)[^\n]*?(?:\x01|[:(-] ?(?i:correct|true|right|yes)\\b)"
                 "| (?i:correct|true|right|yes) ?$"
                 "|[)\\].:]{1,2} (?i:correct|true|right|yes)(?=[:.,;]| - )"
                 "|[.:] (?i:correct|true|right|yes)$)|([A-J]) ?\x01)"};
    letter_choice found = {0};
    span groups[PATTERN_GROUPS];
    for (size_t at = 0; at <= p->text.n && pattern_find(&yes, p->text, at, groups);) {
        letter_choice c = letter_of_match(p, groups);
        at = (size_t)(groups[0].s - p->text.s) + groups[0].n;
        if (found.at && c.letter != found.letter)
            return (letter_choice){0};
        found = c.at ? c : found;
    }
    return found;
}

/* True if a line that begins with an option, as in "A: I think so. B: I don't.", names another. */
static bool names_others(span line, char own) {
    static pattern label = {.regex = "[ ,;(\\[]([A-Ja-j])[).:\\]]"};
    span groups[PATTERN_GROUPS];
    for (size_t at = 1; at < line.n && pattern_find(&label, line, at, groups);) {
        if (letter_option(groups[1], 'J') != own)
            return true;
        at = (size_t)(groups[1].s - line.s) + 1;
    }
    return false;
}

/* The option that the line at @at consists of or begins with: "C", "(C)", "C) text". */
static letter_choice find_in_line(const letter_paper *p, size_t at) {
    span line = letter_line(p->text, at);
    char letter = letter_label(line, p->last);
    bool marked = line.n && line.s[0] != 'A' && line.s[0] != 'I';
    if (!letter || names_others(line, letter) || letter_in_list(p, (size_t)(line.s - p->text.s)) ||
        (!marked && line.n == 2 && line.s[1] == ','))
        return (letter_choice){0};
    return (letter_choice){(size_t)(line.s - p->text.s) + 1, letter};
}

static letter_choice find_in_last_line(const letter_paper *p) {
    static pattern closing = {
        .regex =
            "(?:^(?:.{0,300}(?:(?<![A-Z] )=>|(?<![A-Z] )->|=) ?|A: ?)?|(?:^|[.!?;]"
            " )(?i:tl;? ?dr|[a-z_]*answer|prediction|[a-z]*_?choice|class|"
            "letter|final|key|label|correct|so|thus|hence|therefore|probably|(?:most"
            " )?likely|clearly|"
            "definitely|obviously|certainly|must be)[,:]? ?"
            "|[.!?] (?=[(\\[]?[A-J])| - (?i:option|choice|answer) "
            "|[.!?,:] (?i:which is )?(?i:option|choice|answer)"
            " (?=[(\\[]?[A-J][)\\]]?\\.$)|, (?i:and )?(?i:but|so|hence|thus|therefore"
            "|i\\.e\\.|that is),? |(?:(?<=[a-z0-9%.])|(?<=[0-9] [A-Z])"
            "|(?<=[0-9] [a-zA-Z][A-Z])),? (?=\\([A-J]\\)|\\[[A-J]\\])"
            "|(?<=[a-z0-9%.]),? \\((?i:option |choice |answer ))"
            "(?i:it's |option |choice |answer )?[(\\[]?([A-J])[)\\]]?(?: it is|"
            ",? (?i:without (?:any |a )?doubt|no doubt|for sure|definitely"
            "|certainly|clearly|final answer|I'm (?:pretty |quite |fairly |very )?(?:sure|certain"
            "|confident)))?[.!]*$",
        .flags = PATTERN_LONG};
    span groups[PATTERN_GROUPS], text = p->text;
    letter_choice c = find_in_line(p, text.n);
    if (c.at)
        return c;
    span line = letter_line(text, text.n);
    size_t skip = line.n > LETTER_SENTENCE ? line.n - LETTER_SENTENCE : 0;
    if (!pattern_find(&closing, (span){line.s + skip, line.n - skip}, 0, groups))
        return (letter_choice){0};
    c = letter_of_match(p, groups);
    return c.at && !letter_is_refuted(p, c.at - 1, c, false) ? c : (letter_choice){0};
}

/* The option that the first line consists of, if an empty line and an explanation follow. */
static letter_choice find_in_first_line(const letter_paper *p) {
    span line = letter_line(p->text, 0);
    bool followed = line.n + 1 < p->text.n && p->text.s[line.n + 1] == '\n';
    return followed ? find_in_line(p, 0) : (letter_choice){0};
}

/* The option in bold or in parentheses, if there is only one in the text or in its last paragraph
 * and the other options are not named there. */
static letter_choice find_marked(const letter_paper *p) {
    static pattern mark = {
        .regex = "(?<![A-Za-z0-9)])\\(([A-J])\\)(?!\\()"
                 "|(?<![A-Za-z0-9(\\[-])(?<![0-9] )([B-HJ])(?![A-Za-z0-9_^=+'(/&)\\]-])"};
    size_t from = 0;
    for (int pass = 0; pass < 2; pass++, from = last_paragraph(p->text)) {
        letter_choice found = {0};
        bool single = true;
        span groups[PATTERN_GROUPS];
        for (size_t at = from; at <= p->text.n && pattern_find(&mark, p->text, at, groups);) {
            letter_choice c = letter_of_match(p, groups);
            at = (size_t)(groups[0].s - p->text.s) + groups[0].n;
            single = single && (!found.at || !c.at || c.letter == found.letter);
            if (c.at && (groups[1].n || !found.at))
                found = c;
        }
        if (found.at && single && p->text.s[found.at - 2 + (found.at == 1)] == '(' &&
            !letter_is_refuted(p, found.at - 1, found, false))
            return found;
    }
    return (letter_choice){0};
}

static letter_choice guess(const letter_paper *p, const char **rule) {
    static const struct {
        const char *rule;
        letter_choice (*find)(const letter_paper *p);
    } ways[] = {{"last_line", find_in_last_line},
                {"check_mark", find_checked},
                {"first_line", find_in_first_line},
                {"marked", find_marked}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        letter_choice c = ways[i].find(p);
        *rule = ways[i].rule;
        if (c.at)
            return c;
    }
    return (letter_choice){0};
}

/* ---- the search ---- */

bool extract_bare_letter(span answer, char last, extraction *out) {
    static pattern bare = {
        .regex = "^[\\s(\\[]*+(?i:(?:the|option|choice|answer|letter|clearly|therefore)[: ]+){0,4}"
                 "[(\\[]?([A-Za-z])" SINGLE "(?:[)\\].:!>\\s]*+$|[).:\\]]++\\s| -)"};
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    span groups[PATTERN_GROUPS];
    buf plain = {0};
    (void)letter_text(answer, NULL, &plain);
    span text = span_trim((span){buf_str(&plain), plain.len});
    char c = pattern_find(&bare, text, 0, groups) ? letter_option(groups[1], last) : '\0';
    buf_release(&plain);
    if (!c)
        return false;
    out->answer = (span){letters + (c - 'A'), 1};
    return true;
}

/* The choice of a text. A later conclusion replaces a declaration only if the text after the
 * declaration takes it back. */
static letter_choice find_any(const letter_paper *p, bool guesses, const char **rule) {
    const char *name = NULL;
    bool differ;
    letter_choice c =
        find_statement(p, letter_declarations, letter_n_declarations, 0, rule, &differ);
    size_t from = c.at;
    bool revoked = from && letter_is_revoked((span){p->text.s + from, p->text.n - from});
    if (from && !revoked) {
        bool joined = differ && letter_is_joined((span){p->text.s + from, p->text.n - from});
        return joined ? (letter_choice){0} : c;
    }
    if (!guesses)
        return (letter_choice){0};
    letter_choice d =
        find_statement(p, letter_conclusions, letter_n_conclusions, from, &name, &differ);
    if (d.at && differ && !from &&
        (!letter_concludes(p, d) || letter_is_joined((span){p->text.s + d.at, p->text.n - d.at})))
        d = (letter_choice){0};
    if (!d.at && !from)
        d = guess(p, &name);
    *rule = name;
    return d;
}

static letter_choice find(const letter_paper *p, bool guesses, const char **rule) {
    letter_choice c = find_any(p, guesses, rule);
    return c.at && letter_is_alternative(p, c) ? (letter_choice){0} : c;
}

/* Searches the end of the text and, if that has no answer, its beginning. @skipped: bytes before
 * the part in which the answer was found. */
static letter_choice find_in_parts(span text, char last, bool guesses, const char **rule,
                                   size_t *skipped) {
    static pattern option = {.regex = "(?<![A-Za-z0-9])[A-Ja-j](?![A-Za-z0-9])|[^\\x00-\\x7F]"};
    size_t skip = text.n > kPart ? text.n - kPart : 0;
    letter_paper p = {{text.s + skip, text.n - skip}, last};
    *skipped = skip;
    letter_choice found =
        pattern_find(&option, p.text, 0, NULL) ? find(&p, guesses, rule) : (letter_choice){0};
    if (found.at || !skip)
        return found;
    *skipped = 0;
    p.text = (span){text.s, kPart};
    return pattern_find(&option, p.text, 0, NULL) ? find(&p, guesses, rule) : (letter_choice){0};
}

/* True if a box before the last one has another letter, and the text after them joins the two. */
static bool boxes_are_joined(span text, const extraction *boxed, char letter, char last,
                             span after) {
    extraction first, x;
    span earlier = {text.s, (size_t)(boxed->answer.s - text.s)};
    if (!letter_is_joined(after))
        return false;
    extract_box box = extract_boxed(earlier, &first);
    return (box == EXTRACT_BOX || box == EXTRACT_EARLIER_BOX) &&
           extract_bare_letter(first.answer, last, &x) && x.answer.s[0] != letter;
}

bool extract_letter(span text, char last, bool guesses, extraction *out) {
    static const char letters[] = "ABCDEFGHIJ";
    extraction boxed, x;
    const char *rule = NULL;
    buf plain = {0};
    size_t skipped;
    extract_box box = extract_boxed(text, &boxed);
    bool has_box = box == EXTRACT_BOX || box == EXTRACT_EARLIER_BOX;
    bool in_box = has_box && extract_bare_letter(boxed.answer, last, &x);
    size_t box_at = letter_text(text, in_box ? boxed.answer.s : NULL, &plain);
    span all = span_trim((span){buf_str(&plain), plain.len});
    letter_choice found = find_in_parts(all, last, guesses && !in_box, &rule, &skipped);
    /* a letter in the box may have a bracket before it in the plain text */
    bool box_last = in_box && box_at + 3 >= found.at + (found.at ? skipped : 0);
    span after = {buf_str(&plain) + box_at, plain.len - box_at};
    if (box_last && !letter_is_revoked(after)) {
        bool joined = boxes_are_joined(text, &boxed, x.answer.s[0], last, after);
        found = joined ? (letter_choice){0} : (letter_choice){1, x.answer.s[0]};
        rule = boxed.rule;
    }
    buf_release(&plain);
    *out = (extraction){found.at ? rule : NULL,
                        found.at ? (span){letters + (found.letter - 'A'), 1} : (span){NULL, 0}};
    return found.at != 0;
}
