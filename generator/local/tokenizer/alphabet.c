/* The byte-level alphabet. Printable Latin-1 characters represent themselves; the other 68 bytes
 * are represented by the characters from U+0100 on. */
#include "generator/local/tokenizer/tokenizer_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static uint32_t char_of_byte(unsigned char byte) {
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte >= 0x7F && byte <= 0xA0)
        return 0x121u + byte - 0x7F;
    return byte == 0xAD ? 0x143u : byte;
}

static int byte_of_char(uint32_t c) {
    if (c >= 0x100 && c <= 0x120)
        return (int)c - 0x100;
    if (c >= 0x121 && c <= 0x142)
        return (int)c - 0x121 + 0x7F;
    if (c == 0x143)
        return 0xAD;
    return c < 0x100 && char_of_byte((unsigned char)c) == c ? (int)c : -1;
}

/* Encodes a character as UTF-8. The alphabet ends at U+0143, so this takes one or two bytes. */
static size_t put_char(char out[3], uint32_t c) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = (char)(0xC0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3F));
    return 2;
}

void byte_alphabet_append(buf *out, unsigned char byte) {
    char c[3];
    (void)buf_append(out, c, put_char(c, char_of_byte(byte)));
}

bool byte_alphabet_decode(buf *out, const char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        unsigned char lead = (unsigned char)s[i];
        size_t len = text_utf8_len(s + i, n - i);
        if (len != 1 && len != 2)
            return false;
        uint32_t c = len == 1 ? lead : (lead & 0x1Fu) << 6 | ((unsigned char)s[i + 1] & 0x3Fu);
        int byte = byte_of_char(c);
        if (byte < 0)
            return false;
        char one = (char)byte;
        (void)buf_append(out, &one, 1);
        i += len;
    }
    return true;
}

void tokenizer_find_bytes(tokenizer *t) {
    for (int b = 0; b < 256; b++) {
        char name[8];
        size_t n = put_char(name, char_of_byte((unsigned char)b));
        if (!t->byte_level)
            n = (size_t)snprintf(name, sizeof name, "<0x%02X>", (unsigned)b);
        t->byte_id[b] = vocab_find(&t->vocab, name, n);
    }
}
