#include "evals/code/html_code.h"

#include <string.h>

/* HTML entities that occur in code, and the characters that they stand for. */
static const struct {
    const char *name, *text;
} entities[] = {{"&lt;", "<"},  {"&gt;", ">"},   {"&amp;", "&"}, {"&quot;", "\""},
                {"&#39;", "'"}, {"&#x27;", "'"}, {"&nbsp;", " "}};

static void append_decoded(buf *out, span code) {
    for (size_t i = 0, n; i < code.n; i += n) {
        const char *text = code.s + i;
        n = 1;
        for (size_t k = 0; k < sizeof entities / sizeof *entities; k++) {
            size_t name = strlen(entities[k].name);
            if (code.n - i >= name && memcmp(code.s + i, entities[k].name, name) == 0) {
                text = entities[k].text;
                n = name;
            }
        }
        (void)buf_append(out, text, 1);
    }
}

/* Moves *at past the next piece and sets *code to it. *block: it is between <pre>. False if there
 * is none. */
static bool next_piece(span text, size_t *at, span *code, bool *block) {
    static pattern start = {.regex =
                                "<(?:(pre)|code)(?:\\s[^<>]*+)?+>(?:\\s*+<code(?:\\s[^<>]*+)?+>)?+",
                            .flags = PATTERN_CASELESS};
    static pattern end = {.regex = "</(?:pre|code)>", .flags = PATTERN_CASELESS};
    span opening[PATTERN_GROUPS], closing[PATTERN_GROUPS];
    if (*at >= text.n || !pattern_find(&start, text, *at, opening))
        return false;
    const char *from = opening[0].s + opening[0].n;
    if (!pattern_find(&end, text, (size_t)(from - text.s), closing))
        return false;
    *block = opening[1].n > 0;
    *code = (span){from, (size_t)(closing[0].s - from)};
    *at = (size_t)(closing[0].s - text.s) + closing[0].n;
    return true;
}

bool html_code_next(span text, size_t *at, buf *out) {
    span code;
    bool block;
    while (next_piece(text, at, &code, &block))
        if (block || memchr(code.s, '\n', code.n)) {
            append_decoded(out, code);
            return !out->failed;
        }
    return false;
}
