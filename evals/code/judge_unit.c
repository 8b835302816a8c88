/* judge_unit.c - judges programs by assertions: the assertions follow the program, and it passes if
 * it runs to its end.
 *
 * The assertions and the program share a process, as in the original checkers. So a program written
 * to deceive could leave before the assertions. To report success it would have to find the random
 * word that the driver sends at the end. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "evals/code/judge_parts.h"

static const size_t kMemory = (size_t)4 << 30;
static const size_t kStack = (size_t)64 << 20;
static const size_t kOutput = 1 << 16;
enum { kWord = 33 };

static snap_status draw_word(char out[kWord], snap_err *err) {
    unsigned char bytes[kWord / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_set_errno(err, "cannot get random bytes");
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return SNAP_OK;
}

/* True if the program contains "def NAME". */
static bool defines(span program, const char *name) {
    char text[128];
    int n = snprintf(text, sizeof text, "def %s", name);
    for (size_t at = 0; n > 0 && (size_t)n < sizeof text && at < program.n;) {
        const char *found = memmem(program.s + at, program.n - at, text, (size_t)n);
        if (!found)
            return false;
        const char *next = found + n;
        if (next < program.s + program.n && (*next == '(' || *next == ' '))
            return true;
        at = (size_t)(next - program.s);
    }
    return false;
}

static void write_program(span program, const code_tests *t, buf *out) {
    bool whole = !t->entry || defines(program, t->entry);
    if (t->before)
        (void)buf_puts(out, t->before);
    if (whole)
        (void)buf_puts(out, "\n\n");
    (void)buf_append(out, program.s, program.n);
    (void)buf_printf(out, "\n\n%s\n", t->after);
}

/* Sets the result from the channel: "S", then "P" and the word, or "E" and the name of an
 * exception. */
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

snap_status judge_unit(code_judge *j, span program, const code_tests *tests, code_result *out,
                       snap_err *err) {
    buf whole = {0};
    char word[kWord] = "", request[kWord + 16];
    sandbox_result r = {0};
    snap_status st;
    TRY(draw_word(word, err));
    write_program(program, tests, &whole);
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
    out->seconds = r.seconds;
    check_end(&r, word, out);
cleanup:
    sandbox_result_release(&r);
    buf_release(&whole);
    return st;
}
