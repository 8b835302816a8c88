#include "evals/code/program.h"

#include <string.h>

#include "evals/code/fenced.h"

static bool in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool starts_with(span s, const char *word) {
    size_t n = strlen(word);
    return s.n >= n && memcmp(s.s, word, n) == 0;
}

/* ---- what a program defines ---- */

/* True if @at, the place of a name in the program, comes after "def " or "class ", or starts a line
 * and is assigned. */
static bool is_definition(span program, const char *at, size_t n) {
    const char *end = program.s + program.n, *next = at + n;
    size_t before = (size_t)(at - program.s);
    if (next < end && in_name(*next))
        return false;
    if ((before >= 4 && memcmp(at - 4, "def ", 4) == 0) ||
        (before >= 6 && memcmp(at - 6, "class ", 6) == 0))
        return true;
    while (next < end && *next == ' ')
        next++;
    return (!before || at[-1] == '\n') && end - next > 1 && next[0] == '=' && next[1] != '=';
}

bool program_defines(span program, span name) {
    for (size_t at = 0; name.n && at < program.n;) {
        const char *found = memmem(program.s + at, program.n - at, name.s, name.n);
        if (!found)
            return false;
        if (is_definition(program, found, name.n))
            return true;
        at = (size_t)(found - program.s) + name.n;
    }
    return false;
}

/* Sets *name to the next name in @code that a "(" follows, as in a call. */
static bool next_call(span code, size_t *at, span *name) {
    for (size_t i = *at; i < code.n;) {
        size_t from = i;
        while (i < code.n && in_name(code.s[i]))
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

static bool defines_a_call(span program, span tests) {
    span name;
    for (size_t at = 0; next_call(tests, &at, &name);)
        if (program_defines(program, name))
            return true;
    return false;
}

static bool talks(span program) {
    static const char *const words[] = {"print(", "input(", "sys.std", "open(0", "stdin", "stdout"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(program.s, program.n, words[i], strlen(words[i])))
            return true;
    return false;
}

static span text_of(const char *s) {
    return (span){s, strlen(s)};
}

/* True if the code is what the tests need: see program_find(). */
static bool suits(span code, const code_tests *t) {
    if (t->entry)
        return program_defines(code, text_of(t->entry));
    if (t->fn_name)
        return program_defines(code, text_of(t->fn_name));
    return t->after ? defines_a_call(code, text_of(t->after)) : talks(code);
}

/* ---- blocks ---- */

static bool may_be_python(span language) {
    static const char *const names[] = {"python", "py", "cpython", "pypy"};
    bool may = language.n == 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && !may; i++) {
        size_t n = strlen(names[i]);
        may = language.n >= n && strncasecmp(language.s, names[i], n) == 0 &&
              (language.n == n || !(in_name(language.s[n]) && language.s[n] > '9'));
    }
    return may;
}

/* The block to take; text.s is NULL if there is none. */
static fenced_block choose(span text, const code_tests *tests, bool complete) {
    fenced_block b, suitable = {0}, python = {0}, last = {0};
    for (size_t at = 0; fenced_next(text, &at, &b);) {
        if (!b.closed && !complete)
            continue;
        last = b;
        if (!may_be_python(b.language))
            continue;
        python = b;
        if (suits(b.text, tests))
            suitable = b;
    }
    return suitable.text.s ? suitable : python.text.s ? python : last;
}

/* Appends the code without up to @indent bytes of white space at the start of each line. */
static void append_dedented(buf *out, span code, size_t indent) {
    for (size_t at = 0; at < code.n;) {
        const char *line = code.s + at, *end = memchr(line, '\n', code.n - at);
        size_t n = end ? (size_t)(end - line) + 1 : code.n - at, drop = 0;
        while (drop < indent && drop < n && (line[drop] == ' ' || line[drop] == '\t'))
            drop++;
        (void)buf_append(out, line + drop, n - drop);
        at += n;
    }
}

/* ---- code without fences ---- */

static bool starts_code(span line) {
    static const char *const words[] = {"def ", "class ", "import ", "from ", "async def ", "@"};
    static pattern assignment = {.regex = "^[A-Za-z_]\\w*+\\s*+=\\s*+[^=\\s]"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (starts_with(line, words[i]))
            return true;
    return pattern_find(&assignment, line, 0, NULL);
}

/* A line that may go on with code: indented, empty, a comment, a statement, a call or a closing
 * bracket. A sentence of prose is none of these. */
static bool continues_code(span line) {
    static pattern code = {
        .regex = "^(?:\\s|$|[#@)\\]}]|\"\"\"|'''"
                 "|(?:if|elif|while|for|with|try|else|except|finally|match)\\b[^\\n]*:\\s*(?:#|$)"
                 "|(?:return|raise|assert|pass|break|continue|del|global|yield|await)\\b"
                 "|[A-Za-z_][\\w.]*(?:\\[[^\\n]*\\])?(?:\\s*,\\s*[A-Za-z_][\\w.]*)*\\s*"
                 "(?::[^\\n=]+)?(?:[-+*/%&|^@]|//|\\*\\*|<<|>>)?=[^=]|[A-Za-z_][\\w.]*\\()"};
    return starts_code(line) || pattern_find(&code, line, 0, NULL);
}

/* Toggles *quote ('"', '\'' or 0) for each triple quote on the line. */
static void follow_quotes(span line, char *quote) {
    for (size_t i = 0; i + 2 < line.n; i++) {
        char c = line.s[i];
        bool triple = (c == '"' || c == '\'') && line.s[i + 1] == c && line.s[i + 2] == c;
        if (!triple || (*quote && *quote != c))
            continue;
        *quote = *quote ? '\0' : c;
        i += 2;
    }
}

/* The first run of lines of code that suits the tests; n is 0 if there is none. */
static span unfenced(span text, const code_tests *tests) {
    const char *start = NULL, *end = NULL;
    char quote = '\0';
    for (size_t at = 0; at <= text.n;) {
        const char *s = text.s + at, *newline = at < text.n ? memchr(s, '\n', text.n - at) : NULL;
        span line = {s, newline ? (size_t)(newline - s) : text.n - at};
        bool code = quote || (start ? continues_code(line) : starts_code(line));
        if (code) {
            start = start ? start : s;
            end = s + line.n;
            follow_quotes(line, &quote);
        }
        at += line.n + 1;
        if (start && (!code || at > text.n)) {
            span run = {start, (size_t)(end - start)};
            if (suits(run, tests))
                return run;
            start = NULL;
            quote = '\0';
        }
    }
    return (span){NULL, 0};
}

const char *program_find(span text, const code_tests *tests, bool complete, buf *out) {
    fenced_block b = choose(text, tests, complete);
    if (b.text.s) {
        append_dedented(out, b.text, b.indent);
        return b.closed ? "fenced" : "open_fence";
    }
    size_t at = 0;
    span code = complete && !fenced_next(text, &at, &b) ? unfenced(text, tests) : (span){NULL, 0};
    if (!code.n)
        return NULL;
    (void)buf_append(out, code.s, code.n);
    return "unfenced";
}
