#include "evals/letter_glyph.h"

/* Each number is the first of 26 consecutive characters, from A to Z or from a to z. */
static const unsigned framed_rows[] = {0x249C, 0x24B6, 0x24D0, 0x1F110, 0x1F130, 0x1F150, 0x1F170};
static const unsigned wide_rows[] = {0xFF21, 0xFF41}; /* A-Z, a-z */
enum { kMath = 0x1D400, kMathEnd = 0x1D6A4 };         /* A-Z, a-z, A-Z, ... */

/* Decodes three or four bytes of UTF-8. Returns their number; 0 for other lengths. */
static size_t decode(span s, unsigned *code) {
    const unsigned char *b = (const unsigned char *)s.s;
    size_t n = s.n && b[0] >= 0xF0 && b[0] < 0xF5 ? 4 : s.n && (b[0] & 0xF0) == 0xE0 ? 3 : 0;
    if (!n || s.n < n)
        return 0;
    *code = n == 4 ? b[0] & 7U : b[0] & 15U;
    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (b[i] & 0x3FU);
    }
    return n;
}

size_t letter_glyph(span s, char *letter, bool *framed) {
    unsigned code;
    size_t n = decode(s, &code);
    if (!n)
        return 0;
    *framed = false;
    if (code >= kMath && code < kMathEnd) {
        unsigned i = (code - kMath) % 52;
        *letter = (char)(i < 26 ? 'A' + i : 'a' + i - 26);
        return n;
    }
    for (unsigned i = 0; i < 2; i++)
        if (code >= wide_rows[i] && code < wide_rows[i] + 26) {
            *letter = (char)((i ? 'a' : 'A') + (code - wide_rows[i]));
            return n;
        }
    *framed = true;
    for (size_t i = 0; i < sizeof framed_rows / sizeof *framed_rows; i++)
        if (code >= framed_rows[i] && code < framed_rows[i] + 26) {
            *letter = (char)('A' + (code - framed_rows[i]));
            return n;
        }
    return 0;
}
