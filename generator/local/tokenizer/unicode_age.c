#include "generator/local/tokenizer/unicode_age.h"

typedef enum {
    YOUNG_LU,
    YOUNG_LL,
    YOUNG_LM,
    YOUNG_LO,
    YOUNG_HAN, /* Lo, and of that script */
    YOUNG_MN,
    YOUNG_MC,
    YOUNG_ND,
    YOUNG_NO,
    YOUNG_PD,
    YOUNG_PO,
    YOUNG_SM,
    YOUNG_SO,
    YOUNG_CF,
    YOUNG_KINDS
} kind;

/* An old character of each kind: of three bytes below U+4E00 and above (where DeepSeek-V2's pattern has a
 * range end), and of four. None that patterns name on their own. */
static const unsigned stand_ins[YOUNG_KINDS][3] = {
    [YOUNG_LU] = {0x2C00, 0xA640, 0x10400},  [YOUNG_LL] = {0x2C30, 0xA641, 0x10428},
    [YOUNG_LM] = {0x1D2C, 0xA717, 0x16B40},  [YOUNG_LO] = {0x1200, 0xA000, 0x10330},
    [YOUNG_HAN] = {0x3400, 0x4E00, 0x20000}, [YOUNG_MN] = {0x1DC0, 0xA66F, 0x1D167},
    [YOUNG_MC] = {0x0903, 0xA823, 0x11000},  [YOUNG_ND] = {0x0966, 0xA620, 0x104A0},
    [YOUNG_NO] = {0x2070, 0xA830, 0x10107},  [YOUNG_PD] = {0x2010, 0xFE58, 0x10EAD},
    [YOUNG_PO] = {0x10FB, 0xA60D, 0x10100},  [YOUNG_SM] = {0x2200, 0xFE62, 0x1D6C1},
    [YOUNG_SO] = {0x2300, 0xA828, 0x1F600},  [YOUNG_CF] = {0x200B, 0xFEFF, 0xE0001},
};

/* Found by generator/test/tokenizer/unicode_age.py. */
static const struct {
    unsigned first, last;
    kind kind;
} ranges[] = {
    {0x0897, 0x0897, YOUNG_MN},    {0x0CF3, 0x0CF3, YOUNG_MC},    {0x0ECE, 0x0ECE, YOUNG_MN},
    {0x1B4E, 0x1B4F, YOUNG_PO},    {0x1B7F, 0x1B7F, YOUNG_PO},    {0x1C89, 0x1C89, YOUNG_LU},
    {0x1C8A, 0x1C8A, YOUNG_LL},    {0x2427, 0x2429, YOUNG_SO},    {0x2FFC, 0x2FFF, YOUNG_SO},
    {0x31E4, 0x31E5, YOUNG_SO},    {0x31EF, 0x31EF, YOUNG_SO},    {0xA7CB, 0xA7CC, YOUNG_LU},
    {0xA7CD, 0xA7CD, YOUNG_LL},    {0xA7DA, 0xA7DA, YOUNG_LU},    {0xA7DB, 0xA7DB, YOUNG_LL},
    {0xA7DC, 0xA7DC, YOUNG_LU},    {0x105C0, 0x105F3, YOUNG_LO},  {0x10D40, 0x10D49, YOUNG_ND},
    {0x10D4A, 0x10D4D, YOUNG_LO},  {0x10D4E, 0x10D4E, YOUNG_LM},  {0x10D4F, 0x10D4F, YOUNG_LO},
    {0x10D50, 0x10D65, YOUNG_LU},  {0x10D69, 0x10D6D, YOUNG_MN},  {0x10D6E, 0x10D6E, YOUNG_PD},
    {0x10D6F, 0x10D6F, YOUNG_LM},  {0x10D70, 0x10D85, YOUNG_LL},  {0x10D8E, 0x10D8F, YOUNG_SM},
    {0x10EC2, 0x10EC4, YOUNG_LO},  {0x10EFC, 0x10EFF, YOUNG_MN},  {0x1123F, 0x11240, YOUNG_LO},
    {0x11241, 0x11241, YOUNG_MN},  {0x11380, 0x11389, YOUNG_LO},  {0x1138B, 0x1138B, YOUNG_LO},
    {0x1138E, 0x1138E, YOUNG_LO},  {0x11390, 0x113B5, YOUNG_LO},  {0x113B7, 0x113B7, YOUNG_LO},
    {0x113B8, 0x113BA, YOUNG_MC},  {0x113BB, 0x113C0, YOUNG_MN},  {0x113C2, 0x113C2, YOUNG_MC},
    {0x113C5, 0x113C5, YOUNG_MC},  {0x113C7, 0x113CA, YOUNG_MC},  {0x113CC, 0x113CD, YOUNG_MC},
    {0x113CE, 0x113CE, YOUNG_MN},  {0x113CF, 0x113CF, YOUNG_MC},  {0x113D0, 0x113D0, YOUNG_MN},
    {0x113D1, 0x113D1, YOUNG_LO},  {0x113D2, 0x113D2, YOUNG_MN},  {0x113D3, 0x113D3, YOUNG_LO},
    {0x113D4, 0x113D5, YOUNG_PO},  {0x113D7, 0x113D8, YOUNG_PO},  {0x113E1, 0x113E2, YOUNG_MN},
    {0x116D0, 0x116E3, YOUNG_ND},  {0x11B00, 0x11B09, YOUNG_PO},  {0x11BC0, 0x11BE0, YOUNG_LO},
    {0x11BE1, 0x11BE1, YOUNG_PO},  {0x11BF0, 0x11BF9, YOUNG_ND},  {0x11F00, 0x11F01, YOUNG_MN},
    {0x11F02, 0x11F02, YOUNG_LO},  {0x11F03, 0x11F03, YOUNG_MC},  {0x11F04, 0x11F10, YOUNG_LO},
    {0x11F12, 0x11F33, YOUNG_LO},  {0x11F34, 0x11F35, YOUNG_MC},  {0x11F36, 0x11F3A, YOUNG_MN},
    {0x11F3E, 0x11F3F, YOUNG_MC},  {0x11F40, 0x11F40, YOUNG_MN},  {0x11F41, 0x11F41, YOUNG_MC},
    {0x11F42, 0x11F42, YOUNG_MN},  {0x11F43, 0x11F4F, YOUNG_PO},  {0x11F50, 0x11F59, YOUNG_ND},
    {0x11F5A, 0x11F5A, YOUNG_MN},  {0x1342F, 0x1342F, YOUNG_LO},  {0x13439, 0x1343F, YOUNG_CF},
    {0x13440, 0x13440, YOUNG_MN},  {0x13441, 0x13446, YOUNG_LO},  {0x13447, 0x13455, YOUNG_MN},
    {0x13460, 0x143FA, YOUNG_LO},  {0x16100, 0x1611D, YOUNG_LO},  {0x1611E, 0x16129, YOUNG_MN},
    {0x1612A, 0x1612C, YOUNG_MC},  {0x1612D, 0x1612F, YOUNG_MN},  {0x16130, 0x16139, YOUNG_ND},
    {0x16D40, 0x16D42, YOUNG_LM},  {0x16D43, 0x16D6A, YOUNG_LO},  {0x16D6B, 0x16D6C, YOUNG_LM},
    {0x16D6D, 0x16D6F, YOUNG_PO},  {0x16D70, 0x16D79, YOUNG_ND},  {0x18CFF, 0x18CFF, YOUNG_LO},
    {0x1B132, 0x1B132, YOUNG_LO},  {0x1B155, 0x1B155, YOUNG_LO},  {0x1CC00, 0x1CCEF, YOUNG_SO},
    {0x1CCF0, 0x1CCF9, YOUNG_ND},  {0x1CD00, 0x1CEB3, YOUNG_SO},  {0x1D2C0, 0x1D2D3, YOUNG_NO},
    {0x1DF25, 0x1DF2A, YOUNG_LL},  {0x1E030, 0x1E06D, YOUNG_LM},  {0x1E08F, 0x1E08F, YOUNG_MN},
    {0x1E4D0, 0x1E4EA, YOUNG_LO},  {0x1E4EB, 0x1E4EB, YOUNG_LM},  {0x1E4EC, 0x1E4EF, YOUNG_MN},
    {0x1E4F0, 0x1E4F9, YOUNG_ND},  {0x1E5D0, 0x1E5ED, YOUNG_LO},  {0x1E5EE, 0x1E5EF, YOUNG_MN},
    {0x1E5F0, 0x1E5F0, YOUNG_LO},  {0x1E5F1, 0x1E5FA, YOUNG_ND},  {0x1E5FF, 0x1E5FF, YOUNG_PO},
    {0x1F6DC, 0x1F6DC, YOUNG_SO},  {0x1F774, 0x1F776, YOUNG_SO},  {0x1F77B, 0x1F77F, YOUNG_SO},
    {0x1F7D9, 0x1F7D9, YOUNG_SO},  {0x1F8B2, 0x1F8BB, YOUNG_SO},  {0x1F8C0, 0x1F8C1, YOUNG_SO},
    {0x1FA75, 0x1FA77, YOUNG_SO},  {0x1FA87, 0x1FA89, YOUNG_SO},  {0x1FA8F, 0x1FA8F, YOUNG_SO},
    {0x1FAAD, 0x1FAAF, YOUNG_SO},  {0x1FABB, 0x1FABF, YOUNG_SO},  {0x1FAC6, 0x1FAC6, YOUNG_SO},
    {0x1FACE, 0x1FACF, YOUNG_SO},  {0x1FADA, 0x1FADC, YOUNG_SO},  {0x1FADF, 0x1FADF, YOUNG_SO},
    {0x1FAE8, 0x1FAE9, YOUNG_SO},  {0x1FAF7, 0x1FAF8, YOUNG_SO},  {0x1FBCB, 0x1FBEF, YOUNG_SO},
    {0x2B739, 0x2B739, YOUNG_HAN}, {0x2EBF0, 0x2EE5D, YOUNG_HAN}, {0x31350, 0x323AF, YOUNG_HAN},
};
enum { RANGES = sizeof ranges / sizeof *ranges };

/* Of a character of three or four bytes; @size: how many. */
static unsigned read_character(const char *s, size_t *size) {
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0xF0) {
        *size = 3;
        return (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
    }
    *size = 4;
    return (u[0] & 0x07u) << 18 | (u[1] & 0x3Fu) << 12 | (u[2] & 0x3Fu) << 6 | (u[3] & 0x3Fu);
}

/* The range of a character; -1 where it is none of them. */
static int range_of(unsigned c) {
    int low = 0, high = RANGES - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (c > ranges[middle].last)
            low = middle + 1;
        else if (c < ranges[middle].first)
            high = middle - 1;
        else
            return middle;
    }
    return -1;
}

/* The next byte from @at on that may begin one: none begins with fewer than three bytes, nor in the great
 * blocks of Han and Hangul. */
static size_t next_candidate(const char *s, size_t n, size_t at) {
    for (; at < n; at++) {
        unsigned char lead = (unsigned char)s[at];
        if (lead >= 0xE0 && (lead <= 0xE3 || lead == 0xEA || lead >= 0xF0))
            return at;
    }
    return n;
}

bool unicode_age_has_new(const char *s, size_t n) {
    size_t size = 1;
    for (size_t at = next_candidate(s, n, 0); at < n; at = next_candidate(s, n, at + size))
        if (range_of(read_character(s + at, &size)) >= 0)
            return true;
    return false;
}

static void write_character(char *s, unsigned c, size_t size) {
    for (size_t i = size; i-- > 1; c >>= 6)
        s[i] = (char)(0x80 | (c & 0x3F));
    s[0] = (char)((size == 3 ? 0xE0 : 0xF0) | c);
}

void unicode_age_shadow(const char *s, size_t n, buf *out) {
    buf_clear(out);
    if (!buf_append(out, s, n))
        return;
    size_t size = 1;
    for (size_t at = next_candidate(s, n, 0); at < n; at = next_candidate(s, n, at + size)) {
        unsigned c = read_character(s + at, &size);
        int r = range_of(c), place = size == 4 ? 2 : c > 0x4E00;
        if (r >= 0)
            write_character(out->data + at, stand_ins[ranges[r].kind][place], size);
    }
}
