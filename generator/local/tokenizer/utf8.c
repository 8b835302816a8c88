#include "generator/local/tokenizer/utf8.h"

#include "base/text.h"

/* The length of a sequence that starts with @lead, and the range of its second byte; 0 if @lead
 * can't start one. */
static size_t expected(unsigned char lead, unsigned char *low, unsigned char *high) {
    *low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    *high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (lead < 0xC2 || lead > 0xF4)
        return 0;
    return lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
}

/* The length of the maximal subpart at @s, where no valid sequence starts. *cut becomes true if @s
 * ends inside a sequence that is valid so far. */
static size_t subpart(const char *s, size_t n, bool *cut) {
    const unsigned char *p = (const unsigned char *)s;
    unsigned char low, high;
    size_t want = expected(p[0], &low, &high), i = 1;
    while (i < want && i < n && p[i] >= low && p[i] <= high) {
        low = 0x80;
        high = 0xBF;
        i++;
    }
    *cut = i < want && i == n;
    return i;
}

size_t utf8_append_repaired(buf *out, const char *s, size_t n, bool more) {
    size_t at = 0, good = 0; /* [good, at) is well-formed and not yet appended */
    bool cut = false;
    while (at < n) {
        size_t len = text_utf8_len(s + at, n - at);
        if (len) {
            at += len;
            continue;
        }
        (void)buf_append(out, s + good, at - good);
        len = subpart(s + at, n - at, &cut);
        if (cut && more)
            return at;
        (void)buf_puts(out, "\xEF\xBF\xBD");
        at += len;
        good = at;
    }
    (void)buf_append(out, s + good, at - good);
    return at;
}
