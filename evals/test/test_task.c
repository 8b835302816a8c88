#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "evals/plan.h"
#include "evals/test/task_of.h"

/* Loads rows through a temporary file. */
static snap_status load(const char *rows, size_t limit, task_set *set, snap_err *err) {
    char folder[] = "/tmp/snapmla-task-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    char *path = fs_join(folder, "rows.jsonl");
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, rows, strlen(rows), NULL), SNAP_OK);
    snap_status st = task_load(task_of("aime24"), path, limit, NULL, set, err);
    (void)unlink(path);
    (void)rmdir(folder);
    free(path);
    return st;
}

static void test_both_forms_of_a_row(void) {
    task_set set;
    CU_ASSERT_EQUAL_FATAL(
        load("{\"prompt\": \"P1\", \"answer\": 204}\n\n"
             "{\"problem\": \"P2\", \"answer\": \"033\", \"id\": 61, \"url\": \"x\"}\n"
             "{\"question\": \"P3\", \"answer\": \"7\", \"ID\": \"2024-I-3\"}",
             0, &set, NULL),
        SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(set.n, 3);
    CU_ASSERT_STRING_EQUAL(set.problems[0].id, "1");
    CU_ASSERT_STRING_EQUAL(set.problems[0].messages[0].content, "P1");
    CU_ASSERT_STRING_EQUAL(set.problems[0].messages[0].role, "user");
    CU_ASSERT_STRING_EQUAL(set.problems[1].id, "61");
    CU_ASSERT_STRING_EQUAL(set.problems[1].gold, "33");
    CU_ASSERT_STRING_EQUAL(set.problems[1].messages[0].content,
                           "P2\nPlease reason step by step, and put your final answer within "
                           "\\boxed{}.");
    CU_ASSERT_STRING_EQUAL(set.problems[2].id, "2024-I-3");
    size_t index;
    CU_ASSERT_PTR_EQUAL(task_problem_find(&set, "61", &index), &set.problems[1]);
    CU_ASSERT_EQUAL(index, 1);
    CU_ASSERT_PTR_NULL(task_problem_find(&set, "2", NULL));
    task_set_release(&set);
}

/* The hashes are those of sha256sum for the same bytes. A prompt is hashed as JSON with sorted
 * keys. */
static void test_hashes(void) {
    task_set set;
    CU_ASSERT_EQUAL_FATAL(load("{\"prompt\": \"P1\", \"answer\": 204}\n", 0, &set, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(set.sha256,
                           "ac5e03f835061b579754259d4f9759e31cbbdad9c8facd377b4a6f1f4c7653fa");
    CU_ASSERT_STRING_EQUAL(set.problems[0].prompt_sha256,
                           "db733187fd77b581dacfa4a48da8f3f8c9123757bc8bfa981cbdcca1744cc510");
    task_set_release(&set);
}

static void test_limit(void) {
    task_set set;
    const char *rows = "{\"prompt\": \"a\", \"answer\": 1}\n{\"prompt\": \"b\", \"answer\": 2}\n"
                       "{\"prompt\": \"c\", \"answer\": 3}\n";
    char one[HASH_HEX];
    CU_ASSERT_EQUAL_FATAL(load(rows, 2, &set, NULL), SNAP_OK);
    CU_ASSERT(set.n == 2 && set.rows == 3);
    memcpy(one, set.prompt_sha256, sizeof one);
    task_set_release(&set);
    CU_ASSERT_EQUAL_FATAL(load(rows, 9, &set, NULL), SNAP_OK);
    CU_ASSERT(set.n == 3 && strcmp(one, set.prompt_sha256) != 0);
    task_set_release(&set);
}

static void test_bad_files_name_the_line(void) {
    static const struct {
        const char *rows, *message;
    } cases[] = {
        {"", "no problems"},
        {"\n\n", "no problems"},
        {"{\"prompt\": \"a\", \"answer\": 1}\n{oops}\n", ":2"},
        {"[1]\n", ":1"},
        {"{\"answer\": 1}\n", ":1: needs a text or number 'prompt' or 'problem' or"},
        {"{\"prompt\": \"  \", \"answer\": 1}\n", ":1: needs a text"},
        {"{\"prompt\": \"a\\u0000b\", \"answer\": 1}\n", ":1: needs a text"},
        {"{\"prompt\": \"a\"}\n", ":1: needs a text or number 'answer'"},
        {"{\"prompt\": \"a\", \"answer\": 1.5}\n", ":1: the answer must be an integer 0..999"},
        {"{\"prompt\": \"a\", \"answer\": -1}\n", ":1: the answer must be"},
        {"{\"prompt\": \"a\", \"answer\": 1000}\n", ":1: the answer must be"},
        {"{\"prompt\": \"a\", \"answer\": \"1/2\"}\n", ":1: the answer must be"},
        {"{\"prompt\": \"a\", \"answer\": \"99999999999999999999\"}\n", ":1: the answer must be"},
        {"{\"prompt\": \"a\", \"answer\": 1, \"id\": \"x\"}\n"
         "{\"prompt\": \"b\", \"answer\": 1, \"id\": \"x\"}\n",
         "problem id 'x' occurs twice"},
        {"{\"prompt\": \"a\", \"answer\": 1, \"answer\": 2}\n", ":1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        task_set set;
        snap_err err = {0};
        CU_ASSERT_EQUAL(load(cases[i].rows, 0, &set, &err), SNAP_E_INPUT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "rows.jsonl"));
        if (!strstr(err.text, cases[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
        task_set_release(&set);
    }
}

static void test_missing_files_list_the_paths(void) {
    task_set set;
    snap_err err = {0};
    CU_ASSERT_EQUAL(task_load(task_of("aime24"), "/tmp", 0, NULL, &set, &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'/tmp/aime_2024/aime24.jsonl'"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'/tmp/aime24.jsonl'"));
    task_set_release(&set);
    err = (snap_err){0};
    CU_ASSERT_EQUAL(task_load(task_of("aime24"), "/nowhere", 0, NULL, &set, &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'/nowhere' does not exist"));
    task_set_release(&set);
}

/* ---- plans ---- */

static void make_plan(eval_plan *p) {
    *p = (eval_plan){.margin = 0.02};
    p->tasks = calloc(2, sizeof *p->tasks);
    p->arms = calloc(3, sizeof *p->arms);
    CU_ASSERT_FATAL(p->tasks && p->arms);
    const char *rows = "{\"prompt\": \"a\", \"answer\": 1}\n{\"prompt\": \"b\", \"answer\": 2}\n"
                       "{\"prompt\": \"c\", \"answer\": 3}\n";
    for (; p->n_tasks < 2; p->n_tasks++) {
        eval_task *t = &p->tasks[p->n_tasks];
        *t = (eval_task){.samples = 4 + (int)p->n_tasks,
                         .sampling = {.temperature = 1, .top_p = 0.95, .max_tokens = 100}};
        CU_ASSERT_EQUAL_FATAL(load(rows, 3 - p->n_tasks, &t->set, NULL), SNAP_OK);
    }
    p->tasks[1].set.task = task_of("aime25");
    static const char *const names[] = {"a", "b", "c"};
    for (; p->n_arms < 3; p->n_arms++)
        p->arms[p->n_arms] = (eval_arm){
            .name = names[p->n_arms], .spec = "replay:x", .kind = "replay", .temperature = -1};
}

/* Every cell has one number, in order, and every number belongs to one cell. */
static void test_cells_are_numbered(void) {
    eval_plan p;
    make_plan(&p);
    CU_ASSERT_EQUAL(plan_cells(&p), 3 * (3 * 4 + 2 * 5));
    size_t index = 0;
    for (size_t t = 0; t < 2; t++)
        for (size_t a = 0; a < 3; a++)
            for (size_t q = 0; q < p.tasks[t].set.n; q++)
                for (int k = 0; k < p.tasks[t].samples; k++, index++) {
                    plan_cell c = plan_cell_at(&p, index);
                    CU_ASSERT(c.task == t && c.arm == a && c.problem == q && c.sample == k);
                    CU_ASSERT_EQUAL(plan_index(&p, c), index);
                }
    CU_ASSERT_EQUAL(index, plan_cells(&p));
    plan_release(&p);
}

/* Arms have the same seeds, except an arm with a seed of its own. Within an arm, all cells have
 * different seeds. */
static void test_seeds(void) {
    eval_plan p;
    make_plan(&p);
    p.arms[2].has_seed = true;
    p.arms[2].seed = 99;
    uint64_t seen[64];
    size_t n = 0;
    for (size_t i = 0; i < plan_cells(&p); i++) {
        plan_cell c = plan_cell_at(&p, i), same = c;
        same.arm = 0;
        uint64_t seed = plan_seed(&p, c);
        CU_ASSERT(seed < UINT64_C(1) << 31);
        if (c.arm == 1)
            CU_ASSERT_EQUAL(seed, plan_seed(&p, same));
        if (c.arm == 1)
            continue;
        for (size_t j = 0; j < n; j++)
            CU_ASSERT_NOT_EQUAL(seed, seen[j]);
        seen[n++] = seed;
    }
    CU_ASSERT_EQUAL(n, 44);
    /* computed by another implementation of Philox and FNV; it must not change, so that runs can be
     * resumed by later versions */
    CU_ASSERT_EQUAL(plan_seed(&p, (plan_cell){0}), 1107328160);
    plan_release(&p);
}

static void test_requests_are_the_same_in_all_arms(void) {
    eval_plan p;
    make_plan(&p);
    gen_request a = plan_request(&p, (plan_cell){.task = 1, .arm = 0, .problem = 1, .sample = 2});
    gen_request b = plan_request(&p, (plan_cell){.task = 1, .arm = 2, .problem = 1, .sample = 2});
    CU_ASSERT_PTR_EQUAL(a.messages, b.messages);
    CU_ASSERT_STRING_EQUAL(a.task, "aime25");
    CU_ASSERT_STRING_EQUAL(a.problem, "2");
    CU_ASSERT_EQUAL(a.sampling.seed, b.sampling.seed);
    CU_ASSERT_NOT_EQUAL(a.id, b.id);
    plan_release(&p);
}

static void test_refusals(void) {
    eval_plan p;
    char why[160];
    make_plan(&p);
    p.arms[1].has_seed = true; /* other seeds do not make arms incomparable */
    p.arms[2].temperature = 0.6;
    CU_ASSERT_FALSE(plan_refusal(&p, 0, 0, 1, why, sizeof why));
    CU_ASSERT_STRING_EQUAL(why, "");
    CU_ASSERT_TRUE(plan_refusal(&p, 0, 0, 2, why, sizeof why));
    CU_ASSERT_STRING_EQUAL(why, "temperature differs: 1 against 0.6");
    plan_release(&p);
}

/* A run with more samples is the same run, grown. With other sampling parameters, another model,
 * arm or data file, it is another run. */
static void test_identity(void) {
    eval_plan p;
    make_plan(&p);
    js *was = plan_identity(&p);
    CU_ASSERT_PTR_NOT_NULL_FATAL(was);
    p.tasks[0].samples = 9;
    CU_ASSERT_EQUAL(plan_check_identity(&p, was, "RUN", NULL), SNAP_OK);
    snap_err err = {0};
    p.tasks[1].sampling.max_tokens = 7;
    CU_ASSERT_EQUAL(plan_check_identity(&p, was, "RUN", &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "max_tokens 100"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "max_tokens 7"));
    p.tasks[1].sampling.max_tokens = 100;
    p.arms[1].model = "other";
    err = (snap_err){0};
    CU_ASSERT_EQUAL(plan_check_identity(&p, was, "RUN", &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "arm b, model was '', now 'other'"));
    p.arms[1].model = NULL;
    p.arms[2].name = "d";
    CU_ASSERT_EQUAL(plan_check_identity(&p, was, "RUN", NULL), SNAP_E_USAGE);
    p.arms[2].name = "c";
    p.tasks[0].set.sha256[0] ^= 1;
    CU_ASSERT_EQUAL(plan_check_identity(&p, was, "RUN", NULL), SNAP_E_USAGE);
    js_free(was);
    plan_release(&p);
}

CU_TestInfo tests_task[] = {
    {"rows with the keys of several data sets", test_both_forms_of_a_row},
    {"hashes are those of sha256sum", test_hashes},
    {"a limit keeps the first problems", test_limit},
    {"bad files name the line", test_bad_files_name_the_line},
    {"missing files list the paths", test_missing_files_list_the_paths},
    {"each sample has one number", test_cells_are_numbered},
    {"arms have the same seeds unless one has its own", test_seeds},
    {"requests are the same in all arms", test_requests_are_the_same_in_all_arms},
    {"arms with other sampling are not compared", test_refusals},
    {"what makes a run another run", test_identity},
    CU_TEST_INFO_NULL,
};
