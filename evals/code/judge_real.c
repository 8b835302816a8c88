/* judge_real.c - runs each test in a process of its own. */
#include <string.h>

#include "base/json.h"
#include "evals/code/compare.h"
#include "evals/code/judge_parts.h"

static const size_t kMemory = (size_t)4 << 30;
static const size_t kStack = (size_t)256 << 20;
static const size_t kOutput = (size_t)64 << 20;

static snap_status write_request(const char *fn_name, buf *out, snap_err *err) {
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "fn_name", fn_name ? fn_name : "");
    snap_status st = ok ? js_write(o, JS_COMPACT, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for a test");
    js_free(o);
    return st;
}

/* Checks a function's value, which follows "SV" in the channel. */
static void check_value(const sandbox_result *r, const code_test *t, size_t i, code_result *out) {
    const char *said = buf_str(&r->channel);
    span none = {"", 0};
    if (r->channel.len < 2 || said[1] != 'V') {
        judge_fail(out, CODE_ERROR, i, "ended without a value", none);
        return;
    }
    /* the program may write a malformed value into the channel itself; that counts as wrong */
    if (!compare_is_value(t->output))
        judge_fail(out, CODE_ERROR, i, "the expected value is not JSON", none);
    else if (compare_value((span){said + 2, r->channel.len - 2}, t->output) != VALUE_SAME)
        judge_fail(out, CODE_WRONG_ANSWER, i, "a different value", none);
}

static void check_end(const sandbox_result *r, const code_tests *tests, size_t i,
                      code_result *out) {
    span none = {"", 0};
    if (r->end == SANDBOX_TIMEOUT)
        judge_fail(out, CODE_TIMEOUT, i, "out of time", none);
    else if (r->status > 128)
        judge_fail(out, CODE_ERROR, i, "killed by a signal", judge_last_line(&r->errors));
    else if (r->status || r->end != SANDBOX_EXITED)
        judge_fail(out, CODE_ERROR, i, "ended with an error", judge_last_line(&r->errors));
    else if (tests->fn_name)
        check_value(r, &tests->tests[i], i, out);
    else if (r->output_cut ||
             !compare_output((span){buf_str(&r->output), r->output.len}, tests->tests[i].output))
        judge_fail(out, CODE_WRONG_ANSWER, i, "a different output", none);
}

static snap_status run_test(code_judge *j, const sandbox_job *job, const code_tests *tests,
                            size_t i, code_result *out, snap_err *err) {
    sandbox_result r;
    snap_status st = judge_run_job(j, job, &r, err);
    if (st == SNAP_OK) {
        out->seconds += r.seconds;
        check_end(&r, tests, i, out);
        out->not_found = packages_not_found((span){buf_str(&r.errors), r.errors.len});
        out->passed += out->outcome == CODE_PASSED;
    }
    sandbox_result_release(&r);
    return st;
}

snap_status judge_real(code_judge *j, span program, const code_tests *tests, code_result *out,
                       snap_err *err) {
    buf request = {0};
    snap_status st = write_request(tests->fn_name, &request, err);
    sandbox_job job = {
        .driver = {buf_str(&j->real), j->real.len},
        .program = program,
        .request = {buf_str(&request), request.len},
        .limits = {.seconds = j->seconds, .memory = kMemory, .stack = kStack, .output = kOutput},
        .cancel = j->cancel};
    for (size_t i = 0; i < tests->n && st == SNAP_OK && out->outcome == CODE_PASSED; i++) {
        job.input = tests->tests[i].input;
        if (out->seconds > judge_total_seconds(j, tests->n))
            judge_fail(out, CODE_GLOBAL_TIMEOUT, i, "out of time for all tests", (span){"", 0});
        else
            st = run_test(j, &job, tests, i, out, err);
    }
    buf_release(&request);
    return st;
}
