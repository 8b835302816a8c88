/* Tests which mathematical answers the rules leave undecided, and how a judge model's second
 * opinion is read and stored. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "evals/opinion.h"

static opinion parse(const char *s) {
    return opinion_parse((span){s, strlen(s)});
}

static void test_replies(void) {
    static const char *const same[] = {"YES",
                                       "Yes.",
                                       "yes, both are 4",
                                       "**YES**",
                                       "\"Yes\"",
                                       "  YES\nBoth are the same set.",
                                       "\\boxed{YES}",
                                       "They agree, so \\boxed{\\text{yes}}.",
                                       "<think>NO, wait</think>\n\nYES",
                                       "YES. \\boxed{YES}"};
    static const char *const different[] = {
        "NO",          "No, 4 is not 5",       "__No__",
        "\\boxed{No}", "<think>YES</think>NO", "The second is rounded. \\boxed{NO}"};
    static const char *const none[] = {"",
                                       "Yesterday",
                                       "Not the same",
                                       "NOPE",
                                       "Y",
                                       "I think YES",
                                       "The answer is NO",
                                       "YES. No: \\boxed{NO}",
                                       "\\boxed{YES and NO}",
                                       "\\boxed{yes",
                                       "\\boxed{4}",
                                       "<think>YES",
                                       "<think>a</think>",
                                       "1. YES"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        CU_ASSERT_EQUAL(parse(same[i]), OPINION_SAME);
    for (size_t i = 0; i < sizeof different / sizeof *different; i++)
        CU_ASSERT_EQUAL(parse(different[i]), OPINION_DIFFERENT);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CU_ASSERT_EQUAL(parse(none[i]), OPINION_NONE);
}

/* What the rules say: '=' equal, '#' different, '?' undecided. */
static char rules_say(const grader *g, const char *gold, const char *answer) {
    grade_result r;
    snap_status st =
        grade_response(g, gold, (grade_input){.response = {answer, strlen(answer)}}, &r, NULL);
    CU_ASSERT_EQUAL_FATAL(st, SNAP_OK);
    CU_ASSERT_FALSE(r.undecided && (r.verdict == GRADE_CORRECT || !r.extracted[0]));
    return r.verdict == GRADE_CORRECT ? '=' : r.undecided ? '?' : '#';
}

static void test_undecided(void) {
    static const struct {
        const char *gold, *answer;
        char says;
    } cases[] = {
        {"4", "\\boxed{2+2}", '='},
        {"4", "\\boxed{5}", '#'},
        {"\\sqrt{2}", "\\boxed{1.41}", '#'},
        {"1, 2", "\\boxed{1, 3}", '#'},
        {"1, 2", "\\boxed{1, 2, 3}", '#'},
        {"(1,2)", "\\boxed{(1,3)}", '#'},
        {"[0,1]", "\\boxed{[0,1)}", '#'},
        {"4", "There is no answer here", '?'}, /* prose, which the rules do not read */
        {"4", "", '#'},
        {"(0,1)", "\\boxed{\\text{the open unit interval}}", '?'},
        {"\\text{Evelyn}", "\\boxed{\\text{Evelyn Smith}}", '?'},
        {"4", "\\boxed{\\int_0^4 dx}", '?'},
        {"x^2", "\\boxed{f}", '#'},
        {"\\frac{1}{2}", "\\boxed{0 < x}", '?'},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char says = rules_say(&grader_math_truth, cases[i].gold, cases[i].answer);
        if (says != cases[i].says)
            printf("\n%s, %s: %c\n", cases[i].gold, cases[i].answer, says);
        CU_ASSERT_EQUAL(says, cases[i].says);
    }
    CU_ASSERT_EQUAL(rules_say(&grader_aime, "73", "\\boxed{74}"), '#');
    CU_ASSERT_EQUAL(rules_say(&grader_aime, "73", "\\boxed{\\text{a prime}}"), '?');
    CU_ASSERT_EQUAL(rules_say(&grader_aime, "73", "\\boxed{70+4}"), '#');
}

static const gen_message kMessage = {"user", "What is 1 + 1?"};
static const task_problem kProblem = {
    .id = "p", .gold = "2", .messages = &kMessage, .n_messages = 1, .prompt_sha256 = "0123"};

static void test_prompt(void) {
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(opinion_prompt(&kProblem, "II", &text, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "What is 1 + 1?"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "<reference>\n2\n</reference>"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "<candidate>\nII\n</candidate>"));
    buf_release(&text);
    task_problem worked = kProblem;
    worked.gold = "1 + 1 is 2 #### 2";
    CU_ASSERT_EQUAL_FATAL(opinion_prompt(&worked, "II", &text, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "<reference>\n 2\n</reference>"));
    buf_release(&text);
}

/* An opinion belongs to one problem, gold, answer and judge. */
static void test_rows(void) {
    opinion said;
    js *row = js_new_object();
    opinion_reply r = {.judge = "j", .judge_sha256 = "aa", .reply = "YES"};
    CU_ASSERT_FALSE(opinion_find(row, &kProblem, "II", NULL, &said));
    CU_ASSERT_EQUAL_FATAL(opinion_set(row, &kProblem, "II", &r, NULL), SNAP_OK);
    CU_ASSERT_TRUE(opinion_find(row, &kProblem, "II", NULL, &said));
    CU_ASSERT_EQUAL(said, OPINION_SAME);
    CU_ASSERT_TRUE(opinion_find(row, &kProblem, "II", "aa", &said));
    CU_ASSERT_FALSE(opinion_find(row, &kProblem, "II", "bb", &said));
    CU_ASSERT_FALSE(opinion_find(row, &kProblem, "III", NULL, &said));
    CU_ASSERT_EQUAL(said, OPINION_NONE);
    task_problem other = kProblem;
    other.gold = "3";
    CU_ASSERT_FALSE(opinion_find(row, &other, "II", NULL, &said));
    r = (opinion_reply){.judge = "j", .judge_sha256 = "aa", .error = "HTTP 500"};
    CU_ASSERT_EQUAL_FATAL(opinion_set(row, &kProblem, "II", &r, NULL), SNAP_OK);
    CU_ASSERT_TRUE(opinion_find(row, &kProblem, "II", NULL, &said));
    CU_ASSERT_EQUAL(said, OPINION_NONE);
    CU_ASSERT_PTR_NULL(js_get_str(js_get_object(row, "opinion"), "verdict"));
    js_free(row);
}

CU_TestInfo tests_opinion[] = {
    {"replies of a judge model", test_replies},
    {"answers that the rules leave undecided", test_undecided},
    {"the question has problem, gold and answer", test_prompt},
    {"a stored opinion belongs to one answer", test_rows},
    CU_TEST_INFO_NULL,
};
