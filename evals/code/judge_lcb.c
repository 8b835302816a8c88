/* judge_lcb.c - runs all tests in one process, as LiveCodeBench's checker does. The driver is
 * lcb.py. */
#include <string.h>

#include "base/json.h"
#include "evals/code/compare.h"
#include "evals/code/judge_parts.h"

enum { kHeader = 24 };
static const size_t kMemory = (size_t)4 << 30;
static const size_t kStack = (size_t)8 << 20;
static const size_t kOutput = 1 << 16; /* standard output itself is not checked: lcb.py sends what
                                          the program writes through the channel */

/* State of reading the driver's frames. */
typedef struct {
    const code_tests *tests;
    code_result *out;
    bool begun, over;
} frame_reader;

static snap_status write_request(const code_judge *j, const code_tests *tests, buf *out,
                                 snap_err *err) {
    js *o = js_new_object(), *inputs = js_new_array();
    bool ok = o && inputs && js_set_str(o, "fn_name", tests->fn_name ? tests->fn_name : "") &&
              js_set_num(o, "seconds", j->seconds);
    for (size_t i = 0; i < tests->n && ok; i++)
        ok = js_push_new(inputs, js_new_strn(tests->tests[i].input.s, tests->tests[i].input.n));
    ok = o && js_set_new(o, "inputs", inputs) && ok;
    snap_status st = ok ? js_write(o, JS_COMPACT, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the tests");
    js_free(o);
    return st;
}

static void check_frame(frame_reader *l, char kind, span text) {
    size_t i = l->out->passed;
    const code_test *t = &l->tests->tests[i];
    bool value = kind == 'V' && l->tests->fn_name, output = kind == 'O' && !l->tests->fn_name;
    if ((value && compare_value(text, t->output) == VALUE_SAME) ||
        (output && compare_output(text, t->output)))
        l->out->passed++;
    else if (value || output)
        judge_fail(l->out, CODE_WRONG_ANSWER, i, value ? "a different value" : "a different output",
                   (span){"", 0});
    else if (kind == 'T')
        judge_fail(l->out, CODE_TIMEOUT, i, "out of time", (span){"", 0});
    else if (kind == 'X')
        judge_fail(l->out, CODE_ERROR, i, "cannot be loaded", text);
    else
        judge_fail(l->out, CODE_ERROR, i, "an exception", text);
    if (l->out->outcome != CODE_PASSED)
        l->out->not_found |= packages_not_found(text);
    l->over = l->out->outcome != CODE_PASSED || l->out->passed == l->tests->n;
}

static void drop_front(buf *channel, size_t n) {
    memmove(channel->data, channel->data + n, channel->len - n + 1);
    channel->len -= n;
}

/* Length of a frame's header with its newline, as in "O123\n"; 0 while the header is incomplete.
 * *length becomes the length of the frame's content. */
static size_t header_of(const buf *channel, size_t *length) {
    *length = 0;
    for (size_t i = 1; i < channel->len && i < kHeader; i++) {
        char c = channel->data[i];
        if (c == '\n')
            return i + 1;
        *length = *length * 10 + (size_t)(unsigned char)(c - '0');
        if (c < '0' || c > '9')
            *length = SIZE_MAX / 16; /* malformed: the frame counts as incomplete */
    }
    return 0;
}

static bool read_frames(void *ctx, buf *channel) {
    frame_reader *l = ctx;
    size_t header, length;
    if (!l->begun && channel->len) {
        l->begun = true;
        drop_front(channel, 1);
    }
    while (!l->over && (header = header_of(channel, &length)) > 0 &&
           length <= channel->len - header) {
        check_frame(l, channel->data[0], (span){channel->data + header, length});
        drop_front(channel, header + length);
    }
    return !l->over;
}

/* Sets the result if the time was up or the process ended before all frames arrived. */
static void check_end(frame_reader *l, const sandbox_result *r) {
    size_t i = l->out->passed;
    if (r->end == SANDBOX_TIMEOUT)
        judge_fail(l->out, CODE_GLOBAL_TIMEOUT, i, "out of time for all tests", (span){"", 0});
    else
        judge_fail(l->out, CODE_CRASHED, i, "the process ended", judge_last_line(&r->errors));
}

static bool all_are_values(const code_tests *t) {
    for (size_t i = 0; i < t->n; i++)
        if (!compare_is_value(t->tests[i].output))
            return false;
    return true;
}

snap_status judge_lcb(code_judge *j, span program, const code_tests *tests, code_result *out,
                      snap_err *err) {
    buf request = {0};
    sandbox_result r = {0};
    frame_reader l = {.tests = tests, .out = out};
    if (tests->fn_name && !all_are_values(tests)) {
        judge_fail(out, CODE_ERROR, 0, "an expected value is not JSON", (span){"", 0});
        return SNAP_OK;
    }
    snap_status st = write_request(j, tests, &request, err);
    const sandbox_job job = {.driver = {buf_str(&j->lcb), j->lcb.len},
                             .program = program,
                             .input = {"", 0},
                             .request = {buf_str(&request), request.len},
                             .limits = {.seconds = judge_total_seconds(j, tests->n),
                                        .memory = kMemory,
                                        .stack = kStack,
                                        .output = kOutput},
                             .watch = read_frames,
                             .watch_ctx = &l,
                             .cancel = j->cancel};
    for (int attempt = 0; attempt < 2 && st == SNAP_OK && !l.begun; attempt++) {
        sandbox_result_release(&r);
        st = sandbox_run(j->box, &job, &r, err);
    }
    if (st == SNAP_OK && !l.begun && r.end == SANDBOX_EXITED) {
        span why = judge_last_line(&r.errors);
        st = err_set(err, SNAP_E_ENV, "the sandbox failed: %.*s", (int)(why.n < 200 ? why.n : 200),
                     why.s);
    }
    out->seconds = r.seconds;
    out->not_found |= packages_not_found((span){buf_str(&r.errors), r.errors.len});
    if (st == SNAP_OK && !l.over)
        check_end(&l, &r);
    sandbox_result_release(&r);
    buf_release(&request);
    return st;
}
