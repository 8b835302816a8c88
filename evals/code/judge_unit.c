/* judge_unit.c - judges programs by assertions, which follow the program in one file. The program
 * must run to the end of that file.
 *
 * The assertions and the program share a process, as in the original checkers. So a program written
 * to deceive can leave before the assertions, read the random word that the driver sends at the
 * end, read the expected values in the program's file, or return objects that equal everything.
 * Therefore a program that passes runs once more, with assertions that a right program fails
 * (twist.py): one is changed, or a failing one is added if none can be changed. A program that
 * passes these as well did not pass by what it computes, so its answer is wrong. A changed expected
 * value has the type of the real one, so that the two are hard to distinguish without computing the
 * answer. A program cannot pass information between the two runs, because each run starts with an
 * empty /tmp of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/json.h"
#include "evals/code/judge_parts.h"
#include "evals/code/program_fit.h"

static const size_t kMemory = (size_t)4 << 30;
static const size_t kStack = (size_t)64 << 20;
static const size_t kOutput = 1 << 16;
static const double kTwistSeconds = 60;
enum { kWord = 33 };

static snap_status draw_word(char out[kWord], snap_err *err) {
    unsigned char bytes[kWord / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_set_errno(err, "cannot get random bytes");
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return SNAP_OK;
}

/* Writes the file to run: t->before, the program, and @after (the tests or the changed tests). */
static void write_program(span program, const code_tests *t, const char *after, buf *out) {
    bool whole = !t->entry || program_defines(program, (span){t->entry, strlen(t->entry)});
    if (t->before)
        (void)buf_puts(out, t->before);
    if (whole)
        (void)buf_puts(out, "\n\n");
    (void)buf_append(out, program.s, program.n);
    (void)buf_printf(out, "\n\n%s\n", after);
}

/* Sets the result from the channel: "S", then "P" and the word, or "E" and the name of an
 * exception, which a message follows if a module was not found. */
static void check_end(const sandbox_result *r, const char *word, code_result *out) {
    const char *said = buf_str(&r->channel);
    span none = {"", 0};
    if (r->end == SANDBOX_TIMEOUT)
        judge_fail(out, CODE_TIMEOUT, 0, "out of time", none);
    else if (r->channel.len == kWord + 1 && said[1] == 'P' && strcmp(said + 2, word) == 0)
        out->passed = 1;
    else if (strcmp(said, "SEAssertionError") == 0)
        judge_fail(out, CODE_WRONG_ANSWER, 0, "an assertion fails", none);
    else if (r->channel.len > 2 && said[1] == 'E')
        judge_fail(out, CODE_ERROR, 0, "an exception", (span){said + 2, r->channel.len - 2});
    else
        judge_fail(out, CODE_CRASHED, 0, "the process ended", judge_last_line(&r->errors));
}

static snap_status run_once(code_judge *j, span program, const code_tests *tests, const char *after,
                            code_result *out, snap_err *err) {
    buf whole = {0};
    char word[kWord] = "", request[kWord + 16];
    sandbox_result r = {0};
    snap_status st;
    TRY(draw_word(word, err));
    write_program(program, tests, after, &whole);
    TRY(buf_check(&whole, "a program", err));
    (void)snprintf(request, sizeof request, "{\"word\": \"%s\"}", word);
    const sandbox_job job = {
        .driver = {buf_str(&j->unit), j->unit.len},
        .program = {buf_str(&whole), whole.len},
        .input = {"", 0},
        .request = {request, strlen(request)},
        .limits = {.seconds = j->seconds, .memory = kMemory, .stack = kStack, .output = kOutput},
        .cancel = j->cancel};
    TRY(judge_run_job(j, &job, &r, err));
    out->seconds += r.seconds;
    check_end(&r, word, out);
    out->not_found = packages_not_found((span){buf_str(&r.channel), r.channel.len}) |
                     packages_not_found((span){buf_str(&r.errors), r.errors.len});
cleanup:
    sandbox_result_release(&r);
    buf_release(&whole);
    return st;
}

/* ---- changed tests ---- */

struct twisted_tests {
    twisted_tests *next;
    char of[HASH_HEX]; /* SHA-256 of the tests */
    char *text;
};

void judge_forget_twisted(code_judge *j) {
    while (j->twisted) {
        twisted_tests *next = j->twisted->next;
        free(j->twisted->text);
        free(j->twisted);
        j->twisted = next;
    }
}

static const char *find_twisted(code_judge *j, const char *of) {
    (void)pthread_mutex_lock(&j->lock);
    const twisted_tests *t = j->twisted;
    while (t && strcmp(t->of, of) != 0)
        t = t->next;
    (void)pthread_mutex_unlock(&j->lock);
    return t ? t->text : NULL;
}

/* Stores changed tests and returns the stored text, which lives as long as the judge. NULL if
 * memory is exhausted. */
static const char *keep_twisted(code_judge *j, const char *of, span text) {
    twisted_tests *t = fault_calloc(1, sizeof *t);
    char *kept = t ? fault_malloc(text.n + 1) : NULL;
    if (!kept) {
        free(t);
        return NULL;
    }
    memcpy(kept, text.s, text.n);
    kept[text.n] = '\0';
    *t = (twisted_tests){.text = kept};
    memcpy(t->of, of, sizeof t->of);
    (void)pthread_mutex_lock(&j->lock);
    t->next = j->twisted;
    j->twisted = t;
    (void)pthread_mutex_unlock(&j->lock);
    return kept;
}

static snap_status write_request(const char *tests, buf *out, snap_err *err) {
    uint32_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return err_set_errno(err, "cannot get random bytes");
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "tests", tests) && js_set_int(o, "random", number);
    snap_status st = ok ? js_write(o, JS_COMPACT, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the tests");
    js_free(o);
    return st;
}

/* Changes the tests in a process of its own in the sandbox and stores the result. */
static snap_status twist(code_judge *j, const char *tests, const char *of, const char **out,
                         snap_err *err) {
    buf request = {0};
    sandbox_result r = {0};
    snap_status st;
    TRY(write_request(tests, &request, err));
    const sandbox_job job = {
        .driver = {buf_str(&j->twist), j->twist.len},
        .program = {"", 0},
        .input = {"", 0},
        .request = {buf_str(&request), request.len},
        .limits = {.seconds = kTwistSeconds, .memory = kMemory, .stack = kStack, .output = kOutput},
        .cancel = j->cancel};
    TRY(judge_run_job(j, &job, &r, err));
    if (r.end != SANDBOX_EXITED || r.status || r.channel.len < 2) {
        span why = judge_last_line(&r.errors);
        TRY(err_set(err, SNAP_E_ENV, "the tests cannot be changed: %.*s",
                    (int)(why.n < 200 ? why.n : 200), why.s));
    }
    *out = keep_twisted(j, of, (span){buf_str(&r.channel) + 1, r.channel.len - 1});
    if (!*out)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for the tests"));
cleanup:
    sandbox_result_release(&r);
    buf_release(&request);
    return st;
}

static snap_status twisted_of(code_judge *j, const char *tests, const char **out, snap_err *err) {
    char digest[HASH_HEX];
    snap_status st = hash_bytes(tests, strlen(tests), digest, err);
    if (st != SNAP_OK)
        return st;
    *out = find_twisted(j, digest);
    return *out ? SNAP_OK : twist(j, tests, digest, out, err);
}

snap_status judge_unit(code_judge *j, span program, const code_tests *tests, code_result *out,
                       snap_err *err) {
    const char *changed;
    code_result again = {.outcome = CODE_PASSED};
    snap_status st;
    TRY(run_once(j, program, tests, tests->after, out, err));
    if (out->outcome != CODE_PASSED)
        return SNAP_OK;
    TRY(twisted_of(j, tests->after, &changed, err));
    TRY(run_once(j, program, tests, changed, &again, err));
    if (again.outcome != CODE_PASSED)
        return SNAP_OK;
    out->passed = 0;
    judge_fail(out, CODE_WRONG_ANSWER, 0, "it also passes tests that a right program fails",
               (span){"", 0});
cleanup:
    return st;
}
