#include "generator/local/tokenizer/unicode_age.h"

typedef enum {
    NEW_LU,
    NEW_LL,
    NEW_LM,
    NEW_LO,
    NEW_HAN, /* Lo, script Han */
    NEW_MN,
    NEW_MC,
    NEW_ND,
    NEW_NO,
    NEW_PD,
    NEW_PO,
    NEW_SM,
    NEW_SO,
    NEW_CF,
    NEW_KINDS
} kind;

/* An older character for each kind: one with three bytes below U+4E00, one with three bytes from
 * there on (DeepSeek-V2's pattern has a range that ends there), and one with four bytes. */
static const unsigned stand_ins[NEW_KINDS][3] = {
    [NEW_LU] = {0x2C00, 0xA640, 0x10400},  [NEW_LL] = {0x2C30, 0xA641, 0x10428},
    [NEW_LM] = {0x1D2C, 0xA717, 0x16B40},  [NEW_LO] = {0x1200, 0xA000, 0x10330},
    [NEW_HAN] = {0x3400, 0x4E00, 0x20000}, [NEW_MN] = {0x1DC0, 0xA66F, 0x1D167},
    [NEW_MC] = {0x0903, 0xA823, 0x11000},  [NEW_ND] = {0x0966, 0xA620, 0x104A0},
    [NEW_NO] = {0x2070, 0xA830, 0x10107},  [NEW_PD] = {0x2010, 0xFE58, 0x10EAD},
    [NEW_PO] = {0x10FB, 0xA60D, 0x10100},  [NEW_SM] = {0x2200, 0xFE62, 0x1D6C1},
    [NEW_SO] = {0x2300, 0xA828, 0x1F600},  [NEW_CF] = {0x200B, 0xFEFF, 0xE0001},
};

/* The newer characters and their kinds, as generator/test/tokenizer/unicode_age.py prints them. */
static const struct {
    unsigned first, last;
    kind kind;
} ranges[] = {
    {0x0897, 0x0897, NEW_MN},    {0x0CF3, 0x0CF3, NEW_MC},    {0x0ECE, 0x0ECE, NEW_MN},
    {0x1B4E, 0x1B4F, NEW_PO},    {0x1B7F, 0x1B7F, NEW_PO},    {0x1C89, 0x1C89, NEW_LU},
    {0x1C8A, 0x1C8A, NEW_LL},    {0x2427, 0x2429, NEW_SO},    {0x2FFC, 0x2FFF, NEW_SO},
    {0x31E4, 0x31E5, NEW_SO},    {0x31EF, 0x31EF, NEW_SO},    {0xA7CB, 0xA7CC, NEW_LU},
    {0xA7CD, 0xA7CD, NEW_LL},    {0xA7DA, 0xA7DA, NEW_LU},    {0xA7DB, 0xA7DB, NEW_LL},
    {0xA7DC, 0xA7DC, NEW_LU},    {0x105C0, 0x105F3, NEW_LO},  {0x10D40, 0x10D49, NEW_ND},
    {0x10D4A, 0x10D4D, NEW_LO},  {0x10D4E, 0x10D4E, NEW_LM},  {0x10D4F, 0x10D4F, NEW_LO},
    {0x10D50, 0x10D65, NEW_LU},  {0x10D69, 0x10D6D, NEW_MN},  {0x10D6E, 0x10D6E, NEW_PD},
    {0x10D6F, 0x10D6F, NEW_LM},  {0x10D70, 0x10D85, NEW_LL},  {0x10D8E, 0x10D8F, NEW_SM},
    {0x10EC2, 0x10EC4, NEW_LO},  {0x10EFC, 0x10EFF, NEW_MN},  {0x1123F, 0x11240, NEW_LO},
    {0x11241, 0x11241, NEW_MN},  {0x11380, 0x11389, NEW_LO},  {0x1138B, 0x1138B, NEW_LO},
    {0x1138E, 0x1138E, NEW_LO},  {0x11390, 0x113B5, NEW_LO},  {0x113B7, 0x113B7, NEW_LO},
    {0x113B8, 0x113BA, NEW_MC},  {0x113BB, 0x113C0, NEW_MN},  {0x113C2, 0x113C2, NEW_MC},
    {0x113C5, 0x113C5, NEW_MC},  {0x113C7, 0x113CA, NEW_MC},  {0x113CC, 0x113CD, NEW_MC},
    {0x113CE, 0x113CE, NEW_MN},  {0x113CF, 0x113CF, NEW_MC},  {0x113D0, 0x113D0, NEW_MN},
    {0x113D1, 0x113D1, NEW_LO},  {0x113D2, 0x113D2, NEW_MN},  {0x113D3, 0x113D3, NEW_LO},
    {0x113D4, 0x113D5, NEW_PO},  {0x113D7, 0x113D8, NEW_PO},  {0x113E1, 0x113E2, NEW_MN},
    {0x116D0, 0x116E3, NEW_ND},  {0x11B00, 0x11B09, NEW_PO},  {0x11BC0, 0x11BE0, NEW_LO},
    {0x11BE1, 0x11BE1, NEW_PO},  {0x11BF0, 0x11BF9, NEW_ND},  {0x11F00, 0x11F01, NEW_MN},
    {0x11F02, 0x11F02, NEW_LO},  {0x11F03, 0x11F03, NEW_MC},  {0x11F04, 0x11F10, NEW_LO},
    {0x11F12, 0x11F33, NEW_LO},  {0x11F34, 0x11F35, NEW_MC},  {0x11F36, 0x11F3A, NEW_MN},
    {0x11F3E, 0x11F3F, NEW_MC},  {0x11F40, 0x11F40, NEW_MN},  {0x11F41, 0x11F41, NEW_MC},
    {0x11F42, 0x11F42, NEW_MN},  {0x11F43, 0x11F4F, NEW_PO},  {0x11F50, 0x11F59, NEW_ND},
    {0x11F5A, 0x11F5A, NEW_MN},  {0x1342F, 0x1342F, NEW_LO},  {0x13439, 0x1343F, NEW_CF},
    {0x13440, 0x13440, NEW_MN},  {0x13441, 0x13446, NEW_LO},  {0x13447, 0x13455, NEW_MN},
    {0x13460, 0x143FA, NEW_LO},  {0x16100, 0x1611D, NEW_LO},  {0x1611E, 0x16129, NEW_MN},
    {0x1612A, 0x1612C, NEW_MC},  {0x1612D, 0x1612F, NEW_MN},  {0x16130, 0x16139, NEW_ND},
    {0x16D40, 0x16D42, NEW_LM},  {0x16D43, 0x16D6A, NEW_LO},  {0x16D6B, 0x16D6C, NEW_LM},
    {0x16D6D, 0x16D6F, NEW_PO},  {0x16D70, 0x16D79, NEW_ND},  {0x18CFF, 0x18CFF, NEW_LO},
    {0x1B132, 0x1B132, NEW_LO},  {0x1B155, 0x1B155, NEW_LO},  {0x1CC00, 0x1CCEF, NEW_SO},
    {0x1CCF0, 0x1CCF9, NEW_ND},  {0x1CD00, 0x1CEB3, NEW_SO},  {0x1D2C0, 0x1D2D3, NEW_NO},
    {0x1DF25, 0x1DF2A, NEW_LL},  {0x1E030, 0x1E06D, NEW_LM},  {0x1E08F, 0x1E08F, NEW_MN},
    {0x1E4D0, 0x1E4EA, NEW_LO},  {0x1E4EB, 0x1E4EB, NEW_LM},  {0x1E4EC, 0x1E4EF, NEW_MN},
    {0x1E4F0, 0x1E4F9, NEW_ND},  {0x1E5D0, 0x1E5ED, NEW_LO},  {0x1E5EE, 0x1E5EF, NEW_MN},
    {0x1E5F0, 0x1E5F0, NEW_LO},  {0x1E5F1, 0x1E5FA, NEW_ND},  {0x1E5FF, 0x1E5FF, NEW_PO},
    {0x1F6DC, 0x1F6DC, NEW_SO},  {0x1F774, 0x1F776, NEW_SO},  {0x1F77B, 0x1F77F, NEW_SO},
    {0x1F7D9, 0x1F7D9, NEW_SO},  {0x1F8B2, 0x1F8BB, NEW_SO},  {0x1F8C0, 0x1F8C1, NEW_SO},
    {0x1FA75, 0x1FA77, NEW_SO},  {0x1FA87, 0x1FA89, NEW_SO},  {0x1FA8F, 0x1FA8F, NEW_SO},
    {0x1FAAD, 0x1FAAF, NEW_SO},  {0x1FABB, 0x1FABF, NEW_SO},  {0x1FAC6, 0x1FAC6, NEW_SO},
    {0x1FACE, 0x1FACF, NEW_SO},  {0x1FADA, 0x1FADC, NEW_SO},  {0x1FADF, 0x1FADF, NEW_SO},
    {0x1FAE8, 0x1FAE9, NEW_SO},  {0x1FAF7, 0x1FAF8, NEW_SO},  {0x1FBCB, 0x1FBEF, NEW_SO},
    {0x2B739, 0x2B739, NEW_HAN}, {0x2EBF0, 0x2EE5D, NEW_HAN}, {0x31350, 0x323AF, NEW_HAN},
};
enum { RANGES = sizeof ranges / sizeof *ranges };

/* Decodes a character of three or four bytes; *size = its length. */
static unsigned read_character(const char *s, size_t *size) {
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0xF0) {
        *size = 3;
        return (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
    }
    *size = 4;
    return (u[0] & 0x07u) << 18 | (u[1] & 0x3Fu) << 12 | (u[2] & 0x3Fu) << 6 | (u[3] & 0x3Fu);
}

/* The index of a character's range; -1 if it is in none. */
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

/* The next position from @at on where a newer character may begin. All newer characters have at
 * least three bytes, and those with three are not in the large blocks of Han and Hangul. */
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
