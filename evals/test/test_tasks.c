/* Tests BeyondAIME, MMLU-Pro, MMLU-Redux, ZebraLogic and Arena-Hard: rows, wording, graders. All
 * items are invented. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/test/temp_folder.h"
#include "evals/arena.h"
#include "evals/task.h"
#include "evals/test/task_of.h"

static char folder[TEMP_FOLDER];

static void folder_open(void) {
    temp_folder_open(folder, "tasks");
}

static void folder_close(void) {
    temp_folder_remove(folder);
}

static void put(const char *sub, const char *name, const char *text) {
    temp_folder_put(folder, sub, name, text, strlen(text));
}

static task_set loaded(const task_spec *t) {
    task_set set;
    snap_err err = {0};
    if (task_load(t, folder, 0, NULL, &set, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
    return set;
}

static void expect(const task_spec *t, snap_status status, const char *message) {
    task_set set;
    snap_err err = {0};
    CU_ASSERT_EQUAL(task_load(t, folder, 0, NULL, &set, &err), status);
    if (!strstr(err.text, message))
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    task_set_release(&set);
}

static const char *prompt(const task_set *set, size_t i) {
    return set->problems[i].messages[0].content;
}

static grade_result grade(const grader *g, const char *gold, const char *response) {
    CU_ASSERT_EQUAL_FATAL(g->check_gold(gold, NULL), SNAP_OK);
    return g->grade(gold, (grade_input){.response = {response, strlen(response)}});
}

/* ---- BeyondAIME ---- */

static void test_beyond_aime(void) {
    folder_open();
    put("beyond_aime", "test.jsonl",
        "{\"problem\": \"How many?\", \"answer\": 123456789012}\n{\"problem\": \"b\", \"answer\": "
        "\"-7\"}\n");
    task_set set = loaded(task_of("beyond_aime"));
    CU_ASSERT(set.n == 2 && task_of("beyond_aime")->samples == 10 && set.grader == &grader_aime);
    CU_ASSERT_STRING_EQUAL(prompt(&set, 0), "How many?\nRemember to put your final answer within "
                                            "\\boxed{}.");
    CU_ASSERT_STRING_EQUAL(set.problems[0].gold, "123456789012");
    task_set_release(&set);
    put("beyond_aime", "test.jsonl", "{\"problem\": \"a\", \"answer\": \"x+1\"}\n");
    expect(task_of("beyond_aime"), SNAP_E_INPUT, ":1: the gold answer must be an integer");
    folder_close();
}

/* ---- MMLU-Pro ---- */

static const char kPro[] =
    "{\"question_id\": 70, \"question\": \"Which?\", \"options\": [\"one\", \"two\", \"N/A\", "
    "\"three\"], \"answer\": \"C\", \"answer_index\": 2, \"cot_content\": \"\", \"category\": "
    "\"law\"}\n";

static void test_mmlu_pro(void) {
    folder_open();
    put("mmlu_pro", "test.jsonl", kPro);
    task_set set = loaded(task_of("mmlu_pro"));
    CU_ASSERT_STRING_EQUAL(set.problems[0].id, "70");
    CU_ASSERT_STRING_EQUAL(set.problems[0].gold, "C");
    CU_ASSERT_STRING_EQUAL(
        prompt(&set, 0),
        "The following are multiple choice questions (with answers) about law. Think step by step "
        "and then output the answer in the format of \"The answer is (X)\" at the end.\n\n"
        "Question: Which?\nOptions: A. one\nB. two\nC. three\nAnswer: Let's think step by step."
        "\n\n");
    char alone[HASH_HEX];
    memcpy(alone, set.sha256, sizeof alone);
    task_set_release(&set);
    put("mmlu_pro", "validation.jsonl",
        "{\"question\": \"Why?\", \"options\": [\"x\", \"y\"], \"answer\": \"A\", \"category\": "
        "\"law\", \"cot_content\": \"A: Let's think step by step. So. The answer is (A).\"}\n"
        "{\"question\": \"When?\", \"options\": [\"x\", \"y\"], \"answer\": \"A\", \"category\": "
        "\"art\", \"cot_content\": \"A: No.\"}\n");
    set = loaded(task_of("mmlu_pro"));
    CU_ASSERT_PTR_NOT_NULL(strstr(prompt(&set, 0),
                                  "at the end.\n\nQuestion: Why?\nOptions: A. x\nB. y\nAnswer: "
                                  "Let's think step by step. So. The answer is (A).\n\nQuestion: "
                                  "Which?"));
    CU_ASSERT_PTR_NULL(strstr(prompt(&set, 0), "When?"));
    CU_ASSERT(strcmp(alone, set.sha256) != 0);
    task_set_release(&set);
    put("mmlu_pro", "validation.jsonl", "{\"question\": \"Why?\"}\n");
    expect(task_of("mmlu_pro"), SNAP_E_INPUT, "validation.jsonl:1");
    put("mmlu_pro", "validation.jsonl", "");
    static const struct {
        const char *row, *message;
    } bad[] = {
        {"{\"id\": 1, \"question\": \"a\", \"options\": [\"x\"], \"answer\": \"A\", \"category\": "
         "\"law\"}",
         "2 to 10 'options'"},
        {"{\"id\": 1, \"question\": \"a\", \"options\": [\"x\", [3]], \"answer\": \"A\", "
         "\"category\": \"law\"}",
         "choice 2 of 'options' must be text"},
        {"{\"id\": 1, \"question\": \"a\", \"options\": [\"x\", \"y\"], \"answer\": \"C\", "
         "\"category\": \"law\"}",
         "must be the letter of a choice, A..B"},
        {"{\"id\": 1, \"question\": \"a\", \"options\": [\"x\", \"y\"], \"answer\": \"A\"}",
         "category"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put("mmlu_pro", "test.jsonl", bad[i].row);
        expect(task_of("mmlu_pro"), SNAP_E_INPUT, bad[i].message);
    }
    folder_close();
}

static void test_ten_letters(void) {
    const grader *g = &grader_ten_letters;
    CU_ASSERT(grade(g, "J", "So the answer is (J).").verdict == GRADE_CORRECT);
    CU_ASSERT(grade(g, "G", "answer is H").verdict == GRADE_WRONG);
    CU_ASSERT(grade(g, "G", "\\boxed{G}").verdict == GRADE_CORRECT);
    CU_ASSERT(grade(g, "G", "I can't say.").verdict == GRADE_UNPARSED);
    CU_ASSERT(g->check_gold("K", NULL) == SNAP_E_INPUT);
}

/* ---- MMLU-Redux ---- */

static void test_mmlu_redux(void) {
    static const char rows[] =
        "{\"question\": \"Q1\", \"choices\": [\"a\", \"b\", \"c\", \"d\"], \"answer\": 1, "
        "\"error_type\": \"ok\", \"correct_answer\": null}\n"
        "{\"question\": \"Q2\", \"choices\": [\"a\", \"b\", \"c\", \"d\"], \"answer\": 1, "
        "\"error_type\": \"wrong_groundtruth\", \"correct_answer\": \"D\"}\n"
        "{\"question\": \"Q3\", \"choices\": [\"a\", \"b\", \"c\", \"d\"], \"answer\": 1, "
        "\"error_type\": \"bad_question_clarity\", \"correct_answer\": null}\n"
        "{\"question\": \"Q4\", \"choices\": [\"a\", \"b\", \"c\", \"d\"], \"answer\": 1, "
        "\"error_type\": \"wrong_groundtruth\", \"correct_answer\": \"none\"}\n"
        "{\"question\": \"Q5\", \"choices\": [\"a\", \"b\", \"c\", \"d\"], \"answer\": 1, "
        "\"error_type\": \"wrong_groundtruth\", \"correct_answer\": \"2\"}\n";
    folder_open();
    put("mmlu_redux", "test.jsonl", rows);
    task_set set = loaded(&task_mmlu_redux);
    CU_ASSERT(set.n == 3 && set.rows == 5);
    CU_ASSERT_STRING_EQUAL(set.problems[0].gold, "B");
    CU_ASSERT_STRING_EQUAL(set.problems[1].gold, "D");
    CU_ASSERT_STRING_EQUAL(set.problems[2].gold, "C");
    CU_ASSERT_PTR_NOT_NULL(strstr(prompt(&set, 0),
                                  "\n## Question: \n\nQ1\n\n## Choices:\n\n- (A) a\n- "
                                  "(B) b\n- (C) c\n- (D) d\n\n\n## Instruction"));
    task_set_release(&set);
    put("mmlu_redux", "test.jsonl", "{\"question\": \"Q\", \"choices\": [\"a\"]}\n");
    expect(&task_mmlu_redux, SNAP_E_INPUT, ":1: needs a text 'question' and 4 'choices'");
    put("mmlu_redux", "test.jsonl",
        "{\"question\": \"Q\", \"choices\": [\"a\", \"b\", \"c\", \"d\"], \"answer\": 4, "
        "\"error_type\": \"ok\"}\n");
    expect(&task_mmlu_redux, SNAP_E_INPUT, "'answer' must be 0..3");
    folder_close();
}

/* One file per subject, as published: a file that is missing is an error. */
static void test_mmlu_redux_by_subject(void) {
    folder_open();
    put("mmlu_redux", "abstract_algebra.jsonl",
        "{\"question\": \"Q\", \"choices\": [\"a\", \"b\", \"c\", \"d\"], \"answer\": 0, "
        "\"error_type\": \"ok\"}\n");
    expect(&task_mmlu_redux, SNAP_E_IO, "anatomy.jsonl");
    folder_close();
}

static void test_letter_field(void) {
    const grader *g = &grader_letter_field;
    grade_result r = grade(g, "C", "{\"reasoning\": \"The answer is A?\", \"answer\": \"C\"}");
    CU_ASSERT(r.verdict == GRADE_CORRECT && strcmp(r.rule, "answer_field") == 0);
    CU_ASSERT(grade(g, "C", "```json\n{\"answer\": \"(C) text\"}\n```").verdict == GRADE_CORRECT);
    CU_ASSERT(grade(g, "B", "{\"answer\": \"A\"} no: {\"answer\": B}").verdict == GRADE_CORRECT);
    CU_ASSERT(grade(g, "B", "The answer is B.").verdict == GRADE_CORRECT);
    CU_ASSERT(grade(g, "B", "{\"answer\": \"E\"}").verdict == GRADE_UNPARSED);
    CU_ASSERT(grade(g, "B", "{\"answer\": \"Because\"}").verdict == GRADE_UNPARSED);
}

/* ---- ZebraLogic ---- */

static const char kGrid[] =
    "{\"header\": [\"House\", \"Name\", \"Pet\"], \"rows\": [[\"1\", \"Ann\", "
    "\"cat\"], [\"2\", \"Bob\", \"dog\"]]}";

static void test_zebra_answers(void) {
    static const struct {
        const char *response, *rule;
        grade_verdict verdict;
        double cells;
    } cases[] = {
        {"{\"reasoning\": \"r\", \"solution\": {\"House 1\": {\"Name\": \"Ann\", \"Pet\": "
         "\"cat\"}, "
         "\"House 2\": {\"Name\": \"BOB \", \"Pet\": [\"dog\"]}}}",
         "last_json", GRADE_CORRECT, 1},
        {"Here:\n```json\n{\"solution\": {\"House 1\": {\"Name\": \"Ann\", \"Pet\": "
         "\"dog\"}}}\n```",
         "last_json", GRADE_WRONG, 0.25},
        {"{\"solution\": {\"House 1\": {\"Name\": \"An\nn\", \"Pet\": null, \"Age\": 3}}}",
         "last_json", GRADE_WRONG, 0.25},
        {"Set {a, b: { {\"solution\": {\"House 2\": {\"Name\": \"Bob\", \"Pet\": \"dog\"}}}",
         "inner_json", GRADE_WRONG, 0.5},
        {"{\"solution\": {}} {\"answer\": 1}", "inner_json", GRADE_WRONG, 0},
        {"{\"solution\": []}", NULL, GRADE_UNPARSED, 0},
        {"{\"solution\": {\"House 1\": {\"Name\": \"Ann\"", NULL, GRADE_UNPARSED, 0},
        {"House 1: Ann, cat", NULL, GRADE_UNPARSED, 0},
        {"", NULL, GRADE_UNPARSED, 0},
        {"<think>{\"solution\": {}}</think>", NULL, GRADE_UNPARSED, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grade_result r = grade(&grader_zebra, kGrid, cases[i].response);
        bool right = r.verdict == cases[i].verdict && r.also[0].value == cases[i].cells &&
                     r.also[0].weight == 4 && !r.rule == !cases[i].rule &&
                     (!r.rule || strcmp(r.rule, cases[i].rule) == 0);
        if (!right)
            printf("\n%s: %s, %g, %s\n", cases[i].response, grade_verdict_name(r.verdict),
                   r.also[0].value, r.rule ? r.rule : "none");
        CU_ASSERT(right);
    }
}

static void test_zebralogic(void) {
    char row[600];
    folder_open();
    (void)snprintf(row, sizeof row,
                   "{\"id\": \"lgp-1\", \"size\": \"2*2\", \"puzzle\": \"Two houses.\", "
                   "\"solution\": %s, \"created_at\": \"x\"}\n",
                   kGrid);
    put("zebralogic", "test.jsonl", row);
    task_set set = loaded(&task_zebralogic);
    CU_ASSERT_STRING_EQUAL(set.problems[0].id, "lgp-1");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(prompt(&set, 0),
               "# Puzzle to Solve \n\nTwo houses.\n\n\n# Instruction\n\nNow please solve the "
               "above puzzle. Present your reasoning and solution in the following json "
               "format:\n\n{\n    \"reasoning\": \"___\",\n    \"solution\": {\n        "
               "\"House 1\": {\n            \"Name\": \"___\",\n            \"Pet\": \"___\"\n"
               "        },\n        \"House 2\""));
    task_set_release(&set);
    static const struct {
        const char *solution, *message;
    } bad[] = {
        {"3", "solution"},
        {"{\"header\": [\"House\", \"Name\"], \"rows\": []}", "and 'rows'"},
        {"{\"header\": [\"Name\", \"House\"], \"rows\": [[\"1\", \"a\"]]}",
         "begins with \"House\""},
        {"{\"header\": [\"House\", \"Name\"], \"rows\": [[\"1\"]]}",
         "row 1 of the solution needs 2"},
        {"{\"header\": [\"House\", \"Name\"], \"rows\": [[\"1\", 2]]}", "cells must be text"},
        {"{\"header\": [\"House\", \"Name\"], \"rows\": [[\"1\", \"___\"]]}", "withheld"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(row, sizeof row, "{\"id\": \"a\", \"puzzle\": \"p\", \"solution\": %s}\n",
                       bad[i].solution);
        put("zebralogic", "test.jsonl", row);
        expect(&task_zebralogic, SNAP_E_INPUT, bad[i].message);
    }
    folder_close();
}

/* ---- Arena-Hard ---- */

static void test_arena_verdicts(void) {
    static const struct {
        const char *said, *verdict;
    } cases[] = {
        {"My final verdict is tie: [[A=B]]", "A=B"},
        {"[[A>B]] at first, then [[B>>A]].", "B>>A"},
        {"[[b=a]]", "A=B"},
        {"**[[A<<B]]**", "B>>A"},
        {"Verdict: [A>>B]", "A>>B"},
        {"<think>[[A>B]]</think>none", NULL},
        {"[[A>>>B]]", NULL},
        {"[[C]]", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = arena_verdict((span){cases[i].said, strlen(cases[i].said)});
        CU_ASSERT(!got == !cases[i].verdict && (!got || strcmp(got, cases[i].verdict) == 0));
    }
}

/* In the first game A is the reference, in the second A is the answer. Counted as in
 * show_result.py. */
static void test_arena_scores(void) {
    static const struct {
        const char *games[ARENA_GAMES];
        double value, battles;
    } cases[] = {
        {{"B>A", "A>B"}, 1, 2},        {{"A>B", "A>B"}, 0.5, 2},   {{"A=B", "A=B"}, 0.5, 2},
        {{"B>>A", "A>B"}, 1, 4},       {{"A>>B", "A>B"}, 0.25, 4}, {{"A>>B", "B>>A"}, 0, 6},
        {{"B>>A", "A=B"}, 3.5 / 4, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grade_score s = arena_score(cases[i].games);
        CU_ASSERT(fabs(s.value - cases[i].value) < 1e-15 && s.weight == cases[i].battles);
    }
}

static void test_arena_hard(void) {
    static const char questions[] =
        "{\"uid\": \"q1\", \"category\": \"hard_prompt\", \"prompt\": \"Why?\"}\n"
        "{\"uid\": \"q2\", \"category\": \"creative_writing\", \"prompt\": \"Sing.\"}\n";
    buf text = {0};
    folder_open();
    put("arena_hard", "question.jsonl", questions);
    task_set set = loaded(&task_arena_hard);
    CU_ASSERT(set.n == 2 && set.grader->by_model);
    CU_ASSERT_STRING_EQUAL(prompt(&set, 0), "Why?");
    CU_ASSERT_PTR_NULL(arena_reference(&set.problems[0]));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(arena_instruction(&set.problems[0]), "generating your own answer"));
    CU_ASSERT_PTR_NULL(strstr(arena_instruction(&set.problems[1]), "generating your own answer"));
    CU_ASSERT_EQUAL(
        arena_game_prompt(&set.problems[0], 1, (span){"ref", 3}, (span){"ans", 3}, &text, NULL),
        SNAP_OK);
    CU_ASSERT_STRING_EQUAL(
        buf_str(&text),
        "<|User Prompt|>\nWhy?\n\n<|The Start of Assistant A's Answer|>\nans\n<|The "
        "End of Assistant A's Answer|>\n\n<|The Start of Assistant B's Answer|>\nref\n"
        "<|The End of Assistant B's Answer|>");
    task_set_release(&set);
    put("arena_hard/model_answer", "o3-mini-2025-01-31.jsonl",
        "{\"uid\": \"q1\", \"model\": \"o3\", \"messages\": [{\"role\": \"user\", \"content\": "
        "\"Why?\"}, "
        "{\"role\": \"assistant\", \"content\": {\"answer\": \"Because.\"}}]}\n");
    expect(&task_arena_hard, SNAP_E_INPUT,
           "question.jsonl:2: model_answer/gemini-2.0-flash-001.jsonl has no answer");
    put("arena_hard/model_answer", "gemini-2.0-flash-001.jsonl",
        "{\"question_id\": \"q2\", \"choices\": [{\"turns\": [{\"content\": \"La.\"}]}]}\n");
    set = loaded(&task_arena_hard);
    CU_ASSERT_STRING_EQUAL(arena_reference(&set.problems[0]), "Because.");
    CU_ASSERT_STRING_EQUAL(arena_reference(&set.problems[1]), "La.");
    task_set_release(&set);
    put("arena_hard/model_answer", "gpt-4-0314.jsonl", "{\"uid\": \"q1\"}\n");
    expect(&task_arena_hard, SNAP_E_INPUT, "gpt-4-0314.jsonl:1: needs a text 'uid' and an answer");
    buf_release(&text);
    folder_close();
}

CU_TestInfo tests_tasks[] = {
    {"BeyondAIME", test_beyond_aime},
    {"MMLU-Pro", test_mmlu_pro},
    {"answers among ten letters", test_ten_letters},
    {"MMLU-Redux", test_mmlu_redux},
    {"MMLU-Redux by subject", test_mmlu_redux_by_subject},
    {"a letter in a JSON field", test_letter_field},
    {"ZebraLogic answers", test_zebra_answers},
    {"ZebraLogic", test_zebralogic},
    {"Arena-Hard verdicts", test_arena_verdicts},
    {"Arena-Hard scores", test_arena_scores},
    {"Arena-Hard", test_arena_hard},
    CU_TEST_INFO_NULL,
};
