/* Statements of an answer: "The answer is 5", a heading, a tag, a JSON field. */
#include <string.h>

#include "evals/answer_labels.h"
#include "evals/extract_parts.h"

/* True if the text ends in an abbreviation after which a sentence goes on: "i.e". */
static bool is_abbreviation(span s) {
    static const char *const words[] = {"i.e", "e.g", "approx", " resp", " sq",
                                        " cu", "Mr",  "Ms",     "Mrs",   "Dr"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if (s.n >= n && memcmp(s.s + s.n - n, words[i], n) == 0)
            return true;
    }
    return false;
}

/* The text up to a full stop before white space, or up to "。": "204. I hope this helps" states
 * 204. */
static span sentence(span line) {
    static const char stop[] = "\u3002";
    const char *wide = line.n ? memmem(line.s, line.n, stop, strlen(stop)) : NULL;
    if (wide)
        line.n = (size_t)(wide - line.s);
    for (size_t i = 0; i + 1 < line.n; i++) {
        size_t k = i + 1; /* the character after the full stop and up to two "*" */
        while (k + 1 < line.n && line.s[k] == '*' && k < i + 3)
            k++;
        if (line.s[i] == '.' && strchr(" \t\n\r\f\v", line.s[k]) && !(i && line.s[i - 1] == '.') &&
            !is_abbreviation((span){line.s, i}))
            return (span){line.s, i};
    }
    return line;
}

/* The displayed formula with which the text starts: \[...\] or $$...$$. Empty: there is none. */
static span display(span text) {
    static const char *const marks[][2] = {{"\\[", "\\]"}, {"$$", "$$"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (text.n < 4 || memcmp(text.s, marks[i][0], 2) != 0)
            continue;
        const char *close = memmem(text.s + 2, text.n - 2, marks[i][1], 2);
        if (close)
            return span_trim((span){text.s + 2, (size_t)(close - text.s) - 2});
    }
    return (span){NULL, 0};
}

/* The text below a first line that only points to it, such as "as follows:"; otherwise the whole
 * text. */
static span below(span text) {
    static pattern pointer = {
        .regex =
            "(?i)^(?:(?:given )?below|as follows|the following|this)?[ \\t*_]*+[:.]?[ \\t*_]*+\\n"
            "\\s*+(?:[-+>*\u2022] ++(?=\\S))?"};
    span groups[PATTERN_GROUPS];
    return pattern_find(&pointer, text, 0, groups)
               ? (span){text.s + groups[0].n, text.n - groups[0].n}
               : text;
}

/* The last statement that the words of @p introduce: the rest of their line, or of the sentence, or
 * a formula of several lines. s NULL: none. */
static span statement(pattern *p, span text) {
    span groups[PATTERN_GROUPS];
    if (!pattern_find_last(p, text, groups))
        return (span){NULL, 0};
    span cut = {text.s, (size_t)(groups[0].s - text.s)};
    if (groups[0].s + groups[0].n == text.s + text.n && !pattern_find_last(p, cut, groups))
        return (span){NULL, 0}; /* If the text ends with "The answer is", the statement before it
                                   counts. */
    const char *start = groups[0].s + groups[0].n;
    span rest = below((span){start, (size_t)(text.s + text.n - start)});
    if (rest.n > 2 && rest.s > text.s && rest.s[-1] == '\n' && strchr("->+", rest.s[0]) &&
        rest.s[1] == ' ')
        rest = (span){rest.s + 2, rest.n - 2}; /* the sign of a list or a quotation */
    span formula = display(rest);
    if (formula.n)
        return formula;
    const char *line = rest.n ? memchr(rest.s, '\n', rest.n) : NULL;
    return span_trim(sentence((span){rest.s, line ? (size_t)(line - rest.s) : rest.n}));
}

/* The text before its last bar, which ends the cell of a table. */
static span first_cell(span row) {
    const char *bar = row.n ? memrchr(row.s, '|', row.n) : NULL;
    return bar ? span_trim((span){row.s, (size_t)(bar - row.s)}) : row;
}

/* The content of the last <answer>...</answer> or, if there is none, of the last
 * <final_answer>...</final_answer>. s NULL: none. */
static span tagged(span text) {
    static const char *const tags[][2] = {{"<answer>", "</answer>"},
                                          {"<final_answer>", "</final_answer>"}};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        span closing = extract_last_word(text, tags[i][1]);
        span before = {text.s, (size_t)(closing.s - text.s)};
        span opening = closing.n ? extract_last_word(before, tags[i][0]) : closing;
        if (opening.n) {
            size_t n = strlen(tags[i][0]);
            return span_trim((span){opening.s + n, opening.n - n});
        }
    }
    return (span){NULL, 0};
}

/* The value of the last JSON field "answer" or "final_answer". s NULL: none. */
static span json_field(span text) {
    static pattern field = {
        .regex = "\"(?:final[_ ]?)?answer\"\\s*+:\\s*+(?:\"((?:[^\"\\\\\\n]|\\\\.)*+)\"|"
                 "(-?[0-9][0-9.]*+)(?=\\s*+[,}]))"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find_last(&field, text, groups))
        return (span){NULL, 0};
    return span_trim(groups[groups[1].s ? 1 : 2]);
}

/* What follows a label: spaces, Markdown characters, colons, and the brace that ends a \text. */
#define AFTER_LABEL "[\\s*_:}]*+"

/* Replaces *out by the statement @s if it is not empty and comes after the one in *out, or if *out
 * has none. */
static void take_later(extraction *out, const char *rule, span s) {
    if (s.s && s.n && (!out->rule || s.s > out->answer.s))
        *out = (extraction){rule, s};
}

/* STATES is what may stand between the word "answer" and the answer itself. The four macros before
 * it are its parts. */
#define FOR_WHAT                                                                                   \
    "(?:\\s++(?:to|for)\\s++(?:the|this|your|our)\\s++(?:\\w++\\s++){0,1}(?:question|problem))?"
#define COMES_TO  "(?:comes|works|turns)\\s++out\\s++(?:to\\s++be|as|to)"
#define TEX_SPACE "(?:\\s|\\\\[;:,! ]|\\\\q?quad(?![a-zA-Z]))*+"
#define TEX_ARROW "\\}?" TEX_SPACE "(?:\\\\(?:to|(?:long)?[rR]ightarrow|implies)(?![a-zA-Z])|[=:])"
#define STATES                                                                                     \
    "[*_]*+" FOR_WHAT                                                                              \
    "\\s*+(?:(?:is|are|(?:would|will|must|should)\\s++be|equals|becomes|" COMES_TO                 \
    ")\\b|[:=]|\u2192|->|(?:-|\u2013|\u2014)[ ]|" TEX_ARROW TEX_SPACE ")"

/* A heading: the line before the answer. */
#define HEADING(words) "(?im)^[ \\t>#*_]*+" words "[*_:. \\t]*+\\n[\\s>*_#]*+"

bool extract_stated(span text, extraction *out) {
    static pattern final = {
        .regex = "(?i)(?<![A-Za-z])final\\s++(?:answer|result)s?" STATES AFTER_LABEL};
    static pattern final_heading = {.regex = HEADING("(?:(?:the|my|our) )?final\\s++answer")};
    static pattern plain = {
        .regex =
            "(?i)(?<![A-Za-z])(?:answers?|(?:correct|right) (?:option|choice))" STATES AFTER_LABEL};
    static pattern heading = {.regex = HEADING("(?:(?:the|my|our) )?answer")};
    static pattern abbreviation = {
        .regex = "(?im)^[ \\t>#*_]*+(?:ans|answer)\\.[*_]*+[ \\t]++" AFTER_LABEL};
    /* "we arrive at the answer, 5", but not "to get the answer, 5 must be added" */
    static pattern reached = {
        .regex = "(?i)(?<!to )\\b(?:arriv(?:e|es|ed|ing) at|reach(?:es|ed)?|obtain(?:s|ed)?|get|"
                 "gives?|yields?|have|found|find|settle on|(?:com(?:e|es|ing)|leads?|brings us|"
                 "led) to)\\s++(?:the|our|my)\\s++(?:(?:final|desired|correct|required)\\s++)?"
                 "(?:answer|result)(?:,|;|\\s++of\\b|\\s++as\\b)"
                 "(?:\\s++(?:namely|i\\.e\\.),?)?" AFTER_LABEL};
    /* a row of a table: "| answer | 5 |" */
    static pattern cell = {
        .regex = "(?im)^[ \\t>]*+\\|(?:[^|\\n]*+\\|)*?[ \\t*_]*+(?:(?:the|my|our) )?(?:final )?"
                 "(?:answer|result|solution)[ \\t*_:]*+\\|"
                 "(?=[ \\t-]*+[^|\\n\\s-][^|\\n]*+\\|[ \\t]*+$)"};
    /* the last column of a table with one row */
    static pattern column = {
        .regex = "(?im)^[ \\t>]*+\\|(?:[^|\\n]*+\\|)*?[ \\t*_]*+(?:(?:the|my|our) )?(?:final )?"
                 "(?:answer|result|solution)[ \\t*_:]*+\\|[ \\t]*+\\n[ \\t>]*+\\|[-:| \\t]++\\n"
                 "[ \\t>]*+\\|(?:[^|\\n]*+\\|)*?"
                 "(?=[^|\\n]*+\\|[ \\t]*+(?:\\n(?![ \\t>]*\\|)|$(?!\\n)))"};
    static pattern label = {.regex =
                                "(?:" ANSWER_NOUNS ")(?:\\s*+(?:" ANSWER_ADJECTIVES "))?[*_]*+\\s*+"
                                "(?:(?:" ANSWER_VERBS ")(?![a-z])|[:=]|\uff1a)"
                                "(?:[\\s*_:}]|\uff1a)*+"};
    *out = (extraction){0};
    take_later(out, "final_answer", statement(&final, text));
    take_later(out, "final_answer", statement(&final_heading, text));
    take_later(out, "tag", tagged(text));
    take_later(out, "answer_field", json_field(text));
    if (!out->rule) {
        take_later(out, "answer", statement(&plain, text));
        take_later(out, "answer", statement(&heading, text));
        take_later(out, "answer", statement(&abbreviation, text));
        take_later(out, "answer", statement(&reached, text));
        take_later(out, "answer", first_cell(statement(&cell, text)));
        take_later(out, "answer", first_cell(statement(&column, text)));
    }
    take_later(out, "label", statement(&label, text));
    return out->rule != NULL;
}
