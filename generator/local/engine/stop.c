#include "generator/local/engine/stop.h"

#include <string.h>

static size_t longest_of(const stop_strings *s) {
    size_t longest = 0;
    for (int i = 0; i < s->n; i++) {
        size_t len = strlen(s->text[i]);
        longest = len > longest ? len : longest;
    }
    return longest;
}

bool stop_cut(const stop_strings *s, buf *text, size_t seen) {
    size_t longest = longest_of(s), from = seen < longest ? 0 : seen - longest + 1;
    const char *first = NULL;
    for (int i = 0; i < s->n && text->len > from; i++) {
        size_t len = strlen(s->text[i]);
        const char *at = len ? memmem(text->data + from, text->len - from, s->text[i], len) : NULL;
        first = at && (!first || at < first) ? at : first;
    }
    if (!first)
        return false;
    text->len = (size_t)(first - text->data);
    text->data[text->len] = '\0';
    return true;
}

size_t stop_settled(const stop_strings *s, const char *text, size_t n) {
    size_t held =
        0; /* length of the longest suffix of the text that is a prefix of a stop string */
    for (int i = 0; i < s->n; i++) {
        size_t len = strlen(s->text[i]), most = len ? len - 1 : 0;
        for (size_t k = most < n ? most : n; k > held; k--)
            if (memcmp(text + n - k, s->text[i], k) == 0)
                held = k;
    }
    return n - held;
}
