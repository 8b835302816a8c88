/* Tests the evaluation over HTTP, with a scripted server. */
#include <CUnit/CUnit.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "generator/test/scripted_server.h"
#include "harness/eval/eval_run.h"
#include "harness/eval/judge_model.h"
#include "harness/eval/shared.h"
#include "harness/view/run_report.h"

enum { PROBLEMS = 4, SAMPLES = 2, CELLS = PROBLEMS * SAMPLES };

static char folder[48];

/* A path in the folder. Static memory for two paths at a time. */
static const char *in_folder(const char *name) {
    static char paths[2][120];
    static int next;
    char *path = paths[next++ % 2];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void folder_open(void) {
    buf rows = {0};
    (void)snprintf(folder, sizeof folder, "/tmp/snapmla-http-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    for (int i = 0; i < PROBLEMS; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"is it %d?\", \"answer\": %d}\n",
                         i, i, i);
    CU_ASSERT_EQUAL_FATAL(
        fs_write_atomic(in_folder("problems.jsonl"), buf_str(&rows), rows.len, NULL), SNAP_OK);
    buf_release(&rows);
    term_set_quiet(true);
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static void folder_close(void) {
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* One arm named a on the server, with a control. */
static results *evaluate(const server *s, const char *control) {
    static char arm[100];
    results *r = NULL;
    snap_err err = {0};
    (void)snprintf(arm, sizeof arm, "a=%s/v1,model=m,in_flight=2", server_url(s));
    eval_options o = {.report = run_report_write,
                      .suite = "synth_aime",
                      .data = in_folder("problems.jsonl"),
                      .arms = {.items = {arm}, .n = 1},
                      .controls = {.items = {control}, .n = 1},
                      .out = in_folder("run"),
                      .samples = SAMPLES,
                      .seed = 1,
                      .temperature = -1};
    if (eval_run(&o, NULL, &r, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

/* "PROMPT SEED" of each request, sorted. */
static void asked_of(const server *s, char questions[2 * CELLS][80]) {
    for (int i = 0; i < 2 * CELLS; i++) {
        const char *body = server_request(s, i)->body;
        js *o = js_parse(body, strlen(body), "request", NULL);
        const js *message = js_at(js_get_array(o, "messages"), 0);
        (void)snprintf(questions[i], sizeof questions[i], "%.10s %lld",
                       js_get_str(message, "content"), (long long)js_get_int(o, "seed", -1));
        js_free(o);
    }
    qsort(questions, 2 * CELLS, sizeof questions[0], (int (*)(const void *, const void *))strcmp);
}

/* The number of texts that occur only once; the texts are sorted. */
static int count_single(char questions[2 * CELLS][80]) {
    int n = 0;
    for (int i = 0; i < 2 * CELLS; i++) {
        bool before = i > 0 && strcmp(questions[i - 1], questions[i]) == 0;
        bool after = i + 1 < 2 * CELLS && strcmp(questions[i + 1], questions[i]) == 0;
        n += !before && !after;
    }
    return n;
}

static char *text_of(const char *name) {
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(in_folder(name), &text, NULL), SNAP_OK);
    return buf_steal(&text);
}

static void expect_in(const char *name, const char *what) {
    char *text = text_of(name);
    if (!strstr(text, what))
        printf("\n%s: no '%s'\n", name, what);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, what));
    free(text);
}

/* The first CELLS requests have the seeds of arm a: the control did not use the server before. */
static void expect_control_last(const server *s) {
    char *samples = text_of("run/samples.jsonl");
    for (int i = 0; i < CELLS; i++) {
        const char *body = server_request(s, i)->body;
        js *o = js_parse(body, strlen(body), "request", NULL);
        char seed[40];
        (void)snprintf(seed, sizeof seed, "\"seed\":%lld,", (long long)js_get_int(o, "seed", -1));
        const char *at = strstr(samples, seed), *line = at;
        while (line && line > samples && line[-1] != '\n')
            line--;
        CU_ASSERT(line && strstr(line, "\"arm\":\"a\"") && strstr(line, "\"arm\":\"a\"") < at);
        js_free(o);
    }
    free(samples);
}

/* An arm and its control ask the same questions. No two requests for a problem have the same
 * seed. */
static void test_other_seeds(void) {
    static const reply answer = {.type = "text/event-stream",
                                 .body = CHAT_STREAM("it is \\\\boxed{", "2}")};
    static char questions[2 * CELLS][80];
    folder_open();
    server *s = server_start(&answer, 1);
    results *r = evaluate(s, "seeds");
    server_stop(s);
    CU_ASSERT_EQUAL_FATAL(server_requests(s), 2 * CELLS);
    asked_of(s, questions);
    CU_ASSERT_EQUAL(count_single(questions), 2 * CELLS);
    const js *row = js_at(results_section(r, "evals"), 0);
    const js *pair = js_at(js_get_array(row, "pairs"), 0);
    CU_ASSERT_STRING_EQUAL(js_get_str(pair, "arm"), "a.control");
    CU_ASSERT_STRING_EQUAL(js_get_str(pair, "control"), "seeds");
    CU_ASSERT_PTR_NULL(js_get(pair, "sensitivity"));
    expect_control_last(s);
    for (size_t i = 0; i < 2; i++) {
        const js *arm = js_at(js_get_array(row, "arms"), i);
        CU_ASSERT(js_get_num(arm, "ttft_ms_median", -1) >= 0);
        CU_ASSERT_PTR_NULL(js_get_str(arm, "shared_with"));
    }
    CU_ASSERT_PTR_NULL(js_get(pair, "refused"));
    expect_in("run/report.md", "a.control vs a (control: other seeds)");
    expect_in("run/report.html", "a.control vs a (control: other seeds)");
    expect_in("run/parity.tex", "a.control vs a (control: other seeds)");
    expect_in("run/report.csv", "seeds");
    results_free(r);
    server_free(s);
    folder_close();
}

/* The damaged arm is another model on the same server. It has the same seeds. */
static void test_a_damaged_server(void) {
    static const reply answer = {.type = "text/event-stream",
                                 .body = CHAT_STREAM("\\\\boxed{", "2}")};
    static char questions[2 * CELLS][80], control[100];
    folder_open();
    server *s = server_start(&answer, 1);
    (void)snprintf(control, sizeof control, "damaged=%s/v1,model=worse", server_url(s));
    results *r = evaluate(s, control);
    server_stop(s);
    CU_ASSERT_EQUAL_FATAL(server_requests(s), 2 * CELLS);
    asked_of(s, questions);
    CU_ASSERT_EQUAL(count_single(questions), 0);
    const js *row = js_at(results_section(r, "evals"), 0);
    const js *pair = js_at(js_get_array(row, "pairs"), 0);
    CU_ASSERT_STRING_EQUAL(js_get_str(pair, "control"), "damaged");
    /* the damaged model gives the same answers */
    CU_ASSERT_STRING_EQUAL(js_get_str(pair, "sensitivity"), "blind");
    for (size_t i = 0; i < 2; i++) {
        const js *arm = js_at(js_get_array(row, "arms"), i);
        CU_ASSERT_STRING_EQUAL(js_get_str(arm, "shared_with"), i ? "a" : "damaged");
        CU_ASSERT_FALSE(js_has(arm, "ttft_ms_median") && js_is_num(js_get(arm, "ttft_ms_median")));
    }
    results_free(r);
    server_free(s);
    folder_close();
}

static void test_shared_servers(void) {
    static const struct {
        const char *a, *b;
        bool shared;
    } cases[] = {
        {"http://h:1/v1", "http://h:1/other", true},
        {"http://h:1/v1", "http://h:2/v1", false},
        {"http://h/v1", "http://H:80/v1", true},
        {"https://h/v1", "http://h/v1", false},
        {"https://h/v1", "https://h:443", true},
        {"http://localhost:8000/v1", "http://127.0.0.1:8000/v1", true},
        {"http://[::1]:8000/v1", "http://127.0.0.1:8000/v1", true},
        {"http://[fe80::2]/v1", "http://[fe80::3]/v1", false},
        {"http://h:1/v1|http://h:2/v1*3", "http://g:1/v1|http://h:2/v1*2", true},
        {"http://h:1/v1|http://h:2/v1*3", "http://h:3/v1", false},
        {"local:x", "local:y", true},
        {"local:x", "http://h/v1", false},
        {"replay:x", "replay:x", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        eval_arm arms[2] = {{.name = "a", .spec = cases[i].a}, {.name = "b", .spec = cases[i].b}};
        for (int k = 0; k < 2; k++)
            arms[k].kind = strncmp(arms[k].spec, "http", 4) == 0    ? "http"
                           : strncmp(arms[k].spec, "local", 5) == 0 ? "local"
                                                                    : "replay";
        const eval_plan plan = {.arms = arms, .n_arms = 2};
        CU_ASSERT_EQUAL(shared_with(&plan, 0) == &arms[1], cases[i].shared);
        CU_ASSERT_EQUAL(shared_with(&plan, 1) == &arms[0], cases[i].shared);
        arms[1].control = CONTROL_SEEDS; /* it runs later */
        CU_ASSERT_PTR_NULL(shared_with(&plan, 0));
    }
}

static void test_shared_devices(void) {
    static const struct {
        const char *device[2], *layout[2];
        bool shared;
    } cases[] = {
        {{NULL, "cpu"}, {NULL, "DP2"}, true},
        {{"cuda", NULL}, {NULL, NULL}, false},
        {{"cuda", "cuda:0"}, {NULL, NULL}, true},
        {{"cuda", "cuda:1"}, {NULL, NULL}, false},
        {{"cuda", "cuda:1"}, {"DP2", NULL}, true},
        {{"cuda:0,1", "cuda:2,3"}, {"DP2", "DP2"}, false},
        {{"cuda:0,1", "cuda:2,1"}, {"DP2", "DP2"}, true},
        {{"opencl", "opencl"}, {NULL, NULL}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        eval_arm arms[2] = {{.name = "a"}, {.name = "b"}};
        for (int k = 0; k < 2; k++) {
            arms[k].kind = "local";
            arms[k].spec = "local:x";
            arms[k].device = cases[i].device[k];
            arms[k].layout = cases[i].layout[k];
        }
        const eval_plan plan = {.arms = arms, .n_arms = 2};
        CU_ASSERT_EQUAL(shared_with(&plan, 0) == &arms[1], cases[i].shared);
    }
}

/* After a regrade, the client's own statistics are still in the result and in the report. */
static void test_the_client_s_lag(void) {
    static const reply answer = {.type = "text/event-stream",
                                 .body = CHAT_STREAM("it is \\\\boxed{", "2}")};
    folder_open();
    server *s = server_start(&answer, 1);
    results_free(evaluate(s, "seeds"));
    server_free(s);
    eval_options o = {.report = run_report_write, .out = in_folder("run"), .regrade = true};
    results *r = NULL;
    CU_ASSERT_EQUAL_FATAL(eval_run(&o, NULL, &r, NULL), SNAP_OK);
    const js *arms = js_get_array(js_at(results_section(r, "evals"), 0), "arms");
    CU_ASSERT_EQUAL(js_len(arms), 2);
    for (size_t i = 0; i < js_len(arms); i++) {
        const js *client = js_get_object(js_at(arms, i), "client");
        double p99 = js_get_num(client, "lag_ms_p99", -1);
        CU_ASSERT(js_get_int(client, "transfers", 0) >= CELLS);
        CU_ASSERT(js_get_int(client, "connections", 0) >= 1);
        CU_ASSERT(p99 >= 0 && p99 <= js_get_num(client, "lag_ms_max", -1) * 1.02);
        char number[40];
        (void)snprintf(number, sizeof number, "%.17g", p99);
        expect_in("run/report.csv", number);
        (void)snprintf(number, sizeof number, " | %.2f | http |", p99);
        expect_in("run/report.md", number);
    }
    expect_in("run/report.html", "client lag p99, ms");
    results_free(r);
    folder_close();
}

/* ---- secrets ---- */

static const char *const secrets[] = {"sk-general-0123456789", "sk-own-of-b-0123456789",
                                      "header-of-b-0123456789"};
enum { SECRETS = sizeof secrets / sizeof *secrets };

/* No file of the folder holds a secret. */
static int search_file(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    buf text = {0};
    (void)ftw;
    if (flag != FTW_F || !S_ISREG(sb->st_mode))
        return 0;
    CU_ASSERT_EQUAL(fs_read(path, &text, NULL), SNAP_OK);
    for (int i = 0; i < SECRETS; i++) {
        bool found = memmem(buf_str(&text), text.len, secrets[i], strlen(secrets[i])) != NULL;
        if (found)
            printf("\n%s holds '%s'\n", path, secrets[i]);
        CU_ASSERT_FALSE(found);
    }
    buf_release(&text);
    return 0;
}

/* Every request to the server has the secrets of @mask, by the bits of their numbers, and no
 * others. */
static void expect_secrets(const server *s, unsigned mask) {
    CU_ASSERT(server_requests(s) >= CELLS);
    for (int k = 0; k < server_requests(s); k++)
        for (unsigned i = 0; i < SECRETS; i++)
            CU_ASSERT_EQUAL(strstr(server_request(s, k)->head, secrets[i]) != NULL,
                            (mask >> i & 1) != 0);
}

/* Two arms on two servers that repeat their secrets in answers and errors, and a third without a
 * key. Each server receives its arm's secrets only, and no file of the run holds one. */
static void test_each_arm_has_its_own_secrets(void) {
    static char arms[3][200], body[2][400], refusal[2][200];
    static const char *const said[2] = {"sk-general-0123456789",
                                        "sk-own-of-b-0123456789 header-of-b-0123456789"};
    reply replies[2][2] = {0};
    for (int i = 0; i < 2; i++) {
        (void)snprintf(body[i], sizeof body[i],
                       "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
                       "\"%s \\\\boxed{2}\"},\"finish_reason\":\"stop\"}]}",
                       said[i]);
        (void)snprintf(refusal[i], sizeof refusal[i], "{\"error\": \"no, %s\"}", said[i]);
        replies[i][0] = (reply){.status = 403, .body = refusal[i]};
        replies[i][1] = (reply){.body = body[i]};
    }
    const reply clean = {.body = CHAT_WHOLE("\\\\boxed{2}", "stop")};
    server *s[3] = {server_start(replies[0], 2), server_start(replies[1], 2),
                    server_start(&clean, 1)};
    results *r = NULL;
    snap_err err = {0};
    folder_open();
    CU_ASSERT_EQUAL_FATAL(setenv("SNAPMLA_TEST_KEY", secrets[1], 1), 0);
    CU_ASSERT_EQUAL_FATAL(
        fs_write_atomic(in_folder("header"), secrets[2], strlen(secrets[2]), NULL), SNAP_OK);
    (void)snprintf(arms[0], sizeof arms[0], "a=%s/v1,stream=false", server_url(s[0]));
    (void)snprintf(arms[1], sizeof arms[1],
                   "b=%s/v1,stream=false,key_env=SNAPMLA_TEST_KEY,header=X-Key:@%s",
                   server_url(s[1]), in_folder("header"));
    (void)snprintf(arms[2], sizeof arms[2], "c=%s/v1,stream=false,key_env=none", server_url(s[2]));
    eval_options o = {.report = run_report_write,
                      .suite = "synth_aime",
                      .data = in_folder("problems.jsonl"),
                      .arms = {.items = {arms[0], arms[1], arms[2]}, .n = 3},
                      .generate = {.api_key = secrets[0], .api_key_from = "SNAPMLA_API_KEY"},
                      .out = in_folder("run"),
                      .samples = SAMPLES,
                      .seed = 1,
                      .temperature = -1};
    CU_ASSERT_EQUAL_FATAL(eval_run(&o, NULL, &r, &err), SNAP_OK);
    for (int i = 0; i < 3; i++)
        server_stop(s[i]);
    expect_secrets(s[0], 1);
    expect_secrets(s[1], 2 | 4);
    expect_secrets(s[2], 0);
    results_free(r);
    CU_ASSERT_EQUAL(unlink(in_folder("header")), 0);
    expect_in("run/log", "HTTP 403: no, ***");
    expect_in("run/samples.jsonl", "***");
    CU_ASSERT_EQUAL(nftw(folder, search_file, 16, FTW_PHYS), 0);
    CU_ASSERT_EQUAL(unsetenv("SNAPMLA_TEST_KEY"), 0);
    for (int i = 0; i < 3; i++)
        server_free(s[i]);
    folder_close();
}

/* eval_run() refuses an arm with a secret in its URL, and one with a secret in key_env= or header=,
 * which take the name of an environment variable. It also refuses an arm whose URL would send the
 * key unencrypted to another machine. The run's folder does not exist then. judge_model_check()
 * refuses a judge model with such an unencrypted URL, and one that is named in a configuration file
 * and would get the general key. */
static void test_secrets_are_checked_first(void) {
    static const char *const arms[] = {"a=http://127.0.0.1:9/v1,key_env=sk_secret_typed_here",
                                       "a=http://127.0.0.1:9/v1,header=K:sk_secret_typed_here",
                                       "a=http://127.0.0.1:9/v1?key=sk_secret_typed_here",
                                       "a=http://gpu.example/v1"};
    for (size_t i = 0; i < sizeof arms / sizeof *arms; i++) {
        results *r = NULL;
        snap_err err = {0};
        folder_open();
        eval_options o = {.suite = "synth_aime",
                          .data = in_folder("problems.jsonl"),
                          .arms = {.items = {arms[i]}, .n = 1},
                          .generate = {.api_key = secrets[0], .api_key_from = "SNAPMLA_API_KEY"},
                          .out = in_folder("run"),
                          .temperature = -1};
        CU_ASSERT_EQUAL(eval_run(&o, NULL, &r, &err), SNAP_E_USAGE);
        CU_ASSERT_PTR_NULL(strstr(err.text, "secret_typed"));
        CU_ASSERT_PTR_NULL(strstr(err.text, secrets[0]));
        CU_ASSERT_FALSE(fs_exists(in_folder("run")));
        folder_close();
    }
    const generate_options general = {.api_key = secrets[0]},
                           from_file = {.api_key = secrets[0], .judge_from_file = true};
    CU_ASSERT_EQUAL(judge_model_check("https://judge/v1,model=j", &general, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(judge_model_check("http://judge/v1,model=j", &general, NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(judge_model_check("https://judge/v1,model=j", &from_file, NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(judge_model_check(NULL, &from_file, NULL), SNAP_OK);
}

CU_TestInfo tests_eval_http[] = {
    {"each arm has its own secrets", test_each_arm_has_its_own_secrets},
    {"secrets are checked first", test_secrets_are_checked_first},
    {"a control has other seeds than its arm", test_other_seeds},
    {"a damaged server", test_a_damaged_server},
    {"the client's lag", test_the_client_s_lag},
    {"which arms share a server", test_shared_servers},
    {"which local arms share a device", test_shared_devices},
    CU_TEST_INFO_NULL,
};
