#include "evals/ifeval/letters.h"

#include "base/text.h"

uint32_t letters_next(span text, size_t *at) {
    const unsigned char *s = (const unsigned char *)text.s + *at;
    size_t n = text_utf8_len(text.s + *at, text.n - *at);
    *at += n ? n : 1;
    switch (n) {
    case 2:
        return (uint32_t)(s[0] & 0x1f) << 6 | (s[1] & 0x3f);
    case 3:
        return (uint32_t)(s[0] & 0x0f) << 12 | (uint32_t)(s[1] & 0x3f) << 6 | (s[2] & 0x3f);
    case 4:
        return (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3f) << 12 |
               (uint32_t)(s[2] & 0x3f) << 6 | (s[3] & 0x3f);
    default:
        return s[0];
    }
}

typedef struct {
    uint32_t from, to;
    uint32_t step; /* 2: only every second character is a capital */
} range;

bool letters_is_upper(uint32_t c) {
    static const range capitals[] = {
        {'A', 'Z', 1},     {0xc0, 0xd6, 1},     {0xd8, 0xde, 1},     {0x100, 0x136, 2},
        {0x139, 0x147, 2}, {0x14a, 0x178, 2},   {0x179, 0x17d, 2},   {0x386, 0x386, 1},
        {0x388, 0x38f, 1}, {0x391, 0x3ab, 1},   {0x400, 0x42f, 1},   {0x460, 0x480, 2},
        {0x48a, 0x4be, 2}, {0x4c0, 0x4c0, 1},   {0x4c1, 0x4cd, 2},   {0x4d0, 0x52e, 2},
        {0x531, 0x556, 1}, {0x1e00, 0x1e94, 2}, {0x1e9e, 0x1efe, 2},
    };
    for (size_t i = 0; i < sizeof capitals / sizeof *capitals; i++)
        if (c >= capitals[i].from && c <= capitals[i].to &&
            (c - capitals[i].from) % capitals[i].step == 0)
            return true;
    return false;
}

/* White space in the sense of Python's str.isspace(). */
static bool is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

span letters_trim(span text) {
    size_t start = text.n, end = 0;
    for (size_t at = 0; at < text.n;) {
        size_t here = at;
        if (is_space(letters_next(text, &at)))
            continue;
        start = here < start ? here : start;
        end = at;
    }
    return end > start ? (span){text.s + start, end - start} : (span){text.s, 0};
}
