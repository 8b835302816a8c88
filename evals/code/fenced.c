#include "evals/code/fenced.h"

#include <string.h>

#include "base/text.h"

static const char kTicks[] = "```";

static bool holds_ticks(span line) {
    return memmem(line.s, line.n, kTicks, 3) != NULL;
}

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
        if (holds_ticks(line)) {
            before = last;
            last = line;
        }
    if (!before.s)
        return false;
    *out = (extraction){"fenced", between(before, last)};
    return true;
}

bool fenced_block(span text, extraction *out) {
    span line, opening = {NULL, 0};
    bool found = false;
    for (size_t at = 0; next_line(text, &at, &line);) {
        span fence = span_trim(line);
        if (fence.n < 3 || memcmp(fence.s, kTicks, 3) != 0)
            continue;
        bool bare = fence.n == 3;
        if (opening.s && bare) {
            *out = (extraction){"fenced", between(opening, line)};
            found = true;
            opening.s = NULL;
        } else if (!memmem(fence.s + 3, fence.n - 3, kTicks, 3)) {
            opening = line;
        }
    }
    return found;
}
