#include "evals/code/program_fit.h"

#include <string.h>

#include "evals/code/python_text.h"
#include "evals/extract.h"

static span text_of(const char *s) {
    return (span){s, strlen(s)};
}

static bool equals(span s, span word) {
    return s.n == word.n && memcmp(s.s, word.s, word.n) == 0;
}

/* ---- definitions ---- */

/* Skips the word and the white space after it. Returns false if the text does not start with it. */
static bool skip_word(span *s, span word) {
    if (s->n < word.n || memcmp(s->s, word.s, word.n) != 0 ||
        (s->n > word.n && python_in_name(s->s[word.n])))
        return false;
    size_t n = word.n;
    while (n < s->n && (s->s[n] == ' ' || s->s[n] == '\t'))
        n++;
    *s = (span){s->s + n, s->n - n};
    return true;
}

/* True for lines that say that there is no code yet, and for imports, which alone are no body. */
static bool is_placeholder(span line) {
    span rest = line;
    if (skip_word(&rest, text_of("import")) || skip_word(&rest, text_of("from")))
        return true;
    return equals(line, text_of("pass")) || equals(line, text_of("...")) ||
           skip_word(&line, text_of("raise NotImplementedError"));
}

/* A definition whose body has had no statement so far. */
typedef struct {
    bool open;
    size_t indent; /* of its header */
    int brackets;  /* open brackets in its header */
    bool in_body;  /* the ":" after the header was read */
} definition;

/* Reads a part of a line as header and body. Returns true if the body has a statement there. */
static bool read_definition(definition *d, span part) {
    size_t i = 0;
    for (; i < part.n && !d->in_body; i++) {
        const char c = part.s[i];
        d->brackets += c == '(' || c == '[' || c == '{';
        d->brackets -= c == ')' || c == ']' || c == '}';
        d->in_body = c == ':' && d->brackets <= 0;
    }
    const span rest = span_trim((span){part.s + i, part.n - i});
    return rest.n && !is_placeholder(rest);
}

/* Reads a line after the header's first one. Returns true if it is a statement of the body. */
static bool continue_definition(definition *d, const python_line *line) {
    if (d->open && d->in_body && line->indent <= d->indent)
        d->open = false;
    return d->open && read_definition(d, line->text);
}

/* True if the line is "NAME = ..." or "NAME: type = ...". */
static bool assigns(span line, span name) {
    if (!skip_word(&line, name) || !line.n)
        return false;
    const char *equal = memchr(line.s, '=', line.n);
    bool twice = equal && equal + 1 < line.s + line.n && equal[1] == '=';
    return equal && !twice && (line.s[0] == '=' || line.s[0] == ':') &&
           (line.s[0] == '=' || !memchr(line.s, '(', (size_t)(equal - line.s)));
}

static bool imports_as(span line, span name) {
    static pattern as = {.regex = "\\bas[ \\t]++(\\w++)"};
    span found[PATTERN_GROUPS], rest = line;
    if (!skip_word(&rest, text_of("from")) && !skip_word(&rest, text_of("import")))
        return false;
    for (size_t at = 0; at < line.n && pattern_find(&as, line, at, found);) {
        if (equals(found[1], name))
            return true;
        at = (size_t)(found[0].s - line.s) + found[0].n;
    }
    return false;
}

/* Sets *rest to what follows the name if the line is "def NAME" or "class NAME". */
static bool is_header(span line, span name, span *rest) {
    (void)skip_word(&line, text_of("async"));
    *rest = line;
    return (skip_word(rest, text_of("def")) || skip_word(rest, text_of("class"))) &&
           skip_word(rest, name);
}

/* How well the code defines @name. @methods: a method or another inner function counts like one at
 * the smallest indentation. */
static program_fit definition_fit(span bare, span name, bool methods) {
    const size_t least = python_indent(bare);
    program_fit best = FIT_NONE;
    definition d = {0};
    python_line line;
    span rest;
    for (size_t at = 0; name.n && best < FIT_FULL && python_next_line(bare, &at, &line);) {
        const bool top = methods || line.indent == least;
        bool full = continue_definition(&d, &line), weak = false;
        if (is_header(line.text, name, &rest)) {
            definition begun = {.open = top, .indent = line.indent};
            weak = true;
            full = (read_definition(&begun, rest) && top) || full;
            d = top ? begun : d;
        } else if (top) {
            full = full || assigns(line.text, name);
            weak = imports_as(line.text, name);
        }
        program_fit fit = full ? FIT_FULL : weak ? FIT_WEAK : FIT_NONE;
        best = fit > best ? fit : best;
    }
    return best;
}

bool program_defines(span code, span name) {
    buf bare = {0};
    bool defines = python_bare(code, &bare) &&
                   definition_fit((span){buf_str(&bare), bare.len}, name, false) == FIT_FULL;
    buf_release(&bare);
    return defines;
}

/* ---- assertions without a named function ---- */

enum { kNames = 64 };

/* Functions of Python that assertions apply to the value under test. */
static bool is_builtin(span name) {
    static const char *const names[] = {
        "abs",       "all",  "any",        "bool",  "dict", "enumerate", "filter", "float",
        "frozenset", "int",  "isinstance", "iter",  "len",  "list",      "map",    "max",
        "min",       "next", "print",      "range", "repr", "reversed",  "round",  "set",
        "sorted",    "str",  "sum",        "tuple", "type", "zip"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (equals(name, text_of(names[i])))
            return true;
    return false;
}

/* Sets *name to the next name in @code that a "(" follows, as in a call. */
static bool next_call(span code, size_t *at, span *name) {
    for (size_t i = *at; i < code.n;) {
        size_t from = i;
        while (i < code.n && python_in_name(code.s[i]))
            i++;
        if (i > from && i < code.n && code.s[i] == '(' && (!from || code.s[from - 1] != '.')) {
            *name = (span){code.s + from, i - from};
            *at = i;
            return true;
        }
        i += i == from;
    }
    return false;
}

static bool is_among(span name, const span *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (equals(name, names[i]))
            return true;
    return false;
}

/* The best fit for a function that the assertions call and do not define. Python's own functions
 * are considered only if there is no other one. Both texts are bare code. Of many functions, only
 * the first kNames count. */
static program_fit called_fit(span bare, span assertions) {
    program_fit best = FIT_NONE, builtin = FIT_NONE;
    bool others = false;
    span name, seen[kNames];
    size_t n = 0;
    for (size_t at = 0; n < kNames && next_call(assertions, &at, &name);) {
        if (is_among(name, seen, n))
            continue;
        seen[n++] = name;
        if (definition_fit(assertions, name, true) != FIT_NONE)
            continue;
        program_fit fit = definition_fit(bare, name, false);
        program_fit *kind = is_builtin(name) ? &builtin : &best;
        others = others || kind == &best;
        *kind = fit > *kind ? fit : *kind;
    }
    return others ? best : builtin;
}

static program_fit assertion_fit(span bare, const char *after) {
    buf assertions = {0};
    program_fit fit = FIT_NONE;
    if (python_bare(text_of(after), &assertions))
        fit = called_fit(bare, (span){buf_str(&assertions), assertions.len});
    buf_release(&assertions);
    return fit;
}

/* ---- programs that read input ---- */

static bool reads(span code, span bare) {
    static pattern read = {
        .regex = "(?<![\\w.])input\\(|\\biter\\(input\\b|=[ \\t]*+input[ \\t]*+$"
                 "|\\bsys\\.(?:__)?stdin(?:__)?\\b(?![ \\t]*+=[^=])|\\.stdin\\.(?:read|buffer)"
                 "|^[ \\t]*+from[ \\t]++sys[ \\t]++import\\b[^\\n]*\\bstdin\\b"
                 "|(?<![\\w.])(?:io\\.open|os\\.fdopen|os\\.read|open)\\([ \\t]*+0\\b"
                 "|\\bfileinput\\b",
        .flags = PATTERN_MULTILINE};
    static pattern device = {.regex = "\\bopen\\([ \\t]*+[rRbBuU]?[\"']/dev/stdin[\"']"};
    static pattern own_input = {.regex = "\\bsys\\.stdin[ \\t]*+=[ \\t]*+(?:io\\.)?StringIO\\("};
    if (pattern_find(&own_input, bare, 0, NULL))
        return false; /* an example that brings its own input */
    return pattern_find(&read, bare, 0, NULL) || pattern_find(&device, code, 0, NULL);
}

static bool writes(span bare) {
    static pattern write = {.regex = "(?<![\\w.])print\\b|\\bstdout\\b|\\bos\\.write\\b"};
    return pattern_find(&write, bare, 0, NULL);
}

static program_fit main_fit(span code, span bare) {
    bool in = reads(code, bare), out = writes(bare);
    return in && out ? FIT_FULL : in ? FIT_CONTINUES : out ? FIT_WEAK : FIT_NONE;
}

/* ---- how well code fits the tests ---- */

/* True if the code can only be the continuation of another text. */
static bool continues(span bare) {
    python_line line;
    size_t at = 0;
    return python_next_line(bare, &at, &line) && python_indent(bare) > 0;
}

program_fit program_fit_of(span code, span bare, const code_tests *t) {
    if (t->fn_name)
        return definition_fit(bare, text_of(t->fn_name), true);
    if (t->entry) {
        program_fit fit = definition_fit(bare, text_of(t->entry), false);
        return fit < FIT_FULL && t->before && continues(bare) ? FIT_CONTINUES : fit;
    }
    return t->after ? assertion_fit(bare, t->after) : main_fit(code, bare);
}
