/* Tests graders on whole responses: finding the mathematical answer, lists of boxes, formulas. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "evals/extract.h"
#include "evals/grade.h"
#include "evals/test/growth.h"

static span text_of(const char *s) {
    return (span){s, strlen(s)};
}

static bool is(span s, const char *want) {
    return s.n == strlen(want) && memcmp(s.s, want, s.n) == 0;
}

/* ---- math ---- */

typedef struct {
    const char *gold, *response, *rule, *extracted;
    grade_verdict verdict;
} example;

static void check(const example *e, grade_input in) {
    grade_result r = grader_math_field.grade(e->gold, in);
    bool rule = e->rule ? r.rule && strcmp(r.rule, e->rule) == 0 : !r.rule;
    bool right =
        rule && r.verdict == e->verdict && r.reason && strcmp(r.extracted, e->extracted) == 0;
    if (!right)
        printf("\n%s\n  gave %s, '%s', rule %s: %s\n", e->response, grade_verdict_name(r.verdict),
               r.extracted, r.rule ? r.rule : "none", r.reason);
    CU_ASSERT(right);
}

static const example declared[] = {
    {"\\frac12", "so \\boxed{\\frac{1}{2}}.", "boxed", "\\frac{1}{2}", GRADE_CORRECT},
    {"\\frac12", "so **\\boxed{\\frac{1}{2}}**.", "boxed", "\\frac{1}{2}", GRADE_CORRECT},
    {"-9", "so $\\boxed{-9.}$", "boxed", "-9.", GRADE_CORRECT}, /* a full stop after a number
                                                                   is ignored */
    {"\\sqrt3", "so $\\boxed{\\sqrt3.}$", "boxed", "\\sqrt3.", GRADE_UNPARSED},
    {"7^\\circ", "so $\\boxed{7\u00b0}$", "boxed", "7\u00b0", GRADE_UNPARSED},
    {"7\u00b0", "so $\\boxed{7 \u00b0}$", "boxed", "7 \u00b0", GRADE_CORRECT},
    {"\\frac12", "so $\\boxed{\\dfrac{1}{2}}$, not \\boxed{2", "boxed_earlier", "\\dfrac{1}{2}",
     GRADE_CORRECT},
    {"\\frac12", "<think>\\boxed{\\frac12}</think>\\boxed{2}", "boxed", "2", GRADE_WRONG},
    {"1,2", "\\boxed{1} and \\boxed{2}", "boxed_list", "1, 2", GRADE_CORRECT},
    {"1,2,3", "$\\boxed{3}$, $\\boxed{1}$, and $\\boxed{2}$", "boxed_list", "3, 1, 2",
     GRADE_CORRECT},
    {"1,2", "\\boxed{1} or \\boxed{3}", "boxed_list", "1, 3", GRADE_WRONG},
    {"2", "\\boxed{1} and \\boxed{2}", "boxed_list", "1, 2", GRADE_WRONG},
    {"1,2", "$\\boxed{1},\\boxed{2}$", "boxed_list", "1, 2", GRADE_CORRECT},
    {"1,2", "$\\boxed{1}; \\quad \\boxed{2}$", "boxed_list", "1, 2", GRADE_CORRECT},
    {"1,2", "$\\boxed{1} \\quad \\text{and} \\quad \\boxed{2}$", "boxed_list", "1, 2",
     GRADE_CORRECT},
    {"1,2", "$\\boxed{1}\\mathrm{\\ or\\ }\\boxed{2}$", "boxed_list", "1, 2", GRADE_CORRECT},
    {"1,2", "\\[\\boxed{1}\\] and \\[\\boxed{2}\\]", "boxed_list", "1, 2", GRADE_CORRECT},
    {"1,2", "**\\boxed{1}** or **\\boxed{2}**", "boxed_list", "1, 2", GRADE_CORRECT},
    {"1,2", "$x = \\boxed{1}$ or $x = \\boxed{2}$", "boxed_list", "1, 2", GRADE_CORRECT},
    {"2", "$\\boxed{1}$ and finally $\\boxed{2}$", "boxed", "2", GRADE_CORRECT},
    {"2", "$\\boxed{1}$, order $\\boxed{2}$", "boxed", "2", GRADE_CORRECT},
    {"2", "$\\boxed{1}\\text{ gives }\\boxed{2}$", "boxed", "2", GRADE_CORRECT},
    {"x+1", "The final answer is $1+x$.", "final_answer", "$1+x$", GRADE_CORRECT},
    {"x+1", "**Final answer:** $1+x$.", "final_answer", "$1+x$", GRADE_CORRECT},
    {"x+1", "**Answer: $1+x$**", "answer", "$1+x$", GRADE_CORRECT},
    {"0.5", "The answer is \\(\\frac12\\).", "answer", "\\(\\frac12\\)", GRADE_CORRECT},
    {"\\frac12", "The answer is therefore $\\frac{1}{2}$, as was to be shown.", "answer",
     "$\\frac{1}{2}$", GRADE_CORRECT},
    {"5", "Answer: 5 apples.", "answer", "5", GRADE_CORRECT},
    {"5", "Answer: 6 apples.", "answer", "6", GRADE_WRONG},
};

static const example guessed[] = {
    {"x^2+1", "Hence\n$$f(x) = 1 + x^2.$$\nDone.", "formula", "f(x) = 1 + x^2", GRADE_CORRECT},
    {"9", "so $f(2) = 4 + 5 = 9$, as wanted", "formula", "f(2) = 4 + 5 = 9", GRADE_CORRECT},
    {"y=2x+3", "The line is \\(y = 3 + 2x\\).", "formula", "y = 3 + 2x", GRADE_CORRECT},
    {"\\frac12", "It is\n\\[\n\\frac{1}{2}.\n\\]\n", "formula", "\\frac{1}{2}", GRADE_CORRECT},
    {"17", "There are 17.", "last_sentence", "17", GRADE_CORRECT},
    {"17", "There are 25/17", "last_sentence", "25/17", GRADE_WRONG},
};

static void test_math_declared(void) {
    for (size_t i = 0; i < sizeof declared / sizeof *declared; i++) {
        check(&declared[i], (grade_input){.response = text_of(declared[i].response)});
        check(&declared[i],
              (grade_input){.response = text_of(declared[i].response), .truncated = true});
    }
}

/* An answer that is given directly may have a minus sign before its box. */
static void test_math_given(void) {
    static const example rows[] = {
        {"7", "-\\boxed{7}", "given", "-\\boxed{7}", GRADE_WRONG},
        {"-7", "-\\boxed{7}", "given", "-\\boxed{7}", GRADE_CORRECT},
        {"7", "it is \\boxed{7}", "boxed", "7", GRADE_CORRECT},
        {"314", "\\boxed{3.14 \\times 10^2}", "boxed", "3.14 \\times 10^2", GRADE_CORRECT},
        {"226", "\\boxed{2.26 \\times 10^2}", "boxed", "2.26 \\times 10^2", GRADE_WRONG},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], (grade_input){.response = text_of(rows[i].response), .extracted = true});
}

static void test_math_guessed(void) {
    for (size_t i = 0; i < sizeof guessed / sizeof *guessed; i++) {
        example cut = {guessed[i].gold, guessed[i].response, NULL, "", GRADE_UNPARSED};
        check(&guessed[i], (grade_input){.response = text_of(guessed[i].response)});
        check(&cut, (grade_input){.response = text_of(guessed[i].response), .truncated = true});
    }
}

static void test_math_nothing(void) {
    static const example rows[] = {
        {"5", "", NULL, "", GRADE_UNPARSED},
        {"5", "\\boxed{5", NULL, "", GRADE_UNPARSED},
        {"5", "<think>\\boxed{5}", NULL, "", GRADE_UNPARSED},
        {"5", "I can't say", NULL, "", GRADE_UNPARSED},
        {"5", "\\boxed{\\frac{5}}", "boxed", "\\frac{5}", GRADE_UNPARSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], (grade_input){.response = text_of(rows[i].response)});
}

/* A gold is a bare answer. In each of five notations, it is graded as correct. */
static void test_golds_in_every_notation(void) {
    static const char *const golds[] = {"7",
                                        "-3",
                                        "\\frac{14}{3}",
                                        "\\sqrt{51}",
                                        "(3,\\frac{\\pi}{2})",
                                        "x^3+3x-6",
                                        "36^\\circ",
                                        "\\text{Evelyn}",
                                        "[-2,7]",
                                        "1,-2",
                                        "2516_8",
                                        "\\$18.90",
                                        "10\\%",
                                        "(2,12)\\cup(12,102)",
                                        "x=5",
                                        "3\\pm2\\sqrt{2}",
                                        "\\text{(C)}",
                                        "11,\\!111,\\!111,\\!100",
                                        "\\begin{pmatrix} -1 \\\\ 0.5 \\end{pmatrix}"};
    static const char *const before[] = {"", "\\boxed{", "The final answer is $", "**Answer:** \\(",
                                         "so\n\\[\\boxed{"};
    static const char *const behind[] = {"", "}", "$.", "\\).", "}.\\]"};
    for (size_t i = 0; i < sizeof golds / sizeof *golds; i++) {
        CU_ASSERT_EQUAL(grader_math_field.check_gold(golds[i], NULL), SNAP_OK);
        for (size_t d = 0; d < sizeof before / sizeof *before; d++) {
            char text[200];
            (void)snprintf(text, sizeof text, "%s%s%s", before[d], golds[i], behind[d]);
            grade_input in = {.response = text_of(text), .extracted = d == 0};
            grade_result field = grader_math_field.grade(golds[i], in);
            grade_result strict = grader_math_strict.grade(golds[i], in);
            grade_result truth = grader_math_truth.grade(golds[i], in);
            if (field.verdict != GRADE_CORRECT || strict.verdict != GRADE_CORRECT ||
                truth.verdict != GRADE_CORRECT)
                printf("\n%s: %s, %s, %s\n", text, field.reason, strict.reason, truth.reason);
            CU_ASSERT(field.verdict == GRADE_CORRECT && strict.verdict == GRADE_CORRECT);
            CU_ASSERT_EQUAL(truth.verdict, GRADE_CORRECT);
        }
    }
    CU_ASSERT_EQUAL(grader_math_field.check_gold("", NULL), SNAP_E_INPUT);
}

/* ---- parts of a response ---- */

static void test_formulas(void) {
    static const struct {
        const char *text, *formula; /* NULL: none */
    } rows[] = {
        {"$a$", "a"},
        {"$a$ and $b$", "b"},
        {"$a$ and $b", "a"},
        {"$$a$$", "a"},
        {"$$\na\n$$", "a"},
        {"$a\n$b$", "b"},
        {"it costs \\$5 or $a$", "a"},
        {"\\(a\\)", "a"},
        {"\\[a\\]", "a"},
        {"\\[\na\n\\]", "a"},
        {"\\(\\frac{1}{2}\\)", "\\frac{1}{2}"},
        {"\\[ [a] \\]", "[a]"},
        {"\\[a\\)", NULL},
        {"\\[a", NULL},
        {"$ $", NULL},
        {"", NULL},
        {"\\", NULL},
        {"$", NULL},
        {"$\\$", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        extraction x;
        bool found = extract_formula(text_of(rows[i].text), &x);
        bool right = rows[i].formula ? found && is(x.answer, rows[i].formula) : !found;
        if (!right)
            printf("\n'%s' gave '%.*s'\n", rows[i].text, (int)x.answer.n, x.answer.s);
        CU_ASSERT(right);
    }
}

static void test_lists(void) {
    span parts[2];
    CU_ASSERT_EQUAL(extract_list(text_of("\\boxed{a}, \\boxed{ b } and \\fbox{c}"), parts, 2), 3);
    CU_ASSERT_EQUAL(extract_list(text_of("\\boxed{a} or \\boxed{\\frac{1}{2}}"), parts, 2), 2);
    CU_ASSERT(is(parts[0], "a") && is(parts[1], "\\frac{1}{2}"));
    CU_ASSERT_EQUAL(extract_list(text_of("a, b"), parts, 2), 0);
}

/* Responses that repeat one piece: the time to grade a mebibyte is at most about nine times that
 * for a quarter of it. */
static void test_hostile_responses(void) {
    static const char *const pieces[] = {"$",        "$$a",      "\\[",      "\\(a", "\\boxed{1}, ",
                                         "{",        "}",        "answer: ", "####", "\\",
                                         "$a$ ",     "\\boxed{", "1,",       "9^",   "\\frac{",
                                         "\\[a\\] ", "=",        "\xFF"};
    static const grader *const graders[] = {&grader_math_field, &grader_math_strict, &grader_gsm8k,
                                            &grader_aime};
    for (size_t i = 0; i < sizeof graders / sizeof *graders; i++)
        growth_is_linear(graders[i], "7", pieces, sizeof pieces / sizeof *pieces);
}

CU_TestInfo tests_grade[] = {
    {"math, declared answers", test_math_declared},
    {"math, given answers", test_math_given},
    {"math, guessed answers", test_math_guessed},
    {"math, no answer", test_math_nothing},
    {"golds in every notation", test_golds_in_every_notation},
    {"the formula of a text is found", test_formulas},
    {"several boxes in a row are one list", test_lists},
    {"hostile responses", test_hostile_responses},
    CU_TEST_INFO_NULL,
};
