#include <CUnit/CUnit.h>
#include <gmp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "evals/math/math_equal.h"

enum { kPairBytes = 512 };

static math_verdict judge(const char *gold, const char *answer, math_policy policy) {
    math_verdict v = {0};
    CU_ASSERT_EQUAL(math_equal(gold, strlen(gold), answer, strlen(answer), policy, &v), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v.reason);
    return v;
}

static void expect(const char *gold, const char *answer, math_policy policy, math_outcome want) {
    math_verdict v = judge(gold, answer, policy);
    if (v.outcome != want)
        printf("\n    %s | %s: got %d (%s), want %d\n", gold, answer, v.outcome, v.reason, want);
    CU_ASSERT_EQUAL(v.outcome, want);
}

typedef struct {
    const char *gold, *answer;
} pair;

/* Compares in both directions, with MATH_FIELD and with MATH_STRICT. */
static void expect_all(const pair *p, size_t n, math_outcome want) {
    for (size_t i = 0; i < n; i++)
        for (int policy = MATH_FIELD; policy <= MATH_STRICT; policy++) {
            expect(p[i].gold, p[i].answer, (math_policy)policy, want);
            expect(p[i].answer, p[i].gold, (math_policy)policy, want);
        }
}

#define EXPECT_ALL(table, want) expect_all(table, sizeof(table) / sizeof((table)[0]), want)

static void test_spellings_of_one_thing(void) {
    static const pair same[] = {
        {"\\frac{3}{7}", "\\dfrac{3}{7}"},
        {"\\frac{3}{7}", "\\frac37"},
        {"\\frac{3}{7}", "\\frac 3 7"},
        {"\\frac{3}{7}", "\\frac3{7}"},
        {"\\frac{3}{7}", "3/7"},
        {"\\frac{3}{7}", "\\\\frac{3}{7}"},
        {"-\\frac{3}{7}", "\\frac{-3}{7}"},
        {"\\sqrt{5}", "\\sqrt5"},
        {"12 \\sqrt{5}", "12\\sqrt{5}"},
        {"12 \\sqrt{5}", "12 \\cdot \\sqrt{5}"},
        {"14\\%", "= 14\\%"},
        {"14", "\\theta = 14\\%"},
        {"\\frac{1}{6}", "x = \\frac{1}{6}\\%"},
        {"\\frac12", "=\\frac12"},
        {"\\frac{1}{2}", "= 0.5"},
        {"2\\pi t", "\\pi \\cdot 2t"},
        {"2t", "t \\cdot 2"},
        {"x > 1", "1 < x"},
        {"\\log_{9} 19", "\\frac{\\ln 19}{\\ln 9}"},
        {"\\frac{\\log_{2} 15}{3}", "\\frac{\\log_2 15}{3}"},
        {"2\\pi", "2*\\pi"},
        {"2\\pi", "2\u03c0"},
        {"7", "$7$"},
        {"7", "\\boxed{7}"},
        {"7", "\\text{7}"},
        {"7", "7."},
        {"7", "07"},
        {"-7", "\u22127"},
        {"7", "7.0"},
        {"0.5", ".5"},
        {"3.25", "3.250"},
        {"41,300", "41300"},
        {"41,300", "41{,}300"},
        {"41,300", "41,\\!300"},
        {"7", "7^\\circ"},
        {"7", "7^{\\circ}"},
        {"7", "7\u00b0"},
        {"7", "7 degrees"},
        {"7", "\\$7"},
        {"7", "7\\text{ cm}"},
        {"7", "7\\mbox{ inches}^2"},
        {"7", "7\\,\\mathrm{km}"},
        {"7", "7 cm"},
        {"7", "7\\mathrm{~cm}^2"},
        {"7", "\\mathbf{7}"},
        {"7", "7\\text{.}"},
        {"-7", "-7 \\text{ m}^2."},
        {"7", "7\\%."},
        {"7.5", "7.5\\text{ percent}"},
        {"x+1", "x+1\\text{ percent}"},
        {"7", "\\approx 7"},
        {"1440", "1 440"},
        {"-x", "-X"},
        {"x = 7", "X = 7"},
        {"\\pi r^2", "\\pi R^2"},
        {"\\sin x", "sin x"},
        {"7\\%", "7%"},
        {"x = 7", "x=7"},
        {"x = 7", "7"},
        {"x = 41,300", "41,300"},
        {"41,300", "x = 41,300"},
        {"41,300", "= 41,300"},
        {"30^\\circ", "\\angle ABC = 30^\\circ"},
        {"\\angle ABC", "\\angle{ABC}"},
        {"\\mathbb{R}", "\\mathbb R"},
        {"\\langle 1,2\\rangle", "\\left\\langle 1, 2 \\right\\rangle"},
        {"0.\\overline{3}", ".\\overline{3}"},
        {"\\frac{ac}{b}", "{ac \\over b}"},
        {"\\frac{3}{7}", "3 \\over 7"},
        {"(1,2)", "\\left( 1, 2 \\right)"},
        {"(x,y) = (1,2)", "(1,2)"},
        {"\\text{(C)}", "C"},
        {"\\text{(C)}", "(C)"},
        {"\\text{(C)}", "\\textbf{(C)}"},
        {"\\text{west}", "West"},
        {"\\overrightarrow{AB} + 1", "\\overrightarrow{AB}+1"},
        {"\\text{right triangle}", "right triangle"},
        {"a - b", "\\text{a-b}"},
        {"121_3", "121_{3}"},
        {"x \\in [1,4]", "[1,4]"},
        {"x \\le 4", "x \u2264 4"},
        {"\\begin{pmatrix} 1 \\\\ 2/3 \\end{pmatrix}",
         "\\begin{bmatrix}1\\\\ \\frac23\\end{bmatrix}"},
        {"\\begin{pmatrix} 1 & 2 \\end{pmatrix}",
         "\\left(\\begin{array}{cc} 1 & 2 \\end{array}\\right)"},
    };
    EXPECT_ALL(same, MATH_EQUAL);
}

static void test_values_that_agree(void) {
    static const pair same[] = {
        {"\\sqrt{45}", "3\\sqrt{5}"},
        {"\\frac{1}{\\sqrt{3}}", "\\frac{\\sqrt{3}}{3}"},
        {"\\sqrt{3+2\\sqrt{2}}", "1+\\sqrt{2}"},
        {"2^{1/3}", "\\sqrt[3]{2}"},
        {"\\sqrt[3]{-8}+\\sqrt{2}", "\\sqrt{2}-2"},
        {"\\log_2 12", "2+\\log_2 3"},
        {"\\ln 8", "3\\ln 2"},
        {"\\sin 75^\\circ", "\\sin(75^\\circ)"},
        {"\\frac{3}{2}", "2.25^{0.5}"},
        {"\\sqrt{x}", "x^{0.5}"},
        {"28x", "4(7)x"},
        {"314x", "3.14 \\cdot 10^2 x"},
        {"\\frac{1}{3}", "\\frac{1}{3}."},
        {"-0.5", "-0.5."},
        {"x = 9", "9 - x = 0"},
        {"x = a+3", "2x = 2a+6"},
        {"x = 9", "=9"},
        {"x = 9", "x = 9."},
        {"0.0226", "2.26 \\cdot 10^{-2}"},
        {"\\arctan\\frac12+\\arctan\\frac13", "\\frac{\\pi}{4}"},
        {"e^{2x}", "(e^x)^2"},
        {"\\cot x", "\\frac{\\cos x}{\\sin x}"},
        {"\\ln^3 2", "\\ln(2)^3"},
        {"\\sin^2 x", "1-\\cos^2 x"},
        {"\\sin^{-1} x", "\\arcsin x"},
        {"x^2-1", "(x-1)(x+1)"},
        {"\\frac{x^2-1}{x-1}", "x+1"},
        {"\\frac{1}{x}-\\frac{1}{x+1}", "\\frac{1}{x(x+1)}"},
        {"2^{25}\\cdot 3!", "201326592.0 x^0"},
        {"\\binom{10}{3}x", "120x"},
        {"3 \\frac{1}{2}", "3.5"},
        {"3 1/2", "3.5"},
        {"|{-3}|x", "3x"},
        {"\\lfloor \\sqrt{10} \\rfloor x", "3x"},
        {"y = 2x+3", "2x - y + 3 = 0"},
        {"x < 3", "3 > x"},
        {"1 < 2x \\le 3", "1 < x+x \\le 3"},
    };
    EXPECT_ALL(same, MATH_EQUAL);
}

/* Pairs that the three public graders do not all equate; no grader equates most of them. Most are
 * equal to a human; evals/math/README.md lists their kinds. */
static void test_values_graders_do_not_all_equate(void) {
    static const pair other[] = {
        {"\\frac{1}{2}", "\\sin 30^\\circ"},
        {"\\frac{1}{3}", "0.\\overline{3}"},
        {"\\sqrt{66}", "66^{0.5}"},
        {"15\\sqrt{3}", "15 \\cdot 3^{0.5}"},
        {"x < 3", "2x < 6"},
        {"1 < x \\le 2", "2 \\ge x > 1"},
        {"\\vec{v}", "v"},
        {"\\mathbb{R}", "R"},
        {"(1,2)", "\\langle 1,2\\rangle"},
        {"7+i", "(2+i)(3-i)"},
        {"1+2i", "i(2-i)"},
        {"\\frac{1-i}{2}", "\\frac{1}{1+i}"},
        {"\\frac{1+i\\sqrt{3}}{2}", "e^{i\\pi/3}"},
        {"2i", "\\sqrt{-4}"},
        {"5", "|3+4i|"},
        {"(1,1)", "1,1"},
        {"(4,9)", "\\bigl((4,9)\\bigr)"},
        {"y = 3x", "\\big(y = 3x\\big)"},
        {"\\frac{3\\pm\\sqrt{7}}{2}", "\\frac12(3\\pm\\sqrt7)"},
        {"2\\pm6\\sqrt3", "2(1\\pm3\\sqrt3)"},
        {"\\pm\\sqrt{3}", "-\\pm\\sqrt{3}"},
        {"f(x) = 1\\pm\\sqrt2", "1\\pm\\sqrt2"},
        {"9", "x=\\text{9}"},
        {"9", "\\mathbf{9} \\approx 8.9"},
        {"9", "\\text{9 \\text{ (about)}}"},
        {"2.7", "\\mbox{2.7}"},
        {"1,500", "1,500\\,\\text{m}"},
        {"\\sqrt3", "\\sqrt{3}~\\text{m}"},
        {"6", "{6\\text{ m}}"},
        {"12", "3 \\cdot 4\\%"},
        {"12", "\\sqrt{144}\\%"},
        {"-\\frac{7}{2}", "-3 1/2"},
        {"4", "3 4/4"},
        {"30", "5\\binom{4}{2}"},
        {"\\sqrt{13}", "\\sqrt(13)"},
        {"\\sqrt{13}", "sqrt{13}"},
        {"3", "\\text{2+1}"},
        {"4", "\\sqrt{16}\\\\"},
        {"5", "5 \\\\ 5"},
        {"5", "\\(5\\text{ m}\\)"},
        {"3\\ln 2", "\\ln(2)^3"},
        {"400", "\\approx +400"},
        {"2\\pi", "2\\pi~\\text{m}"},
        {"\\frac{1}{3}", "\\dfrac{1}{3}."},
        {"\\$0.50", "\\$0.50."},
        {"x=20", "2x=40"},
        {"x=0,y=2", "2x=0,y=2"},
        {"1,2,3", "1,2;3"},
        {"1,2", "1 and and 2"},
        {"x+1", "=1+x"},
        {"x+y=1", "x+y=1=1"},
        {"-\\frac{7}{17}", "\\tan(2\\arctan\\frac15-\\frac{\\pi}{4})"},
        {"\\log_{9} 19", "\\frac{\\log_{9} 19}{1}"},
        {"3", "\\frac{\\log_{10} 1000}{1}"},
        {"15", "\\binom 62"},
        {"\\frac35", "\\frac351"},
        {"15 \\text{ cm}^2", "15 \\text{ cm}^02"},
        {"\\frac{20}{7}", "\\frac { 20 } { 7 }."},
        {"2\\sqrt{2}", "= 2 \\cdot \\sqrt{2}"},
        {"106", "= (106)"},
        {"3", "= +3"},
        {"2.5", "= 2\\frac12"},
        {"f(x) = \\sqrt2", "\\sqrt2\\%"},
        {"\\sqrt2", "f(x) = \\sqrt2\\%"},
        {"m > 1", "1 < m"},
        {"2\\pi r h", "2\\pi h r"},
        {"3x+y+2t", "2t+3x+y"},
        {"3t, 2", "2, 3t"},
        {"\\sqrt{2} m", "m\\sqrt{2}"},
        {"61,328", "61,328+0"},
        {"100,200", "100, 2 \\cdot 100"},
        {"\\frac{1}{3}", "$\\frac{1}{3}.$"},
        {"5\\text{ cm}", "2\\text{ cm}+3\\text{ cm}"},
        {"\\frac{3}{4}", "x = 3(\\frac{1}{4})"},
        {"x = 14", "x = 2(7)"},
        {"\\frac{1}{2}", "\\frac{2}{4}\\%"},
        {"\\frac{1}{6}", "\\theta = \\frac{1}{6}\\%"},
        {"14.5", "\\theta = 14.5\\%"},
        {"4", "\\frac{4 \\text{ ways}}{1}"},
        {"(1,2),(3,4)", "(x,y) = (1,2), (x,y) = (3,4)"},
        {"2,125", "2; 125"},
        {"62", "=62 \\approx 61.9"},
        {"62", "62 \\approx 61.9 = 1"},
        {"62", "62 \\approx 61.9..."},
        {"\\frac{1}{3}", "\\frac{1}{3} \\approx 0.333\\\\"},
        {"26", "$26\u00b0$"},
        {"\\frac{1}{2}", "\\text{2/4}"},
        {"y=2x", "y+1=2x hours+1"},
        {"2", "\\sqrt{4\\text{ cm}}"},
        {"34", "3.4 \\times 10{1}"},
        {"4000", "{4000}~\\text{m/s}"},
    };
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        for (int policy = MATH_FIELD; policy <= MATH_STRICT; policy++)
            CU_ASSERT_NOT_EQUAL(judge(other[i].gold, other[i].answer, (math_policy)policy).outcome,
                                MATH_EQUAL);
    static const pair integers[] = {
        {"28", "4(7)"},
        {"28", "\\frac{5(28)}{5}"},
        {"28", "(2)(14)"},
        {"28", "20+2(4)"},
        {"58,500", "\\frac{58,500}{1}"},
        {"15,042", "15, 42"},
        {"226", "2.26 \\cdot 10^{2}"},
        {"-226", "-2.26 \\times 10^2"},
        {"28", "\\frac{5(\\frac{28}{1})}{5}"},
        {"-28", "(-14)(2)"},
        {"-28", "(-14)2"},
    };
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
        expect(integers[i].gold, integers[i].answer, MATH_FIELD, MATH_DIFFERENT);
    expect("0", "\\text{(b) 0}", MATH_FIELD, MATH_DIFFERENT);
    expect("15,000", "15,000 exactly", MATH_FIELD, MATH_DIFFERENT);
}

static void test_values_that_differ(void) {
    static const pair other[] = {
        {"\\frac{3}{7}", "\\frac{7}{3}"},
        {"\\frac{3}{7}", "-\\frac{3}{7}"},
        {"\\frac{1}{3}", "0.333333333"},
        {"\\pi", "3.14159265358979"},
        {"\\sqrt{5}", "5"},
        {"\\sqrt{5}", "\\sqrt[3]{5}"},
        {"\\sqrt{x^2}", "x"},
        {"1", "1+10^{-60}"},
        {"\\sqrt{2}", "\\sqrt{2}+10^{-40}"},
        {"2305843009213693951", "0"},
        {"41,300", "41.300"},
        {"7", "-7"},
        {"7", "7x"},
        {"7", "7!"},
        {"k", "m"},
        {"x_1", "x_2"},
        {"2k+2", "2k-2"},
        {"x = 7", "y = 8"},
        {"x = 7", "x = 8"},
        {"y = 2x+3", "y = 2x-3"},
        {"x < 3", "x > 3"},
        {"x < 3", "x \\le 3"},
        {"(3,4]", "(3,4)"},
        {"(3,4]", "[3,4]"},
        {"(3,4)", "(4,3)"},
        {"(3,4)", "(3,4,5)"},
        {"(3,4]", "3 < x \\le 4"},
        {"(3,\\infty)", "(3,-\\infty)"},
        {"(-\\infty,1)\\cup(2,3)", "(-\\infty,1)"},
        {"(-\\infty,1)\\cup(2,3)", "(-\\infty,1)\\cap(2,3)"},
        {"1,2,3", "1,2"},
        {"1,2", "1,2,2"},
        {"3 \\pm \\sqrt{2}", "3+\\sqrt{2}"},
        {"\\text{west}", "\\text{east}"},
        {"\\text{(C)}", "\\text{(D)}"},
        {"121_3", "121_4"},
        {"121_3", "121"},
        {"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix} 1 & 2 \\end{pmatrix}"},
        {"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix} 1 \\\\ 3 \\end{pmatrix}"},
        {"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "(1,2)"},
        {"\\emptyset", "0"},
        {"\\infty", "1"},
    };
    EXPECT_ALL(other, MATH_DIFFERENT);
}

static void test_texts_that_are_not_answers(void) {
    static const pair unread[] = {
        {"7", ""},
        {"7", "   "},
        {"7", "7 is the answer"},
        {"7", "\\frac{7"},
        {"7", "7+"},
        {"7", "(7"},
        {"7", "(7]"},
        {"7", "\\unknown{7}"},
        {"7", "\xff\xfe"},
        {"7", "7\xc0\x80"},
        {"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix} 1 \\\\ 2 \\end{pma"},
        {"\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}",
         "\\begin{vmatrix} 1 & 2 \\\\ 3 & 4 \\end{vmatrix}"},
        {"\\sqrt{3}", "\\sqrt{3}."},
        {"\\$7.50", "\\$7.50."},
        {"7", "**7**"},
        {"7", "`7`"},
        {"\\sqrt{3}", "\u221a3"},
        {"x^2+1", "x\u00b2+1"},
        {"2x+1", "2\u00b7x+1"},
        {"-7", "\u20137"},
        {"(1,\\infty)", "(1,\u221e)"},
        {"\\sqrt{3}", "\\sqrt{3}\u00b0"},
        {"(1,2)", "(1,2)\u00b0"},
        {"x^2", "x**2"},
        {"7", "7 cm^2"},
        {"7", "7 meters^{\\circ}"},
        {"7", "(7 \\text{ km})"},
        {"7", "7\\text{ cm} \\approx 7"},
        {"2x", "\\approx 2x"},
        {"x+1", "\\mbox{x+1}"},
        {"7 \\text{ cm}", "\\text{Area} = 7 \\text{ cm}"},
        {"7", "|7 \\text{ cm}|"},
        {"x \\in [1,2]", "(x \\in [1,2])"},
        {"(1,2)\\cup(3,4)", "[(1,2)\\cup(3,4)]"},
        {"1", "cos(0)"},
        {"\\ln 2", "ln(2)"},
        {"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{array} 1 \\\\ 2 \\end{array}"},
        {"7.5", "7.5 percent"},
        {"x+1", "x+1 percent"},
        {"x \\le 7", "x \\le 7 percent"},
        {"2x+1", "\\mathbf{2x+1}"},
        {"1440", "1\\,440"},
        {"(1,2)", "x = (1,2) = (1,2)"},
    };
    EXPECT_ALL(unread, MATH_UNPARSED);
    /* the thousands separator may have another meaning */
    static const pair separated[] = {
        {"1440", "x = 1,440"},       {"58,500", "\\theta = 58,500"},    {"58,500", "2+3=58,500"},
        {"58,500", "f(x) = 58,500"}, {"58,500", "58,500 \\approx 1.2"}, {"58,500", "58 500"},
        {"58,500", "AB = 58,500"},
    };
    for (size_t i = 0; i < sizeof(separated) / sizeof(separated[0]); i++)
        expect(separated[i].gold, separated[i].answer, MATH_FIELD, MATH_UNPARSED);
    expect("", "", MATH_FIELD, MATH_UNPARSED);
    CU_ASSERT(judge("\\frac{7", "7", MATH_FIELD).gold_unread);
    CU_ASSERT_FALSE(judge("7", "\\frac{7", MATH_FIELD).gold_unread);
    CU_ASSERT_EQUAL(math_equal(NULL, 0, "7", 1, MATH_FIELD, &(math_verdict){0}), SNAP_E_USAGE);
}

/* 2^{1/2^{1000}} is not 1, although the first 300 digits are equal. Such answers are refused. */
static void test_values_too_close_to_distinguish(void) {
    static const pair close[] = {
        {"1", "2^{\\frac{1}{2^{1000}}}"},
        {"1", "\\sqrt[1000]{\\sqrt[1000]{2^{\\frac{1}{2^{140}}}}}"},
        {"1", "\\cos(10^{-40})"},
        {"1", "\\tanh 70"},
        {"\\sqrt{2}", "\\sqrt{2}+10^{-60}"},
        {"\\frac{\\pi}{2}", "\\arctan(10^{60})"},
        {"2", "\\sqrt{4+10^{-70}}"},
    };
    for (size_t i = 0; i < sizeof(close) / sizeof(close[0]); i++) {
        math_verdict v = judge(close[i].gold, close[i].answer, MATH_FIELD);
        CU_ASSERT_EQUAL(v.outcome, MATH_DIFFERENT);
        CU_ASSERT_STRING_EQUAL(v.reason, "too close to distinguish");
    }
    expect("1", "1^{\\frac{1}{2^{1000}}}", MATH_FIELD, MATH_EQUAL);
    expect("\\sqrt{5}", "\\sqrt[1000]{1}\\sqrt{5}", MATH_FIELD, MATH_EQUAL);
}

/* If the gold cannot be parsed, an answer with the same text after a short name equals it. */
static void test_names_of_unparsed_golds(void) {
    expect("11: 4", "x = 11: 4", MATH_FIELD, MATH_EQUAL);
    expect("\\{x \\mid x \\ge 1\\}", "S=\\{x \\mid x \\ge 1\\}", MATH_FIELD, MATH_EQUAL);
    expect("11: 4", "x = 11: 5", MATH_FIELD, MATH_UNPARSED);
    expect("11: 4", "x = 1 = 11: 4", MATH_FIELD, MATH_UNPARSED);
}

/* Lists with repeated members are equal only if they also have the same number of different
 * members. Names make members different, because Math-Verify compares sets. A single symbol
 * before the whole list ("x = 2,2") does not count as a name. */
static void test_members_that_repeat(void) {
    static const pair equal[] = {
        {"2,2", "x = 2,2"},        {"2,2", "\\theta = 2,2"},       {"2,2,3", "x=2,x=2,x=3"},
        {"2,2,3", "3, 2, 2"},      {"3,2,2", "f(x) = 3,2,2"},      {"2,3", "x=2, y=3"},
        {"x=2, y=2", "y=2, x=2"},  {"2,2,3", "f(x)=2, f(x)=2, 3"}, {"x=1, x=1", "1,1"},
        {"\\{2,3\\}", "x=2, y=3"},
    };
    for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++)
        expect(equal[i].gold, equal[i].answer, MATH_FIELD, MATH_EQUAL);
    static const pair different[] = {
        {"2,2", "f(x) = 2,2"},      {"12,12,12", "f(x)=12,12,12"},
        {"2,2", "AB = 2, 2"},       {"2,2", "x=2, y=2"},
        {"2,2", "2, x=2"},          {"x=2, y=2", "2,2"},
        {"2,2,3", "x=2, y=2, z=3"}, {"2,3,3", "f(x) = 3,2,3"},
        {"2,2,2", "x=2, x=2, 2"},   {"\\{2,2\\}", "x=2, y=2"},
        {"\\{2,2\\}", "f(x)=2,2"},  {"x=2,2", "f(x)=2,2"},
        {"2,2", "x = y = 2,2"},     {"2,2", "x_1=2, x_2=2"},
    };
    EXPECT_ALL(different, MATH_DIFFERENT);
}

/* Cases of the table in math_equal.h, and some more. */
static void test_policies(void) {
    static const struct {
        const char *gold, *answer;
        math_outcome field, strict;
    } rows[] = {
        {"\\frac{1}{2}", "\\frac{2}{4}", MATH_EQUAL, MATH_DIFFERENT},
        {"\\frac{1}{2}", "0.5", MATH_EQUAL, MATH_EQUAL},
        {"2", "\\frac{4}{2}", MATH_EQUAL, MATH_DIFFERENT},
        {"2", "2.0", MATH_EQUAL, MATH_EQUAL},
        {"1,-2", "-2,1", MATH_EQUAL, MATH_DIFFERENT},
        {"1,-2", "\\{-2,1\\}", MATH_EQUAL, MATH_DIFFERENT},
        {"1,-2", "1 \\text{ and } -2", MATH_EQUAL, MATH_EQUAL},
        {"1,-2", "x=1 \\text{ or } x=-2", MATH_EQUAL, MATH_EQUAL},
        {"(1,-2)", "1,-2", MATH_EQUAL, MATH_DIFFERENT},
        {"(1,-2)", "-2,1", MATH_DIFFERENT, MATH_DIFFERENT},
        {"3 \\pm \\sqrt{2}", "3-\\sqrt{2}, 3+\\sqrt{2}", MATH_EQUAL, MATH_EQUAL},
        {"50", "50\\%", MATH_EQUAL, MATH_EQUAL},
        {"0.5", "50\\%", MATH_EQUAL, MATH_DIFFERENT},
        {"50\\%", "0.5\\%", MATH_DIFFERENT, MATH_DIFFERENT},
        {"100,200", "200,100", MATH_DIFFERENT, MATH_DIFFERENT},
        {"100,200", "100, 200", MATH_EQUAL, MATH_EQUAL},
        {"100,200", "x = 100, y = 200", MATH_DIFFERENT, MATH_DIFFERENT},
        {"1,625", "b_1 = 1, X_2 = 625", MATH_DIFFERENT, MATH_DIFFERENT},
        {"7", "7 \\text{ or } 7", MATH_EQUAL, MATH_DIFFERENT},
        {"\\frac{1}{2}, 0.5", "\\frac{1}{2}", MATH_EQUAL, MATH_DIFFERENT},
        {"7", "a=7, b=7", MATH_DIFFERENT, MATH_DIFFERENT},
        {"7", "7 \\text{ or } 8", MATH_DIFFERENT, MATH_DIFFERENT},
        {"5", "2+3=5", MATH_EQUAL, MATH_DIFFERENT},
        {"5", "m+n=5", MATH_EQUAL, MATH_DIFFERENT},
        {"i", "i = i", MATH_EQUAL, MATH_DIFFERENT},
        {"m+n=5", "5", MATH_DIFFERENT, MATH_DIFFERENT},
        {"5", "x = 10/2 = 5", MATH_EQUAL, MATH_EQUAL},
        {"\\frac{1}{3}", "\\frac13 \\approx 0.333", MATH_EQUAL, MATH_DIFFERENT},
        {"(0,1)\\cup(2,3)", "(2,3)\\cup(0,1)", MATH_EQUAL, MATH_DIFFERENT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect(rows[i].gold, rows[i].answer, MATH_FIELD, rows[i].field);
        expect(rows[i].gold, rows[i].answer, MATH_STRICT, rows[i].strict);
    }
}

static int small(rng *r) {
    return 1 + (int)rng_below(r, 40);
}

/* Compares products of linear factors with their coefficients, which are multiplied out here. If
 * one coefficient is off by one, the polynomials differ. */
static void test_random_polynomials(void) {
    rng r = rng_make(7, 0);
    for (int k = 0; k < 500; k++) {
        char gold[kPairBytes], right[kPairBytes], wrong[kPairBytes];
        int a = small(&r), b = small(&r), c = small(&r), d = small(&r), q = small(&r);
        int c2 = a * c, c1 = a * d + b * c, c0 = b * d, off = (int)rng_below(&r, 3);
        snprintf(gold, sizeof gold, "\\frac{(%dx+%d)(%dx+%d)}{%dy}", a, b, c, d, q);
        snprintf(right, sizeof right, "\\frac{1}{%dy}\\left(%d+%d x+%dx^2\\right)", q, c0, c1, c2);
        snprintf(wrong, sizeof wrong, "\\frac{1}{%dy}\\left(%d+%d x+%dx^2\\right)", q,
                 c0 + (off == 0), c1 + (off == 1), c2 + (off == 2));
        expect(gold, right, MATH_FIELD, MATH_EQUAL);
        expect(gold, wrong, MATH_FIELD, MATH_DIFFERENT);
    }
}

/* Compares (a + b sqrt n)(c + d sqrt n) and 1 / (a + b sqrt n) with their normal forms, which are
 * computed here. */
static void test_random_radicals(void) {
    rng r = rng_make(8, 0);
    for (int k = 0; k < 300; k++) {
        char gold[kPairBytes], right[kPairBytes], wrong[kPairBytes];
        int a = small(&r), b = small(&r), c = small(&r), d = small(&r), n = 2 + small(&r);
        snprintf(gold, sizeof gold, "(%d+%d\\sqrt{%d})(%d+%d\\sqrt{%d})", a, b, n, c, d, n);
        snprintf(right, sizeof right, "%d+%d\\sqrt{%d}", a * c + b * d * n, a * d + b * c, n);
        snprintf(wrong, sizeof wrong, "%d+%d\\sqrt{%d}", a * c + b * d * n, a * d + b * c + 1, n);
        expect(gold, right, MATH_FIELD, MATH_EQUAL);
        expect(gold, wrong, MATH_FIELD, MATH_DIFFERENT);
        snprintf(gold, sizeof gold, "\\frac{1}{%d+%d\\sqrt{%d}}", a, b, n);
        if (a * a == b * b * n)
            continue;
        snprintf(right, sizeof right, "\\frac{%d-%d\\sqrt{%d}}{%d}", a, b, n, a * a - b * b * n);
        snprintf(wrong, sizeof wrong, "\\frac{%d-%d\\sqrt{%d}}{%d}", a, b, n,
                 a * a - b * b * n + 1);
        expect(gold, right, MATH_FIELD, MATH_EQUAL);
        expect(gold, wrong, MATH_FIELD, MATH_DIFFERENT);
    }
}

/* Fractions of integers: cross-multiplication in integers decides which are equal. */
static void test_random_fractions(void) {
    rng r = rng_make(9, 0);
    for (int k = 0; k < 2000; k++) {
        char gold[kPairBytes], answer[kPairBytes];
        int a = small(&r), b = small(&r), c = small(&r), d = small(&r);
        if (k % 2) {
            c = a * 3;
            d = b * 3;
        }
        bool same = a * d == b * c, written = a == c && b == d;
        snprintf(gold, sizeof gold, "\\frac{%d}{%d}", a, b);
        snprintf(answer, sizeof answer, "%d/%d", c, d);
        expect(gold, answer, MATH_FIELD, same ? MATH_EQUAL : MATH_DIFFERENT);
        expect(gold, answer, MATH_STRICT, written ? MATH_EQUAL : MATH_DIFFERENT);
    }
}

/* ---- hostile answers ---- */

static char *repeated(const char *unit, size_t times, const char *tail) {
    size_t n = strlen(unit);
    char *s = calloc(1, n * times + strlen(tail) + 1);
    if (!s)
        abort();
    for (size_t i = 0; i < times; i++)
        memcpy(s + i * n, unit, n);
    memcpy(s + n * times, tail, strlen(tail));
    return s;
}

/* Bytes that MPFR and GMP hold now, and the largest number at once. */
static size_t held, peak;

static void *count_alloc(size_t n) {
    held += n;
    peak = held > peak ? held : peak;
    return malloc(n);
}

static void *count_realloc(void *p, size_t old, size_t n) {
    held = held - old + n;
    peak = held > peak ? held : peak;
    return realloc(p, n);
}

static void count_free(void *p, size_t n) {
    held -= n;
    free(p);
}

/* None of these answers needs a time limit: each ends with the given reason and is not equal, and
 * GMP and MPFR hold less than 1 MiB. */
static void test_hostile_answers_meet_a_limit(void) {
    static const struct {
        const char *unit;
        size_t times;
        const char *tail, *reason;
    } rows[] = {
        {"{", 1 << 20, "", "longer than 4096 bytes"},
        {"+", 2000, "1", "too many tokens"},
        {"(", 500, "", "nested too deeply"},
        {"2^", 300, "2", "nested too deeply"},
        {"\\sqrt{", 300, "", "nested too deeply"},
        {"\\sin ", 300, "x", "nested too deeply"},
        {"x!", 1, "!!!!!!!!!!", "nested too deeply"},
        {"\\text{", 400, "", "a \\text within a \\text"},
        {"(1<", 8, "x)<1)", "a relation within a relation"},
        {"\\arctan x+", 300, "1", "too costly to evaluate"},
        {"\\sqrt2+2000!", 170, "", "too close to distinguish"},
        {"10^{10^{10^{10}}}", 1, "", "a value is undefined or too large"},
        {"e^{e^{e^{e^e}}}", 1, "", "a value is undefined or too large"},
        {"\\sin(10^{40})", 1, "", "a value is undefined or too large"},
        {"\\sqrt[999999999]{2}", 1, "", "a value is undefined or too large"},
        {"\\frac{1}{0}", 1, "", "a value is undefined or too large"},
        {"\\frac{1}{\\sin\\pi}", 1, "", "a value is undefined or too large"},
        {"999999999!", 1, "", "not comparable as values"},
        {"9!!!!", 1, "", "not comparable as values"},
    };
    void *(*alloc)(size_t), *(*resize)(void *, size_t, size_t);
    void (*release)(void *, size_t);
    mp_get_memory_functions(&alloc, &resize, &release);
    held = peak = 0;
    mp_set_memory_functions(count_alloc, count_realloc, count_free);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *s = repeated(rows[i].unit, rows[i].times, rows[i].tail);
        math_verdict v = judge("\\sqrt{x}", s, MATH_FIELD);
        if (v.outcome == MATH_EQUAL || strcmp(v.reason, rows[i].reason) != 0)
            printf("\n    %.40s: %s, want %s\n", s, v.reason, rows[i].reason);
        CU_ASSERT_NOT_EQUAL(v.outcome, MATH_EQUAL);
        CU_ASSERT_STRING_EQUAL(v.reason, rows[i].reason);
        free(s);
    }
    CU_ASSERT(peak < 1 << 20);
    CU_ASSERT_EQUAL(held, 0);
    mp_set_memory_functions(alloc, resize, release);
}

/* Two lists of 60 members without a common one are compared. Lists of 201 members have too many. */
static void test_long_lists(void) {
    char gold[4096], answer[4096];
    size_t n = 0, m = 0;
    for (int i = 0; i < 60; i++) {
        n += (size_t)snprintf(gold + n, sizeof gold - n, "%s\\sqrt{%d}", i ? "," : "", i + 2);
        m += (size_t)snprintf(answer + m, sizeof answer - m, "%s\\sqrt{%d}", i ? "," : "", i + 102);
    }
    CU_ASSERT_STRING_EQUAL(judge(gold, answer, MATH_FIELD).reason, "a member without an equal one");
    char *many = repeated("1,", 200, "1"), *more = repeated("1,", 200, "2");
    CU_ASSERT_STRING_EQUAL(judge(many, more, MATH_FIELD).reason, "too many members");
    free(many);
    free(more);
}

/* ---- threads ---- */

static void *grade_in_thread(void *arg) {
    size_t *equal = arg;
    for (int k = 0; k < 200; k++) {
        math_verdict v;
        if (math_equal("\\sqrt{12}+\\pi", 13, "2\\sqrt{3}+\\pi", 13, MATH_FIELD, &v) == SNAP_OK)
            *equal += v.outcome == MATH_EQUAL;
    }
    return NULL;
}

static void test_threads_agree(void) {
    pthread_t threads[4];
    size_t equal[4] = {0};
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, grade_in_thread, &equal[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CU_ASSERT_EQUAL(equal[i], 200);
    }
}

CU_TestInfo tests_math[] = {
    {"spellings of one thing are equal", test_spellings_of_one_thing},
    {"values that agree are equal", test_values_that_agree},
    {"values that differ are different", test_values_that_differ},
    {"values that graders do not all equate are not equal", test_values_graders_do_not_all_equate},
    {"texts that are not answers are unparsed", test_texts_that_are_not_answers},
    {"values too close to distinguish are not equal", test_values_too_close_to_distinguish},
    {"a name before the text of a gold that is no formula", test_names_of_unparsed_golds},
    {"lists with repeated members", test_members_that_repeat},
    {"field and strict differ as documented", test_policies},
    {"random polynomials against their expansion", test_random_polynomials},
    {"random radicals against their normal form", test_random_radicals},
    {"random fractions against cross-multiplication", test_random_fractions},
    {"hostile answers meet a limit, in little memory", test_hostile_answers_meet_a_limit},
    {"lists of too many members are not compared", test_long_lists},
    {"several threads give the same verdicts", test_threads_agree},
    CU_TEST_INFO_NULL};
