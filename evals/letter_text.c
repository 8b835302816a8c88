#include "evals/letter_text.h"

#include <string.h>
#include <strings.h>

#include "evals/letter_glyph.h"

/* A mark directly before or after a letter. MARK_STRONG is emphasis ("*", "_", "<b>"), and
 * MARK_SOFT is a quote, a brace or another sign. */
typedef enum { MARK_NONE, MARK_SOFT, MARK_STRONG } mark;

typedef struct {
    span in;
    size_t at;    /* the next byte of `in` */
    mark lead;    /* the strongest mark since the last byte that was written */
    bool row;     /* the line is a row of a table */
    bool started; /* something other than white space and list markers is on the line */
    buf *out;
} writer;

/* A sequence of bytes and what it becomes. */
typedef struct {
    const char *from, *to;
} replacement;

static const replacement characters[] = {{"\xC2\xA0", " "}, /* no-break space */
                                         {"\xE2\x80\xAF", " "},
                                         {"\xE3\x80\x80", " "},
                                         {"\xEF\xBC\x9A", ": "},
                                         {"\xEF\xBC\x88", "("},
                                         {"\xEF\xBC\x89", ")"},
                                         {"\xEF\xBC\x8E", ". "},
                                         {"\xE3\x80\x82", ". "},
                                         {"\xEF\xBC\x8C", ", "},
                                         {"\xE3\x80\x81", ", "},
                                         {"\xEF\xBC\x9B", "; "},
                                         {"\xEF\xBC\x9F", "? "},
                                         {"\xEF\xBC\x81", "! "},
                                         {"\xEF\xBC\x9D", "="},
                                         {"\xE0\xA5\xA4", ". "},
                                         {"\xE2\x80\x93", " - "},
                                         {"\xE2\x80\x94", " - "},
                                         {"\xE2\x86\x92", " => "},
                                         {"\xE2\x87\x92", " => "},
                                         {"\xE2\x9E\xA1", " => "},
                                         {"\xF0\x9F\x91\x89", " => "},
                                         {"\xE2\x88\xB4", " => "},
                                         {"\xE2\x9C\x93", LETTER_YES},
                                         {"\xE2\x9C\x94", LETTER_YES},
                                         {"\xE2\x9C\x85", LETTER_YES},
                                         {"\xE2\x98\x91", LETTER_YES},
                                         {"\xE2\x9D\x8C", LETTER_NO},
                                         {"\xE2\x9C\x97", LETTER_NO},
                                         {"\xE2\x9C\x98", LETTER_NO},
                                         {"\xE2\x9C\x96", LETTER_NO},
                                         {"\xEF\xB8\x8F", ""},
                                         {"\xE2\x80\x8B", ""},
                                         {"\xEF\xBB\xBF", ""}};

static const replacement macros[] = {{"\\boxed", ""},
                                     {"\\fbox", ""},
                                     {"\\textbf", ""},
                                     {"\\text", ""},
                                     {"\\textrm", ""},
                                     {"\\textit", ""},
                                     {"\\mathbf", ""},
                                     {"\\mathrm", ""},
                                     {"\\mathsf", ""},
                                     {"\\mathit", ""},
                                     {"\\bf", ""},
                                     {"\\rm", ""},
                                     {"\\underline", ""},
                                     {"\\emph", ""},
                                     {"\\boldsymbol", ""},
                                     {"\\quad", " "},
                                     {"\\qquad", " "},
                                     {"\\displaystyle", ""},
                                     {"\\Rightarrow", " => "},
                                     {"\\rightarrow", " => "},
                                     {"\\Longrightarrow", " => "},
                                     {"\\implies", " => "},
                                     {"\\to", " => "},
                                     {"\\therefore", " => "},
                                     {"\\checkmark", LETTER_YES}};

/* Tags around an answer. */
static const char *const tags[] = {"answer",
                                   "final_answer",
                                   "finalanswer",
                                   "correct_answer",
                                   "final",
                                   "choice",
                                   "final_choice",
                                   "selected_choice",
                                   "option",
                                   "selected_option",
                                   "selected",
                                   "result",
                                   "ans",
                                   "output",
                                   "solution",
                                   "response",
                                   "correct_option",
                                   "verdict",
                                   "final answer",
                                   "letter",
                                   "answer_letter"};

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_alnum(char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
}

static span rest(const writer *w) {
    return (span){w->in.s + w->at, w->in.n - w->at};
}

static bool starts_with(span s, const char *word) {
    size_t n = strlen(word);
    return s.n >= n && memcmp(s.s, word, n) == 0;
}

static char last_written(const writer *w) {
    return w->out->len ? w->out->data[w->out->len - 1] : '\n';
}

/* Writes a space, unless one or a line feed comes before it. */
static void put_space(writer *w) {
    char c = last_written(w);
    if (c != ' ' && c != '\n')
        (void)buf_append(w->out, " ", 1);
}

/* Ends a line. Of several line feeds only two are written. */
static void put_newline(writer *w) {
    buf *out = w->out;
    if (out->len && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
    bool empty =
        out->len == 0 || (out->len > 1 && memcmp(out->data + out->len - 2, "\n\n", 2) == 0);
    if (!empty)
        (void)buf_append(out, "\n", 1);
    w->started = false;
    w->row = false;
    w->lead = MARK_NONE;
}

static void put(writer *w, const char *s) {
    for (; *s; s++)
        if (*s == ' ')
            put_space(w);
        else
            (void)buf_append(w->out, s, 1);
    w->lead = MARK_NONE;
    w->started = true;
}

/* ---- marks such as check and cross ---- */

/* Length of the mark at the start of @s, which follows the byte @before; 0 if there is none. An
 * apostrophe or an underscore between two letters or digits is no mark. */
static size_t mark_at(span s, char before, mark *kind) {
    static const char *const quotes[] = {"\xE2\x80\x98", "\xE2\x80\x99", "\xE2\x80\x9C",
                                         "\xE2\x80\x9D", "\xE3\x80\x8C", "\xE3\x80\x8D",
                                         "\xE3\x80\x8E", "\xE3\x80\x8F", "\xE3\x80\x90",
                                         "\xE3\x80\x91", "\xC2\xAB",     "\xC2\xBB"};
    static const char *const bold[] = {"<b>",  "</b>",  "<i>", "</i>", "<strong>", "</strong>",
                                       "<em>", "</em>", "<u>", "</u>", "<code>",   "</code>"};
    if (!s.n)
        return 0;
    *kind = s.s[0] == '*' || s.s[0] == '_' ? MARK_STRONG : MARK_SOFT;
    if (s.s[0] == '_' || s.s[0] == '\'')
        return is_alnum(before) && s.n > 1 && is_alnum(s.s[1]) ? 0 : 1;
    if (strchr("*`$\"{}~", s.s[0]))
        return 1;
    if (s.s[0] == '\\' && s.n > 1 && strchr("()[]", s.s[1]))
        return 2;
    if (s.s[0] != '<' && (unsigned char)s.s[0] < 0x80) /* most characters */
        return 0;
    for (size_t i = 0; i < sizeof bold / sizeof *bold; i++)
        if (starts_with(s, bold[i])) {
            *kind = MARK_STRONG;
            return strlen(bold[i]);
        }
    for (size_t i = 0; i < sizeof quotes / sizeof *quotes; i++)
        if (starts_with(s, quotes[i])) {
            size_t n = strlen(quotes[i]);
            bool apostrophe = i == 1 && is_alnum(before) && s.n > n && is_alnum(s.s[n]);
            return apostrophe ? 0 : n;
        }
    return 0;
}

/* The strongest of the marks at the start of @s, which follows a letter. */
static mark marks_after(span s) {
    mark found = MARK_NONE, kind;
    for (size_t n; (n = mark_at(s, ' ', &kind)) > 0; s = (span){s.s + n, s.n - n})
        found = kind > found ? kind : found;
    return found;
}

/* Writes a letter that stands alone between marks. */
static bool put_marked(writer *w) {
    span s = rest(w);
    char before = last_written(w);
    bool alone = is_letter(s.s[0]) && (s.n == 1 || !is_alnum(s.s[1])) && !is_alnum(before) &&
                 before != '(' && before != '[' && before != '\\';
    if (!alone || w->lead == MARK_NONE)
        return false;
    mark trail = marks_after((span){s.s + 1, s.n - 1});
    if (trail == MARK_NONE)
        return false;
    bool strong = w->lead == MARK_STRONG && trail == MARK_STRONG;
    char text[] = {strong ? '(' : '[', s.s[0], strong ? ')' : ']', '\0'};
    put(w, text);
    w->at++;
    return true;
}

/* ---- tags, macros, characters ---- */

/* Reads "<name>", "</name>", "[NAME]" or "<|name|>". Returns its length; 0 if there is none. */
static size_t tag_at(span s, span *name) {
    char close = s.s[0] == '<' ? '>' : s.s[0] == '[' ? ']' : '\0';
    size_t i = 1;
    if (!close)
        return 0;
    while (i < s.n && i < 40 && (is_letter(s.s[i]) || strchr("_/| ", s.s[i])))
        i++;
    *name = (span){s.s + 1, i - 1};
    return i > 2 && i < s.n && s.s[i] == close ? i + 1 : 0;
}

static bool is_answer_tag(span name) {
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (name.n == strlen(tags[i]) && strncasecmp(name.s, tags[i], name.n) == 0)
            return true;
    return false;
}

static bool put_tag(writer *w) {
    span name, s = rest(w);
    size_t n = tag_at(s, &name);
    bool answer = n && is_answer_tag(name);
    bool closing = n && name.s[0] == '/' && is_answer_tag((span){name.s + 1, name.n - 1});
    if (!n && s.s[0] == '<' && s.n > 2 && s.s[2] == '>' && is_letter(s.s[1])) {
        put(w, (char[]){'[', s.s[1], ']', '\0'});
        n = 3;
    } else if (answer || closing || (n && s.s[0] == '<')) {
        put_newline(w);
        if (answer)
            put(w, "answer: ");
    } else {
        return false;
    }
    w->at += n;
    return true;
}

static bool put_macro(writer *w) {
    span s = rest(w);
    if (s.s[0] != '\\' || s.n < 2)
        return false;
    if (strchr(",;:! ", s.s[1])) {
        put_space(w);
        w->at += 2;
        return true;
    }
    size_t n = 1;
    while (n < s.n && is_letter(s.s[n]))
        n++;
    for (size_t i = 0; i < sizeof macros / sizeof *macros; i++)
        if (n == strlen(macros[i].from) && memcmp(s.s, macros[i].from, n) == 0) {
            mark lead = w->lead;
            put(w, macros[i].to);
            w->lead = lead;
            w->at += n;
            return true;
        }
    return false;
}

static bool put_character(writer *w) {
    span s = rest(w);
    if ((unsigned char)s.s[0] < 0x80)
        return false;
    if (starts_with(s, "\xE2\x80\x99")) { /* an apostrophe, because mark_at() has taken quotes */
        put(w, "'");
        w->at += 3;
        return true;
    }
    char letter;
    bool framed;
    size_t n = letter_glyph(s, &letter, &framed);
    if (n) {
        framed = framed && last_written(w) != '(';
        put(w, framed ? (char[]){'(', letter, ')', '\0'} : (char[]){letter, '\0'});
        w->at += n;
        return true;
    }
    for (size_t i = 0; i < sizeof characters / sizeof *characters; i++)
        if (starts_with(s, characters[i].from)) {
            put(w, characters[i].to);
            w->at += strlen(characters[i].from);
            return true;
        }
    return false;
}

/* ---- pieces that are left out ---- */

/* Length of the struck text at the start of @s, on one line: "~~C~~", "<s>C</s>", "\sout{C}"; 0 if
 * there is none. */
static size_t struck_at(span s) {
    static const struct {
        const char *open, *close;
    } pairs[] = {{"~~", "~~"},       {"<s>", "</s>"},     {"<del>", "</del>"},
                 {"\\sout{", "}"},   {"\\st{", "}"},      {"<strike>", "</strike>"},
                 {"\\cancel{", "}"}, {"\\xcancel{", "}"}, {"\\bcancel{", "}"}};
    for (size_t i = 0; strchr("~<\\", s.s[0]) && i < sizeof pairs / sizeof *pairs; i++) {
        size_t from = strlen(pairs[i].open);
        bool open = starts_with(s, pairs[i].open) && from < s.n && !strchr(" \n~", s.s[from]);
        for (size_t at = from; open && at < s.n && at < 200 && s.s[at] != '\n'; at++)
            if (starts_with((span){s.s + at, s.n - at}, pairs[i].close))
                return at + strlen(pairs[i].close);
    }
    return 0;
}

/* True if @s begins with the comma of a JSON object, as in: , "answer": "C" */
static bool is_next_field(span s) {
    size_t i = 1;
    while (s.s[0] == ',' && i < s.n && (s.s[i] == ' ' || s.s[i] == '\n'))
        i++;
    if (s.s[0] != ',' || i >= s.n || (s.s[i] != '"' && s.s[i] != '\''))
        return false;
    size_t end = i + 1;
    while (end < s.n && end < i + 40 && (is_alnum(s.s[end]) || strchr("_ -", s.s[end])))
        end++;
    return end + 1 < s.n && s.s[end] == s.s[i] && s.s[end + 1] == ':';
}

/* ---- lines ---- */

/* Length of the list marker, heading, quotation or table mark at the start of a line. */
static size_t line_marker(span s) {
    if (s.s[0] == '#' || s.s[0] == '>' || s.s[0] == '|')
        return 1;
    bool bullet = (strchr("-+*", s.s[0]) && s.n > 1 && (s.s[1] == ' ' || s.s[1] == '\t'));
    if (bullet)
        return 2;
    return starts_with(s, "\xE2\x80\xA2") ? 3 : 0;
}

/* Writes a byte that step() does not handle in another way. A "|" becomes " - " in a row of a table
 * and a space elsewhere. A bracket that repeats the last one written, as in "((", is left out. */
static void put_byte(writer *w, char c) {
    bool twice = c && strchr("([])", c) && last_written(w) == c;
    if (c == '|' && w->row)
        put(w, " - "); /* the cells of a table */
    else if (c == '|')
        put_space(w);
    else if (!twice)
        (void)buf_append(w->out, &c, 1);
    w->lead = MARK_NONE;
    w->started = true;
    w->at++;
}

static void step(writer *w) {
    span s = rest(w);
    size_t n;
    mark kind;
    if (s.s[0] == '\n' || is_next_field(s)) {
        put_newline(w);
        w->at++;
    } else if ((n = struck_at(s)) > 0 || (!w->started && (n = line_marker(s)) > 0)) {
        w->row = w->row || s.s[0] == '|';
        w->at += n;
    } else if (strchr(" \t\r\f\v", s.s[0]) && s.s[0]) {
        put_space(w);
        w->at++;
    } else if (!w->started && (starts_with(s, "[x]") || starts_with(s, "[X]") ||
                               starts_with(s, "[ ]"))) { /* a check box */
        put(w, s.s[1] == ' ' ? LETTER_NO : LETTER_YES);
        w->at += 3;
    } else if (put_marked(w)) {
        return;
    } else if ((n = mark_at(s, last_written(w), &kind)) > 0) {
        w->lead = kind > w->lead ? kind : w->lead;
        w->started = true;
        w->at += n;
    } else if (!put_tag(w) && !put_macro(w) && !put_character(w)) {
        put_byte(w, s.s[0]);
    }
}

size_t letter_text(span text, const char *at, buf *out) {
    writer w = {.in = text, .out = out};
    size_t reached = 0;
    bool passed = at == NULL;
    while (w.at < text.n && !out->failed) {
        if (!passed && text.s + w.at >= at) {
            reached = out->len;
            passed = true;
        }
        step(&w);
    }
    return passed ? reached : out->len;
}
