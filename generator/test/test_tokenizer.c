#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "generator/local/tokenizer/bpe.h"
#include "generator/local/tokenizer/forms.h"
#include "generator/local/tokenizer/regex.h"
#include "generator/local/tokenizer/tokenizer.h"
#include "generator/local/tokenizer/utf8.h"

#define FOLDER "generator/test/tokenizer/"

/* ---- comparison with tokenizers and tiktoken, whose results the fixtures contain ---- */

typedef struct {
    const tokenizer *t;
    tok_encoder *e;
    int rows;
} against;

static bool same_ids(const tok_ids *got, const js *want) {
    if (got->n != js_len(want))
        return false;
    for (size_t i = 0; i < got->n; i++)
        if (got->v[i] != js_int(js_at(want, i)))
            return false;
    return true;
}

static void check_encoding(const against *a, const js *row, const char *key, int flags, long line) {
    size_t n;
    const char *text = js_get_strn(row, "text", &n);
    const js *want = js_get_array(row, key);
    tok_ids ids = {0};
    if (!text || !want)
        return;
    CU_ASSERT_EQUAL(tok_encode(a->e, text, n, flags, &ids, NULL), SNAP_OK);
    if (!same_ids(&ids, want))
        printf("  line %ld, %s differ\n", line, key);
    CU_ASSERT(same_ids(&ids, want));
    tok_ids_release(&ids);
}

/* Decodes one id at a time. The output must be valid UTF-8 after every step, and the whole text in
 * the end. */
static void check_decoding(const against *a, const js *row, const char *key, bool skip, long line) {
    size_t n;
    const char *want = js_get_strn(row, key, &n);
    const js *ids = js_get_array(row, "ids");
    tok_stream s = tok_stream_make(a->t, skip);
    buf text = {0};
    if (!want)
        return;
    for (size_t i = 0; i < js_len(ids); i++) {
        tok_stream_push(&s, (int32_t)js_int(js_at(ids, i)), &text);
        CU_ASSERT(text_is_utf8(buf_str(&text), text.len));
    }
    tok_stream_finish(&s, &text);
    bool same = text.len == n && memcmp(buf_str(&text), want, n) == 0;
    if (!same)
        printf("  line %ld, %s differs: '%s' for '%s'\n", line, key, buf_str(&text), want);
    CU_ASSERT(same);
    tok_stream_release(&s);
    buf_release(&text);
}

static snap_status check_row(void *ctx, js *row, long line, snap_err *err) {
    against *a = ctx;
    (void)err;
    check_encoding(a, row, "ids", 0, line);
    check_encoding(a, row, "with_specials", TOK_SPECIALS, line);
    check_encoding(a, row, "plain", TOK_PLAIN, line);
    check_decoding(a, row, "decoded", false, line);
    check_decoding(a, row, "skipped", true, line);
    a->rows++;
    return SNAP_OK;
}

static void check_fixture(const char *dir, int rows) {
    against a = {0};
    buf cases = {0};
    snap_err err = {0};
    tokenizer *t = NULL;
    char *path = fs_join(dir, "cases.jsonl");
    CU_ASSERT_EQUAL(tokenizer_open(&t, dir, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT_EQUAL(fs_read(path, &cases, &err), SNAP_OK);
    a.t = t;
    if (t && tok_encoder_create(&a.e, t, NULL) == SNAP_OK)
        CU_ASSERT_EQUAL(js_each_line(buf_str(&cases), cases.len, path, check_row, &a, &err),
                        SNAP_OK);
    CU_ASSERT(a.rows >= rows);
    tok_encoder_free(a.e);
    tokenizer_free(t);
    buf_release(&cases);
    free(path);
}

static void test_byte_level(void) {
    check_fixture(FOLDER "bytes", 150);
}

static void test_fallback(void) {
    check_fixture(FOLDER "fallback", 150);
}

static void test_features(void) {
    check_fixture(FOLDER "features", 150);
}

static void test_tiktoken(void) {
    check_fixture(FOLDER "kimi", 90);
}

/* Looks up tokens of published models by their names: those that mark turns, thoughts and tools. */
static void test_published_tokens(void) {
    check_fixture(FOLDER "deepseek", 50);
    check_fixture(FOLDER "glm", 100);
    check_fixture(FOLDER "kimi-k2", 50);
}

/* ---- texts of any bytes ---- */

/* decode(encode(x)) = x for UTF-8; for other bytes it is x repaired. */
static void test_round_trip(void) {
    tokenizer *t = NULL;
    tok_encoder *e = NULL;
    rng r = rng_make(11, 0);
    CU_ASSERT_EQUAL_FATAL(tokenizer_open(&t, FOLDER "bytes", NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(tok_encoder_create(&e, t, NULL), SNAP_OK);
    for (int i = 0; i < 2000; i++) {
        char text[64];
        size_t n = (size_t)(rng_below(&r, sizeof text));
        for (size_t k = 0; k < n; k++)
            text[k] = (char)(rng_below(&r, i % 2 ? 256 : 128));
        buf want = {0}, got = {0};
        tok_ids ids = {0};
        (void)utf8_append_repaired(&want, text, n, false);
        CU_ASSERT_EQUAL(tok_encode(e, text, n, TOK_PLAIN, &ids, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(tok_decode(t, ids.v, ids.n, false, &got, NULL), SNAP_OK);
        CU_ASSERT(got.len == want.len && memcmp(buf_str(&got), buf_str(&want), want.len) == 0);
        tok_ids_release(&ids);
        buf_release(&want);
        buf_release(&got);
    }
    tok_encoder_free(e);
    tokenizer_free(t);
}

/* The cases of table 3-8 of the Unicode standard, and similar ones. */
static void test_repairs(void) {
    static const struct {
        const char *bytes, *repaired;
    } rows[] = {
        {"a\xF1\x80\x80\xE1\x80\xC2"
         "b\x80"
         "c\x80\xBF"
         "d",
         "a\uFFFD\uFFFD\uFFFD"
         "b\uFFFD"
         "c\uFFFD\uFFFD"
         "d"},
        {"\xC0\xAF", "\uFFFD\uFFFD"},
        {"\xE0\x80\xBF", "\uFFFD\uFFFD\uFFFD"},
        {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
        {"\xF4\x91\x92\x93\xFF", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"},
        {"\xF0\x9F\x98", "\uFFFD"},
        {"\xE4\xBD\xA0", "\xE4\xBD\xA0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf out = {0};
        size_t n = strlen(rows[i].bytes);
        CU_ASSERT_EQUAL(utf8_append_repaired(&out, rows[i].bytes, n, false), n);
        CU_ASSERT_STRING_EQUAL(buf_str(&out), rows[i].repaired);
        buf_release(&out);
    }
    buf out = {0};
    CU_ASSERT_EQUAL(utf8_append_repaired(&out, "x\xF0\x9F\x98", 4, true), 1);
    CU_ASSERT_STRING_EQUAL(buf_str(&out), "x");
    buf_release(&out);
}

/* A run of a million bytes is one piece. It must not take quadratic time. */
static void test_long_pieces(void) {
    tokenizer *t = NULL;
    tok_encoder *e = NULL;
    enum { kLong = 1000000 };
    char *text = malloc(kLong);
    CU_ASSERT_EQUAL_FATAL(tokenizer_open(&t, FOLDER "bytes", NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(tok_encoder_create(&e, t, NULL), SNAP_OK);
    for (const char *c = "a \n!"; text && *c; c++) {
        tok_ids ids = {0};
        buf back = {0};
        memset(text, *c, kLong);
        CU_ASSERT_EQUAL(tok_encode(e, text, kLong, 0, &ids, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(tok_decode(t, ids.v, ids.n, false, &back, NULL), SNAP_OK);
        CU_ASSERT(back.len == kLong && memcmp(buf_str(&back), text, kLong) == 0);
        tok_ids_release(&ids);
        buf_release(&back);
    }
    free(text);
    tok_encoder_free(e);
    tokenizer_free(t);
}

/* ---- merges against the definition ---- */

enum { kIds = 12, kPieces = 40 };

typedef struct {
    int32_t left, right, made;
} rule;

/* Merges the pair with the lowest rank first, of equal ranks the leftmost, until no merge
 * applies. */
static size_t merge_by_definition(const rule *rules, int n_rules, int32_t *ids, size_t n) {
    for (int k = 0; k < n_rules;) {
        size_t at = 0;
        while (at + 1 < n && !(ids[at] == rules[k].left && ids[at + 1] == rules[k].right))
            at++;
        if (at + 1 >= n) {
            k++;
            continue;
        }
        ids[at] = rules[k].made;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
        k = 0; /* the merged token may take part in an earlier rule */
    }
    return n;
}

static void test_merges_by_definition(void) {
    rng r = rng_make(5, 0);
    for (int round = 0; round < 400; round++) {
        bpe b = {0};
        bpe_work w = {0};
        rule rules[kIds];
        int n_rules = 1 + (int)(rng_below(&r, kIds));
        CU_ASSERT_EQUAL(bpe_reserve(&b, kIds, NULL), SNAP_OK);
        for (int k = 0; k < n_rules; k++) {
            rules[k] = (rule){(int32_t)(rng_below(&r, 6)), (int32_t)(rng_below(&r, 6)),
                              (int32_t)(rng_below(&r, 6))};
            bool again = false; /* each pair has only one merge */
            for (int j = 0; j < k && !again; j++) {
                again = rules[j].left == rules[k].left && rules[j].right == rules[k].right;
                rules[k] = again ? rules[j] : rules[k];
            }
            if (!again)
                bpe_add(&b, rules[k].left, rules[k].right, (uint32_t)k, rules[k].made);
        }
        int32_t got[kPieces], want[kPieces];
        size_t n = 1 + (size_t)(rng_below(&r, kPieces - 1)), n_want;
        for (size_t i = 0; i < n; i++)
            got[i] = want[i] = (int32_t)(rng_below(&r, 6));
        n_want = merge_by_definition(rules, n_rules, want, n);
        CU_ASSERT_EQUAL(bpe_encode(&b, &w, got, &n, NULL), SNAP_OK);
        CU_ASSERT(n == n_want && memcmp(got, want, n * sizeof *got) == 0);
        bpe_work_release(&w);
        bpe_release(&b);
    }
}

/* ---- regexes ---- */

static long find(const char *pattern, const char *text) {
    regex *re = NULL;
    regex_work *w = regex_work_new();
    regex_match m = {0};
    bool found = false;
    snap_status st = regex_compile(&re, pattern, strlen(pattern), NULL);
    if (st == SNAP_OK)
        st = regex_find(re, w, text, strlen(text), 0, &m, &found, NULL);
    regex_free(re);
    regex_work_free(w);
    return st != SNAP_OK ? -2 : found ? (long)(m.start * 100 + m.end) : -1;
}

/* Checks some constructs against the Oniguruma manual. \w is what the manual says of [[:word:]],
 * because its entry for \w differs. */
static void test_oniguruma(void) {
    CU_ASSERT_EQUAL(find("\\s", "\u180E"), -1); /* not a space since Unicode 6.3 */
    CU_ASSERT_EQUAL(find("\\S", "\u180E"), 3);
    CU_ASSERT_EQUAL(find("[\\S]", "\u180E"), 3);
    CU_ASSERT_EQUAL(find("\\s+", "a\xC2\x85\u00A0\u3000"), 108);
    CU_ASSERT_EQUAL(find("\\w+", "-\u0301\u2160_"), 107); /* marks and letter numbers are word
                                                             characters */
    CU_ASSERT_EQUAL(find("\\w", "\u00B2"), -1);           /* numbers that are neither digits nor
                                                             letters are not */
    CU_ASSERT_EQUAL(find("\\d", "\u00B2"), -1);
    CU_ASSERT_EQUAL(find("\\d", "\u0663"), 2);
    CU_ASSERT_EQUAL(find("\\v", "\n\v"), 102);
    CU_ASSERT_EQUAL(find("a$", "a\nb"), 1);
    CU_ASSERT_EQUAL(find("^b", "a\nb"), 203);
    CU_ASSERT_EQUAL(find("x{,2}y", "xxxy"), 104);
    CU_ASSERT_EQUAL(find("\\p{N}{1,3}", "a1234"), 104);
    CU_ASSERT_EQUAL(find("\\p{Han}", "\u3002\u4E00"), 306); /* by the property Script, not by
                                                               Script_Extensions */
    CU_ASSERT_EQUAL(find("[^\\p{Han}]", "\u4E00\u3002"), 306);
    CU_ASSERT_EQUAL(find("\\p{^Han}", "\u4E00\u3002"), 306);
    CU_ASSERT_EQUAL(find("\\p{^L}+", "a1"), 102);
    CU_ASSERT_EQUAL(find("\\u4e00", "\u4E00"), 3);
    CU_ASSERT_EQUAL(find("(?i:'S|'t)", "it's"), 204);
    CU_ASSERT_EQUAL(find("[]a]+", "xa]"), 103);
    CU_ASSERT_EQUAL(find(".", "\n\r"), 102);
}

static void test_refused_patterns(void) {
    static const char *const rows[] = {"[a&&b]",  "[a[b]]", "[[:alpha:]]", "\\bx",    "\\h",
                                       "\\R",     "(?m:a)", "(?<n>a)",     "a{1,2}+", "a{",
                                       "[\\W]",   "\\",     "\\p{Letter}", "(a",      "[a",
                                       "(*UTF)a", "\\Kab",  "(?1)(a)"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snap_err err = {0};
        regex *re = NULL;
        snap_status st = regex_compile(&re, rows[i], strlen(rows[i]), &err);
        if (st == SNAP_OK)
            printf("  accepted: %s\n", rows[i]);
        CU_ASSERT(st == SNAP_E_UNSUPPORTED || st == SNAP_E_INPUT);
        CU_ASSERT(err.text[0] != '\0');
        CU_ASSERT_PTR_NULL(re);
        regex_free(re);
    }
}

static void test_runaway_pattern(void) {
    char text[41];
    memset(text, 'a', 40);
    text[40] = '\0';
    CU_ASSERT_EQUAL(find("(a|aa|a)+(?=b)(a+)+c", text), -1);
    CU_ASSERT_EQUAL(find("(?:(?:a+)+)+[bc]", text), -2);
}

/* ---- hostile files ---- */

#define BYTES "\"decoder\":{\"type\":\"ByteLevel\"}"
#define MODEL                                                                                      \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"

static void test_hostile_files(void) {
    static const struct {
        const char *json, *says;
    } rows[] = {
        {"", "t:1"},
        {"{", "t:1"},
        {"[]", "'model'"},
        {"{\"model\":{}}", "'decoder'"},
        {"{\"model\":{}," BYTES "}", "'vocab'"},
        {"{" MODEL "}", "'decoder'"},
        {"{" MODEL ",\"decoder\":{\"type\":\"WordPiece\"}}", "'WordPiece'"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}," BYTES "}", "'Unigram'"},
        {"{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}," BYTES "}", "id -1"},
        {"{\"model\":{\"vocab\":{\"a\":99999999999},\"merges\":[]}," BYTES "}", "99999999999"},
        {"{\"model\":{\"vocab\":{\"a\":0.5},\"merges\":[]}," BYTES "}", "an integer"},
        {"{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}," BYTES "}", "two tokens"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}," BYTES "}", "the merged token"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a\"]}," BYTES "}", "merge 0 is not a pair"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}," BYTES "}",
         "merge 0 is not a pair"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1}," BYTES "}", "'dropout'"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"u\"}," BYTES "}", "'u'"},
        {"{" MODEL "," BYTES ",\"added_tokens\":[{\"id\":3,\"content\":\"\"}]}", "empty"},
        {"{" MODEL "," BYTES ",\"added_tokens\":[{\"id\":4,\"content\":\"a\"}]}", "two ids"},
        {"{" MODEL "," BYTES ",\"added_tokens\":[{\"content\":\"a\"}]}", "'id'"},
        {"{" MODEL "," BYTES ",\"normalizer\":{\"type\":\"Nmt\"}}", "'Nmt'"},
        {"{" MODEL "," BYTES ",\"normalizer\":{\"type\":\"Replace\",\"content\":\"x\","
         "\"pattern\":{\"Regex\":\"a*\"}}}",
         "the empty text"},
        {"{" MODEL "," BYTES ",\"normalizer\":{\"type\":\"Replace\",\"content\":\"x\","
         "\"pattern\":{\"Regex\":\"(?=a)\"}}}",
         "the empty text"},
        {"{" MODEL "," BYTES ",\"pre_tokenizer\":{\"type\":\"Whitespace\"}}", "'Whitespace'"},
        {"{" MODEL "," BYTES ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\","
         "\"pattern\":{\"Regex\":\"(\"}}}",
         "regular expression"},
        {"{" MODEL "," BYTES ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\","
         "\"pattern\":{\"Regex\":\"[a&&b]\"}}}",
         "'&&'"},
        {"{" MODEL "," BYTES ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"X\"}}", "'X'"},
        {"{" MODEL "," BYTES ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":"
         "[{\"SpecialToken\":{\"id\":\"s\"}}]}}",
         "'s'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snap_err err = {0};
        tokenizer *t = NULL;
        snap_status st = tokenizer_parse(&t, rows[i].json, strlen(rows[i].json), "t", &err);
        if (st == SNAP_OK || !strstr(err.text, rows[i].says))
            printf("  %s: %s\n", rows[i].json, err.text);
        CU_ASSERT_NOT_EQUAL(st, SNAP_OK);
        CU_ASSERT_PTR_NULL(t);
        CU_ASSERT(text_starts(err.text, "t:") && strstr(err.text, rows[i].says));
        tokenizer_free(t);
    }
}

/* Compares with the output of the normalisers of the library tokenizers for the same texts. */
static snap_status check_forms(void *ctx, js *row, long line, snap_err *err) {
    static const char *const names[] = {"NFC", "NFD", "NFKC", "NFKD"};
    int *rows = ctx;
    size_t n, m;
    const char *text = js_get_strn(row, "text", &n);
    for (int i = 0; i < 4; i++) {
        buf out = {0};
        const char *want = js_get_strn(row, names[i], &m);
        CU_ASSERT_EQUAL(form_apply(form_parse(names[i]), text, n, &out, err), SNAP_OK);
        bool same = out.len == m && memcmp(buf_str(&out), want, m) == 0;
        if (!same)
            printf("  line %ld, %s differs: '%s' for '%s'\n", line, names[i], buf_str(&out), want);
        CU_ASSERT(same);
        buf_release(&out);
    }
    (*rows)++;
    return SNAP_OK;
}

static void test_forms(void) {
    static const char json[] =
        "{\"model\":{\"vocab\":{\"\u00E9\":7},\"merges\":[]}," BYTES
        ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]}}";
    buf cases = {0};
    snap_err err = {0};
    tokenizer *t = NULL;
    int rows = 0;
    snap_status st = tokenizer_parse(&t, json, strlen(json), "t", &err);
    CU_ASSERT_EQUAL(form_parse("NFX"), FORM_NONE);
    if (!form_available()) {
        CU_ASSERT_EQUAL(st, SNAP_E_UNSUPPORTED);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "libutf8proc-dev"));
        return;
    }
    CU_ASSERT_EQUAL_FATAL(st, SNAP_OK);
    tok_encoder *e = NULL;
    tok_ids ids = {0};
    CU_ASSERT_EQUAL_FATAL(tok_encoder_create(&e, t, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(tok_encode(e, "e\u0301", 3, 0, &ids, NULL), SNAP_OK);
    CU_ASSERT(ids.n == 1 && ids.v[0] == 7);
    tok_ids_release(&ids);
    tok_encoder_free(e);
    tokenizer_free(t);
    CU_ASSERT_EQUAL_FATAL(fs_read(FOLDER "forms.jsonl", &cases, &err), SNAP_OK);
    CU_ASSERT_EQUAL(js_each_line(buf_str(&cases), cases.len, "forms", check_forms, &rows, &err),
                    SNAP_OK);
    CU_ASSERT(rows >= 150);
    buf_release(&cases);
}

static void test_deep_sequences(void) {
    buf json = {0};
    snap_err err = {0};
    tokenizer *t = NULL;
    (void)buf_puts(&json, "{" MODEL "," BYTES ",\"normalizer\":");
    for (int i = 0; i < 100; i++)
        (void)buf_puts(&json, "{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 100; i++)
        (void)buf_puts(&json, "]}");
    (void)buf_puts(&json, "}");
    CU_ASSERT_EQUAL(tokenizer_parse(&t, json.data, json.len, "t", &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "too deep"));
    buf_release(&json);
}

/* Appends a list of @n parts that replace "a" by 30 times "a". */
static void add_bomb(buf *json, int n) {
    for (int i = 0; i < n; i++) {
        (void)buf_puts(json, i ? "," : "[");
        (void)buf_puts(json, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
                             "\"content\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}");
    }
    (void)buf_puts(json, "]");
}

/* Without a limit, four bytes would become 30^6 times as many. */
static void test_growing_text(void) {
    buf json = {0};
    snap_err err = {0};
    tokenizer *t = NULL;
    tok_encoder *e = NULL;
    tok_ids ids = {0};
    (void)buf_puts(&json,
                   "{" MODEL "," BYTES ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":");
    add_bomb(&json, 6);
    (void)buf_puts(&json, "}}");
    CU_ASSERT_EQUAL_FATAL(tokenizer_parse(&t, json.data, json.len, "t", NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(tok_encoder_create(&e, t, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(tok_encode(e, "aaaa", 4, 0, &ids, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "4 bytes into more than 65792"));
    CU_ASSERT_EQUAL(tok_encode(e, "bbbb", 4, 0, &ids, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(ids.n, 4);
    tok_ids_release(&ids);
    tok_encoder_free(e);
    tokenizer_free(t);

    err = (snap_err){0};
    buf_clear(&json);
    (void)buf_puts(&json, "{" MODEL ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":");
    add_bomb(&json, 6);
    json.data[--json.len] = '\0'; /* the closing bracket */
    (void)buf_puts(&json, ",{\"type\":\"ByteLevel\"}]}}");
    CU_ASSERT_EQUAL(tokenizer_parse(&t, json.data, json.len, "t", &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "1 bytes of token 0 into more than 80"));
    buf_release(&json);
}

/* Strip removes spaces at the start of the whole text, which Fuse made of the tokens. */
static void test_stripped_bytes(void) {
    static const char json[] =
        "{\"model\":{\"vocab\":{\"\u0120\":0,\"\u0120a\":1},\"merges\":[]},"
        "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"},"
        "{\"type\":\"Fuse\"},"
        "{\"type\":\"Strip\",\"content\":\" \",\"start\":2,\"stop\":0}]}}";
    static const struct {
        int32_t ids[4];
        size_t n;
        const char *text;
    } rows[] = {{{1, 1}, 2, "a a"}, {{0, 1, 1}, 3, "a a"}, {{0, 0, 1, 0}, 4, " a "}, {{0}, 1, ""}};
    tokenizer *t = NULL;
    CU_ASSERT_EQUAL_FATAL(tokenizer_parse(&t, json, strlen(json), "t", NULL), SNAP_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf text = {0};
        CU_ASSERT_EQUAL(tok_decode(t, rows[i].ids, rows[i].n, true, &text, NULL), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(buf_str(&text), rows[i].text);
        buf_release(&text);
    }
    tokenizer_free(t);
}

static void test_folder_without_a_tokenizer(void) {
    snap_err err = {0};
    tokenizer *t = NULL;
    CU_ASSERT_EQUAL(tokenizer_open(&t, "generator/test", &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "tokenizer.json"));
}

static void test_facts(void) {
    tokenizer *t = NULL;
    CU_ASSERT_EQUAL_FATAL(tokenizer_open(&t, FOLDER "kimi", NULL), SNAP_OK);
    int32_t bos = tokenizer_bos(t);
    CU_ASSERT_EQUAL(tokenizer_eos(t), bos + 1);
    CU_ASSERT_EQUAL(tokenizer_size(t), bos + 256);
    CU_ASSERT_STRING_EQUAL(tokenizer_content(t, bos), "[BOS]");
    CU_ASSERT_PTR_NULL(tokenizer_content(t, bos + 256));
    tokenizer_free(t);
}

/* The transformers library writes this "model_max_length" if no length is set. */
static void test_number_beyond_64_bits(void) {
    static const char kConfig[] =
        "{\"model_max_length\": 1000000000000000019884624838656, \"eos_token\": \"<|end|>\"}";
    char dir[] = "/tmp/snapmla-tokenizer-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    char *config = fs_join(dir, "tokenizer_config.json"), *json = fs_join(dir, "tokenizer.json");
    buf text = {0};
    CU_ASSERT_EQUAL(fs_read(FOLDER "bytes/tokenizer.json", &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(fs_write_atomic(json, text.data, text.len, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(fs_write_atomic(config, kConfig, sizeof kConfig - 1, NULL), SNAP_OK);
    snap_err err = {0};
    tokenizer *t = NULL;
    CU_ASSERT_EQUAL(tokenizer_open(&t, dir, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT(t && tokenizer_eos(t) == 620); /* its id in tokenizer.json */
    tokenizer_free(t);
    CU_ASSERT_EQUAL(unlink(config) | unlink(json) | rmdir(dir), 0);
    buf_release(&text);
    free(config);
    free(json);
}

CU_TestInfo tests_tokenizer[] = {
    {"byte-level: the tokens of `tokenizers`", test_byte_level},
    {"byte fallback: the tokens of `tokenizers`", test_fallback},
    {"rare features: the tokens of `tokenizers`", test_features},
    {"Unicode's forms: the tokens of `tokenizers`", test_forms},
    {"tiktoken.model: the tokens of tiktoken", test_tiktoken},
    {"a number beyond 64 bits", test_number_beyond_64_bits},
    {"tokens of published models", test_published_tokens},
    {"decode(encode(x)) = x", test_round_trip},
    {"malformed UTF-8", test_repairs},
    {"a piece of a million bytes takes linear time", test_long_pieces},
    {"merges equal those of the definition", test_merges_by_definition},
    {"Oniguruma's classes", test_oniguruma},
    {"unsupported patterns are refused", test_refused_patterns},
    {"a pattern that needs too many steps", test_runaway_pattern},
    {"hostile files", test_hostile_files},
    {"deeply nested normalisers are refused", test_deep_sequences},
    {"a normaliser that makes a text too long", test_growing_text},
    {"spaces stripped from bytes", test_stripped_bytes},
    {"a folder without a tokenizer", test_folder_without_a_tokenizer},
    {"special tokens and size", test_facts},
    CU_TEST_INFO_NULL};
