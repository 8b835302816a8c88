#include "evals/code/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/text.h"
#include "evals/code/judge_parts.h"
#include "evals/code/scripts.h"

static const double kSeconds = 6; /* as in LiveCodeBench */

snap_status judge_kind_parse(const char *name, judge_kind *out, snap_err *err) {
    *out = text_equal(name, "lcb") ? JUDGE_LCB : JUDGE_REAL;
    if (!name || *out == JUDGE_LCB || text_equal(name, "real"))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "unknown --judge '%s' (real, lcb)", name);
}

const char *code_verdict(code_outcome c) {
    switch (c) {
    case CODE_PASSED:
        return "pass";
    case CODE_WRONG_ANSWER:
        return "wrong";
    case CODE_TIMEOUT:
    case CODE_GLOBAL_TIMEOUT:
        return "timeout";
    default:
        return "error";
    }
}

double judge_total_seconds(const code_judge *j, size_t tests) {
    return (j->seconds + 1) * (double)tests + 5;
}

/* ---- reasons for a failure ---- */

span judge_last_line(const buf *text) {
    const char *s = buf_str(text);
    span line = {"", 0};
    for (size_t from = 0; from < text->len;) {
        const char *end = memchr(s + from, '\n', text->len - from);
        size_t n = end ? (size_t)(end - s) - from : text->len - from;
        if (!text_is_blank(s + from, n))
            line = (span){s + from, n};
        from += n + 1;
    }
    return line;
}

/* Copies as much of a text as fits. U+FFFD replaces malformed bytes, and spaces replace ASCII
 * control characters. */
static void put_clean(char *out, size_t cap, span text) {
    buf clean = {0};
    size_t n = 0, step;
    text_append_utf8_lossy(&clean, text.s, text.n < cap ? text.n : cap);
    const char *s = buf_str(&clean);
    while (n < clean.len && (step = text_utf8_len(s + n, clean.len - n)) > 0 && n + step < cap) {
        memcpy(out + n, s + n, step);
        if (step == 1 && ((unsigned char)s[n] < 0x20 || s[n] == 0x7f))
            out[n] = ' ';
        n += step;
    }
    out[n] = '\0';
    buf_release(&clean);
}

void judge_fail(code_result *r, code_outcome outcome, size_t test, const char *what, span text) {
    r->outcome = outcome;
    r->test = test;
    int n = snprintf(r->reason, sizeof r->reason, "test %zu: %s%s", test, what, text.n ? ": " : "");
    if (n > 0 && (size_t)n < sizeof r->reason)
        put_clean(r->reason + n, sizeof r->reason - (size_t)n, text);
}

/* ---- running a program ---- */

snap_status judge_run_job(code_judge *j, const sandbox_job *job, sandbox_result *r, snap_err *err) {
    for (int attempt = 0;; attempt++) {
        snap_status st = sandbox_run(j->box, job, r, err);
        if (st != SNAP_OK || r->channel.len || r->end != SANDBOX_EXITED)
            return st;
        if (attempt) {
            span why = judge_last_line(&r->errors);
            return err_set(err, SNAP_E_ENV, "the sandbox failed: %.*s",
                           (int)(why.n < 200 ? why.n : 200), why.s);
        }
        sandbox_result_release(r);
    }
}

/* SNAP_E_ENV if the program failed because this machine lacks an offered package. */
static snap_status check_packages(const code_judge *j, const code_result *r, snap_err *err) {
    const package_set lacking = r->not_found & sandbox_missing(j->box);
    buf names = {0}, debian = {0};
    if (r->outcome == CODE_PASSED || !lacking)
        return SNAP_OK;
    packages_append(lacking, "", ", ", &names);
    packages_append(lacking, "python3-", " ", &debian);
    snap_status st = err_set(
        err, SNAP_E_ENV,
        "a program fails without a package that the judge offers and this machine lacks: %s "
        "(apt-get install %s)",
        buf_str(&names), buf_str(&debian));
    buf_release(&names);
    buf_release(&debian);
    return st;
}

static snap_status judge(code_judge *j, span program, const code_tests *tests, code_result *out,
                         snap_err *err) {
    *out = (code_result){.outcome = CODE_PASSED};
    (void)snprintf(out->reason, sizeof out->reason, "all tests pass");
    if (tests->after)
        return judge_unit(j, program, tests, out, err);
    return j->kind == JUDGE_LCB ? judge_lcb(j, program, tests, out, err)
                                : judge_real(j, program, tests, out, err);
}

snap_status judge_program(code_judge *j, span program, const code_tests *tests, code_result *out,
                          snap_err *err) {
    fault_mark before = fault_begin();
    snap_status st = judge(j, program, tests, out, err);
    if (st == SNAP_OK)
        st = check_packages(j, out, err);
    return fault_result(before, st, err);
}

/* ---- opening a judge ---- */

snap_status judge_open(code_judge **out, const judge_options *options, snap_err *err) {
    snap_status st;
    *out = NULL;
    code_judge *j = calloc(1, sizeof *j);
    if (!j)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the code judge");
    j->kind = options->kind;
    j->seconds = options->seconds > 0 ? options->seconds : kSeconds;
    j->cancel = options->cancel;
    (void)buf_printf(&j->real, "%s%s", script_common, script_real);
    (void)buf_printf(&j->lcb, "%s%s", script_common, script_lcb);
    (void)buf_printf(&j->unit, "%s%s", script_common, script_unit);
    (void)buf_printf(&j->twist, "%s%s", script_common, script_twist);
    (void)pthread_mutex_init(&j->lock, NULL);
    TRY(buf_check(&j->real, "the code judge", err));
    TRY(buf_check(&j->lcb, "the code judge", err));
    TRY(buf_check(&j->unit, "the code judge", err));
    TRY(buf_check(&j->twist, "the code judge", err));
    TRY(sandbox_open(&j->box, &options->sandbox, err));
    *out = j;
    j = NULL;
cleanup:
    judge_close(j);
    return st;
}

void judge_close(code_judge *j) {
    if (!j)
        return;
    sandbox_close(j->box);
    buf_release(&j->real);
    buf_release(&j->lcb);
    buf_release(&j->unit);
    buf_release(&j->twist);
    judge_forget_twisted(j);
    (void)pthread_mutex_destroy(&j->lock);
    free(j);
}
