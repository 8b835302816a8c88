/* Tests the child process of an arm of the gate, served in this process: a cell whose backend
 * computes something else than it was asked for ends as failed. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/gate/worker.h"

static const char kSession[] =
    "{\"protocol\":1,\"backend\":\"%s\",\"isa\":\"auto\",\"threads\":1,\"delay_pct\":0,"
    "\"distribution\":\"normal\",\"cold\":false,\"seed\":1}\n"
    "{\"cell\":{\"precision\":\"%s\",\"scope\":\"%s\",\"heads\":2,\"s_q\":1,\"batch\":3,"
    "\"context\":200,\"d_c\":512,\"d_r\":64}}\n"
    "{\"steps\":3}\n"
    "{\"end\":true}\n";

/* Serves one cell. Returns the worker's last line; the caller frees it. */
static char *last_line(const char *backend, const char *precision, const char *scope) {
    char *text = NULL;
    size_t n = 0;
    FILE *in = tmpfile(), *out = open_memstream(&text, &n);
    CU_ASSERT_FATAL(in != NULL && out != NULL);
    CU_ASSERT(fprintf(in, kSession, backend, precision, scope) > 0);
    rewind(in);
    CU_ASSERT(gate_worker_run(in, out, NULL) == SNAP_OK);
    CU_ASSERT(fclose(in) == 0 && fclose(out) == 0);
    char *line = n ? memrchr(text, '\n', n - 1) : NULL;
    CU_ASSERT_FATAL(line != NULL);
    line = strdup(line + 1);
    free(text);
    return line;
}

static void expect(const char *backend, const char *precision, const char *scope,
                   const char *part) {
    char *line = last_line(backend, precision, scope);
    if (!strstr(line, part))
        (void)fprintf(stderr, "\n    %s %s %s: %s", backend, precision, scope, line);
    CU_ASSERT(strstr(line, part) != NULL);
    free(line);
}

static void test_right(void) {
    expect("cpu", "bf16", "kernel", "\"status\":\"passed\"");
    expect("cpu", "fp8", "served", "\"status\":\"passed\"");
}

static void test_remembers(void) {
    static const char backend[] = "plugin:" PLUGINS "/test/plugins/WRONG_REMEMBERS.so";
    expect(backend, "bf16", "kernel", "the output of a timed step");
    expect(backend, "fp8", "served", "the output of a timed step");
}

CU_TestInfo tests_gate_worker[] = {
    {"a right backend passes", test_right},
    {"a backend that remembers results fails", test_remembers},
    CU_TEST_INFO_NULL,
};
