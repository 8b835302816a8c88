#include <CUnit/CUnit.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/text.h"

static void test_numbers_are_strict(void) {
    int64_t i = 0;
    CU_ASSERT(text_to_int("-9223372036854775808", &i) && i == INT64_MIN);
    static const char *const not_int[] = {
        "", " 1", "1 ", "+1", "0x10", "1.0", "9223372036854775808", "-"};
    for (size_t k = 0; k < sizeof not_int / sizeof *not_int; k++)
        CU_ASSERT_FALSE(text_to_int(not_int[k], &i));
    double x = 0;
    CU_ASSERT(text_to_double("-2.5e-3", &x) && x == -2.5e-3);
    static const char *const not_num[] = {"", "inf", "nan", "1e999", "1,5", " 1", "1 "};
    for (size_t k = 0; k < sizeof not_num / sizeof *not_num; k++)
        CU_ASSERT_FALSE(text_to_double(not_num[k], &x));
}

/* Encodes a code point by the definition in RFC 3629. */
static size_t encode(uint32_t c, char out[4]) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(lead[n] | c);
    return n;
}

static void test_utf8_accepts_every_code_point(void) {
    long wrong = 0;
    for (uint32_t c = 0; c <= 0x110000; c++) {
        char s[4];
        size_t n = encode(c, s);
        int valid = c < 0x110000 && !(c >= 0xD800 && c < 0xE000);
        wrong += text_utf8_len(s, n) != (valid ? n : 0);
        wrong += n > 1 && text_utf8_len(s, n - 1) != 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Among all 2- and 3-byte strings, exactly as many encode one character as there are code points of
 * that length, without the surrogates. */
static void test_utf8_accepts_nothing_else(void) {
    long two = 0, three = 0;
    for (unsigned v = 0; v < 1u << 24; v++) {
        char s[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        three += text_utf8_len(s, 3) == 3;
        two += v < 1u << 16 && text_utf8_len(s + 1, 2) == 2;
    }
    CU_ASSERT_EQUAL(two, 0x800 - 0x80);
    CU_ASSERT_EQUAL(three, 0x10000 - 0x800 - 0x800);
}

static void test_xml_escapes(void) {
    buf b = {0};
    text_append_xml(&b, "<a href=\"x\">'&'\x01\n");
    CU_ASSERT_STRING_EQUAL(buf_str(&b),
                           "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;\xEF\xBF\xBD\n");
    buf_clear(&b);
    /* Code points whose bytes resemble those of U+FFFE and U+FFFF (U+FFEF, U+FFFC, U+1FFFF) stay. A
     * stray byte is replaced. */
    text_append_xml(
        &b, "\xEF\xBF\xBE|\xEF\xBF\xBF|\xEF\xBF\xAF|\xEF\xBF\xBC|\xF0\x9F\xBF\xBF|\xFF|\xC3");
    CU_ASSERT_STRING_EQUAL(buf_str(&b), "\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xAF|\xEF\xBF\xBC|"
                                        "\xF0\x9F\xBF\xBF|\xEF\xBF\xBD|\xEF\xBF\xBD");
    buf_release(&b);
}

static void test_nul_is_replaced(void) {
    buf b = {0};
    text_append_without_nul(&b, "\0a\0\0bc", 6);
    CU_ASSERT_STRING_EQUAL(buf_str(&b), "\xEF\xBF\xBD"
                                        "a\xEF\xBF\xBD\xEF\xBF\xBD"
                                        "bc");
    buf_clear(&b);
    text_append_without_nul(&b, "plain", 5);
    CU_ASSERT_STRING_EQUAL(buf_str(&b), "plain");
    buf_release(&b);
}

static snap_status collect(void *ctx, const char *part, snap_err *err) {
    (void)err;
    (void)buf_printf(ctx, "[%s]", part);
    return SNAP_OK;
}

static void test_split(void) {
    buf b = {0};
    snap_err err = {0};
    CU_ASSERT_EQUAL(text_split("a,bc,d", ',', "--suite", collect, &b, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&b), "[a][bc][d]");
    CU_ASSERT_EQUAL(text_split("a,,d", ',', "--suite", collect, &b, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "--suite has an empty part in 'a,,d'");
    buf_release(&b);
}

/* What a terminal or a CI system would act on is escaped; what is printable stays. */
static void test_shown(void) {
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"", ""},
        {"plain: a::b, ## c, #1 [x] \\n", "plain: a::b, ## c, #1 [x] \\n"},
        {"\xE2\x88\x92"
         "1 \xC3\xA9 \xE6\x97\xA5 \xF0\x9F\x99\x82", /* U+2212, U+00E9, ... */
         "\xE2\x88\x92"
         "1 \xC3\xA9 \xE6\x97\xA5 \xF0\x9F\x99\x82"},
        {"a\n::stop-commands::x", "a\\n::stop-commands::x"},
        {"a\tb\rc", "a\\tb\\rc"},
        {"\033]0;title\007\033[2J", "\\u001b]0;title\\u0007\\u001b[2J"},
        {"\x7F", "\\u007f"},
        {"\xC2\x9B"
         "31m",
         "\\u009b31m"}, /* C1: CSI */
        {"\xE2\x80\xAE"
         "fdp",
         "\\u202efdp"},                                 /* right-to-left override */
        {"\xE2\x81\xA6\xE2\x81\xA9", "\\u2066\\u2069"}, /* isolates */
        {"\xE2\x80\xA8", "\\u2028"},                    /* line separator */
        {"bad \xFF\xC3", "bad \\xff\\xc3"},
        {"::error::x", "\\u003a:error::x"},
        {"  ::error::x", "  \\u003a:error::x"},
        {"\xC2\xA0\xE3\x80\x80::add-mask::x", "\xC2\xA0\xE3\x80\x80\\u003a:add-mask::x"},
        {"x ##[group]y", "x \\u0023#[group]y"},
        {"##vso[task.setvariable]", "\\u0023#vso[task.setvariable]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[200];
        buf b = {0}, again = {0};
        size_t n = text_show(out, sizeof out, cases[i].text);
        CU_ASSERT_STRING_EQUAL(out, cases[i].shown);
        CU_ASSERT_EQUAL(n, strlen(out));
        text_append_shown(&b, cases[i].text);
        CU_ASSERT_STRING_EQUAL(buf_str(&b), cases[i].shown);
        text_append_shown_printf(&again, "%s", buf_str(&b));
        CU_ASSERT_STRING_EQUAL(buf_str(&again), cases[i].shown);
        buf_release(&b);
        buf_release(&again);
    }
}

static void test_shown_is_cut_between_characters(void) {
    char out[16];
    for (size_t size = 1; size <= sizeof out; size++) {
        size_t n = text_show(out, size, "a\033\xC3\xA9");
        CU_ASSERT(n < size && n == strlen(out));
        CU_ASSERT(n == 0 || n == 1 || n == 7 || n == 9);
    }
}

/* A reader of the JSON gets the same value. */
static void test_shown_json(void) {
    static const char text[] = "{\n  \"##[x] \xC2\x9B\x7F\xE2\x80\xAE\xC3\xA9\": 1\n}";
    buf b = {0};
    text_append_shown_json(&b, text);
    CU_ASSERT_STRING_EQUAL(buf_str(&b), "{\n  \"\\u0023#[x] \\u009b\\u007f\\u202e\xC3\xA9\": 1\n}");
    js *one = js_parse(text, strlen(text), "x", NULL), *two = js_parse(b.data, b.len, "y", NULL);
    CU_ASSERT(one && two && js_equal(one, two));
    js_free(one);
    js_free(two);
    buf_release(&b);
}

/* Known digests of "abc" and of the empty string. */
static void test_sha256(void) {
    char hex[HASH_HEX];
    CU_ASSERT_EQUAL(hash_bytes("abc", 3, hex, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CU_ASSERT_EQUAL(hash_bytes("", 0, hex, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void test_nearest(void) {
    static const char *const names[] = {"prompt", "samples", "system", "data", "id", NULL};
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        {"promt", "prompt"},   {"prompts", "prompt"}, {"rpompt", "prompt"}, {"sampels", "samples"},
        {"sample", "samples"}, {"SYSTEM", NULL},      {"dta", "data"},      {"dat", "data"},
        {"di", "id"},          {"i", NULL},           {"", NULL},           {"unrelated", NULL},
        {"prompt", "prompt"},  {"xx", NULL},
    };
    char longer[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = nearest_name(cases[i].word, names);
        CU_ASSERT(got == cases[i].nearest || text_equal(got, cases[i].nearest));
    }
    char hint[NEAREST_HINT];
    CU_ASSERT_STRING_EQUAL(nearest_hint("promt", names, "--", hint), " (did you mean '--prompt'?)");
    CU_ASSERT_STRING_EQUAL(nearest_hint("unrelated", names, "--", hint), "");
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CU_ASSERT_PTR_NULL(nearest_name(longer, names));
    CU_ASSERT_PTR_NULL(nearest_name("promt", (const char *const[]){longer, NULL}));
}

CU_TestInfo tests_text[] = {
    {"numbers are strict", test_numbers_are_strict},
    {"UTF-8: every code point", test_utf8_accepts_every_code_point},
    {"UTF-8: other byte sequences are malformed", test_utf8_accepts_nothing_else},
    {"XML escapes", test_xml_escapes},
    {"NUL bytes", test_nul_is_replaced},
    {"a list is split at its separator", test_split},
    {"escapes in shown text", test_shown},
    {"shown text is cut between characters", test_shown_is_cut_between_characters},
    {"shown JSON has the same value", test_shown_json},
    {"SHA-256 of the standard's examples", test_sha256},
    {"nearest name", test_nearest},
    CU_TEST_INFO_NULL};
