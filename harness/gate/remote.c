#include "harness/gate/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "harness/gate/worker.h"

extern char **environ;

enum { kPollMs = 200, kGraceMs = 2000 };

struct gate_remote {
    pid_t pid;       /* 0 = none */
    int to, from;    /* pipes; -1 = none */
    char *line;      /* GATE_LINE bytes for an answer */
    size_t n, taken; /* bytes in the line buffer; length of the previous answer there */
    char name[64];
    remote_options opt;
    remote_about about;
};

/* ---- lines ---- */

static snap_status ended(const gate_remote *r, snap_err *err) {
    return err_set(err, SNAP_E_UNSUPPORTED,
                   "arm '%s' exited without an answer: is its program a snapmla with 'gate'?",
                   r->name);
}

static snap_status wait_for_bytes(const gate_remote *r, int64_t from_ns, snap_err *err) {
    for (;;) {
        struct pollfd p = {.fd = r->from, .events = POLLIN};
        int ready = poll(&p, 1, kPollMs);
        if (r->opt.cancel && *r->opt.cancel)
            return err_set(err, SNAP_E_CANCELLED, "stopped by a signal");
        if (ready > 0)
            return SNAP_OK;
        if (ready < 0 && errno != EINTR)
            return err_set_errno(err, "cannot wait for arm '%s'", r->name);
        if ((double)(clock_now_ns() - from_ns) / 1e9 > r->opt.timeout_s)
            return err_set(err, SNAP_E_DEVICE, "arm '%s' did not answer for %.0f s", r->name,
                           r->opt.timeout_s);
    }
}

/* Reads the next line. Its line end is replaced by NUL. */
static snap_status read_line(gate_remote *r, const char **line, snap_err *err) {
    int64_t from_ns = clock_now_ns();
    memmove(r->line, r->line + r->taken, r->n - r->taken);
    r->n -= r->taken;
    r->taken = 0;
    char *end;
    while (!(end = memchr(r->line, '\n', r->n))) {
        if (r->n + 1 >= GATE_LINE)
            return err_set(err, SNAP_E_INPUT, "arm '%s' sent an answer that is too long", r->name);
        snap_status st = wait_for_bytes(r, from_ns, err);
        if (st != SNAP_OK)
            return st;
        ssize_t got = read(r->from, r->line + r->n, GATE_LINE - 1 - r->n);
        if (got == 0 || (got < 0 && errno != EINTR))
            return ended(r, err);
        r->n += got > 0 ? (size_t)got : 0;
    }
    *end = '\0';
    *line = r->line;
    r->taken = (size_t)(end - r->line) + 1;
    return SNAP_OK;
}

static snap_status write_all(gate_remote *r, const char *bytes, size_t n, snap_err *err) {
    while (n) {
        ssize_t put = write(r->to, bytes, n);
        if (put < 0 && errno != EINTR)
            return ended(r, err);
        bytes += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
    return SNAP_OK;
}

/* Sends @request, which it frees. @complete: whether it could be built. Returns the answer, which
 * the caller owns, or NULL on failure. */
static js *exchange(gate_remote *r, js *request, bool complete, snap_err *err) {
    buf text = {0};
    const char *line = "";
    js *reply = NULL;
    snap_status st = SNAP_OK;
    TRY(request && complete ? js_write(request, JS_COMPACT, &text, err)
                            : err_set(err, SNAP_E_NOMEM, "out of memory for a request"));
    (void)buf_puts(&text, "\n");
    TRY(buf_check(&text, "a request", err));
    TRY(write_all(r, text.data, text.len, err));
    TRY(read_line(r, &line, err));
    reply = js_parse(line, strlen(line), r->name, NULL);
    if (!reply || !js_is_object(reply))
        TRY(err_set(err, SNAP_E_UNSUPPORTED, "arm '%s' does not answer like a gate worker",
                    r->name));
    const char *fatal = js_get_str(reply, "fatal");
    if (fatal)
        TRY(err_set(err, SNAP_E_DEVICE, "arm '%s': %s", r->name, fatal));
cleanup:
    buf_release(&text);
    js_free(request);
    if (st != SNAP_OK) {
        js_free(reply);
        reply = NULL;
    }
    return reply;
}

static void copy_text(char *to, size_t size, const js *o, const char *key) {
    const char *s = js_get_str(o, key);
    (void)snprintf(to, size, "%s", s ? s : "");
}

/* ---- the child ---- */

static snap_status start(gate_remote *r, const char *program, snap_err *err) {
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    posix_spawn_file_actions_t files;
    const char *const argv[] = {program, "gate", "worker", "--quiet", NULL};
    snap_status st = SNAP_OK;
    (void)posix_spawn_file_actions_init(&files);
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        TRY(err_set_errno(err, "cannot make a pipe to arm '%s'", r->name));
    errno = posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    if (!errno)
        errno = posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    if (!errno)
        errno =
            posix_spawn(&r->pid, program, &files, NULL, (char *const *)(uintptr_t)argv, environ);
    if (errno) {
        r->pid = 0;
        TRY(err_set_errno(err, "cannot start '%s' for arm '%s'", program, r->name));
    }
    r->to = in[1];
    r->from = out[0];
    in[1] = out[0] = -1;
cleanup:
    (void)posix_spawn_file_actions_destroy(&files);
    for (int i = 0; i < 2; i++) {
        if (in[i] >= 0)
            (void)close(in[i]);
        if (out[i] >= 0)
            (void)close(out[i]);
    }
    return st;
}

static snap_status send_hello(gate_remote *r, const gate_side *arm, snap_err *err) {
    js *hello = js_new_object();
    snap_err why = {0};
    bool ok = hello && js_set_int(hello, "protocol", GATE_PROTOCOL) &&
              js_set_str(hello, "backend", arm->backend) && js_set_str(hello, "isa", arm->isa) &&
              js_set_int(hello, "threads", arm->threads) &&
              js_set_num(hello, "delay_pct", arm->slowing.delay_pct) &&
              js_set_num(hello, "spike_ms", arm->slowing.spike_ms) &&
              js_set_int(hello, "spike_every", arm->slowing.spike_every) &&
              js_set_num(hello, "slow_pct", arm->slowing.slow_pct) &&
              js_set_int(hello, "slow_every", arm->slowing.slow_every) &&
              js_set_str(hello, "distribution", r->opt.distribution) &&
              js_set_bool(hello, "cold", r->opt.cold) && js_set_int(hello, "seed", r->opt.seed);
    js *reply = exchange(r, hello, ok, &why);
    if (!reply)
        return err_set(err, why.code, "%s", why.text);
    snap_status st =
        js_get_int(reply, "protocol", 0) == GATE_PROTOCOL
            ? SNAP_OK
            : err_set(err, SNAP_E_UNSUPPORTED,
                      "arm '%s' uses another protocol version than this program", r->name);
    copy_text(r->about.version, sizeof r->about.version, reply, "version");
    copy_text(r->about.commit, sizeof r->about.commit, reply, "commit");
    copy_text(r->about.device, sizeof r->about.device, reply, "device");
    copy_text(r->about.backend, sizeof r->about.backend, reply, "backend");
    copy_text(r->about.kernel, sizeof r->about.kernel, reply, "kernel");
    js_free(reply);
    return st;
}

snap_status remote_open(gate_remote **out, const gate_side *arm, const remote_options *opt,
                        snap_err *err) {
    gate_remote *r = calloc(1, sizeof *r);
    snap_status st = SNAP_OK;
    *out = NULL;
    if (!r)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an arm");
    r->to = r->from = -1;
    r->opt = *opt;
    (void)snprintf(r->name, sizeof r->name, "%s", arm->name);
    r->line = malloc(GATE_LINE);
    TRY(r->line ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for an arm"));
    TRY(start(r, arm->program, err));
    TRY(send_hello(r, arm, err));
    *out = r;
    r = NULL;
cleanup:
    remote_close(r);
    return st;
}

/* Waits for the child to exit after its input has ended. If it does not exit in time, it is
 * killed. */
static void reap(pid_t pid) {
    for (int ms = 0; ms < kGraceMs; ms += 10) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return;
        clock_sleep_ns(10000000);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

void remote_close(gate_remote *r) {
    if (!r)
        return;
    if (r->to >= 0)
        (void)close(r->to);
    if (r->from >= 0)
        (void)close(r->from);
    if (r->pid > 0)
        reap(r->pid);
    free(r->line);
    free(r);
}

const remote_about *remote_describe(const gate_remote *r) {
    return &r->about;
}

/* ---- cells of the other process ---- */

static js *cell_json(const bench_shape *s, const char *precision, bench_scope scope) {
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "precision", precision) &&
              js_set_str(o, "scope", bench_scope_name(scope)) && js_set_int(o, "heads", s->heads) &&
              js_set_int(o, "s_q", s->s_q) && js_set_int(o, "batch", s->batch) &&
              js_set_int(o, "context", s->context) && js_set_int(o, "d_c", s->d_c) &&
              js_set_int(o, "d_r", s->d_r);
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static snap_status read_status(const gate_remote *r, const js *reply, remote_cell *out,
                               snap_err *err) {
    copy_text(out->status, sizeof out->status, reply, "status");
    copy_text(out->reason, sizeof out->reason, reply, "reason");
    out->cpu_s = js_get_num(reply, "cpu_s", 0);
    if (strcmp(out->status, "passed") != 0 && strcmp(out->status, "failed") != 0 &&
        strcmp(out->status, "skipped") != 0)
        return err_set(err, SNAP_E_INPUT, "arm '%s' reports the unknown status '%s' for a cell",
                       r->name, out->status);
    return SNAP_OK;
}

snap_status remote_begin(gate_remote *r, const bench_shape *s, const char *precision,
                         bench_scope scope, remote_cell *out, snap_err *err) {
    js *request = js_new_object();
    snap_err why = {0};
    bool ok = request && js_set_new(request, "cell", cell_json(s, precision, scope));
    js *reply = exchange(r, request, ok, &why);
    *out = (remote_cell){0};
    if (!reply)
        return err_set(err, why.code, "%s", why.text);
    snap_status st = read_status(r, reply, out, err);
    copy_text(out->kernel, sizeof out->kernel, reply, "kernel");
    copy_text(out->kernel_hash, sizeof out->kernel_hash, reply, "kernel_hash");
    copy_text(out->program_hash, sizeof out->program_hash, reply, "program_hash");
    copy_text(out->cold, sizeof out->cold, reply, "cold");
    out->error = js_get_num(reply, "error", (double)NAN);
    out->tolerance = js_get_num(reply, "tolerance", (double)NAN);
    out->step_ns = js_get_num(reply, "step_ns", (double)NAN);
    out->rows_checked = js_get_int(reply, "rows_checked", 0);
    if (st == SNAP_OK && strcmp(out->status, "passed") == 0 && !(out->step_ns > 0))
        st = err_set(err, SNAP_E_INPUT, "arm '%s' reports no time of a step", r->name);
    js_free(reply);
    return st;
}

snap_status remote_steps(gate_remote *r, int n, double *ns, snap_err *err) {
    js *request = js_new_object();
    snap_err why = {0};
    js *reply = exchange(r, request, request && js_set_int(request, "steps", n), &why);
    if (!reply)
        return err_set(err, why.code, "%s", why.text);
    const js *times = js_get_array(reply, "ns");
    bool ok = js_len(times) == (size_t)n;
    for (int i = 0; i < n && ok; i++) {
        ns[i] = js_num(js_at(times, (size_t)i));
        ok = ns[i] > 0;
    }
    js_free(reply);
    return ok ? SNAP_OK
              : err_set(err, SNAP_E_INPUT, "arm '%s' did not report %d positive times", r->name, n);
}

snap_status remote_end(gate_remote *r, remote_cell *out, snap_err *err) {
    js *request = js_new_object();
    snap_err why = {0};
    js *reply = exchange(r, request, request && js_set_bool(request, "end", true), &why);
    if (!reply)
        return err_set(err, why.code, "%s", why.text);
    snap_status st = read_status(r, reply, out, err);
    js_free(reply);
    return st;
}
