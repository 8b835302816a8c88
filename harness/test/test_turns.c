/* Tests conversations that continue with the arm's own answers, with a scripted server. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/test/temp_folder.h"
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

CU_TestInfo tests_turns[] = {
    {"own and fixed answers", test_answers}, {"shards", test_shards}, CU_TEST_INFO_NULL};
