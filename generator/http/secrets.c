#include "generator/http/secrets.h"

#include <string.h>

#include "base/text.h"

enum { kSecretPart = 8 }; /* a message must not quote this many leading bytes of a secret */

/* The secret in a header line: the API key, or the value of another header. */
static const char *secret_of(const char *line) {
    if (text_starts(line, SECRETS_BEARER))
        return line + strlen(SECRETS_BEARER);
    const char *value = strchr(line, ':');
    return value ? value + 1 + strspn(value + 1, " ") : line;
}

/* How many bytes at the start of @text match the start of @secret. */
static size_t match(const char *text, const char *secret) {
    size_t n = 0;
    while (secret[n] && text[n] == secret[n])
        n++;
    return n;
}

/* The length of the longest part of a secret that @text begins with; 0 = none. Parts of at least
 * @part bytes count. If @part is 0, only whole secrets of at least kSecretPart bytes count, because
 * shorter ones may be ordinary words. */
static size_t secret_at(secret_lines s, const char *text, size_t part) {
    size_t longest = 0;
    for (int i = 0; i < s.n; i++) {
        const char *secret = secret_of(s.lines[i]);
        size_t n = match(text, secret), len = strlen(secret);
        bool found = part ? n >= (len < part ? len : part) : n == len && n >= kSecretPart;
        longest = found && n > longest ? n : longest;
    }
    return longest;
}

static void append_masked(secret_lines s, const char *text, size_t part, buf *out) {
    while (*text) {
        size_t n = secret_at(s, text, part);
        if (n)
            (void)buf_puts(out, "***");
        else
            (void)buf_append(out, text, n = 1);
        text += n;
    }
}

void secrets_mask_message(secret_lines s, const char *message, buf *out) {
    append_masked(s, message, kSecretPart, out);
}

const char *secrets_mask_text(secret_lines s, const char *text, buf *masked) {
    bool found = false;
    for (int i = 0; text && i < s.n; i++) {
        const char *secret = secret_of(s.lines[i]);
        found |= strlen(secret) >= kSecretPart && strstr(text, secret) != NULL;
    }
    if (!found)
        return text;
    buf_clear(masked);
    append_masked(s, text, 0, masked);
    return buf_str(masked);
}
