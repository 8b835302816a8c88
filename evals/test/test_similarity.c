/* Tests texts that must be repeated (MRCR), LongBench v2 and RULER. The ratios are those of
 * Python's difflib.SequenceMatcher(None, a, b).ratio(). All rows are invented. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/test/temp_folder.h"
#include "evals/similarity.h"
#include "evals/task.h"
#include "evals/test/task_of.h"

static double ratio(const char *a, const char *b) {
    double r = -1;
    CU_ASSERT_EQUAL(similarity_ratio((span){a, strlen(a)}, (span){b, strlen(b)}, &r, NULL),
                    SNAP_OK);
    return r;
}

static void test_short(void) {
    static const struct {
        const char *a, *b;
        double ratio;
    } cases[] = {{"abcd", "bcde", 0.75},      {"", "", 1},           {"a", "", 0},
                 {"tide", "diet", 0.25},      {"diet", "tide", 0.5}, {"qabxcd", "abycdf", 2.0 / 3},
                 {"gr\xc3\xbcn", "grau", 0.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CU_ASSERT_DOUBLE_EQUAL(ratio(cases[i].a, cases[i].b), cases[i].ratio, 1e-15);
}

/* In a long text, frequent characters do not start a match:
 *   ' '.join('word%d' % ((i * 37) % 101) for i in range(60))
 *   ' '.join('word%d' % ((i * 37 + (i % 7 == 0)) % 101) for i in range(55)) */
static void test_long(void) {
    char a[1000] = "", b[1000] = "";
    for (int i = 0; i < 60; i++) {
        size_t n = strlen(a), m = strlen(b);
        (void)snprintf(a + n, sizeof a - n, "%sword%d", i ? " " : "", i * 37 % 101);
        if (i < 55)
            (void)snprintf(b + m, sizeof b - m, "%sword%d", i ? " " : "",
                           (i * 37 + (i % 7 == 0)) % 101);
    }
    CU_ASSERT_DOUBLE_EQUAL(ratio(a, b), 0.01008827238335435, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(ratio(b, a), 0.01008827238335435, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(ratio(a, a), 1, 1e-15);
}

static grade_result graded(const grader *g, const char *gold, const char *response) {
    grade_result r;
    grade_input in = {.response = {response, strlen(response)}};
    CU_ASSERT_EQUAL_FATAL(grade_response(g, gold, in, &r, NULL), SNAP_OK);
    return r;
}

static void test_grades(void) {
    static const char gold[] = "Xy12\nXy12The boat came home late.";
    const grader *g = &grader_similarity;
    grade_result r = graded(g, gold, "Xy12The boat came home late.");
    CU_ASSERT(r.verdict == GRADE_CORRECT && r.also[0].value == 1);
    r = graded(g, gold, "<think>Xy12 no</think>Xy12The boat came home late!");
    CU_ASSERT(r.verdict == GRADE_CORRECT && r.also[0].value > 0.9 && r.also[0].value < 1);
    r = graded(g, gold, "Xy12A cat.");
    CU_ASSERT(r.verdict == GRADE_WRONG && r.also[0].value > 0 && r.also[0].value < 0.5);
    r = graded(g, gold, "The boat came home late.");
    CU_ASSERT(r.verdict == GRADE_WRONG && r.also[0].value == 0);
    CU_ASSERT_EQUAL(graded(g, gold, " ").verdict, GRADE_UNPARSED);
    char endless[3000] = "Xy12";
    memset(endless + 4, 'e', sizeof endless - 5);
    r = graded(g, gold, endless);
    CU_ASSERT(r.verdict == GRADE_WRONG && r.also[0].value == 0);
    /* Lengths are counted in characters: the 1400 bytes are 700 characters. */
    char accents[1500] = "Xy12The boat came home late.";
    for (int i = 0; i < 700; i++)
        (void)strcat(accents, "\xc3\xa9");
    CU_ASSERT(graded(g, gold, accents).also[0].value > 0);
    CU_ASSERT_EQUAL(grade_check_gold(g, "no line", NULL), SNAP_E_INPUT);
    CU_ASSERT_EQUAL(grade_check_gold(g, "\ntext", NULL), SNAP_E_INPUT);
}

/* Loads a task from a data folder with one file. Returns the status, and the message if that is an
 * error. */
static snap_status load_from(const char *task, const char *folder, const char *file,
                             const char *text, task_set *set, snap_err *err) {
    char dir[TEMP_FOLDER];
    temp_folder_open(dir, "long");
    temp_folder_put(dir, folder, file, text, strlen(text));
    *err = (snap_err){0};
    snap_status st = task_load(task_of(task), dir, 0, NULL, set, err);
    temp_folder_remove(dir);
    return st;
}

static snap_status load(const char *task, const char *file, const char *text, task_set *set,
                        snap_err *err) {
    return load_from(task, task, file, text, set, err);
}

static void test_mrcr(void) {
    static const char row[] =
        "{\"prompt\": \"[{\\\"role\\\": \\\"user\\\", \\\"content\\\": \\\"Write.\\\"}, "
        "{\\\"role\\\": \\\"assistant\\\", \\\"content\\\": \\\"A poem.\\\"}, "
        "{\\\"role\\\": \\\"user\\\", "
        "\\\"content\\\": \\\"Repeat it.\\\"}]\", \"answer\": \"Xy12A poem.\", "
        "\"random_string_to_prepend\": \"Xy12\", \"n_needles\": 2, \"total_messages\": 3}\n";
    static const char *const bad[] = {"{\"prompt\": \"[]\"}", "{\"prompt\": \"x\"}", "{}",
                                      "{\"prompt\": [{\"role\": \"user\"}]}"};
    task_set set;
    snap_err err;
    CU_ASSERT_EQUAL_FATAL(load("mrcr", "2needle.jsonl", row, &set, &err), SNAP_OK);
    const task_problem *p = &set.problems[0];
    CU_ASSERT_EQUAL_FATAL(p->n_messages, 3);
    CU_ASSERT_STRING_EQUAL(p->messages[1].role, "assistant");
    CU_ASSERT_STRING_EQUAL(p->messages[1].content, "A poem.");
    CU_ASSERT_STRING_EQUAL(p->messages[2].content, "Repeat it.");
    CU_ASSERT_STRING_EQUAL(p->gold, "Xy12\nXy12A poem.");
    CU_ASSERT_STRING_EQUAL(p->groups[0], "2");
    task_set_release(&set);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT_EQUAL(load("mrcr", "2needle.jsonl", bad[i], &set, &err), SNAP_E_INPUT);
        task_set_release(&set);
    }
}

static void test_longbench(void) {
    static const char row[] =
        "[{\"_id\": \"a1\", \"domain\": \"D\", \"difficulty\": \"hard\", \"length\": \"short\", "
        "\"question\": \"Which?\", \"choice_A\": \"red\", \"choice_B\": \"blue\", \"choice_C\": "
        "\"green\", \"choice_D\": \"white\", \"answer\": \"C\", \"context\": \"Green won.\"}]";
    static const struct {
        const char *text, *message;
    } bad[] = {{"{}", "must be a list of rows"},
               {"[1]", ":1: a row must be an object"},
               {"[", "expected"},
               {"[]", "no problems"},
               {"[{\"_id\": \"a\"}]", "data.json:1"}};
    task_set set;
    snap_err err;
    CU_ASSERT_EQUAL_FATAL(load("longbench_v2", "data.json", row, &set, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(set.problems[0].id, "a1");
    CU_ASSERT_STRING_EQUAL(set.problems[0].gold, "C");
    CU_ASSERT_STRING_EQUAL(set.problems[0].groups[1], "hard");
    CU_ASSERT_PTR_NOT_NULL(strstr(set.problems[0].messages[0].content, "\nC) green"));
    CU_ASSERT_DOUBLE_EQUAL(set.task->chance, 0.25, 1e-15);
    task_set_release(&set);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT_EQUAL(load("longbench_v2", "data.json", bad[i].text, &set, &err), SNAP_E_INPUT);
        if (!strstr(err.text, bad[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].message));
        task_set_release(&set);
    }
}

/* RULER: all answers must be found, or for questions one of them. Letter case does not matter. */
static void test_ruler(void) {
    static const char rows[] =
        "{\"context\": \"The ferry has 4711. The barn has 8.5.\", \"question\": \"Which?\", "
        "\"answer_prefix\": \"They are\", \"answer\": [\"4711\", \"8.5\"], "
        "\"task\": \"niah_multiquery\", \"max_new_tokens\": 128}\n"
        "{\"context\": \"Ann came.\", \"question\": \"Who?\", \"answer_prefix\": \"Answer:\", "
        "\"answer\": [\"Ann (B.) Lee\", \"A. Lee\"], \"task\": \"qa_1\", \"max_new_tokens\": 32}\n";
    static const struct {
        const char *task, *response;
        grade_verdict verdict;
    } cases[] = {{"ruler", "They are 8.5\nand 4711.", GRADE_CORRECT},
                 {"ruler", "They are 8x5 and 4711.", GRADE_WRONG},
                 {"ruler", "4711", GRADE_WRONG},
                 {"ruler_qa", "It was\nann (b.) lee.", GRADE_CORRECT},
                 {"ruler_qa", "A. Lee, or Ann B. Lee", GRADE_CORRECT},
                 {"ruler_qa", "Ann B. Lee", GRADE_WRONG}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        task_set set;
        snap_err err;
        CU_ASSERT_EQUAL_FATAL(load_from(cases[i].task, "ruler", "4096.jsonl", rows, &set, &err),
                              SNAP_OK);
        CU_ASSERT_EQUAL_FATAL(set.n, 1);
        const task_problem *p = &set.problems[0];
        CU_ASSERT_PTR_NOT_NULL(strstr(p->messages[0].content, ".\n\nWh"));
        CU_ASSERT_EQUAL(graded(set.task->grader, p->gold, cases[i].response).verdict,
                        cases[i].verdict);
        task_set_release(&set);
    }
}

CU_TestInfo tests_similarity[] = {{"similarity of short texts", test_short},
                                  {"frequent characters start no match in long texts", test_long},
                                  {"grades of similar responses", test_grades},
                                  {"rows of MRCR", test_mrcr},
                                  {"rows of LongBench v2", test_longbench},
                                  {"rows of RULER", test_ruler},
                                  CU_TEST_INFO_NULL};
