/* Tests suites and task files in --suite. */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness/eval/suite.h"

static void test_suites(void) {
    suite s;
    arena mem = {0};
    CU_ASSERT_EQUAL_FATAL(suite_resolve("aime24,synth_aime", &mem, &s, NULL), SNAP_OK);
    CU_ASSERT(s.n == 2 && s.tasks[0].samples == 32 && s.tasks[1].samples == 4);
    CU_ASSERT_DOUBLE_EQUAL(s.margin_pp, 2, 0);
    static const struct {
        const char *text, *message;
        snap_status status;
    } files[] = {
        {"{\"tasks\": [{\"task\": \"aime25\", \"samples\": 8}], \"margin_pp\": 3}", "", SNAP_OK},
        {"{\"tasks\": []}", "names no task", SNAP_E_USAGE},
        {"{\"tasks\": [{\"task\": \"nope\"}]}", "unknown task 'nope'", SNAP_E_USAGE},
        {"{\"tasks\": [{\"task\": \"aime24\", \"samples\": 0}]}", "'samples' must be",
         SNAP_E_INPUT},
        {"{\"tasks\": [{\"task\": \"aime24\", \"samples\": 1.5}]}", "'samples' must be an integer",
         SNAP_E_INPUT},
        {"{\"tasks\": [{\"task\": \"aime24\"}, {\"task\": \"aime24\"}]}", "is given twice",
         SNAP_E_USAGE},
        {"{\"tasks\": [{\"task\": \"aime24\"}], \"color\": 1}", "unknown key 'color'",
         SNAP_E_INPUT},
        {"{\"tasks\": [{\"task\": \"aime24\"}], \"smapling\": {}}",
         "unknown key 'smapling' (did you mean 'sampling'?)", SNAP_E_INPUT},
        {"{\"tasks\": [{\"task\": \"amie24\"}]}", "did you mean 'aime24'?", SNAP_E_USAGE},
        {"{\"tasks\": [{\"task\": \"aime24\"}], \"sampling\": {\"top_p\": 0}}", "'top_p' must be",
         SNAP_E_INPUT},
        {"[]", "must be an object", SNAP_E_INPUT},
        {"{", "suite.json:1", SNAP_E_INPUT},
        {"{\"tasks\": [5]}", "", SNAP_E_INPUT},
    };
    char dir[] = "/tmp/snapmla-suite-XXXXXX", path[64];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/suite.json", dir);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, files[i].text, strlen(files[i].text), NULL),
                              SNAP_OK);
        CU_ASSERT_EQUAL(suite_resolve(path, &mem, &s, &err), files[i].status);
        if (!strstr(err.text, files[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, files[i].message));
    }
    CU_ASSERT_EQUAL(suite_resolve("nope", &mem, &s, NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(suite_resolve("", &mem, &s, NULL), SNAP_E_USAGE);
    snap_err err = {0};
    CU_ASSERT_EQUAL(suite_resolve("feild", &mem, &s, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "did you mean 'field'?"));
    (void)unlink(path);
    (void)rmdir(dir);
    arena_release(&mem);
}

/* Task files in --suite and in suites, and which margin and number of samples come first. */
static void test_suites_of_task_files(void) {
    static const char task[] = "{\"task\": \"quiz\", \"data\": \"d.jsonl\", \"prompt\": \"{{q}}\", "
                               "\"answer\": \"{{a}}\", \"grader\": \"exact\", \"samples\": 3, "
                               "\"margin_pp\": 7}";
    char dir[] = "/tmp/snapmla-suite-XXXXXX", path[64], quiz[64], list[160];
    suite s;
    arena mem = {0};
    snap_err err = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/suite.json", dir);
    (void)snprintf(quiz, sizeof quiz, "%s/quiz.json", dir);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(quiz, task, strlen(task), NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(suite_resolve(quiz, &mem, &s, NULL), SNAP_OK);
    CU_ASSERT(s.n == 1 && s.tasks[0].samples == 3 && strcmp(s.tasks[0].task->name, "quiz") == 0);
    CU_ASSERT_DOUBLE_EQUAL(s.margin_pp, 7, 0);
    const struct {
        const char *text, *also, *message;
        double margin;
        int samples;
    } files[] = {
        {"{\"tasks\": [{\"task\": \"quiz.json\"}]}", "aime24", "", 7, 3},
        {"{\"tasks\": [{\"task\": \"quiz.json\", \"samples\": 2}], \"margin_pp\": 4}", "aime24", "",
         4, 2},
        {"{\"tasks\": [{\"task\": \"quiz.json\"}]}", "demo", "", 2, 3},
        {"{\"tasks\": [{\"task\": \"quiz.json\"}]}", quiz, "task 'quiz' is given twice", 0, 0},
        {"{\"tasks\": [{\"task\": \"none.json\"}]}", "aime24", "none.json", 0, 0},
        {"{\"tasks\": [], \"task\": \"x\"}", "aime24", "has 'tasks', as a suite, and 'task'", 0, 0},
        {"{\"task\": \"x\"}", "aime24", "suite.json:1: needs 'data'", 0, 0},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        err = (snap_err){0};
        CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, files[i].text, strlen(files[i].text), NULL),
                              SNAP_OK);
        (void)snprintf(list, sizeof list, "%s,%s", path, files[i].also);
        snap_status st = suite_resolve(list, &mem, &s, &err);
        CU_ASSERT_EQUAL(st == SNAP_OK, files[i].samples > 0);
        if (!strstr(err.text, files[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, files[i].message));
        if (st != SNAP_OK)
            continue;
        CU_ASSERT(s.n == 2 && s.tasks[0].samples == files[i].samples);
        CU_ASSERT_DOUBLE_EQUAL(s.margin_pp, files[i].margin, 0);
    }
    arena_release(&mem);
    (void)unlink(path);
    (void)unlink(quiz);
    (void)rmdir(dir);
}

/* Each shipped task file has the name of its task, and is one of the known tasks. */
static void test_shipped_task_files(void) {
    size_t n = 0, in_c = 0;
    for (const task_spec *const *t = task_table; *t; t++)
        in_c++;
    DIR *folder = opendir("configs/tasks");
    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    for (const struct dirent *e; (e = readdir(folder));) {
        bool known = e->d_name[0] == '.';
        n += !known;
        for (const char *const *name = task_known; *name && !known; name++)
            known = strncmp(e->d_name, *name, strlen(*name)) == 0 &&
                    strcmp(e->d_name + strlen(*name), ".json") == 0;
        CU_ASSERT(known);
    }
    (void)closedir(folder);
    for (const char *const *name = task_known; *name; name++)
        n--;
    CU_ASSERT_EQUAL(n + in_c, 0);
}

CU_TestInfo tests_suite[] = {
    {"suites are read from names and files", test_suites},
    {"suites of task files", test_suites_of_task_files},
    {"shipped task files", test_shipped_task_files},
    CU_TEST_INFO_NULL,
};
