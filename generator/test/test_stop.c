#include <CUnit/CUnit.h>
#include <string.h>

#include "base/rng.h"
#include "generator/local/engine/stop.h"

/* The first position in @text where a stop string begins, by exhaustive search; @n if there is
 * none. */
static size_t first_of(const stop_strings *s, const char *text, size_t n) {
    for (size_t at = 0; at < n; at++)
        for (int i = 0; i < s->n; i++)
            if (s->text[i][0] && strncmp(text + at, s->text[i], strlen(s->text[i])) == 0)
                return at;
    return n;
}

/* How many bytes can't become part of a stop string, by trying every end of the text as the
 * beginning of one. */
static size_t settled_of(const stop_strings *s, const char *text, size_t n) {
    for (size_t at = 0; at < n; at++)
        for (int i = 0; i < s->n; i++)
            if (strlen(s->text[i]) > n - at && strncmp(s->text[i], text + at, n - at) == 0)
                return at;
    return n;
}

/* The texts have only two different letters, so they contain many repetitions. They arrive in
 * pieces of 0 to 3 bytes. */
static void test_against_looking_everywhere(void) {
    static const char *const some[] = {"aba", "bb", "", "abab", "baab", "aaaaa", "b"};
    rng r = rng_make(3, 0);
    for (int round = 0; round < 4000; round++) {
        stop_strings s = {.text = some + rng_below(&r, 5), .n = (int)rng_below(&r, 3)};
        char whole[64] = "";
        buf text = {0};
        bool cut = false;
        while (!cut && strlen(whole) < 40) {
            size_t seen = text.len;
            for (uint64_t n = rng_below(&r, 4); n > 0; n--) {
                char c = rng_below(&r, 2) ? 'a' : 'b';
                whole[strlen(whole)] = c; /* zeros follow */
                (void)buf_append(&text, &c, 1);
            }
            size_t n = strlen(whole), first = first_of(&s, whole, n);
            cut = stop_cut(&s, &text, seen);
            CU_ASSERT_EQUAL(cut, first < n);
            CU_ASSERT_EQUAL(text.len, first);
            CU_ASSERT_EQUAL(strncmp(buf_str(&text), whole, first), 0);
            CU_ASSERT_EQUAL(strlen(buf_str(&text)), first);
            if (!cut)
                CU_ASSERT_EQUAL(stop_settled(&s, whole, n), settled_of(&s, whole, n));
        }
        buf_release(&text);
    }
}

static void test_nothing_to_stop(void) {
    buf text = {0};
    stop_strings none = {0};
    CU_ASSERT_FALSE(stop_cut(&none, &text, 0));
    CU_ASSERT(buf_puts(&text, "x"));
    CU_ASSERT_FALSE(stop_cut(&none, &text, 0));
    CU_ASSERT_EQUAL(stop_settled(&none, "x", 1), 1);
    buf_release(&text);
}

CU_TestInfo tests_stop[] = {
    {"stop strings are found as by a search of the whole text", test_against_looking_everywhere},
    {"without stop strings nothing is cut", test_nothing_to_stop},
    CU_TEST_INFO_NULL,
};
