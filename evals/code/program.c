#include "evals/code/program.h"

#include <string.h>

#include "evals/code/fenced.h"
#include "evals/code/html_code.h"
#include "evals/code/program_fit.h"
#include "evals/code/python_text.h"

/* ---- choosing among pieces of code ---- */

/* The order of preference among the pieces of code of a response. Of two equal ones, the later one
 * is preferred. */
typedef enum {
    RANK_NONE,
    RANK_OTHER,  /* a block in another language */
    RANK_PYTHON, /* a block that may be Python. Larger numbers are blocks that fit the task, a
                    better fit having a larger number */
} rank;

typedef struct {
    buf code; /* without the quotation marks and the indentation that precede the block's lines */
    int rank;
    bool closed;
} candidate;

static void candidate_release(candidate *c) {
    buf_release(&c->code);
}

/* Replaces *best by *c, which becomes empty, unless *best is better. */
static void keep_better(candidate *best, candidate *c) {
    if (c->rank >= best->rank) {
        candidate_release(best);
        *best = *c;
        *c = (candidate){0};
    }
    candidate_release(c);
}

/* Removes up to @indent bytes of white space from the start of each line. */
static void dedent(buf *code, size_t indent) {
    char *to = code->data;
    size_t drop = indent;
    for (size_t i = 0; i < code->len; i++) {
        const char c = code->data[i];
        bool blank = c == ' ' || c == '\t';
        if (drop && blank) {
            drop--;
            continue;
        }
        drop = c == '\n' ? indent : 0;
        *to++ = c;
    }
    if (to) {
        *to = '\0';
        code->len = (size_t)(to - code->data);
    }
}

/* How well a candidate fits. Code that defines what it should, but is indented as a whole, loses
 * this indentation. */
static program_fit fit_of(candidate *c, const code_tests *tests) {
    buf bare = {0};
    program_fit fit = FIT_NONE;
    if (python_bare((span){buf_str(&c->code), c->code.len}, &bare)) {
        span b = {buf_str(&bare), bare.len};
        fit = program_fit_of((span){buf_str(&c->code), c->code.len}, b, tests);
        if (fit == FIT_FULL && python_indent(b))
            dedent(&c->code, python_indent(b));
    }
    c->code.failed = c->code.failed || bare.failed;
    buf_release(&bare);
    return fit;
}

/* ---- code in blocks ---- */

typedef enum { LANGUAGE_PYTHON, LANGUAGE_UNKNOWN, LANGUAGE_OTHER } language;

/* LANGUAGE_UNKNOWN: a name that says little, such as "text". */
static language language_of(span name) {
    static pattern python = {.regex = "^(?:i|c|micro)?py(?:thon|py)?(?:$|[^A-Za-z])",
                             .flags = PATTERN_CASELESS};
    static pattern vague = {.regex = "^(?:text|txt|plain|plaintext|code|solution|answer)$",
                            .flags = PATTERN_CASELESS};
    if (!name.n || pattern_find(&python, name, 0, NULL))
        return LANGUAGE_PYTHON;
    return pattern_find(&vague, name, 0, NULL) ? LANGUAGE_UNKNOWN : LANGUAGE_OTHER;
}

/* Appends the code of a block without what its lines have in common with its fence: the marks of a
 * quotation, then up to b->indent bytes of white space. */
static void append_block(buf *out, const fenced_block *b) {
    for (size_t at = 0; at < b->text.n;) {
        const char *line = b->text.s + at, *end = memchr(line, '\n', b->text.n - at);
        size_t n = end ? (size_t)(end - line) + 1 : b->text.n - at;
        size_t drop = fenced_quotes((span){line, n}, b->quotes), blanks = 0;
        while (blanks < b->indent && drop < n && (line[drop] == ' ' || line[drop] == '\t')) {
            blanks++;
            drop++;
        }
        (void)buf_append(out, line + drop, n - drop);
        at += n;
    }
}

/* Finds the best block. */
static void find_block(span text, const code_tests *tests, bool complete, candidate *best) {
    fenced_block b;
    for (size_t at = 0; fenced_next(text, &at, &b);) {
        if (!b.closed && !complete)
            continue;
        candidate c = {.closed = b.closed};
        language lang = language_of(b.language);
        append_block(&c.code, &b);
        int fit = lang == LANGUAGE_OTHER ? FIT_NONE : (int)fit_of(&c, tests);
        c.rank = lang == LANGUAGE_PYTHON || fit ? (int)RANK_PYTHON + fit : RANK_OTHER;
        keep_better(best, &c);
    }
}

/* ---- code between tags ---- */

/* Finds the best piece of code between HTML tags, if one fits. */
static void find_tagged(span text, const code_tests *tests, candidate *best) {
    candidate c = {.closed = true};
    for (size_t at = 0; html_code_next(text, &at, &c.code); c = (candidate){.closed = true}) {
        program_fit fit = fit_of(&c, tests);
        c.rank = fit ? (int)RANK_PYTHON + (int)fit : RANK_NONE;
        keep_better(best, &c);
    }
    candidate_release(&c);
}

/* ---- code without fences ---- */

static bool starts_code(span line) {
    static pattern statement = {
        .regex = "^(?:(?:async\\s++)?def\\s++\\w++\\s*+[(\\[]|class\\s++\\w++\\s*+[:(\\[]|@\\w"
                 "|from\\s++[\\w.]++\\s++import\\b|import\\s++[\\w.]++\\s*+(?:$|[,;#]|as\\b)"
                 "|for\\b[^\\n]*\\sin\\s[^\\n]*:\\s*(?:#|$)|print\\([^\\n]*\\)\\s*+$"
                 "|[A-Za-z_]\\w*+(?:\\s*+,\\s*+[A-Za-z_]\\w*+)*+\\s*+=\\s*+[^=\\s])"};
    return pattern_find(&statement, line, 0, NULL);
}

/* A line that may go on with code: indented, empty, a comment, a statement, a call or a closing
 * bracket. A sentence of prose is none of these. */
static bool continues_code(span line) {
    static pattern code = {
        .regex = "^(?:\\s|$|[#@)\\]}]|\"\"\"|'''"
                 "|(?:if|elif|while|for|with|try|else|except|finally|match)\\b[^\\n]*:\\s*(?:#|$)"
                 "|(?:if|elif|while|for|else)\\b[^\\n]*:\\s*(?:return|raise|break|continue|pass|"
                 "yield)\\b"
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

/* A run of lines of code. */
typedef struct {
    const char *start, *end; /* start is NULL before the first line */
    char quote;              /* within a text of several lines: its quote, else 0 */
} code_run;

/* Takes a line into the run if it is code. Returns false if it is not. */
static bool take_line(code_run *run, span line, bool first) {
    size_t indent = 0;
    while (indent < line.n && (line.s[indent] == ' ' || line.s[indent] == '\t'))
        indent++;
    const span rest = {line.s + indent, line.n - indent};
    bool starts = rest.n && (starts_code(rest) || (first && indent && continues_code(rest)));
    bool code = run->quote || (run->start ? continues_code(line) : starts);
    if (!code)
        return false;
    if (!run->start)
        run->start = line.s;
    run->end = line.s + line.n;
    follow_quotes(line, &run->quote);
    return true;
}

/* Ends a run and keeps its code if it fits. */
static void end_run(code_run *run, const code_tests *tests, bool first, candidate *best) {
    candidate c = {.closed = true};
    if (run->start)
        (void)buf_append(&c.code, run->start, (size_t)(run->end - run->start));
    program_fit fit = run->start ? fit_of(&c, tests) : FIT_NONE;
    /* A continuation can only be recognised at the start of a response. */
    bool fits = fit && (fit != FIT_CONTINUES || first || !tests->entry);
    c.rank = fits ? (int)RANK_PYTHON + (int)fit : RANK_NONE;
    *run = (code_run){0};
    if (fits)
        keep_better(best, &c);
    candidate_release(&c);
}

/* Finds the best run of lines of code, if one fits. */
static void find_unfenced(span text, const code_tests *tests, candidate *best) {
    code_run run = {0};
    bool first = true; /* no line of the text before the run has anything but white space */
    for (size_t at = 0; at <= text.n;) {
        const char *s = text.s + at, *newline = at < text.n ? memchr(s, '\n', text.n - at) : NULL;
        span line = {s, newline ? (size_t)(newline - s) : text.n - at};
        at += line.n + 1;
        if (take_line(&run, line, first))
            continue;
        end_run(&run, tests, first, best);
        first = first && !span_trim(line).n;
    }
    end_run(&run, tests, first, best);
}

const char *program_find(span text, const code_tests *tests, bool complete, buf *out) {
    candidate block = {0}, run = {0}, tagged = {0};
    const char *rule = NULL;
    find_block(text, tests, complete, &block);
    if (complete && block.rank < (int)RANK_PYTHON + (int)FIT_FULL)
        find_unfenced(text, tests, &run);
    if (block.rank < (int)RANK_PYTHON + (int)FIT_FULL)
        find_tagged(text, tests, &tagged);
    const candidate *c = tagged.rank >= run.rank ? &tagged : &run;
    c = c->rank > block.rank ? c : &block;
    if (c->rank) {
        (void)buf_append(out, buf_str(&c->code), c->code.len);
        rule = c == &tagged ? "tagged"
               : c == &run  ? "unfenced"
               : c->closed  ? "fenced"
                            : "open_fence";
    }
    out->failed = out->failed || block.code.failed || run.code.failed || tagged.code.failed;
    candidate_release(&block);
    candidate_release(&run);
    candidate_release(&tagged);
    return rule;
}
