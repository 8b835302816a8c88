/* Tests the options of arms, and the secrets that they name. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "harness/eval/arm_option.h"
#include "harness/eval/arm_secrets.h"

static void test_arms(void) {
    arena mem = {0};
    eval_arm a;
    CU_ASSERT_EQUAL_FATAL(
        arm_parse("--arm",
                  "fp8=https://host/v1,model=m=1,stream=false,retries=0,timeout=1.5,seed=3,"
                  "in_flight=2,precision=fp8",
                  false, &mem, &a, NULL),
        SNAP_OK);
    CU_ASSERT_STRING_EQUAL(a.name, "fp8");
    CU_ASSERT_STRING_EQUAL(a.spec, "https://host/v1");
    CU_ASSERT_STRING_EQUAL(a.kind, "http");
    CU_ASSERT_STRING_EQUAL(a.model, "m=1");
    CU_ASSERT(a.no_stream && a.max_retries == 0 && a.timeout_s == 1.5 && a.in_flight == 2);
    CU_ASSERT(a.has_seed && a.seed == 3 && a.temperature < 0);
    static const char *const devices[] = {"cuda:0,1", "cuda:3", "cuda:x", "cuda"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "x=local:D,device=%s,layout=DP2,threads=2", devices[i]);
        CU_ASSERT_EQUAL_FATAL(arm_parse("--arm", text, false, &mem, &a, NULL), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(a.device, devices[i]);
        CU_ASSERT_STRING_EQUAL(a.layout, "DP2");
        CU_ASSERT_EQUAL(a.threads, 2);
    }
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"x", "is not NAME=GENERATOR"},
        {"=replay:f", "the name must be"},
        {"a b=replay:f", "the name must be"},
        {"x=ftp://h", "'ftp://h' must be http"},
        {"x=replay:f,", "--arm"},
        {"x=replay:f,model", "is not key=value"},
        {"x=local:D,device=cuda:0,1a", "'1a' is not key=value"},
        {"x=replay:f,color=red", "unknown key 'color'; known"},
        {"x=replay:f,temprature=1", "unknown key 'temprature' (did you mean 'temperature'?)"},
        {"x=replay:f,stream=maybe", "'stream' must not be 'maybe'"},
        {"x=replay:f,seed=-1", "'seed' must not be '-1'"},
        {"x=replay:f,top_p=2", "'top_p' must not be '2'"},
        {"x=http://user:pass@host/v1", "must not hold credentials"},
        {"http://user:pass@host/v1", "--arm http... is not NAME=GENERATOR"},
        {"http://user:pass@host/v1?a=b", "--arm http...: the name must be"},
        {"user:pass@host", "--arm user... is not NAME=GENERATOR"},
        {"x:pass@y=replay:f", "--arm x...: the name must be"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL(arm_parse("--arm", bad[i].text, false, &mem, &a, &err), SNAP_E_USAGE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].message));
        CU_ASSERT_PTR_NULL(strstr(err.text, "pass@"));
    }
    arena_release(&mem);
}

/* What may be a secret that was written in the wrong place is never quoted. */
static void test_secrets_of_arms(void) {
    arena mem = {0};
    eval_arm a;
    CU_ASSERT_EQUAL_FATAL(arm_parse("--arm",
                                    "x=https://host/v1,key_env=MY_KEY,header=X-Key:OTHER_KEY,"
                                    "header=X-Team:@/etc/team",
                                    false, &mem, &a, NULL),
                          SNAP_OK);
    CU_ASSERT_STRING_EQUAL(a.key_env, "MY_KEY");
    CU_ASSERT_EQUAL(a.n_headers, 2);
    CU_ASSERT_STRING_EQUAL(a.headers[0], "X-Key:OTHER_KEY");
    CU_ASSERT_STRING_EQUAL(a.headers[1], "X-Team:@/etc/team");
    static const char *const bad[] = {
        "x=https://host/v1,key_env=sk-oops-123",
        "x=https://host/v1,key_env=$oops",
        "x=https://host/v1,header=X-Key:sk-oops-123",
        "x=https://host/v1,header=X-Key:$oops",
        "x=https://host/v1,header=X-Key: Bearer oops",
        "x=https://host/v1,header=X-Key:@",
        "x=https://host/v1,header=sk-oops-123",
        "x=https://host/v1,header=X Y:oops",
        "x=https://host/v1,api_key=oops",
        "x=https://host/v1,retries=0,key=oops",
        "x=https://oops@host/v1",
        "x=https://host/v1,retries=x,header=K:oops",
        "x=https//u:oops@host",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL(arm_parse("--arm", bad[i], false, &mem, &a, &err), SNAP_E_USAGE);
        CU_ASSERT(text_starts(err.text, "--arm x: "));
        CU_ASSERT_PTR_NULL(strstr(err.text, "oops"));
    }
    arena_release(&mem);
}

/* Which servers may receive the general key. */
static void test_where_keys_may_go(void) {
    static const struct {
        const char *arm;
        bool from_file;
        const char *refused; /* NULL: the general key is sent; "": no key is; else the message */
    } cases[] = {
        {"x=https://gpu.example/v1", false, NULL},
        {"x=http://127.0.0.1:8000/v1|http://[::1]:1/v1", false, NULL},
        {"x=http://localhost:8000/v1*2", false, NULL},
        {"x=http://gpu.example/v1", false, "neither https nor on this machine"},
        {"x=https://a/v1|http://b/v1", false, "neither https nor on this machine"},
        {"x=https://gpu.example/v1", true, "from a configuration file"},
        {"x=http://gpu.example/v1,key_env=none", false, ""},
        {"x=https://gpu.example/v1,key_env=none", true, ""},
        {"x=https://gpu.example/v1,key_env=SNAPMLA_TEST_KEY", true, "refused in a configuration"},
        {"x=https://gpu.example/v1,header=A:@/etc/passwd", true, "refused in a configuration"},
        {"x=https://gpu.example/v1,key_env=SNAPMLA_NOT_SET", false, "not set or empty"},
        {"x=https://gpu.example/v1,header=A:@/nowhere", false, "/nowhere"},
        {"x=https://gpu.example/v1,header=A:@/dev/zero", false, "not a regular file"},
        {"x=replay:f", true, ""},
        {"x=local:d", false, ""},
    };
    const generate_options general = {.api_key = "sk-general", .api_key_from = "SNAPMLA_API_KEY"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena mem = {0};
        eval_arm a;
        generator_options g = {0};
        snap_err err = {0};
        const char *refused = cases[i].refused;
        CU_ASSERT_EQUAL_FATAL(arm_parse("--arm", cases[i].arm, false, &mem, &a, NULL), SNAP_OK);
        a.from_file = cases[i].from_file;
        snap_status st = arm_secrets_read(&a, &general, &mem, &g, &err);
        CU_ASSERT_EQUAL(st == SNAP_OK, !refused || !refused[0]);
        CU_ASSERT_EQUAL(g.api_key != NULL, !refused);
        CU_ASSERT_EQUAL(g.n_headers, 0);
        if (st != SNAP_OK && !strstr(err.text, refused))
            printf("\n%s: %s\n", cases[i].arm, err.text);
        CU_ASSERT(st == SNAP_OK || strstr(err.text, refused));
        CU_ASSERT(st == SNAP_OK || text_starts(err.text, "arm 'x': "));
        CU_ASSERT_PTR_NULL(strstr(err.text, "sk-general"));
        arena_release(&mem);
    }
}

static void test_secrets_are_read(void) {
    arena mem = {0};
    eval_arm a;
    generator_options g = {0};
    const generate_options general = {.api_key = "sk-general"};
    char file[] = "/tmp/snapmla-secret-XXXXXX", arm[200];
    int fd = mkstemp(file);
    CU_ASSERT_FATAL(fd >= 0 && write(fd, "Bearer in-a-file\r\n", 18) == 18);
    (void)close(fd);
    CU_ASSERT_EQUAL_FATAL(setenv("SNAPMLA_TEST_KEY", "in-a-variable", 1), 0);
    (void)snprintf(arm, sizeof arm, "x=http://gpu/v1,key_env=SNAPMLA_TEST_KEY,header=X-Auth:@%s",
                   file);
    CU_ASSERT_EQUAL_FATAL(arm_parse("--arm", arm, false, &mem, &a, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(arm_secrets_read(&a, &general, &mem, &g, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(g.api_key, "in-a-variable");
    CU_ASSERT_EQUAL_FATAL(g.n_headers, 1);
    CU_ASSERT_STRING_EQUAL(g.headers[0], "X-Auth: Bearer in-a-file");
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(setenv("SNAPMLA_TEST_KEY", "two\r\nX-Y: z", 1), 0);
    CU_ASSERT_EQUAL(arm_secrets_read(&a, &general, &mem, &g, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "arm 'x': key_env: the value is empty or has a character that "
                                     "a header cannot have");
    CU_ASSERT_EQUAL(unsetenv("SNAPMLA_TEST_KEY"), 0);
    CU_ASSERT_EQUAL(unlink(file), 0);
    arena_release(&mem);
}

CU_TestInfo tests_arm_option[] = {
    {"the keys of an arm are read", test_arms},
    {"secrets of arms", test_secrets_of_arms},
    {"where keys may go", test_where_keys_may_go},
    {"secrets are read", test_secrets_are_read},
    CU_TEST_INFO_NULL,
};
