/* Tests the settings of requests in a run: they are sent, stored, compared and noticed. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "base/test/temp_folder.h"
#include "generator/test/scripted_server.h"
#include "harness/audit/audit.h"
#include "harness/audit/bundle.h"
#include "harness/eval/arm_option.h"
#include "harness/eval/eval_run.h"
#include "harness/eval/suite.h"
#include "harness/gate/quality.h"
#include "harness/record/run.h"

#define REASONED(text, reasoning, tokens)                                                          \
    "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"" text                                  \
    "\",\"reasoning_content\":" reasoning "},\"finish_reason\":\"stop\"}],\"usage\":"              \
    "{\"prompt_tokens\":5,\"completion_tokens\":30,\"completion_tokens_details\":"                 \
    "{\"reasoning_tokens\":" tokens "}}}"

static char folder[TEMP_FOLDER];

static const char *in_folder(const char *name) {
    static char paths[4][120];
    static int next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text) {
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(in_folder(name), text, strlen(text), NULL), SNAP_OK);
}

static void folder_open(void) {
    temp_folder_open(folder, "requests");
    put("problems.jsonl", "{\"id\": \"q1\", \"problem\": \"is it 7?\", \"answer\": 7}\n"
                          "{\"id\": \"q2\", \"problem\": \"is it 8?\", \"answer\": 8}\n");
    term_set_quiet(true);
}

static void folder_close(void) {
    temp_folder_remove(folder);
}

typedef struct {
    const char *out, *keys[2]; /* further keys of the arms; NULL: there is no second arm */
    const char *may_differ;
    const char *suite;
    int samples;
    bool regrade;
} plan;

/* Runs one or two arms on the server. Returns the result, or NULL with the error. */
static results *evaluate(const server *s, plan p, snap_err *err) {
    static char arms[2][400];
    results *r = NULL;
    eval_options o = {.suite = p.suite ? p.suite : "synth_aime",
                      .data = in_folder("problems.jsonl"),
                      .out = in_folder(p.out),
                      .samples = p.samples ? p.samples : 1,
                      .may_differ = p.may_differ,
                      .regrade = p.regrade,
                      .seed = 1,
                      .max_lost_pct = -1,
                      .generate = {.no_stream = true},
                      .temperature = -1};
    for (int i = 0; i < 2 && p.keys[i]; i++) {
        (void)snprintf(arms[i], sizeof arms[i], "%c=%s/v1,model=m,retries=0%s", 'a' + i,
                       server_url(s), p.keys[i]);
        o.arms.items[o.arms.n++] = arms[i];
    }
    *err = (snap_err){0};
    snap_status st = eval_run(&o, NULL, &r, err);
    CU_ASSERT_EQUAL(st == SNAP_OK, r != NULL);
    return r;
}

static server *start(void) {
    static const reply answer = {.body = CHAT_WHOLE("\\\\boxed{7}", "stop")};
    server *s = server_start(&answer, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    return s;
}

/* ---- options ---- */

static void test_values_of_json(void) {
    arena mem = {0};
    eval_arm a;
    folder_open();
    put("body.json", "{\"b\": [1, 2],\n \"a\": \"x,y\"}\n");
    put("system.txt", "Be \"short\",\nand right.");
    CU_ASSERT_EQUAL_FATAL(
        arm_parse("--arm",
                  "x=http://h/v1,body={\"s\":[\"},\\\"{\",1],\"o\":{}},system=\"a, b\",top_k=5,"
                  "min_p=0,api=completions,template={\"user\":\"{content}\"}",
                  false, &mem, &a, NULL),
        SNAP_OK);
    CU_ASSERT_STRING_EQUAL(a.settings.body, "{\"o\":{},\"s\":[\"},\\\"{\",1]}");
    CU_ASSERT_STRING_EQUAL(a.settings.system, "a, b");
    CU_ASSERT_STRING_EQUAL(a.settings.prompt, "{\"user\":\"{content}\"}");
    CU_ASSERT(a.has_top_k && a.more.top_k == 5 && a.has_min_p && !a.has_presence_penalty);
    CU_ASSERT_TRUE(a.settings.completions);
    CU_ASSERT_PTR_NULL(a.text);
    char text[300];
    (void)snprintf(text, sizeof text, "x=http://h/v1,body=@%s,system=@%s,max_completion_tokens=5",
                   in_folder("body.json"), in_folder("system.txt"));
    CU_ASSERT_EQUAL_FATAL(arm_parse("--arm", text, false, &mem, &a, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(a.settings.system, "Be \"short\",\nand right.");
    CU_ASSERT(a.max_tokens == 5 && a.settings.completion_limit);
    CU_ASSERT_STRING_EQUAL(a.text, "x=http://h/v1,body={\"a\":\"x,y\",\"b\":[1,2]},system="
                                   "\"Be \\\"short\\\",\\nand right.\",max_completion_tokens=5");
    eval_arm again;
    CU_ASSERT_EQUAL_FATAL(arm_parse("--arm", a.text, true, &mem, &again, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(again.settings.system, a.settings.system);
    CU_ASSERT_STRING_EQUAL(again.settings.body, a.settings.body);
    snap_err err = {0};
    CU_ASSERT_EQUAL(arm_parse("--arm", text, true, &mem, &a, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "configuration file cannot read 'body' from a file"));
    arena_release(&mem);
    folder_close();
}

static void test_wrong_values(void) {
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"x=http://h/v1,body={\"a\":1}b", "a comma must follow the end of a JSON value"},
        {"x=http://h/v1,body={\"a\":1", "'body' must be a JSON object or @FILE: "},
        {"x=http://h/v1,body=5", "'body' must be a JSON object or @FILE"},
        {"x=http://h/v1,body={\"stream\":true}", "body: 'stream' is set by snapmla"},
        {"x=http://h/v1,system=", "'system' must not be empty"},
        {"x=http://h/v1,system=\"a\",\"b\"", "is not key=value"},
        {"x=http://h/v1,system=\"a", "is not a JSON string"},
        {"x=http://h/v1,api=responses", "'api' must be chat or completions, got 'responses'"},
        {"x=http://h/v1,min_p=2", "'min_p' must not be '2'"},
        {"x=http://h/v1,thinking_budget=0", "'thinking_budget' must not be '0'"},
        {"x=http://h/v1,top_k=5,,min_p=0", "has an empty part"},
    };
    arena mem = {0};
    eval_arm a;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL(arm_parse("--arm", bad[i].text, false, &mem, &a, &err), SNAP_E_USAGE);
        if (!strstr(err.text, bad[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].message));
    }
    CU_ASSERT_EQUAL(arm_parse("--arm", "x=http://h/v1,body=@/nonexistent", false, &mem, &a, NULL),
                    SNAP_E_IO);
    arena_release(&mem);
}

static void test_suite(void) {
    static const struct {
        const char *request, *message;
    } bad[] = {
        {"{\"color\":1}", "request: unknown key 'color'"},
        {"{\"sytem\":\"x\"}", "request: unknown key 'sytem' (did you mean 'system'?)"},
        {"{\"thinkingbudget\":5}", "(did you mean 'thinking_budget'?)"},
        {"{\"body\":\"x\"}", "'body' must be an object"},
        {"{\"system\":5}", "'system' must be a text"},
        {"{\"body\":{\"n\":2}}", "request: body: 'n' is set by snapmla"},
        {"{\"thinking_budget\":0}", "'thinking_budget' must be an integer"},
        {"5", "'request'"},
    };
    arena mem = {0};
    suite s;
    char text[400];
    folder_open();
    put("suite.json", "{\"tasks\":[{\"task\":\"synth_aime\"}],\"sampling\":{\"min_p\":0.1},"
                      "\"request\":{\"system\":\"@/etc/passwd\",\"body\":{\"b\":2,\"a\":1},"
                      "\"server\":\"vllm\",\"thinking_budget\":7,\"content\":\"parts\"}}");
    CU_ASSERT_EQUAL_FATAL(suite_resolve(in_folder("suite.json"), &mem, &s, NULL), SNAP_OK);
    const gen_settings *got = &s.tasks[0].settings;
    CU_ASSERT_STRING_EQUAL(got->system, "@/etc/passwd");
    CU_ASSERT_STRING_EQUAL(got->body, "{\"a\":1,\"b\":2}");
    CU_ASSERT(got->thinking_budget == 7 && got->parts && strcmp(got->server, "vllm") == 0);
    CU_ASSERT_DOUBLE_EQUAL(s.tasks[0].sampling.min_p, 0.1, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snap_err err = {0};
        (void)snprintf(text, sizeof text, "{\"tasks\":[{\"task\":\"synth_aime\"}],\"request\":%s}",
                       bad[i].request);
        put("suite.json", text);
        CU_ASSERT_EQUAL(suite_resolve(in_folder("suite.json"), &mem, &s, &err), SNAP_E_INPUT);
        if (!strstr(err.text, bad[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].message));
    }
    arena_release(&mem);
    folder_close();
}

/* ---- comparing arms ---- */

static void test_arms_that_differ(void) {
    static const struct {
        const char *a, *b, *may_differ, *refused, *declared;
    } cases[] = {
        {"", ",system=x", NULL, "system of the requests differs", NULL},
        {"", ",body={\"a\":1}", NULL, "body of the requests differs", NULL},
        {",body={\"a\":1,\"b\":2}", ",body={\"b\":2, \"a\":1}", NULL, NULL, NULL},
        {"", ",body={\"a\":1}", "body", NULL, "body"},
        {"", ",body={\"a\":1},min_p=0.1", "body", "min_p differs: 0 against 0.1", "body"},
        {"", ",body={\"a\":1},min_p=0.1", "min_p,body", NULL, "min_p, body"},
        {"", ",repetition_penalty=1", NULL, NULL, NULL},
        {"", ",content=parts", NULL, NULL, NULL},
        {",max_tokens=9", ",max_completion_tokens=9", NULL, NULL, NULL},
        {",server=vllm,thinking_budget=5", ",server=sglang,thinking_budget=5", NULL, NULL, NULL},
        {",server=vllm,thinking_budget=5", ",server=vllm,thinking_budget=6", NULL,
         "thinking_budget of the requests differs", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snap_err err;
        arena mem = {0};
        run_record run;
        folder_open();
        server *s = start();
        results *r = evaluate(s,
                              (plan){.out = "run",
                                     .keys = {cases[i].a, cases[i].b},
                                     .may_differ = cases[i].may_differ},
                              &err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        CU_ASSERT_EQUAL_FATAL(run_read(&run, r, &mem, NULL), SNAP_OK);
        const pair_record *pair = &run.evals.at[0].pairs.at[0];
        CU_ASSERT_STRING_EQUAL(pair->refused, cases[i].refused ? cases[i].refused : "");
        CU_ASSERT_STRING_EQUAL(pair->declared, cases[i].declared ? cases[i].declared : "");
        arena_release(&mem);
        results_free(r);
        server_free(s);
        folder_close();
    }
}

/* What a suite switches on, an arm can switch off for itself. */
static void test_an_arm_switches_off(void) {
    static const struct {
        const char *suite, *off, *sent, *not_sent; /* parts of the second arm's request */
    } cases[] = {
        {"{\"api\":\"completions\",\"template\":{\"user\":\"Q: {content}\"}}", ",api=chat",
         "\"messages\":", "\"prompt\":"},
        {"{\"content\":\"parts\"}", ",content=text", "\"content\":\"", "\"type\":\"text\""},
        {"{\"content\":\"parts\"}", ",content=text,api=completions",
         "\"prompt\":", "\"messages\":"},
        {"{\"content\":\"parts\"}", ",api=chat", "\"type\":\"text\"", "\"prompt\":"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snap_err err;
        char text[300];
        folder_open();
        server *s = start();
        (void)snprintf(text, sizeof text, "{\"tasks\":[{\"task\":\"synth_aime\"}],\"request\":%s}",
                       cases[i].suite);
        put("suite.json", text);
        results *r = evaluate(
            s, (plan){.out = "run", .suite = in_folder("suite.json"), .keys = {cases[i].off, NULL}},
            &err);
        if (!r)
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        server_stop(s);
        const char *body = server_request(s, 0)->body;
        CU_ASSERT_PTR_NOT_NULL(strstr(body, cases[i].sent));
        CU_ASSERT_PTR_NULL(strstr(body, cases[i].not_sent));
        results_free(r);
        server_free(s);
        folder_close();
    }
    /* By the suite, the prompt opens the reasoning ("opened"), so a text begins within it. By its
     * own key, the second arm expects tags in the text instead ("tagged"). So the same text has an
     * answer in the second arm only, and the two are not compared. */
    static const reply answer = {.body = REASONED("so \\\\boxed{7}", "null", "20")};
    snap_err err;
    arena mem = {0};
    run_record run;
    folder_open();
    server *s = server_start(&answer, 1);
    put("suite.json", "{\"tasks\":[{\"task\":\"synth_aime\"}],"
                      "\"request\":{\"reasoning\":\"opened\"}}");
    results *r = evaluate(
        s,
        (plan){.out = "run", .suite = in_folder("suite.json"), .keys = {"", ",reasoning=tagged"}},
        &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT_EQUAL_FATAL(run_read(&run, r, &mem, NULL), SNAP_OK);
    const eval_record *row = &run.evals.at[0];
    CU_ASSERT_DOUBLE_EQUAL(row->arms.at[0].unparsed_pct, 100, 0);
    CU_ASSERT_DOUBLE_EQUAL(row->arms.at[1].unparsed_pct, 0, 0);
    CU_ASSERT_STRING_EQUAL(row->pairs.at[0].refused, "reasoning of the requests differs");
    arena_release(&mem);
    results_free(r);
    server_free(s);
    folder_close();
}

/* ---- the identity of a run ---- */

static void test_a_run_continues_only_with_its_settings(void) {
    static const struct {
        const char *before, *now;
        bool same;
    } cases[] = {
        {",body={\"a\":1}", ",body={\"a\":2}", false},
        {",body={\"a\":1}", ",body={ \"a\" : 1 }", true},
        {"", ",system=x", false},
        {",system=x", "", false},
        {",presence_penalty=1", "", false},
        {",api=completions", "", false},
        {",content=parts", "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snap_err err;
        folder_open();
        server *s = start();
        results_free(evaluate(s, (plan){.out = "run", .keys = {cases[i].before}}, &err));
        results *r = evaluate(s, (plan){.out = "run", .keys = {cases[i].now}, .samples = 2}, &err);
        CU_ASSERT_EQUAL(r != NULL, cases[i].same);
        if (!cases[i].same)
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "holds a run of another configuration"));
        results_free(r);
        server_free(s);
        folder_close();
    }
}

/* A file that an arm names may vanish or change: the run has its content. */
static void test_a_regrade_needs_no_file(void) {
    snap_err err;
    char keys[150];
    folder_open();
    server *s = start();
    put("body.json", "{\"a\":1}");
    (void)snprintf(keys, sizeof keys, ",body=@%s", in_folder("body.json"));
    results_free(evaluate(s, (plan){.out = "run", .keys = {keys}}, &err));
    CU_ASSERT_EQUAL(unlink(in_folder("body.json")), 0);
    results *r = evaluate(s, (plan){.out = "run", .regrade = true}, &err);
    CU_ASSERT_PTR_NOT_NULL(r);
    results_free(r);
    put("body.json", "{\"a\":2}");
    CU_ASSERT_PTR_NULL(evaluate(s, (plan){.out = "run", .keys = {keys}, .samples = 2}, &err));
    server_free(s);
    folder_close();
}

static void test_a_replay_has_the_settings(void) {
    static const struct {
        const char *keys, *message;
    } cases[] = {
        {",system=x", NULL},
        {"", "another system message, body or other setting"},
        {",system=y", "another system message, body or other setting"},
        {",system=x,min_p=0.5", "min_p 0, the request has 0.5"},
        {",system=x,thinking_budget=5", "another system message, body or other setting"},
    };
    snap_err err;
    folder_open();
    server *s = start();
    results_free(evaluate(s, (plan){.out = "run", .keys = {",system=x"}}, &err));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arm[300];
        results *r = NULL;
        (void)snprintf(arm, sizeof arm, "a=replay:%s%s", in_folder("run/samples.jsonl"),
                       cases[i].keys);
        const eval_options o = {.suite = "synth_aime",
                                .data = in_folder("problems.jsonl"),
                                .arms = {.items = {arm}, .n = 1},
                                .out = in_folder(i ? "bad" : "again"),
                                .samples = 1,
                                .seed = 1,
                                .max_lost_pct = -1,
                                .temperature = -1};
        err = (snap_err){0};
        snap_status st = eval_run(&o, NULL, &r, &err);
        CU_ASSERT_EQUAL(st, cases[i].message ? SNAP_E_USAGE : SNAP_OK);
        if (cases[i].message)
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
        results_free(r);
    }
    server_free(s);
    folder_close();
}

/* verify-run compares the settings that the result states with those of the samples. */
static void test_the_audit_compares_settings(void) {
    snap_err err;
    folder_open();
    server *s = start();
    results *r = evaluate(s, (plan){.out = "run", .keys = {",body={\"a\":1}"}}, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(in_folder("run/samples.jsonl"), &text, NULL), SNAP_OK);
    for (int change = 0; change < 2; change++) {
        verify_findings f = {0};
        char *hash = strstr(text.data, "\"request_sha256\":\"");
        CU_ASSERT_PTR_NOT_NULL_FATAL(hash);
        if (change)
            hash[strlen("\"request_sha256\":\"")] ^= 1;
        CU_ASSERT_EQUAL(verify_samples(r, &text, "samples", &f, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(f.n[VERIFY_MIXED], (size_t)change);
        verify_release(&f);
    }
    buf_release(&text);
    results_free(r);
    server_free(s);
    folder_close();
}

/* Two runs whose requests differ are not compared: in the settings, or in an arm's sampling. */
static void test_the_gate_compares_settings(void) {
    static const struct {
        const char *now, *reason;
    } cases[] = {
        {"", NULL},
        {",system=x", "not comparable: the settings of the arm's requests differ"},
        {",min_p=0.1", "not comparable: the arm's sampling differs"},
        {",temperature=0.5", "not comparable: the arm's sampling differs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snap_err err;
        folder_open();
        server *s = start();
        results *before = evaluate(s, (plan){.out = "before", .keys = {""}}, &err);
        results *now = evaluate(s, (plan){.out = "now", .keys = {cases[i].now}}, &err);
        js *rows = js_new_array();
        const gate_quality_options gate = {.alpha = 0.05,
                                           .baseline_samples = in_folder("before/samples.jsonl"),
                                           .current_samples = in_folder("now/samples.jsonl")};
        CU_ASSERT_EQUAL(gate_check_quality(before, now, &gate, rows, NULL), SNAP_OK);
        buf text = {0};
        CU_ASSERT_EQUAL(js_write(rows, JS_COMPACT, &text, NULL), SNAP_OK);
        const char *reason = cases[i].reason ? cases[i].reason : "not comparable";
        CU_ASSERT_EQUAL(strstr(buf_str(&text), reason) != NULL, cases[i].reason != NULL);
        buf_release(&text);
        js_free(rows);
        results_free(before);
        results_free(now);
        server_free(s);
        folder_close();
    }
}

/* ---- reasoning ---- */

/* Only the answer is judged, wherever the reasoning is: in a field of its own, in tags, or before a
 * closing tag alone. Reasoning that does not end is no answer. */
static void test_reasoning_is_judged_alike(void) {
    static const struct {
        const char *body, *keys, *verdict;
        int64_t tokens, reasoning, answer; /* -1: null or absent */
    } cases[] = {
        {REASONED("\\\\boxed{7}", "\"is \\\\boxed{9}\"", "20"), "", "correct", 20, 12, 9},
        {REASONED("<think>is \\\\boxed{9}</think>\\\\boxed{7}", "null", "0"), "", "correct", -1, 27,
         9},
        {REASONED("is \\\\boxed{9}</think>\\\\boxed{7}", "null", "20"), "", "correct", 20, 20, 9},
        {REASONED("is \\\\boxed{9}</think>\\\\boxed{7}", "null", "20"), ",reasoning=opened",
         "correct", 20, 20, 9},
        {REASONED("so \\\\boxed{7}", "null", "20"), ",reasoning=opened", "unparsed", 20, 12, 0},
        {REASONED("<think>so \\\\boxed{7}", "null", "20"), "", "unparsed", 20, 19, 0},
        {REASONED("", "\"so \\\\boxed{7}\"", "20"), "", "unparsed", 20, 12, 0},
        {REASONED("\\\\boxed{7}", "null", "0"), "", "correct", 0, 0, 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const reply answer = {.body = cases[i].body};
        snap_err err;
        buf text = {0};
        folder_open();
        server *s = server_start(&answer, 1);
        results *r = evaluate(s, (plan){.out = "run", .keys = {cases[i].keys}}, &err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        CU_ASSERT_EQUAL_FATAL(fs_read(in_folder("run/samples.jsonl"), &text, NULL), SNAP_OK);
        js *row = js_parse(text.data, strcspn(text.data, "\n"), "row", NULL);
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "verdict"), cases[i].verdict);
        CU_ASSERT_EQUAL(js_get_int(row, "reasoning_tokens", -1), cases[i].tokens);
        CU_ASSERT_EQUAL(js_get_int(row, "reasoning_chars", -1), cases[i].reasoning);
        CU_ASSERT_EQUAL(js_get_int(row, "answer_chars", -1), cases[i].answer);
        arena mem = {0};
        run_record run;
        CU_ASSERT_EQUAL_FATAL(run_read(&run, r, &mem, NULL), SNAP_OK);
        const arm_record *arm = &run.evals.at[0].arms.at[0];
        CU_ASSERT_DOUBLE_EQUAL(arm->reasoning_chars_mean, (double)cases[i].reasoning, 0);
        bool unknown = isnan(arm->reasoning_tokens_mean) && isnan(arm->answer_tokens_mean);
        CU_ASSERT_EQUAL(unknown, cases[i].tokens < 0);
        CU_ASSERT(unknown || arm->reasoning_tokens_mean + arm->answer_tokens_mean == 30);
        arena_release(&mem);
        js_free(row);
        buf_release(&text);
        results_free(r);
        server_free(s);
        folder_close();
    }
}

CU_TestInfo tests_requests[] = {
    {"values that are JSON", test_values_of_json},
    {"wrong values", test_wrong_values},
    {"a suite's request", test_suite},
    {"arms whose requests differ are not compared", test_arms_that_differ},
    {"an arm switches off what its suite switches on", test_an_arm_switches_off},
    {"a run continues only with its settings", test_a_run_continues_only_with_its_settings},
    {"grading again needs no file that an arm names", test_a_regrade_needs_no_file},
    {"a recording with other settings is refused", test_a_replay_has_the_settings},
    {"the audit compares settings", test_the_audit_compares_settings},
    {"the gate compares settings", test_the_gate_compares_settings},
    {"only the text after the reasoning is judged", test_reasoning_is_judged_alike},
    CU_TEST_INFO_NULL,
};
