/* Tests the grading of mathematics with the policy MATH_TRUTH, which is meant to give a
 * mathematician's verdicts. The inputs are whole responses that make_maths.py, make_endings.py,
 * make_closings.py, make_conclusions.py and make_forms.py in fixtures/ write, pairs of answers, and
 * inputs that exceed limits of the rewriting. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "evals/grade.h"
#include "evals/math/math_equal.h"
#include "evals/math/math_token.h"
#include "evals/test/growth.h"

static span text_of(const char *s) {
    return (span){s, strlen(s)};
}

static void check_case(const js *c) {
    bool integer = strncmp(js_get_str(c, "task"), "aime", 4) == 0;
    const grader *g = integer ? &grader_aime : &grader_math_truth;
    const char *gold = js_get_str(c, "gold"), *response = js_get_str(c, "response");
    bool right = js_get_bool(c, "right", false);
    CU_ASSERT_EQUAL(g->check_gold(gold, NULL), SNAP_OK);
    grade_result r = g->grade(gold, (grade_input){.response = text_of(response)});
    if ((r.verdict == GRADE_CORRECT) != right)
        printf("\n%s: gold %s: %s\n  gave %s, '%s': %s\n", js_get_str(c, "cat"), gold, response,
               grade_verdict_name(r.verdict), r.extracted, r.reason);
    CU_ASSERT_EQUAL(r.verdict == GRADE_CORRECT, right);
}

static void check_file(const char *path, size_t least) {
    buf text = {0};
    size_t rows = 0;
    CU_ASSERT_FATAL(fs_read(path, &text, NULL) == SNAP_OK);
    char *s = text.data, *end;
    for (; s && *s; s = end ? end + 1 : NULL, rows++) {
        end = strchr(s, '\n');
        if (end)
            *end = '\0';
        js *c = js_parse(s, strlen(s), path, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(c);
        check_case(c);
        js_free(c);
    }
    CU_ASSERT(rows > least);
    buf_release(&text);
}

static void test_answers(void) {
    check_file("evals/test/fixtures/maths.jsonl", 300);
}

static void test_endings(void) {
    check_file("evals/test/fixtures/endings.jsonl", 900);
}

static void test_closings(void) {
    check_file("evals/test/fixtures/closings.jsonl", 1000);
}

static void test_conclusions(void) {
    check_file("evals/test/fixtures/conclusions.jsonl", 240);
}

static void test_forms(void) {
    check_file("evals/test/fixtures/forms.jsonl", 700);
}

static math_outcome judge(const char *gold, const char *answer, math_policy policy) {
    math_verdict v = {.outcome = MATH_UNPARSED};
    CU_ASSERT_EQUAL(math_equal(gold, strlen(gold), answer, strlen(answer), policy, &v), SNAP_OK);
    return v.outcome;
}

/* The answer has almost as many tokens as an answer may have, and the conversion of its unit
 * appends more. */
static void test_unit_of_a_long_answer(void) {
    char answer[kMathMaxInput] = "1";
    size_t n = 1;
    for (int i = 0; i < 509; i++, n += 2)
        memcpy(answer + n, "/1", 3);
    memcpy(answer + n, " \\text{cm}^3", 13);
    CU_ASSERT_EQUAL(judge("0.000001 \\text{ m}^3", answer, MATH_TRUTH), MATH_EQUAL);
    CU_ASSERT_EQUAL(judge("0.00001 \\text{ m}^3", answer, MATH_TRUTH), MATH_DIFFERENT);
}

/* Verdicts of MATH_TRUTH. MATH_FIELD differs on most of these pairs. */
static void test_differs_from_field(void) {
    static const struct {
        const char *gold, *answer;
        bool truth;
    } rows[] = {
        {"6:30\\text{ p.m.}", "6:30 \\text{ a.m.}", false},
        {"30^\\circ", "30\\text{ radians}", false},
        {"5\\text{ cm}^2", "5\\text{ cm}^3", false},
        {"\\$5", "5\\text{ cents}", false},
        {"\\frac13", "\\frac13\\%", false},
        {"1,440", "(1,440)", false},
        {"1,440", "\\{1,440\\}", false},
        {"\\sqrt{3}", "\\sqrt{3}.", true},
        {"2\\sqrt{3}", "2√3", true},
        {"4", "\\text{The answer is } 4", true},
        {"28", "4(7)", true},
        {"\\frac13", "0.\\overline{3}", true},
        {"(2,\\infty)", "x > 2", true},
        {"\\frac{1+\\sqrt{19}}{2}, \\frac{1-\\sqrt{19}}{2}", "\\frac{1\\pm\\sqrt{19}}2", true},
        {"2516_8", "2516_{(8)}", true},
        {"1,250", "1\\,250", true},
        {"3+4i", "(2+i)^2", true},
        {"\\frac12", "\\sin 30^\\circ", true},
        {"30^\\circ", "\\frac{\\pi}{6}", true},
        {"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}",
         "\\begin{pmatrix} 1 \\\\[4pt] 2 \\end{pmatrix}", true},
        {"\\log^2 7", "\\log{\\left(7\\right)}^2", true},
        {"145^\\circ", "145\\%", false},
        {"\\$5.50", "€5.50", false},
        {"\\emptyset", "\\{\\emptyset\\}", false},
        {"12", "12:1", false},
        {"\\frac{3}{56}", "\\frac{3}{56} = 0.0536", true},
        {"\\frac{3}{56}", "\\frac{3}{56} = 0.0546", false},
        {"24", "24 \\text{ (or 25)}", false},
        {"\\frac{n(n+1)}{2}", "\\binom{n+1}{2}", true},
        {"(3,4]", "]3,4]", true},
        {"x > 3", "(3,-\\infty)", false},
        {"x < 3", "(\\infty,3)", false},
        {"x \\in \\mathbb{R}", "\\{\\infty\\}", false},
        {"x > 3", "\\infty > x > 3", true},
        {"\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}",
         "\\begin{pmatrix} 1 & 3 \\\\ 2 & 4 \\end{pmatrix}^\\top", true},
        {"\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}",
         "\\begin{pmatrix} 1 & 3 \\\\ 2 & 4 \\end{pmatrix}^\\tau", false},
        {"(3,4]", "x > 3 \\text{ and } x \\le 4", true},
        {"(-\\infty,3)\\cup(4,\\infty)", "x < 3 \\text{ or } x > 4", true},
        {"(0,9)\\cup(9,36)", "(0,36)\\setminus\\{9\\}", true},
        {"\\text{even}", "\\text{an even function}", true},
        {"\\text{even}", "\\text{not an even function}", false},
        {"103", "\\text{one hundred and three}", true},
        {"\\frac23", "\\text{two thirds}", true},
        {"1.5\\text{ liters}", "1500\\text{ mL}", true},
        {"35\\text{ cents}", "\\$0.35", true},
        {"5\\text{ m}", "500\\text{ cm}", true},
        {"5\\text{ m}^2", "50000\\text{ cm}^2", true},
        {"5\\text{ m}^2", "500\\text{ cm}^2", false},
        {"2\\text{ hours}", "120\\text{ minutes}", true},
        {"2\\text{ hours}", "2\\text{ minutes}", false},
        {"0.75", "0.75\\%", false},
        {"0.75", "75\\%", true},
        {"75", "75\\%", true},
        {"37.5", "37\\frac{1}{2}\\%", true},
        {"6\\text{ m}^2", "6 m^2", true},
        {"6\\text{ m}^2", "6 m^3", false},
        {"540", "540 m", true},
        {"18", "\\text{18 apples}", true},
        {"18", "\\text{18 squared}", false},
        {"2\\cos x", "\\frac{\\sin 2x}{\\sin x} = 2\\cos x", true},
        {"2\\cos x", "2\\sin x = 2\\cos x", false},
        {"[0,\\infty)", "\\mathbb{R}_{\\ge 0}", true},
        {"3:30\\text{ p.m.}", "3:30 in the afternoon", true},
        {"3:30\\text{ p.m.}", "3:30 in the morning", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        math_outcome truth = judge(rows[i].gold, rows[i].answer, MATH_TRUTH);
        if ((truth == MATH_EQUAL) != rows[i].truth)
            printf("\n%s for %s\n", rows[i].answer, rows[i].gold);
        CU_ASSERT_EQUAL(truth == MATH_EQUAL, rows[i].truth);
    }
}

/* Inputs that exceed a limit, some only after rewriting, are never equal. */
static void test_limits(void) {
    char roots[4096 + 1] = "";
    for (size_t n = 0; n + 3 <= 4095; n += 3)
        memcpy(roots + n, "\xE2\x88\x9A", 4);
    CU_ASSERT_EQUAL(judge("7", roots, MATH_TRUTH), MATH_UNPARSED);
    CU_ASSERT_EQUAL(judge(roots, "7", MATH_TRUTH), MATH_UNPARSED);
    char nested[2000] = "";
    for (int i = 0; i < 300; i++)
        strcat(nested, "\\text{");
    CU_ASSERT_EQUAL(judge("7", nested, MATH_TRUTH), MATH_UNPARSED);
    char digits[200] = "0.\\overline{";
    memset(digits + strlen(digits), '3', 100);
    strcat(digits, "}");
    CU_ASSERT_NOT_EQUAL(judge("\\frac13", digits, MATH_TRUTH), MATH_EQUAL);
}

static void test_hostile_responses(void) {
    static const char *const pieces[] = {"√",
                                         "answer: ",
                                         "答案：",
                                         "<answer>",
                                         "not ",
                                         ", not ",
                                         "0.\\dot",
                                         "$a$ ",
                                         "입니다",
                                         "is ",
                                         "3 ",
                                         "\\text{",
                                         ", so ",
                                         "(by it) ",
                                         "**3** ",
                                         "Answer\n",
                                         "wait ",
                                         "\"answer\": \"3",
                                         "if n is ",
                                         "\n\n",
                                         "not 5, it is ",
                                         "I hope it helps. ",
                                         "_{3}C_",
                                         "= 3 legs → ",
                                         "\\implies ",
                                         "≈ 6 m ",
                                         ", remainder 3",
                                         "AB + ",
                                         "**3** of 2 ",
                                         "3 1/2 "};
    growth_is_linear(&grader_math_truth, "7", pieces, sizeof pieces / sizeof *pieces);
    growth_is_linear(&grader_aime, "7", pieces, sizeof pieces / sizeof *pieces);
}

CU_TestInfo tests_truth[] = {
    {"answers of models", test_answers},
    {"endings and notations", test_endings},
    {"sentences that close a solution", test_closings},
    {"what the last sentence concludes", test_conclusions},
    {"words, quantities, families, names", test_forms},
    {"pairs on which the policies differ", test_differs_from_field},
    {"the unit of an answer of many tokens", test_unit_of_a_long_answer},
    {"inputs that exceed a limit are never equal", test_limits},
    {"hostile responses", test_hostile_responses},
    CU_TEST_INFO_NULL,
};
