/* Tests how the chosen letter is found in a response to a multiple-choice question, in the ways in
 * which models write it. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "evals/extract.h"
#include "evals/grade.h"
#include "evals/letter_lexicon.h"
#include "evals/test/growth.h"

static const char kEndings[] = "evals/test/fixtures/letters.jsonl";

static span text_of(const char *s) {
    return (span){s, strlen(s)};
}

typedef struct {
    const char *response, *rule, *letter; /* rule NULL: no letter is found */
} example;

static void check(const example *e, grade_input in) {
    grade_result r = grader_letter.grade("C", in);
    bool rule = e->rule ? r.rule && strcmp(r.rule, e->rule) == 0 : !r.rule;
    grade_verdict want = !e->rule                      ? GRADE_UNPARSED
                         : strcmp(e->letter, "C") == 0 ? GRADE_CORRECT
                                                       : GRADE_WRONG;
    bool right = rule && r.verdict == want && strcmp(r.extracted, e->letter) == 0 && r.reason;
    if (!right)
        printf("\n%s\n  gave %s, '%s', rule %s: %s\n", e->response, grade_verdict_name(r.verdict),
               r.extracted, r.rule ? r.rule : "none", r.reason);
    CU_ASSERT(right);
}

static void test_declared(void) {
    static const example rows[] = {
        {"Answer: C", "answer", "C"},
        {"answer: C.", "answer", "C"},
        {"Answer:C", "answer", "C"},
        {"Answer: c", "answer", "C"},
        {"**Answer: C**", "answer", "C"},
        {"**Answer:** C", "answer", "C"},
        {"**Answer**: **C**", "answer", "C"},
        {"__Answer__: C", "answer", "C"},
        {"Answer: $C$", "answer", "C"},
        {"Answer: (C)", "answer", "C"},
        {"Answer: [C]", "answer", "C"},
        {"Answer: \\(C\\)", "answer", "C"},
        {"Answer: \\text{C}", "answer", "C"},
        {"Answer: $\\boxed{C}$", "boxed", "C"},
        {"Answer: \\boxed{\\text{(C)}}", "boxed", "C"},
        {"Answer: C) 3.4 eV", "answer", "C"},
        {"Answer: C. 3.4 eV", "answer", "C"},
        {"Answer: C - the third", "answer", "C"},
        {"Answer: Option C", "answer", "C"},
        {"Answer:\n\nC", "answer", "C"},
        {"ANSWER IS C", "answer", "C"},
        {"The answer is C because it conserves charge.", "answer", "C"},
        {"The answer is A because it conserves charge.", "answer", "A"},
        {"The answer is A, as charge is conserved.", "answer", "A"},
        {"The correct answer is **(C)**.", "answer", "C"},
        {"The correct answer is option C.", "answer", "C"},
        {"The correct option is (C).", "answer", "C"},
        {"The best choice would be C.", "answer", "C"},
        {"The final answer is $\\boxed{C}$.", "boxed", "C"},
        {"so \\boxed{C}", "boxed", "C"},
        {"so \\boxed{C.}", "boxed", "C"},
        {"so \\boxed{(C)}", "boxed", "C"},
        {"so \\boxed{\\text{C}}", "boxed", "C"},
        {"so \\boxed{\\mathbf{C}}", "boxed", "C"},
        {"so \\boxed{\\text{C) } 3}", "boxed", "C"},
        {"so \\boxed{C) 3.4}", "boxed", "C"},
        {"so \\boxed{c}", "boxed", "C"},
        {"Answer: B\nno, wait.\nAnswer: C", "answer", "C"},
        {"Answer: C\nnot \\boxed{B}? No.\nAnswer: C", "answer", "C"},
        {"I said \\boxed{B}. Answer: C", "answer", "C"},
        {"Answer: B. Or rather \\boxed{C}", "boxed", "C"},
        {"The energy is \\boxed{3.4}. Answer: C", "answer", "C"},
        {"Answer: C\n\\boxed{3.4}", "answer", "C"},
        {"Answer: C\nSome say the answer is a matter of taste", "answer", "C"},
        {"Answer: C\nThe answer is A matter of taste", "answer", "C"},
        {"<think>Answer: B</think>Answer: C", "answer", "C"},
        {"Answer: B</think>\n\nAnswer: C", "answer", "C"},
        {"Answer: D", "answer", "D"},
        {"Answer: (C) and I am sure.", "answer", "C"},
        {"Answer: (C). (A) and (B) are wrong.", "answer", "C"},
        {"Not \\boxed{A} and \\boxed{B}. So \\boxed{C}", "boxed", "C"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check(&rows[i], (grade_input){.response = text_of(rows[i].response)});
        check(&rows[i], (grade_input){.response = text_of(rows[i].response), .truncated = true});
    }
}

static void test_guessed(void) {
    static const example rows[] = {
        {"C", "last_line", "C"},
        {"C.", "last_line", "C"},
        {"(C)", "last_line", "C"},
        {"**C**", "last_line", "C"},
        {"C) 3.4 eV", "last_line", "C"},
        {"**C) 3.4 eV**", "last_line", "C"},
        {"### C", "last_line", "C"},
        {"Not A), not B).\n\n(C) 3.4 eV", "last_line", "C"},
        {"All in all I choose C.", "chosen", "C"},
        {"Therefore, **C**.", "points_to", "C"},
        {"Energy is conserved -> C", "points_to", "C"},
        {"I would go with option C!", "chosen", "C"},
        {"It must be **C**, as charge is conserved.", "points_to", "C"},
        {"**C) 3.4 eV** it is, for sure.", "last_line", "C"},
        {"**A)** is wrong, **B)** too.\n\nSo **C** remains for us.", "points_to", "C"},
        {"It is (C), as charge is conserved.", "points_to", "C"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        example cut = {rows[i].response, NULL, ""};
        check(&rows[i], (grade_input){.response = text_of(rows[i].response)});
        check(&cut, (grade_input){.response = text_of(rows[i].response), .truncated = true});
    }
}

static void test_no_choice(void) {
    static const example rows[] = {
        {"", NULL, ""},
        {"I can't say.", NULL, ""},
        {"The answer is A or B", NULL, ""},
        {"Answer: A/B", NULL, ""},
        {"Answer: E", NULL, ""},
        {"Answer: CO2", NULL, ""},
        {"Answer: Carbon", NULL, ""},
        {"Answer: C_2", NULL, ""},
        {"The answer is a matter of taste", NULL, ""},
        {"\\boxed{3.4}", NULL, ""},
        {"\\boxed{A + B}", NULL, ""},
        {"\\boxed{C = 5}", NULL, ""},
        {"Answer: C and then \\boxed{C", NULL, ""},
        {"<think>Answer: C", NULL, ""},
        {"<think>Answer: C</think>", NULL, ""},
        {"It is rich in vitamin C.", NULL, ""},
        {"**A)** is wrong.\n\n**B)** is wrong.\n\nI am not sure.", NULL, ""},
        {"(A) no; (B) no.\n\nHm.", NULL, ""},
        {"\\boxed{A} and \\boxed{C}", NULL, ""},
        {"so \\boxed{A}, \\boxed{C}", NULL, ""},
        {"so $\\boxed{\\text{A}}$ or $\\boxed{\\text{C}}$.", NULL, ""},
        {"The answer is \\boxed{A} or \\boxed{C}.", NULL, ""},
        {"The answer is \\boxed{A}, \\boxed{C}", NULL, ""},
        {"The answer is (A) or (C)", NULL, ""},
        {"Answer: **A** and **C**", NULL, ""},
        {"Answer: (A)/(C)", NULL, ""},
        {"(A) or (C)", NULL, ""},
        {"It is either **A** or **C**, I think.", NULL, ""},
        {"It is either (A) or (C), I think.", NULL, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], (grade_input){.response = text_of(rows[i].response)});
}

/* Grades a row of the fixture: endings of answers in English and other languages, with the letter
 * that a reader would take, or null if the text chooses none. A row with "choices" has ten options;
 * the others have four. */
static snap_status check_ending(void *ctx, js *row, long line, snap_err *err) {
    const char *response = js_get_str(row, "response"), *letter = js_get_str(row, "letter");
    const grader *g = js_get(row, "choices") ? &grader_ten_letters : &grader_letter;
    grade_result r = g->grade("C", (grade_input){.response = text_of(response)});
    bool right = letter ? strcmp(r.extracted, letter) == 0 : r.verdict == GRADE_UNPARSED;
    (void)err;
    if (!right)
        printf("\n%s:%ld: '%s', not '%s': %s\n", kEndings, line, r.extracted,
               letter ? letter : "none", response);
    CU_ASSERT(right);
    ++*(size_t *)ctx;
    return SNAP_OK;
}

static void test_endings(void) {
    buf text = {0};
    size_t n = 0;
    CU_ASSERT_EQUAL_FATAL(fs_read(kEndings, &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(js_each_line(buf_str(&text), text.len, kEndings, check_ending, &n, NULL),
                    SNAP_OK);
    CU_ASSERT(n > 2400);
    buf_release(&text);
}

static void test_bare_answers(void) {
    static const example rows[] = {
        {"C", "given", "C"},      {"c", "given", "C"},
        {" (C) ", "given", "C"},  {"C)", "given", "C"},
        {"C. foo", "given", "C"}, {"\\text{C}", "given", "C"},
        {"$C$", "given", "C"},    {"option C", "given", "C"},
        {"B", "given", "B"},      {"", NULL, ""},
        {"E", NULL, ""},          {"carbon", NULL, ""},
        {"CD", NULL, ""},         {"3", NULL, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], (grade_input){.response = text_of(rows[i].response), .extracted = true});
}

/* Every entry of the lexicon is found as a whole, with its class. */
static void check_entries(const word_list *lists, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (const char *at = lists[i].entries; *at;) {
            size_t length = strcspn(at, "|");
            word_class is = 0;
            bool found =
                letter_word((span){at, length}, &is) == length && (is & lists[i].is) == lists[i].is;
            if (!found)
                printf("\nlexicon: '%.*s'\n", (int)length, at);
            CU_ASSERT(found);
            at += length + (at[length] == '|');
        }
}

static void test_lexicon(void) {
    static const struct {
        const char *text;
        size_t length; /* of the entry */
    } rows[] = {{"ruled out C", 9},
                {"ruled", 0},
                {"Correct.", 7},
                {"correction", 10},
                {"answers", 7},
                {"xyz", 0},
                {"ANSWER: C", 6},
                {"\u041e\u0442\u0432\u0435\u0442: C", 10},
                {"\u7b54\u6848\u662fC", 6},
                {"", 0}};
    check_entries(letter_english, letter_n_english);
    check_entries(letter_foreign, letter_n_foreign);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        word_class is;
        CU_ASSERT_EQUAL(letter_word(text_of(rows[i].text), &is), rows[i].length);
    }
}

static void test_golds(void) {
    static const char *const good[] = {"A", "B", "C", "D"};
    static const char *const bad[] = {"", "E", "a", "AB", "(A)", "1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CU_ASSERT_EQUAL(grader_letter.check_gold(good[i], NULL), SNAP_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT_EQUAL(grader_letter.check_gold(bad[i], NULL), SNAP_E_INPUT);
}

/* Grades responses of up to a mebibyte that repeat one piece. */
static void test_hostile_responses(void) {
    static const char *const pieces[] = {"answer: ",
                                         "answer is the ",
                                         "option ",
                                         "**",
                                         "**C ",
                                         "(",
                                         "\\boxed{",
                                         "Answer: A or ",
                                         "C\n\n",
                                         "option: option ",
                                         "* ",
                                         "$",
                                         "**(C).x",
                                         "答案",
                                         "<answer>(",
                                         "\"answer\": \"C",
                                         "only ",
                                         "C is the ",
                                         "C\n\n```\n",
                                         "~~C",
                                         "if it is A, ",
                                         ", \"a",
                                         "all the other options ",
                                         "wrong all but A ",
                                         "not A but ",
                                         "A, B, ",
                                         "C it would ",
                                         "the third option ",
                                         "(C",
                                         "C | "};
    growth_is_linear(&grader_letter, "C", pieces, sizeof pieces / sizeof *pieces);
}

CU_TestInfo tests_letter[] = {
    {"declared letters", test_declared},
    {"guessed letters", test_guessed},
    {"responses that choose no letter", test_no_choice},
    {"endings of real answers", test_endings},
    {"bare answers", test_bare_answers},
    {"words are found in the lexicon", test_lexicon},
    {"only A to D are golds", test_golds},
    {"hostile responses", test_hostile_responses},
    CU_TEST_INFO_NULL,
};
