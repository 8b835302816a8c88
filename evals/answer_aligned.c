/* Finds the result of a derivation that ends a response: the 4 of "\begin{align*} x &= 1 + 3 \\ &=
 * 4. \end{align*}" */
#include <string.h>

#include "evals/answer_parts.h"

#define ENVIRONMENT "(?:align|aligned|gather|gathered|equation|eqnarray|split|multline)\\*?"

static bool starts(span s, const char *prefix) {
    size_t n = strlen(prefix);
    return s.n >= n && memcmp(s.s, prefix, n) == 0;
}

/* The text after the last sign of equality or congruence and after the last line break, without
 * those in braces and in environments such as pmatrix. *equal is set if there is such a sign in the
 * last line. */
static span last_side(span body, bool *equal) {
    size_t side = 0;
    int depth = 0;
    for (size_t i = 0; i < body.n; i++) {
        span rest = {body.s + i, body.n - i};
        size_t skip = starts(rest, "\\\\")               ? 2
                      : *rest.s == '='                   ? 1
                      : starts(rest, "\\equiv")          ? strlen("\\equiv")
                      : starts(rest, "\\Rightarrow")     ? strlen("\\Rightarrow")
                      : starts(rest, "\\Longrightarrow") ? strlen("\\Longrightarrow")
                                                         : 0;
        depth +=
            (*rest.s == '{') - (*rest.s == '}') + starts(rest, "\\begin{") - starts(rest, "\\end{");
        if (skip && depth == 0) {
            *equal = *rest.s == '=' || starts(rest, "\\equiv");
            side = i + skip;
        }
        i += skip > 1 ? skip - 1 : 0;
    }
    return (span){body.s + side, body.n - side};
}

void answer_add_aligned(found_answer *a, span text) {
    static pattern begin = {.regex = "\\\\begin\\{" ENVIRONMENT "\\}"};
    static pattern end = {.regex = "\\\\end\\{" ENVIRONMENT "\\}(?:\\s*\\\\end\\{" ENVIRONMENT
                                   "\\})?\\s*(?:\\\\\\]|\\$\\$)?[\\s.]*$"};
    static pattern around = {.regex = "^[\\s&]*((?:.|\\n)*?)(?:\\\\qquad|\\\\quad)*"
                                      "(?:\\s*\\\\pmod\\s*(?:\\{[^{}]*\\}|[0-9]))?[\\s.,&]*$"};
    static pattern other = {.regex = "[<>&]|\\\\(?:le|ge|leq|geq|ne|neq|approx|to)(?![a-z])"};
    enum { kEnd = 100, kBody = 4000, kSide = 200 };
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&end, span_tail(text, kEnd), 0, groups))
        return;
    span body = span_tail((span){text.s, (size_t)(groups[0].s - text.s)}, kBody);
    if (!pattern_find_last(&begin, body, groups))
        return;
    bool equal = false;
    span side = last_side(span_from(body, groups[0].s + groups[0].n), &equal);
    if (equal && side.n <= kSide && pattern_find(&around, side, 0, groups) &&
        !pattern_find(&other, groups[1], 0, NULL))
        answer_add(a, "aligned", groups[1]);
}
