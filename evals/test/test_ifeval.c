/* Tests IFEval against verdicts of its public checker on cases of this project
 * (fixtures/make_ifeval.py made them). Also tests malformed golds, strict and loose checks,
 * counting, hostile responses, JSON texts, rows and malformed language profiles. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/ifeval/instruction.h"
#include "evals/ifeval/json_text.h"
#include "evals/ifeval/words.h"
#include "evals/task.h"

static const char kFixture[] = "evals/test/fixtures/ifeval.jsonl";

static span text_of(const char *s) {
    return (span){s, strlen(s)};
}

static js *gold_of(const js *row) {
    js *gold = js_new_object();
    CU_ASSERT_FATAL(
        gold &&
        js_set_new(gold, "instruction_id_list", js_copy(js_get(row, "instruction_id_list"))) &&
        js_set_new(gold, "kwargs", js_copy(js_get(row, "kwargs"))));
    return gold;
}

static grade_result grade_row(const grader *g, const js *row) {
    buf gold = {0};
    js *parts = gold_of(row);
    CU_ASSERT_EQUAL_FATAL(js_write(parts, JS_COMPACT, &gold, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(g->check_gold(buf_str(&gold), NULL), SNAP_OK);
    size_t n;
    const char *response = js_get_strn(row, "response", &n);
    grade_result r = g->grade(buf_str(&gold), (grade_input){.response = {response, n}});
    js_free(parts);
    buf_release(&gold);
    return r;
}

static double share(const js *row, const char *key) {
    const js *list = js_get_array(row, key);
    double n = 0;
    for (size_t i = 0; i < js_len(list); i++)
        n += js_true(js_at(list, i));
    return n / (double)js_len(list);
}

typedef struct {
    size_t rows, languages, wrong;
    const grader *grader;
    bool needs_profiles; /* skip instructions that language profiles decide */
} comparison;

static bool by_profiles(const js *row) {
    const js *ids = js_get_array(row, "instruction_id_list");
    const char *id = js_str(js_at(ids, 0));
    return text_starts(id, "language:") || text_starts(id, "change_case:english");
}

static snap_status compare_row(void *ctx, js *row, long line, snap_err *err) {
    comparison *c = ctx;
    (void)err;
    if (c->needs_profiles && by_profiles(row))
        return SNAP_OK;
    grade_result r = grade_row(c->grader, row);
    double strict = share(row, "strict"), loose = share(row, "loose");
    double n = (double)js_len(js_get_array(row, "strict"));
    bool same = r.also[1].value == strict && r.also[2].value == loose && r.also[1].weight == n &&
                (r.verdict == GRADE_CORRECT) == (strict == 1) &&
                r.also[0].value == (loose == 1 ? 1 : 0) && r.also[0].weight == 1;
    if (!same)
        printf("\n%s:%ld: %g %g, not %g %g\n", kFixture, line, r.also[1].value, r.also[2].value,
               strict, loose);
    c->rows++;
    c->languages += by_profiles(row);
    c->wrong += !same;
    return SNAP_OK;
}

static void compare(comparison *c) {
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(kFixture, &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(js_each_line(buf_str(&text), text.len, kFixture, compare_row, c, NULL),
                    SNAP_OK);
    CU_ASSERT_EQUAL(c->wrong, 0);
    buf_release(&text);
}

static void test_verdicts_of_the_public_checker(void) {
    comparison c = {0};
    CU_ASSERT_EQUAL_FATAL(task_grader(&task_ifeval, NULL, &(task_options){0}, &c.grader, NULL),
                          SNAP_OK);
    c.needs_profiles = !language_installed();
    compare(&c);
    CU_ASSERT(c.rows > 150 && (c.needs_profiles || c.languages > 70));
}

/* Without profiles, scripts and small words give the same verdict in all rows of the fixture about
 * the language of the response, except those for English. */
static snap_status compare_language(void *ctx, js *row, long line, snap_err *err) {
    size_t *n = ctx;
    (void)line, (void)err;
    const char *id = js_str(js_at(js_get_array(row, "instruction_id_list"), 0));
    if (strcmp(id, "language:response_language") != 0 ||
        strcmp(js_get_str(js_at(js_get_array(row, "kwargs"), 0), "language"), "en") == 0)
        return SNAP_OK;
    grade_result r = grade_row(&grader_ifeval_plain, row);
    CU_ASSERT_EQUAL(r.verdict == GRADE_CORRECT, share(row, "strict") == 1);
    ++*n;
    return SNAP_OK;
}

static void test_languages_without_profiles(void) {
    buf text = {0};
    size_t n = 0;
    CU_ASSERT_EQUAL_FATAL(fs_read(kFixture, &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(js_each_line(buf_str(&text), text.len, kFixture, compare_language, &n, NULL),
                    SNAP_OK);
    CU_ASSERT(n > 40);
    buf_release(&text);
}

/* ---- strict and loose checks ---- */

static const char kGold[] =
    "{\"instruction_id_list\": [\"punctuation:no_comma\", "
    "\"startend:end_checker\"], \"kwargs\": [{}, {\"end_phrase\": \"So.\"}]}";

static grade_result grade(const char *response) {
    return grader_ifeval.grade(kGold, (grade_input){.response = text_of(response)});
}

static void test_readings(void) {
    grade_result r = grade("Yes. So.");
    CU_ASSERT(r.verdict == GRADE_CORRECT && r.also[0].value == 1 && r.also[1].value == 1);
    r = grade("Sure, here:\nYes. So.");
    CU_ASSERT(r.verdict == GRADE_WRONG && r.also[0].value == 1 && r.also[1].value == 0.5);
    CU_ASSERT_STRING_EQUAL(r.extracted, "not followed: punctuation:no_comma");
    CU_ASSERT_STRING_EQUAL(r.reason, "followed in the loose reading alone");
    r = grade("Yes, no");
    CU_ASSERT(r.verdict == GRADE_WRONG && r.also[0].value == 0 && r.also[2].value == 0);
    r = grade("<think>a, b</think>\n\nYes. So.");
    CU_ASSERT(r.verdict == GRADE_CORRECT);
    r = grade("  \n");
    CU_ASSERT(r.verdict == GRADE_UNPARSED && !r.rule && r.also[1].value == 0);
    r = grade("<think>a b");
    CU_ASSERT(r.verdict == GRADE_UNPARSED && strcmp(r.reason, "the reasoning did not end") == 0);
}

static void test_bad_golds(void) {
    static const struct {
        const char *gold, *message;
    } cases[] = {
        {"", "gold:"},
        {"[]", "needs an 'instruction_id_list'"},
        {"{\"instruction_id_list\": [], \"kwargs\": []}", "of 1 to 32"},
        {"{\"instruction_id_list\": [\"a:b\"], \"kwargs\": [{}]}", "unknown instruction 'a:b'"},
        {"{\"instruction_id_list\": [3], \"kwargs\": [{}]}", "unknown instruction ''"},
        {"{\"instruction_id_list\": [\"punctuation:no_comma\"], \"kwargs\": []}",
         "as many 'kwargs'"},
        {"{\"instruction_id_list\": [\"length_constraints:number_words\"], \"kwargs\": "
         "[{\"num_words\": "
         "2}]}",
         "'relation' of length_constraints:number_words must be \"at least\" or \"less than\""},
        {"{\"instruction_id_list\": [\"length_constraints:number_words\"], \"kwargs\": "
         "[{\"num_words\": "
         "-1, \"relation\": \"at least\"}]}",
         "must be an integer, 0 or more"},
        {"{\"instruction_id_list\": [\"length_constraints:number_words\"], \"kwargs\": [null]}",
         "'num_words'"},
        {"{\"instruction_id_list\": [\"keywords:existence\"], \"kwargs\": [{\"keywords\": "
         "[\"a(\"]}]}",
         "a list of regular expressions"},
        {"{\"instruction_id_list\": [\"keywords:existence\"], \"kwargs\": [{\"keywords\": []}]}",
         "a list of regular expressions"},
        {"{\"instruction_id_list\": [\"keywords:letter_frequency\"], \"kwargs\": [{\"letter\": "
         "\"ab\", "
         "\"let_frequency\": 1, \"let_relation\": \"at least\"}]}",
         "must be one character"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL(grader_ifeval.check_gold(cases[i].gold, &err), SNAP_E_INPUT);
        if (!strstr(err.text, cases[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
    }
}

/* ---- counts of sentences and words ---- */

static void test_counts(void) {
    static const struct {
        const char *text;
        size_t words, sentences, capital;
    } cases[] = {
        {"", 0, 0, 0},
        {"One.", 1, 1, 0},
        {"I can't. YOU CANNOT!", 5, 2, 4},
        {"Mr. A. Smith met Dr. Lee. They spoke.", 8, 2, 1},
        {"It is 3.50. Is it? Yes...", 7, 3, 0},
        {"He said \"Go.\" She went.", 5, 2, 0},
        {"(One.) (Two.)", 2, 2, 0},
        {"ÉTÉ — naïve_CAFÉ x² U.S.A.", 6, 1, 2},
        {"Straße 12. Oktober", 3, 2, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        span s = text_of(cases[i].text);
        size_t w = words_count(s), n = punkt_count(NULL, s), c = words_count_capital(NULL, s);
        bool right = w == cases[i].words && n == cases[i].sentences && c == cases[i].capital;
        if (!right)
            printf("\n%s: %zu words, %zu sentences, %zu capital\n", cases[i].text, w, n, c);
        CU_ASSERT(right);
    }
}

/* Texts of 60,000 bytes that repeat one piece get a result. */
static void test_hostile_texts(void) {
    static const char *const pieces[] = {
        "!", ".",  "a.",   "A. ",    "[",  "{\"a\":",          "\"",  "*", "**",
        "-", "\n", "\n\n", "P.S. p", "\\", "\xF0\x9F\x98\x80", "\xFF"};
    enum { LENGTH = 60000 };
    buf gold = {0};
    CU_ASSERT_FATAL(fs_read("evals/test/fixtures/ifeval_all.json", &gold, NULL) == SNAP_OK);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        buf text = {0};
        while (text.len < LENGTH)
            (void)buf_puts(&text, pieces[i]);
        grade_result r = grader_ifeval.grade(buf_str(&gold),
                                             (grade_input){.response = {buf_str(&text), text.len}});
        CU_ASSERT(r.reason != NULL && r.also[1].weight == 25);
        buf_release(&text);
    }
    buf_release(&gold);
}

static void test_json_texts(void) {
    static const char *const good[] = {"{}",  " [1, -2.5e+3, \"\\u00e9\\n\", true] ", "0", "\"\"",
                                       "NaN", "{\"a\": {\"a\": null}, \"b\": []}"};
    static const char *const bad[] = {"",    "{",         "[1,]",      "{a: 1}", "+1",  ".5",
                                      "\"a", "\"\t\"",    "\"\\x\"",   "[] []",  "nul", "--1",
                                      "1e",  "{\"a\" 1}", "\"\\u12\"", "]"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CU_ASSERT(json_text_valid(text_of(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT_FALSE(json_text_valid(text_of(bad[i])));
}

/* ---- rows ---- */

static void test_rows(void) {
    static const char rows[] =
        "{\"key\": 1000, \"prompt\": \"Write.\", \"instruction_id_list\": "
        "[\"punctuation:no_comma\", "
        "\"length_constraints:number_words\"], \"kwargs\": [{\"num_words\": null}, {\"num_words\": "
        "12.0, \"relation\": \"at least\", \"language\": null}]}\n";
    char folder[] = "/tmp/snapmla-ifeval-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    char *path = fs_join(folder, "ifeval.jsonl");
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, rows, strlen(rows), NULL), SNAP_OK);
    task_set set;
    CU_ASSERT_EQUAL_FATAL(task_load(&task_ifeval, folder, 0, NULL, &set, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(set.problems[0].id, "1000");
    CU_ASSERT_STRING_EQUAL(set.problems[0].messages[0].content, "Write.");
    CU_ASSERT_PTR_NULL(strstr(set.problems[0].gold, "null"));
    CU_ASSERT_EQUAL(grade_metrics(set.grader), 4);
    task_set_release(&set);
    static const char bad[] = "{\"key\": 1, \"prompt\": \"a\", \"instruction_id_list\": [\"x\"], "
                              "\"kwargs\": [{}]}\n";
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, bad, strlen(bad), NULL), SNAP_OK);
    CU_ASSERT_EQUAL(task_load(&task_ifeval, folder, 0, NULL, &set, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "ifeval.jsonl:1: unknown instruction 'x'"));
    task_set_release(&set);
    (void)unlink(path);
    (void)rmdir(folder);
    free(path);
}

static void test_bad_profiles(void) {
    char folder[] = "/tmp/snapmla-language-XXXXXX";
    static const char *const texts[] = {"{", "{\"name\": \"en\"}",
                                        "{\"name\": \"much too long\", \"freq\": "
                                        "{}, \"n_words\": []}",
                                        "{\"name\": \"en\", \"freq\": {\"abcd\": 1, "
                                        "\"a\": 1e300, \"b\": \"x\"}, \"n_words\": [0, 1]}"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    char *path = fs_join(folder, "en");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        language_profiles *p;
        snap_err err = {0};
        CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, texts[i], strlen(texts[i]), NULL), SNAP_OK);
        CU_ASSERT_EQUAL(language_open(&p, folder, &err), SNAP_E_INPUT);
        CU_ASSERT(p == NULL && err.text[0]);
    }
    (void)unlink(path);
    (void)rmdir(folder);
    free(path);
}

CU_TestInfo tests_ifeval[] = {
    {"verdicts of the public checker", test_verdicts_of_the_public_checker},
    {"languages without profiles", test_languages_without_profiles},
    {"a response is graded strictly and loosely", test_readings},
    {"bad golds are refused", test_bad_golds},
    {"words, sentences, capitals", test_counts},
    {"hostile texts", test_hostile_texts},
    {"texts that are JSON", test_json_texts},
    {"rows of the data file", test_rows},
    {"bad profiles", test_bad_profiles},
    CU_TEST_INFO_NULL,
};
