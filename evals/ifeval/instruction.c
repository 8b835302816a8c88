#include "evals/ifeval/instruction.h"

#include <string.h>

#include "base/text.h"
#include "evals/ifeval/json_text.h"
#include "evals/ifeval/letters.h"
#include "evals/ifeval/words.h"

enum { kArguments = 3 };

typedef enum {
    NOTHING,
    COUNT,    /* an integer, 0 to 10^9 */
    TEXT,     /* not blank */
    LETTER,   /* one character */
    REGEX,    /* a regular expression, not blank */
    REGEXES,  /* a list of regular expressions, not empty */
    RELATION, /* "at least" or "less than" */
} kind;

typedef struct {
    const char *name;
    kind kind;
} argument;

/* One check: does the response @text follow the instruction with the arguments @args? */
typedef struct {
    const js *args;
    span text;
    const instruction_data *data;
} question;

struct instruction {
    const char *id;
    bool (*follows)(const question *q);
    argument arguments[kArguments];
};

/* ---- arguments ---- */

static int64_t count_arg(const question *q, const char *name) {
    return (int64_t)js_get_num(q->args, name, 0);
}

static span span_of(const char *s) {
    return s ? (span){s, strlen(s)} : (span){"", 0};
}

static bool holds(const question *q, const char *relation, size_t n, const char *threshold) {
    int64_t wanted = count_arg(q, threshold);
    bool less = text_equal(js_get_str(q->args, relation), "less than");
    return less ? (int64_t)n < wanted : (int64_t)n >= wanted;
}

/* Number of matches in @text of the regular expression that @before, @regex and @after form
 * together. */
static size_t matches(const char *before, const char *regex, const char *after, unsigned flags,
                      span text) {
    buf whole = {0};
    (void)buf_printf(&whole, "%s%s%s", before, regex, after);
    pattern p = {.regex = buf_str(&whole), .flags = flags | PATTERN_UTF};
    size_t n = !whole.failed && pattern_compile(&p) ? pattern_count(&p, text) : 0;
    pattern_release(&p);
    buf_release(&whole);
    return n;
}

/* ---- keywords ---- */

static bool follows_existence(const question *q) {
    const js *words = js_get_array(q->args, "keywords");
    for (size_t i = 0; i < js_len(words); i++)
        if (!matches("", js_str(js_at(words, i)), "", PATTERN_CASELESS, q->text))
            return false;
    return true;
}

static bool follows_frequency(const question *q) {
    span word = letters_trim(span_of(js_get_str(q->args, "keyword")));
    buf regex = {0};
    (void)buf_append(&regex, word.s, word.n);
    size_t n = matches("", buf_str(&regex), "", PATTERN_CASELESS, q->text);
    buf_release(&regex);
    return holds(q, "relation", n, "frequency");
}

static bool follows_forbidden(const question *q) {
    const js *words = js_get_array(q->args, "forbidden_words");
    for (size_t i = 0; i < js_len(words); i++)
        if (matches("\\b", js_str(js_at(words, i)), "\\b", PATTERN_CASELESS, q->text))
            return false;
    return true;
}

static bool follows_letters(const question *q) {
    const char *letter = js_get_str(q->args, "letter");
    size_t n = matches("", letter, "", PATTERN_CASELESS | PATTERN_LITERAL, q->text);
    return holds(q, "let_relation", n, "let_frequency");
}

/* ---- language and case ---- */

static bool follows_language(const question *q) {
    return language_is(q->data->languages, q->text, js_get_str(q->args, "language"));
}

static bool has_capitals(span text) {
    static pattern capital = {.regex = "\\p{Uppercase}|\\p{Lt}", .flags = PATTERN_UTF};
    return pattern_find(&capital, text, 0, NULL);
}

static bool has_small(span text) {
    static pattern letter = {.regex = "\\p{Lowercase}|\\p{Lt}", .flags = PATTERN_UTF};
    return pattern_find(&letter, text, 0, NULL);
}

static bool follows_capital(const question *q) {
    return has_capitals(q->text) && !has_small(q->text) &&
           language_is(q->data->languages, q->text, "en");
}

static bool follows_lowercase(const question *q) {
    return has_small(q->text) && !has_capitals(q->text) &&
           language_is(q->data->languages, q->text, "en");
}

static bool follows_capital_words(const question *q) {
    return holds(q, "capital_relation", words_count_capital(q->data->sentences, q->text),
                 "capital_frequency");
}

/* ---- instructions about length ---- */

static bool follows_sentences(const question *q) {
    return holds(q, "relation", punkt_count(q->data->sentences, q->text), "num_sentences");
}

static bool follows_words(const question *q) {
    return holds(q, "relation", words_count(q->text), "num_words");
}

static bool is_blank(span text) {
    return letters_trim(text).n == 0;
}

/* Returns the piece of *rest before the next @divider and moves *rest past the divider. If there is
 * no divider, returns all of *rest and sets rest->s to NULL. */
static span next_piece(pattern *divider, span *rest) {
    span at[PATTERN_GROUPS], piece = *rest;
    if (!pattern_find_next(divider, *rest, 0, at)) {
        *rest = (span){0};
        return piece;
    }
    const char *end = at[0].s + at[0].n;
    piece.n = (size_t)(at[0].s - rest->s);
    *rest = (span){end, (size_t)(rest->s + rest->n - end)};
    return piece;
}

/* Number of pieces that are not blank; -1 if a piece other than the first and the last is blank.
 * Stores the first two of them without white space at their ends. */
static int64_t count_pieces(pattern *divider, span text, span kept[2]) {
    int64_t n = 0;
    bool first = true;
    while (text.s) {
        span piece = next_piece(divider, &text);
        if (is_blank(piece)) {
            if (!first && text.s)
                return -1;
        } else {
            if (n < 2)
                kept[n] = letters_trim(piece);
            n++;
        }
        first = false;
    }
    return n;
}

static bool follows_paragraphs(const question *q) {
    static pattern divider = {.regex = "\\s?\\*\\*\\*\\s?", .flags = PATTERN_UTF};
    span ignored[2];
    return count_pieces(&divider, q->text, ignored) == count_arg(q, "num_paragraphs");
}

static bool follows_two_responses(const question *q) {
    static pattern divider = {.regex = "\\*{6}"};
    span kept[2];
    return count_pieces(&divider, q->text, kept) == 2 &&
           !(kept[0].n == kept[1].n && memcmp(kept[0].s, kept[1].s, kept[0].n) == 0);
}

/* The first word of a paragraph, without quotes before it, up to white space or one of . , ? ! '
 * ". */
static span first_word(span paragraph) {
    static pattern word = {.regex = "^'*\"*([^\\s.,?!'\"]*)", .flags = PATTERN_UTF};
    span at[PATTERN_GROUPS];
    return pattern_find(&word, paragraph, 0, at) ? at[1] : (span){"", 0};
}

static bool same_caseless(span text, const char *wanted) {
    if (!text.n || !*wanted)
        return text.n == strlen(wanted);
    return matches("", wanted, "",
                   PATTERN_LITERAL | PATTERN_CASELESS | PATTERN_AT_START | PATTERN_AT_END,
                   text) == 1;
}

static bool follows_first_word(const question *q) {
    static pattern divider = {.regex = "\\n\\n"};
    int64_t n = 0, wanted = count_arg(q, "nth_paragraph"), at = 0;
    span rest = q->text, paragraph = {"", 0};
    while (rest.s) {
        span piece = next_piece(&divider, &rest);
        n += !is_blank(piece);
        if (++at == wanted)
            paragraph = letters_trim(piece);
    }
    return wanted <= n && paragraph.n && n == count_arg(q, "num_paragraphs") &&
           same_caseless(first_word(paragraph), js_get_str(q->args, "first_word"));
}

/* ---- content and format ---- */

static bool follows_placeholders(const question *q) {
    static pattern brackets = {.regex = "\\[.*?\\]", .flags = PATTERN_UTF};
    return (int64_t)pattern_count(&brackets, q->text) >= count_arg(q, "num_placeholders");
}

static bool follows_postscript(const question *q) {
    span marker = letters_trim(span_of(js_get_str(q->args, "postscript_marker")));
    const unsigned flags = PATTERN_CASELESS | PATTERN_MULTILINE;
    if (marker.n == 5 && memcmp(marker.s, "P.P.S", 5) == 0)
        return matches("", "p\\.\\s?p\\.\\s?s.*$", "", flags, q->text) > 0;
    if (marker.n == 4 && memcmp(marker.s, "P.S.", 4) == 0)
        return matches("", "p\\.\\s?s\\..*$", "", flags, q->text) > 0;
    buf regex = {0};
    (void)buf_append(&regex, marker.s, marker.n);
    bool found = matches("", buf_str(&regex), ".*$", flags, q->text) > 0;
    buf_release(&regex);
    return found;
}

static bool follows_bullets(const question *q) {
    static pattern star = {.regex = "^\\s*\\*[^*].*$", .flags = PATTERN_UTF | PATTERN_MULTILINE};
    static pattern dash = {.regex = "^\\s*-.*$", .flags = PATTERN_UTF | PATTERN_MULTILINE};
    size_t n = pattern_count(&star, q->text) + pattern_count(&dash, q->text);
    return (int64_t)n == count_arg(q, "num_bullets");
}

static bool follows_constrained(const question *q) {
    static pattern options = {.regex = "My answer is (?:yes|no|maybe)\\."};
    return pattern_find(&options, q->text, 0, NULL);
}

/* Counts *one* and **one**, except where there is only white space between the stars. */
static bool follows_highlights(const question *q) {
    static pattern one = {.regex = "\\*(?=([^\\n*]*)\\*)", .flags = PATTERN_UTF};
    static pattern two = {.regex = "\\*\\*([^\\n*]*)\\*\\*", .flags = PATTERN_UTF};
    span at[PATTERN_GROUPS];
    int64_t n = 0;
    for (size_t from = 0; pattern_find_next(&one, q->text, from, at);) {
        n += !is_blank(at[1]);
        from = (size_t)(at[0].s - q->text.s) + at[1].n + 2;
    }
    for (size_t from = 0; pattern_find_next(&two, q->text, from, at);) {
        n += !is_blank(at[1]);
        from = (size_t)(at[0].s - q->text.s) + at[0].n;
    }
    return n >= count_arg(q, "num_highlights");
}

static bool follows_sections(const question *q) {
    span mark = letters_trim(span_of(js_get_str(q->args, "section_spliter")));
    buf regex = {0};
    (void)buf_append(&regex, mark.s, mark.n);
    size_t n = matches("\\s?", buf_str(&regex), "\\s?\\d+\\s?", 0, q->text);
    buf_release(&regex);
    return (int64_t)n >= count_arg(q, "num_sections");
}

static span without(span text, const char *prefix) {
    size_t n = strlen(prefix);
    bool there = text.n >= n && memcmp(text.s, prefix, n) == 0;
    return there ? (span){text.s + n, text.n - n} : text;
}

static bool follows_json(const question *q) {
    static const char *const fences[] = {"```json", "```Json", "```JSON", "```"};
    span text = letters_trim(q->text);
    for (size_t i = 0; i < sizeof fences / sizeof *fences; i++)
        text = without(text, fences[i]);
    if (text.n >= 3 && memcmp(text.s + text.n - 3, "```", 3) == 0)
        text.n -= 3;
    return json_text_valid(letters_trim(text));
}

static bool follows_title(const question *q) {
    static pattern title = {.regex = "<<([^\\n]+)>>", .flags = PATTERN_UTF};
    static pattern blank = {.regex = "^<*\\s*>*$", .flags = PATTERN_UTF};
    span at[PATTERN_GROUPS];
    for (size_t from = 0; pattern_find_next(&title, q->text, from, at);) {
        if (!pattern_find(&blank, at[1], 0, NULL))
            return true;
        from = (size_t)(at[0].s - q->text.s) + at[0].n;
    }
    return false;
}

/* ---- start and end ---- */

static bool follows_repeat(const question *q) {
    span prompt = letters_trim(span_of(js_get_str(q->args, "prompt_to_repeat")));
    buf regex = {0};
    (void)buf_append(&regex, prompt.s, prompt.n);
    bool same =
        matches("", buf_str(&regex), "", PATTERN_LITERAL | PATTERN_CASELESS | PATTERN_AT_START,
                letters_trim(q->text)) > 0;
    buf_release(&regex);
    return same;
}

static bool follows_end(const question *q) {
    span phrase = letters_trim(span_of(js_get_str(q->args, "end_phrase"))), text = q->text;
    buf regex = {0};
    text = letters_trim(text);
    for (; text.n && text.s[0] == '"'; text.n--)
        text.s++;
    while (text.n && text.s[text.n - 1] == '"')
        text.n--;
    (void)buf_append(&regex, phrase.s, phrase.n);
    bool same = matches("", buf_str(&regex), "",
                        PATTERN_LITERAL | PATTERN_CASELESS | PATTERN_AT_END, text) > 0;
    buf_release(&regex);
    return same;
}

static bool follows_quotation(const question *q) {
    span text = letters_trim(q->text);
    return text.n > 1 && text.s[0] == '"' && text.s[text.n - 1] == '"';
}

static bool follows_no_comma(const question *q) {
    return q->text.n == 0 || !memchr(q->text.s, ',', q->text.n);
}

/* ---- the table of instructions ---- */

static const instruction instructions[] = {
    {"keywords:existence", follows_existence, {{"keywords", REGEXES}}},
    {"keywords:frequency",
     follows_frequency,
     {{"keyword", REGEX}, {"frequency", COUNT}, {"relation", RELATION}}},
    {"keywords:forbidden_words", follows_forbidden, {{"forbidden_words", REGEXES}}},
    {"keywords:letter_frequency",
     follows_letters,
     {{"letter", LETTER}, {"let_frequency", COUNT}, {"let_relation", RELATION}}},
    {"language:response_language", follows_language, {{"language", TEXT}}},
    {"length_constraints:number_sentences",
     follows_sentences,
     {{"num_sentences", COUNT}, {"relation", RELATION}}},
    {"length_constraints:number_paragraphs", follows_paragraphs, {{"num_paragraphs", COUNT}}},
    {"length_constraints:number_words",
     follows_words,
     {{"num_words", COUNT}, {"relation", RELATION}}},
    {"length_constraints:nth_paragraph_first_word",
     follows_first_word,
     {{"num_paragraphs", COUNT}, {"nth_paragraph", COUNT}, {"first_word", TEXT}}},
    {"detectable_content:number_placeholders", follows_placeholders, {{"num_placeholders", COUNT}}},
    {"detectable_content:postscript", follows_postscript, {{"postscript_marker", REGEX}}},
    {"detectable_format:number_bullet_lists", follows_bullets, {{"num_bullets", COUNT}}},
    {"detectable_format:constrained_response", follows_constrained, {{0}}},
    {"detectable_format:number_highlighted_sections",
     follows_highlights,
     {{"num_highlights", COUNT}}},
    {"detectable_format:multiple_sections",
     follows_sections,
     {{"section_spliter", REGEX}, {"num_sections", COUNT}}},
    {"detectable_format:json_format", follows_json, {{0}}},
    {"detectable_format:title", follows_title, {{0}}},
    {"combination:two_responses", follows_two_responses, {{0}}},
    {"combination:repeat_prompt", follows_repeat, {{"prompt_to_repeat", TEXT}}},
    {"startend:end_checker", follows_end, {{"end_phrase", TEXT}}},
    {"startend:quotation", follows_quotation, {{0}}},
    {"change_case:capital_word_frequency",
     follows_capital_words,
     {{"capital_frequency", COUNT}, {"capital_relation", RELATION}}},
    {"change_case:english_capital", follows_capital, {{0}}},
    {"change_case:english_lowercase", follows_lowercase, {{0}}},
    {"punctuation:no_comma", follows_no_comma, {{0}}},
};

const instruction *instruction_find(const char *id) {
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
        if (strcmp(instructions[i].id, id) == 0)
            return &instructions[i];
    return NULL;
}

static bool is_regex(const js *v) {
    pattern p = {.regex = js_str(v), .flags = PATTERN_UTF | PATTERN_CASELESS};
    bool good = p.regex && !text_is_blank(p.regex, strlen(p.regex)) && pattern_compile(&p);
    pattern_release(&p);
    return good;
}

static bool are_regexes(const js *list) {
    for (size_t i = 0; i < js_len(list); i++)
        if (!is_regex(js_at(list, i)))
            return false;
    return js_len(list) > 0;
}

static bool is_kind(const js *v, kind k) {
    const char *s = js_str(v);
    double x = js_num(v);
    switch (k) {
    case COUNT:
        return js_is_num(v) && x >= 0 && x <= 1e9 && x == (double)(int64_t)x;
    case TEXT:
        return s && !text_is_blank(s, strlen(s));
    case LETTER:
        return s && *s && text_utf8_len(s, strlen(s)) == strlen(s);
    case REGEX:
        return is_regex(v);
    case REGEXES:
        return are_regexes(v);
    case RELATION:
        return text_equal(s, "at least") || text_equal(s, "less than");
    default:
        return true;
    }
}

snap_status instruction_check(const instruction *i, const js *kwargs, snap_err *err) {
    static const char *const names[] = {"nothing",
                                        "an integer, 0 or more",
                                        "text",
                                        "one character",
                                        "a regular expression",
                                        "a list of regular expressions",
                                        "\"at least\" or \"less than\""};
    for (int k = 0; k < kArguments && i->arguments[k].name; k++)
        if (!is_kind(js_get(kwargs, i->arguments[k].name), i->arguments[k].kind))
            return err_set(err, SNAP_E_INPUT, "'%s' of %s must be %s", i->arguments[k].name, i->id,
                           names[i->arguments[k].kind]);
    return SNAP_OK;
}

bool instruction_follows(const instruction *i, const js *kwargs, span response,
                         const instruction_data *data) {
    return i->follows(&(question){kwargs, response, data});
}
