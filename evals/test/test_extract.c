#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "evals/extract.h"
#include "evals/grade.h"
#include "evals/integer.h"
#include "evals/test/growth.h"

static span text_of(const char *s) {
    return (span){s, strlen(s)};
}

static bool is(span s, const char *want) {
    return s.n == strlen(want) && memcmp(s.s, want, s.n) == 0;
}

/* ---- texts that state an integer ---- */

static void test_integers(void) {
    static const struct {
        const char *text, *want; /* want NULL: not an integer */
    } rows[] = {
        {"204", "204"},
        {"033", "33"},
        {"000", "0"},
        {"-0", "0"},
        {" 204. ", "204"},
        {"204.0", "204"},
        {"204.00", "204"},
        {"+5", "5"},
        {"-17", "-17"},
        {"\xE2\x88\x92"
         "17",
         "-17"},
        {"1,024", "1024"},
        {"1{,}024", "1024"},
        {"1\\,024", "1024"},
        {"1\\!,024", "1024"},
        {"1,000,007", "1000007"},
        {"$204$", "204"},
        {"\\$204", "204"},
        {"\\(204\\)", "204"},
        {"**204**", "204"},
        {"`204`", "204"},
        {"(204)", "204"},
        {"{204}", "204"},
        {"\\text{204}", "204"},
        {"\\textbf{(204)}", "204"},
        {"\\mathbf{\\text{204}}", "204"},
        {"204\\text{ minutes}", "204"},
        {"204 \\text{ cm}^2", "204"},
        {"204\\ \\mathrm{cm}^{2}", "204"},
        {"204~\\text{minutes}", "204"},
        {"204 minutes", "204"},
        {"36^\\circ", "36"},
        {"36^{\\circ}", "36"},
        {"36\xC2\xB0", "36"},
        {"x = 204", "204"},
        {"m+n = 3 + 7 = 10", "10"},
        {"\\boxed{204}", "204"},
        {"\\displaystyle 204", "204"},
        {"the number is 204", "204"},
        {"\\text{The answer is } 204", "204"},
        {"therefore 113 minutes.", "113"},
        {"simple: x is $204$", "204"},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"", NULL},
        {"  ", NULL},
        {"x", NULL},
        {"2.5", NULL},
        {"1,24", NULL},
        {"1,2345", NULL},
        {"3, 5", NULL},
        {"3 or 5", NULL},
        {"3 5", NULL},
        {"5x", NULL},
        {"x^2", NULL},
        {"2^3", NULL},
        {"\\frac{6}{2}", NULL},
        {"6/2", NULL},
        {"\\sqrt{9}", NULL},
        {"2\\pi", NULL},
        {"\\pi - 2", NULL},
        {"x - 2", NULL},
        {"1e3", NULL},
        {"204\\%", NULL},
        {"1001_2", NULL},
        {"--5", NULL},
        {"\\infty", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[INTEGER_MAX] = "";
        bool found = integer_parse(text_of(rows[i].text), got);
        bool right = rows[i].want ? found && strcmp(got, rows[i].want) == 0 : !found;
        if (!right)
            printf("\n'%s' gave '%s'\n", rows[i].text, found ? got : "nothing");
        CU_ASSERT(right);
    }
}

/* Integers from 0 to 999 (every seventh) are read back from each of these notations. */
static void test_integers_round_trip(void) {
    static const char *const forms[] = {"%d",          "%03d",       "$%d$",
                                        "%d.",         "\\text{%d}", "x=%d",
                                        "(%d)",        "%d^\\circ",  "%d\\text{ apples}",
                                        "\\mathbf{%d}"};
    for (int v = 0; v < 1000; v += 7) {
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            char text[64], got[INTEGER_MAX], want[16];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the formats come from the table above */
            (void)snprintf(text, sizeof text, forms[f], v);
#pragma GCC diagnostic pop
            (void)snprintf(want, sizeof want, "%d", v);
            CU_ASSERT(integer_parse(text_of(text), got));
            CU_ASSERT_STRING_EQUAL(got, want);
        }
    }
}

/* ---- finding the answer ---- */

typedef struct {
    const char *response, *rule, *extracted;
    grade_verdict verdict; /* against the gold 204 */
} example;

static void check(const example *e, grade_input in) {
    grade_result r = grader_aime.grade("204", in);
    bool rule = e->rule ? r.rule && strcmp(r.rule, e->rule) == 0 : !r.rule;
    bool right =
        rule && r.verdict == e->verdict && r.reason && strcmp(r.extracted, e->extracted) == 0;
    if (!right)
        printf("\n%s\n  gave %s, '%s', rule %s: %s\n", e->response, grade_verdict_name(r.verdict),
               r.extracted, r.rule ? r.rule : "none", r.reason);
    CU_ASSERT(right);
}

static void test_where_the_answer_stands(void) {
    static const example rows[] = {
        {"so \\boxed{204}.", "boxed", "204", GRADE_CORRECT},
        {"so $\\boxed{ 204 }$", "boxed", "204", GRADE_CORRECT},
        {"so \\fbox{204}", "boxed", "204", GRADE_CORRECT},
        {"so \\boxed {204}", "boxed", "204", GRADE_CORRECT},
        {"so $\\boxed 204$ minutes", "boxed", "204", GRADE_CORRECT},
        {"so \\boxed 204 minutes", "boxed", "204", GRADE_CORRECT},
        {"so \\boxed204", "boxed", "204", GRADE_CORRECT},
        {"\\boxed{\\text{204}}", "boxed", "204", GRADE_CORRECT},
        {"\\boxed{\\boxed{204}}", "boxed", "204", GRADE_CORRECT},
        {"\\\\boxed{204}", "boxed", "204", GRADE_CORRECT},
        {"\\boxed{5} no, \\boxed{204}", "boxed", "204", GRADE_CORRECT},
        {"\\boxed{204} no, \\boxed{5}", "boxed", "5", GRADE_WRONG},
        {"\\boxed{204} and \\boxed{204}", "boxed", "204", GRADE_CORRECT},
        {"\\boxed{\\frac{408}{2}}", "boxed", "\\frac{408}{2}", GRADE_CORRECT},
        {"$\\boxed{204}$ and $\\boxed{5}$", "boxed_list", "\\boxed{204}$ and $\\boxed{5}",
         GRADE_WRONG},
        {"\\boxed{1}, \\boxed{2}, \\boxed{3}", "boxed_list", "\\boxed{1}, \\boxed{2}, \\boxed{3}",
         GRADE_WRONG},
        {"\\boxed{204}. I wrote it within \\boxed{}.", "boxed", "204", GRADE_CORRECT},
        {"\\boxed{204} in a \\boxed environment", "boxed", "204", GRADE_CORRECT},
        {"\\boxed{204}, again: \\boxed{20", "boxed_earlier", "204", GRADE_CORRECT},
        {"\\boxed{204", NULL, "", GRADE_UNPARSED},
        {"I get 204 so \\boxed", NULL, "", GRADE_UNPARSED},
        {"\\boxed{a \\{ 204 \\} }", "boxed", "a \\{ 204 \\}", GRADE_WRONG},
        {"\\boxedfoo{5} answer: 204", "answer", "204", GRADE_CORRECT},
        {"<think>\\boxed{5}</think>\\boxed{204}", "boxed", "204", GRADE_CORRECT},
        {"\\boxed{5} ok</think> \\boxed{204}", "boxed", "204", GRADE_CORRECT},
        {"<think>a</think>b<think>\\boxed{5}</think>\\boxed{204}", "boxed", "204", GRADE_CORRECT},
        {"<think>I think \\boxed{204}", NULL, "", GRADE_UNPARSED},
        {"<think>\\boxed{204}</think>", NULL, "", GRADE_UNPARSED},
        {"<think>5</think> \n ", NULL, "", GRADE_UNPARSED},
        {"The final answer is 204.", "final_answer", "204", GRADE_CORRECT},
        {"Final Answer: $204$", "final_answer", "204", GRADE_CORRECT},
        {"**Final Answer:** 204", "final_answer", "204", GRADE_CORRECT},
        {"**Final answer**: \n\n$$204$$", "final_answer", "204", GRADE_CORRECT},
        {"The final answer is $m+n = 204$. I hope it is correct.", "final_answer", "204",
         GRADE_CORRECT},
        {"ANSWER: 204", "answer", "204", GRADE_CORRECT},
        {"Answer: 5\nwait\nAnswer: 204", "answer", "204", GRADE_CORRECT},
        {"The answer is 5. The final answer is 204. My answer is 7", "final_answer", "204",
         GRADE_CORRECT},
        {"The final answer is 408/2", "final_answer", "408/2", GRADE_CORRECT},
        {"The answer is simple: x is $204$", "answer", "204", GRADE_CORRECT},
        {"Hence $x$ is $204$, done", "formula", "204", GRADE_CORRECT},
        {"Hence $x$ is 204, done", "last_number", "204", GRADE_CORRECT},
        {"Hence it is 1,024", "last_sentence", "1024", GRADE_WRONG},
        {"Hence it is -204", "last_sentence", "-204", GRADE_WRONG},
        {"Hence it is 103-204", "last_sentence", "103-204", GRADE_WRONG},
        {"Hence it is 5/204", "last_sentence", "5/204", GRADE_WRONG},
        {"Hence it is 2.5", "last_sentence", "2.5", GRADE_WRONG},
        {"No idea", NULL, "", GRADE_UNPARSED},
        {"", NULL, "", GRADE_UNPARSED},
        {" \n\t", NULL, "", GRADE_UNPARSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], (grade_input){.response = text_of(rows[i].response)});
}

/* If the length limit cut a response off, its last number is not an answer. */
static void test_truncated_responses_are_not_guessed(void) {
    static const example rows[] = {
        {"so \\boxed{204}", "boxed", "204", GRADE_CORRECT},
        {"answer: 204", "answer", "204", GRADE_CORRECT},
        {"then 204", NULL, "", GRADE_UNPARSED},
        {"then $204$", NULL, "", GRADE_UNPARSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], (grade_input){.response = text_of(rows[i].response), .truncated = true});
    grade_result r =
        grader_aime.grade("204", (grade_input){.response = text_of("\\boxed{204}, \\boxed{2")});
    CU_ASSERT(r.open_box && r.verdict == GRADE_CORRECT);
}

static void test_given_answers(void) {
    static const example rows[] = {
        {"204", "given", "204", GRADE_CORRECT},
        {"$\\boxed{204}$", "given", "204", GRADE_CORRECT},
        {"answer: 5", "given", "5", GRADE_WRONG},
        {"", NULL, "", GRADE_UNPARSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], (grade_input){.response = text_of(rows[i].response), .extracted = true});
}

static void test_golds(void) {
    static const char *const good[] = {"0", "33", "033", "999", "1,024", "-5"};
    static const char *const bad[] = {"", "x", "1/2", "3 or 5", "2.5"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CU_ASSERT_EQUAL(grader_aime.check_gold(good[i], NULL), SNAP_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT_EQUAL(grader_aime.check_gold(bad[i], NULL), SNAP_E_INPUT);
    grade_result r = grader_aime.grade("033", (grade_input){.response = text_of("\\boxed{33}")});
    CU_ASSERT_EQUAL(r.verdict, GRADE_CORRECT);
}

static void test_bytes_outside_text(void) {
    static const char nul[] = "a\0b \\boxed{2\0 4} c\0 \\boxed{204}\0";
    grade_result r = grader_aime.grade("204", (grade_input){.response = {nul, sizeof nul - 1}});
    CU_ASSERT_EQUAL(r.verdict, GRADE_CORRECT);
    static const char inside[] = "\\boxed{2\0"
                                 "4\xFF}";
    r = grader_aime.grade("24", (grade_input){.response = {inside, sizeof inside - 1}});
    CU_ASSERT_EQUAL(r.verdict, GRADE_WRONG);
    r = grader_aime.grade("5", (grade_input){.response = text_of("\\boxed{\xFF\xC3(5)}")});
    CU_ASSERT_STRING_EQUAL(r.extracted, "\xEF\xBF\xBD\xEF\xBF\xBD(5)");
}

/* A long extracted text is cut at a character boundary. */
static void test_extracted_is_cut_between_characters(void) {
    char text[1200] = "\\boxed{";
    for (int i = 0; i < 300; i++)
        strcat(text, "\xE2\x82\xAC");
    strcat(text, "}");
    grade_result r = grader_aime.grade("5", (grade_input){.response = text_of(text)});
    size_t n = strlen(r.extracted);
    CU_ASSERT(n % 3 == 0 && n > 240 && n < GRADE_EXTRACTED_MAX);
}

static void test_hostile_text_takes_linear_time(void) {
    static const char *const pieces[] = {
        "{",
        "}",
        "\\",
        "\\boxed{",
        "\\boxed{}",
        "\\boxed ",
        "\\boxed 5 ",
        "\\boxed{1} and ",
        "\\boxed{1},",
        "\\boxed{1}, \\boxed{2}, ",
        "\\fbox{{}",
        "<think>",
        "</think>",
        "<",
        "answer: ",
        "answer:",
        "final ",
        "final answer is ",
        "$",
        "$ ",
        "\\(",
        "\\( ",
        "5",
        "5,",
        "1.",
        " ",
        "\n",
        "-",
        "answer is 5\n",
        "\\boxed{{{}",
        "a=",
        "\\boxed $",
        "final  \n",
        "answer * ",
    };
    growth_is_linear(&grader_aime, "204", pieces, sizeof pieces / sizeof *pieces);
}

static void test_visible_text(void) {
    bool unfinished;
    CU_ASSERT(is(extract_visible(text_of("a</think>b</think> c"), &unfinished), " c"));
    CU_ASSERT_FALSE(unfinished);
    CU_ASSERT(is(extract_visible(text_of("x</think>y<think>z"), &unfinished), "y"));
    CU_ASSERT_TRUE(unfinished);
    CU_ASSERT(is(extract_visible(text_of("</thin"), &unfinished), "</thin"));
    CU_ASSERT(is(extract_visible(text_of(""), NULL), ""));
}

CU_TestInfo tests_extract[] = {
    {"texts that state an integer", test_integers},
    {"integers round trip", test_integers_round_trip},
    {"where the answer stands", test_where_the_answer_stands},
    {"truncated responses are not guessed", test_truncated_responses_are_not_guessed},
    {"a response that is only an answer", test_given_answers},
    {"golds must be integers", test_golds},
    {"NUL bytes do not hide an answer", test_bytes_outside_text},
    {"extracted is cut between characters", test_extracted_is_cut_between_characters},
    {"hostile text takes linear time", test_hostile_text_takes_linear_time},
    {"text after </think> is the visible text", test_visible_text},
    CU_TEST_INFO_NULL,
};
