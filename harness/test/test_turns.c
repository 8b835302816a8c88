/* Tests conversations that continue with the arm's own answers, with a scripted server. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test/temp_folder.h"
#include "evals/taskfile/task_file.h"
#include "generator/test/scripted_server.h"
#include "harness/test/eval_place.h"
#include "harness/view/run_report.h"

enum { CHATS = 3, TURNS = 4 };

static const char kAnswer[] =
    "{\"choices\": [{\"message\": {\"content\": \"<think>Dispatch: 5</think>Dispatch: 77 mine\"}, "
    "\"finish_reason\": \"stop\"}], \"usage\": {\"prompt_tokens\": 9, \"completion_tokens\": 3}}";

static void put_task(const char *dir, const char *answers) {
    char text[1000];
    int n = snprintf(
        text, sizeof text,
        "{\"task\": \"t\", \"generator\": {\"kind\": \"turns\", \"lengths\": [600], \"items\": %d, "
        "\"turns\": %d}, \"turns\": {\"history\": \"history\", \"conversation\": \"conversation\", "
        "\"answers\": \"%s\"}, \"system\": \"{{document}}\", \"prompt\": \"{{question}}\", "
        "\"answer\": \"{{answer}}\", \"extract\": \"last_number\", \"grader\": \"integer\", "
        "\"groups\": \"turn\"}",
        CHATS, TURNS, answers);
    temp_folder_put(dir, "", "task.json", text, (size_t)n);
}

/* Runs two arms on the same server. Returns the number of requests. */
static int converse(const char *dir, const char *answers, const char *shard, server **out) {
    static const reply replies[] = {{.body = kAnswer}};
    char arms[2][120], suite[100], run[100];
    snap_err err = {0};
    results *r = NULL;
    put_task(dir, answers);
    *out = server_start(replies, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(*out);
    for (int i = 0; i < 2; i++)
        (void)snprintf(arms[i], sizeof arms[i], "%c=%s/v1,model=m,stream=false", 'a' + i,
                       server_url(*out));
    (void)snprintf(suite, sizeof suite, "%s/task.json", dir);
    (void)snprintf(run, sizeof run, "%s/run-%s-%c", dir, answers, shard ? shard[0] : '0');
    eval_options o = {.report = run_report_write,
                      .suite = suite,
                      .data = dir,
                      .arms = {.items = {arms[0], arms[1]}, .n = 2},
                      .shard = shard,
                      .out = run,
                      .seed = 1,
                      .max_lost_pct = -1,
                      .temperature = -1};
    if (eval_run(&o, NULL, &r, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL(err.code, SNAP_OK);
    if (r)
        CU_ASSERT_EQUAL(eval_audit(r), SNAP_OK);
    results_free(r);
    server_stop(*out);
    return server_requests(*out);
}

/* Counts the messages of the assistant in all requests, and those that repeat the server's. */
static void count_answers(const server *s, int requests, int *all, int *own) {
    *all = *own = 0;
    for (int i = 0; i < requests; i++) {
        const char *body = server_request(s, i)->body;
        js *o = js_parse(body, strlen(body), "request", NULL);
        const js *messages = js_get_array(o, "messages");
        for (size_t k = 0; k < js_len(messages); k++) {
            const js *m = js_at(messages, k);
            bool assistant = strcmp(js_get_str(m, "role"), "assistant") == 0;
            *all += assistant;
            *own += assistant && strcmp(js_get_str(m, "content"), "Dispatch: 77 mine") == 0;
        }
        js_free(o);
    }
}

static void test_answers(void) {
    static const char *const kinds[] = {"own", "fixed"};
    for (int kind = 0; kind < 2; kind++) {
        char dir[TEMP_FOLDER];
        server *s;
        int all, own;
        temp_folder_open(dir, "turns");
        int n = converse(dir, kinds[kind], NULL, &s);
        CU_ASSERT_EQUAL(n, 2 * CHATS * TURNS);
        count_answers(s, n, &all, &own);
        CU_ASSERT_EQUAL(all, 2 * CHATS * (0 + 1 + 2 + 3));
        CU_ASSERT_EQUAL(own, kind == 0 ? all : 0);
        server_free(s);
        temp_folder_remove(dir);
    }
}

/* All turns of a conversation are in the same shard. */
static void test_shards(void) {
    static const char *const shards[] = {"1/2", "2/2"};
    char dir[TEMP_FOLDER];
    int n = 0;
    temp_folder_open(dir, "turns");
    for (int i = 0; i < 2; i++) {
        server *s;
        int all, own, here = converse(dir, "own", shards[i], &s);
        CU_ASSERT_EQUAL(here % TURNS, 0);
        count_answers(s, here, &all, &own);
        CU_ASSERT(here > 0 && own == all);
        n += here;
        server_free(s);
    }
    CU_ASSERT_EQUAL(n, 2 * CHATS * TURNS);
    temp_folder_remove(dir);
}

/* ---- results by length: from which one on is arm b worse? ---- */

static const char kLengths[] =
    "{\"task\": \"t\", \"generator\": {\"kind\": \"needle\", \"lengths\": [300, 400, 500, 600], "
    "\"depths\": [0, 1], \"items\": 10}, \"prompt\": \"{{document}} {{question}}\", "
    "\"answer\": \"{{answer}}\", \"grader\": \"exact\", \"groups\": [\"length\", "
    "\"depth\"], \"margin_pp\": 20}";

/* Records right answers. If @worse, those about texts of 500 tokens and more are wrong. */
static void record(const char *path, bool worse) {
    task_file *f = NULL;
    task_set set;
    buf rows = {0};
    CU_ASSERT_EQUAL_FATAL(task_file_parse(kLengths, strlen(kLengths), "t", NULL, &f, NULL),
                          SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(task_load(task_file_spec(f), ".", 0, NULL, &set, NULL), SNAP_OK);
    for (size_t i = 0; i < set.n; i++) {
        const task_problem *p = &set.problems[i];
        bool wrong = worse && strcmp(p->groups[0], "500") >= 0;
        (void)buf_printf(&rows,
                         "{\"task\": \"t\", \"problem\": \"%s\", \"sample\": 0, \"response\": "
                         "\"%s\"}\n",
                         p->id, wrong ? "7" : p->gold);
    }
    eval_write_text(path, &rows);
    buf_release(&rows);
    task_set_release(&set);
    task_file_free(f);
}

/* Checks that a file of the run contains texts. */
static void check_report(const char *run, const char *name, const char *const *texts) {
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", run, name);
    char *text = eval_text_of(path);
    for (; *texts; texts++)
        CU_ASSERT_PTR_NOT_NULL(strstr(text, *texts));
    free(text);
}

static void test_breaks(void) {
    char dir[TEMP_FOLDER], suite[100], run[100], paths[2][100], arms[2][130];
    results *r = NULL;
    temp_folder_open(dir, "lengths");
    temp_folder_put(dir, "", "task.json", kLengths, strlen(kLengths));
    (void)snprintf(suite, sizeof suite, "%s/task.json", dir);
    (void)snprintf(run, sizeof run, "%s/run", dir);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "%s/%c.jsonl", dir, 'a' + i);
        (void)snprintf(arms[i], sizeof arms[i], "%c=replay:%s", 'a' + i, paths[i]);
        record(paths[i], i == 1);
    }
    eval_options o = {.report = run_report_write,
                      .suite = suite,
                      .data = dir,
                      .arms = {.items = {arms[0], arms[1]}, .n = 2},
                      .out = run,
                      .seed = 1,
                      .max_lost_pct = -1,
                      .temperature = -1};
    CU_ASSERT_EQUAL(eval_run(&o, NULL, &r, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(eval_audit(r), SNAP_OK);
    js *group = js_at(js_get_array(js_at(results_section(r, "evals"), 0), "groups"), 0);
    CU_ASSERT(js_set_num(js_at(js_get_array(group, "arms"), 0), "accuracy_pct", 50));
    CU_ASSERT_NOT_EQUAL(eval_audit(r), SNAP_OK); /* the group's accuracy no longer fits the arm's */
    results_free(r);
    check_report(run, "report.md",
                 (const char *const[]){
                     "| t | b vs a | length | 4 | 400 | 500 |", "| t | length 400 | b vs a | 20 |",
                     "| t | depth 1 | b vs a | 40 |", "| t | arm a has 100.0 %", NULL});
    check_report(run, "report.html",
                 (const char *const[]){"id=\"heat-1\"", "length 500, depth 1: −100 (10 problems)",
                                       "length 400, depth 0: 100 (10 problems)", NULL});
    temp_folder_remove(dir);
}

CU_TestInfo tests_turns[] = {{"later turns get own or fixed answers", test_answers},
                             {"a conversation is in one shard", test_shards},
                             {"from which length on an arm is worse", test_breaks},
                             CU_TEST_INFO_NULL};
