/* Finds answers of several values, each of which has a name and stands on a line of its own or in
 * bold. */
#include <string.h>

#include "evals/answer_parts.h"

enum { kLines = 8, kText = 400 };

/* A line that gives a value to a name: "x_1 = 2", "- Standard deviation: **3**". The groups are the
 * name and the value. */
static bool is_named_value(span line, span groups[PATTERN_GROUPS]) {
    static pattern item = {
        .regex = "(?i)^[ \\t>]*+(?:(?:[-*+]|\u2022|[0-9]\\.) ++)?[$*_\\s]*+"
                 "((?:\\\\?[a-z]+(?:_\\{?[a-z0-9]+\\}?|\xE2\x82[\x80-\x89])?(?: [a-z]{2,})?|"
                 "[\xCE\xCF][\x80-\xBF](?:_[0-9]|\xE2\x82[\x80-\x89])?))[$*_]* *+[:=]"
                 "[*_]*+ *+([^=:\\n]{1,60})$"};
    return pattern_find(&item, line, 0, groups);
}

static bool same(span a, span b) {
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

/* True if the names are one letter with different indices, as those of roots are. */
static bool are_indexed(const span *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char mark = names[i].n > 1 ? names[i].s[1] : ' ';
        if (*names[i].s != *names[0].s || (mark != '_' && (unsigned char)mark < 0x80))
            return false;
    }
    return true;
}

void answer_add_lines(found_answer *a, span text) {
    span names[kLines], groups[PATTERN_GROUPS], rest = span_tail(text, kText);
    const char *start = NULL, *end = rest.s + rest.n;
    size_t n = 0;
    for (bool more = true; more && n < kLines && rest.n;) {
        const char *feed = memrchr(rest.s, '\n', rest.n);
        span line = span_trim(feed ? span_from(rest, feed + 1) : rest);
        more = !line.n || is_named_value(line, groups);
        for (size_t i = 0; more && line.n && i < n; i++)
            more = !same(names[i], groups[1]); /* "x = 2 + 3" and "x = 5" are steps */
        if (more && line.n) {
            names[n++] = groups[1];
            start = line.s;
        }
        rest.n = feed ? (size_t)(feed - rest.s) : 0;
    }
    if (n >= 2)
        answer_add(a, are_indexed(names, n) ? "lines" : "named_lines",
                   span_trim((span){start, (size_t)(end - start)}));
}

void answer_add_marked_list(found_answer *a, span text, span sentence) {
    static pattern list = {
        .regex = "\\*\\*[^*\\n]+\\*\\*(?:(?:, and|,| and| or|;) \\*\\*[^*\\n]+\\*\\*)+[\\s.!]*$"};
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&list, sentence, 0, groups))
        return;
    extraction x = {"marked_list", groups[0]};
    span before = {sentence.s, (size_t)(groups[0].s - sentence.s)};
    if (answer_is_end(text, &x) && !answer_is_limited(before))
        answer_add(a, x.rule, x.answer);
}
