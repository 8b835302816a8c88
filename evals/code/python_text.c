#include "evals/code/python_text.h"

#include <stdint.h>
#include <string.h>

bool python_in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* ---- strings and comments ---- */

/* A string that is not closed yet. In an f-string, @field says where the reader is: in the text of
 * the string, in a replacement field, or in the format of a field (after its ":"). After a field
 * within a format, the rest of the format counts as text. */
typedef struct {
    char quote;
    bool triple, has_fields;
    enum { IN_TEXT, IN_FIELD, IN_FORMAT } field;
    int brackets; /* open brackets in the field */
} open_string;

/* Levels of strings inside fields of f-strings. Deeper strings are read as text. */
enum { kDepth = 16 };

typedef struct {
    char *s; /* the code, in which comments and strings are overwritten */
    size_t n, i;
    open_string open[kDepth];
    size_t depth; /* number of open strings */
} scanner;

static void erase(scanner *x, size_t count) {
    for (; count && x->i < x->n; count--, x->i++)
        if (x->s[x->i] != '\n')
            x->s[x->i] = ' ';
}

static bool triple_at(const scanner *x, char quote) {
    return x->n - x->i >= 3 && x->s[x->i + 1] == quote && x->s[x->i + 2] == quote;
}

/* Number of letters of a string prefix such as rb before the place. */
static size_t prefix_before(const scanner *x) {
    size_t n = 0;
    while (n < x->i && n < 3 && python_in_name(x->s[x->i - n - 1]))
        n++;
    for (size_t k = 0; k < n; k++)
        if (!strchr("rRbBuUfF", x->s[x->i - k - 1]))
            return 0;
    return n < 3 ? n : 0;
}

static void open_quote(scanner *x) {
    const char quote = x->s[x->i];
    open_string o = {.quote = quote, .triple = triple_at(x, quote)};
    size_t prefix = prefix_before(x);
    for (size_t k = 1; k <= prefix; k++)
        o.has_fields = o.has_fields || strchr("fF", x->s[x->i - k]);
    x->i -= prefix;
    erase(x, prefix + (o.triple ? 3 : 1));
    if (x->depth + 1 == kDepth)
        o.has_fields = false;
    x->open[x->depth++] = o;
}

/* Reads one step of code: outside of strings, or in a field of the innermost string. */
static void step_code(scanner *x, open_string *in) {
    const char c = x->s[x->i];
    if (c == '#' && !in) {
        const char *end = memchr(x->s + x->i, '\n', x->n - x->i);
        erase(x, end ? (size_t)(end - x->s) - x->i : x->n - x->i);
    } else if ((c == '"' || c == '\'') && x->depth < kDepth) {
        open_quote(x);
    } else if (in && in->brackets == 0 && (c == '}' || c == ':')) {
        in->field = c == '}' ? IN_TEXT : IN_FORMAT;
        erase(x, 1);
    } else {
        if (in && c && strchr("([{", c))
            in->brackets++;
        if (in && c && strchr(")]}", c))
            in->brackets--;
        x->i++;
    }
}

/* Reads one step of a string's text or of a field's format. */
static void step_text(scanner *x, open_string *in) {
    const char c = x->s[x->i], next = x->i + 1 < x->n ? x->s[x->i + 1] : '\0';
    const bool format = in->field == IN_FORMAT;
    if (c == in->quote && (!in->triple || triple_at(x, c))) {
        erase(x, in->triple ? 3 : 1);
        x->depth--;
    } else if (c == '\\') {
        erase(x, next == '\r' ? 3 : 2); /* the line goes on after a backslash at its end */
    } else if (in->has_fields && !format && c == '{' && next == '{') {
        erase(x, 2);
    } else if (in->has_fields && c == '{') {
        in->field = IN_FIELD;
        in->brackets = 0;
        erase(x, 1);
    } else {
        if (format && c == '}')
            in->field = IN_TEXT;
        erase(x, 1);
    }
}

/* A line end closes the strings that cannot go on after it. */
static void end_line(scanner *x) {
    size_t keep = 0;
    while (keep < x->depth && x->open[keep].triple)
        keep++;
    x->depth = keep;
    x->i++;
}

bool python_bare(span code, buf *out) {
    const size_t from = out->len;
    if (!code.n || !buf_append(out, code.s, code.n))
        return !code.n;
    scanner x = {.s = out->data + from, .n = code.n};
    while (x.i < x.n) {
        open_string *in = x.depth ? &x.open[x.depth - 1] : NULL;
        if (x.s[x.i] == '\n')
            end_line(&x);
        else if (in && in->field != IN_FIELD)
            step_text(&x, in);
        else
            step_code(&x, in);
    }
    return true;
}

/* ---- lines ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

bool python_next_line(span bare, size_t *at, python_line *line) {
    while (*at < bare.n) {
        const char *s = bare.s + *at, *end = memchr(s, '\n', bare.n - *at);
        size_t n = end ? (size_t)(end - s) : bare.n - *at, indent = 0;
        *at += n + 1;
        while (indent < n && is_blank(s[indent]))
            indent++;
        while (n > indent && is_blank(s[n - 1]))
            n--;
        *line = (python_line){{s + indent, n - indent}, indent};
        if (line->text.n)
            return true;
    }
    return false;
}

size_t python_indent(span bare) {
    python_line line;
    size_t least = SIZE_MAX;
    for (size_t at = 0; python_next_line(bare, &at, &line);)
        least = line.indent < least ? line.indent : least;
    return least == SIZE_MAX ? 0 : least;
}
