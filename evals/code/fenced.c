#include "evals/code/fenced.h"

#include <string.h>

/* Sets *line to the next line from *at on, without its newline, and moves *at past it. False at the
 * end of the text. */
static bool next_line(span text, size_t *at, span *line) {
    if (*at > text.n)
        return false;
    const char *from = text.s + *at, *end = memchr(from, '\n', text.n - *at);
    *line = (span){from, end ? (size_t)(end - from) : text.n - *at};
    *at += line->n + 1;
    return true;
}

/* The text after the line @opening and before the line @closing. */
static span between(span opening, span closing) {
    const char *from = opening.s + opening.n + 1;
    return (span){from, closing.s > from ? (size_t)(closing.s - from) - 1 : 0};
}

bool fenced_last(span text, extraction *out) {
    span line, last = {NULL, 0}, before = {NULL, 0};
    for (size_t at = 0; next_line(text, &at, &line);)
        if (memmem(line.s, line.n, "```", 3)) {
            before = last;
            last = line;
        }
    if (!before.s)
        return false;
    *out = (extraction){"fenced", between(before, last)};
    return true;
}

/* ---- finding fenced blocks ---- */

typedef struct {
    span line, info;
    size_t quotes; /* number of nested quotations */
    size_t indent; /* bytes before the first character of the fence, without a quotation's marks */
    size_t length; /* number of fence characters */
    char mark;     /* '`' or '~' */
} fence;

static size_t skip_blanks(span line, size_t i) {
    while (i < line.n && (line.s[i] == ' ' || line.s[i] == '\t'))
        i++;
    return i;
}

/* Length of a list marker and the blanks after it: "- ", "* ", "+ ", "12. ", "3) ". */
static size_t list_marker(span line, size_t from) {
    size_t i = from;
    if (i < line.n && strchr("-*+", line.s[i]) && line.s[i]) {
        i++;
    } else {
        while (i < line.n && i - from < 9 && line.s[i] >= '0' && line.s[i] <= '9')
            i++;
        if (i == from || i == line.n || (line.s[i] != '.' && line.s[i] != ')'))
            return 0;
        i++;
    }
    size_t end = skip_blanks(line, i);
    return end > i ? end - from : 0;
}

/* Length of one mark of a quotation with the blanks around it; 0 if there is none. */
static size_t quote_mark(span line, size_t from) {
    size_t i = from;
    while (i < line.n && i - from < 3 && line.s[i] == ' ')
        i++;
    if (i == line.n || line.s[i] != '>')
        return 0;
    i++;
    return (i < line.n && line.s[i] == ' ' ? i + 1 : i) - from;
}

size_t fenced_quotes(span line, size_t quotes) {
    size_t end = 0, n;
    for (; quotes; quotes--, end += n) {
        n = quote_mark(line, end);
        if (!n)
            return 0;
    }
    return end;
}

/* Reads a line as a fence. False if it is none. */
static bool read_fence(span line, fence *out) {
    size_t start = 0, i, n;
    *out = (fence){.line = line};
    while ((n = quote_mark(line, start)) > 0) {
        start += n;
        out->quotes++;
    }
    i = skip_blanks(line, start);
    i += list_marker(line, i);
    out->indent = i - start;
    out->mark = i < line.n ? line.s[i] : '\0';
    if (out->mark != '`' && out->mark != '~')
        return false;
    while (i < line.n && line.s[i] == out->mark)
        i++;
    out->length = i - start - out->indent;
    out->info = span_trim((span){line.s + i, line.n - i});
    bool inline_code = out->mark == '`' && out->info.n && memchr(out->info.s, '`', out->info.n);
    return out->length >= 3 && !inline_code;
}

/* True if @f has what the end of a block needs. Some responses leave out the marks of a quotation
 * at its last fence. */
static bool ends(const fence *f, const fence *opening) {
    return f->quotes <= opening->quotes && f->mark == opening->mark && f->length >= opening->length;
}

static bool closes(const fence *f, const fence *opening) {
    return ends(f, opening) && !f->info.n;
}

/* True if @f opens a block although @opening is not closed. A fence that is shorter than the
 * opening one or of the other kind belongs to the block. */
static bool reopens(const fence *f, const fence *opening) {
    return ends(f, opening) && f->info.n;
}

static span first_word(span info) {
    size_t n = 0;
    while (n < info.n && !strchr(" \t\r{,", info.s[n]))
        n++;
    return (span){info.s, n};
}

static bool find_opening(span text, size_t *at, fence *out) {
    for (span line; next_line(text, at, &line);)
        if (read_fence(line, out))
            return true;
    return false;
}

bool fenced_next(span text, size_t *at, fenced_block *out) {
    fence opening, f;
    span line;
    if (!find_opening(text, at, &opening))
        return false;
    *out = (fenced_block){
        .quotes = opening.quotes, .indent = opening.indent, .language = first_word(opening.info)};
    for (size_t before = *at; next_line(text, at, &line); before = *at) {
        bool is_fence = read_fence(line, &f);
        if (is_fence && closes(&f, &opening)) {
            out->text = between(opening.line, line);
            out->closed = true;
            return true;
        }
        bool left = opening.quotes && !fenced_quotes(line, opening.quotes);
        if (left || (is_fence && reopens(&f, &opening))) {
            out->text = between(opening.line, line);
            out->closed = left;
            *at = before;
            return true;
        }
    }
    const char *from = opening.line.s + opening.line.n, *end = text.s + text.n;
    out->text = from < end ? (span){from + 1, (size_t)(end - from) - 1} : (span){end, 0};
    return true;
}
