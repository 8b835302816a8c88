#include "evals/code/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "evals/code/sandbox_parts.h"
#include "evals/code/scripts.h"
#include "evals/code/seccomp.h"

enum { kSlice_ms = 100, kErrorsKept = 4096, kErrorsLimit = 1 << 16, kChannelLimit = 128 << 20 };
static const int64_t kStall_ns = 1000000000;
static const int64_t kGrace_ns = 2000000000;

/* ---- supervising a process ---- */

typedef struct {
    const sandbox_job *job;
    sandbox_result *res;
    box_process box;
    int64_t began, now, stalled;
    bool exited, late, stopped;
} supervision;

/* Updates the time. More than 1.1 s since the last update means that this process itself was
 * stopped; that time does not count against the program. */
static void tick(supervision *w) {
    int64_t now = clock_now_ns(), gap = now - w->now;
    if (gap > kSlice_ms * 1000000LL + kStall_ns)
        w->stalled += gap;
    w->now = now;
}

static int64_t elapsed(const supervision *w) {
    return w->now - w->began - w->stalled;
}

/* Keeps only the last kErrorsKept bytes once the buffer reaches kErrorsLimit. */
static void keep_end(buf *b) {
    if (b->len < kErrorsLimit)
        return;
    memmove(b->data, b->data + b->len - kErrorsKept, kErrorsKept);
    b->len = kErrorsKept;
    b->data[b->len] = '\0';
}

static void take(supervision *w, int fd, const char *bytes, size_t n) {
    sandbox_result *r = w->res;
    if (fd == w->box.errors) {
        (void)buf_append(&r->errors, bytes, n);
        keep_end(&r->errors);
    } else if (fd == w->box.channel) {
        (void)buf_append(&r->channel, bytes, n);
    } else {
        size_t room = w->job->limits.output - r->output.len;
        r->output_cut = r->output_cut || n > room;
        (void)buf_append(&r->output, bytes, n < room ? n : room);
    }
}

/* Reads up to 64 KiB of available bytes; true if there were any. At the end of the pipe or after an
 * error, closes *fd and sets it to -1. */
static bool drain(supervision *w, int *fd) {
    char chunk[1 << 16];
    if (*fd < 0)
        return false;
    ssize_t n = read(*fd, chunk, sizeof chunk);
    if (n > 0)
        take(w, *fd, chunk, (size_t)n);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        (void)close(*fd);
        *fd = -1;
    }
    return n > 0;
}

static void poll_once(supervision *w, int timeout_ms) {
    struct pollfd fds[] = {{w->box.output, POLLIN, 0},
                           {w->box.errors, POLLIN, 0},
                           {w->box.channel, POLLIN, 0},
                           {w->exited ? -1 : w->box.pidfd, POLLIN, 0}};
    if (poll(fds, sizeof fds / sizeof *fds, timeout_ms) > 0) {
        (void)drain(w, &w->box.output);
        (void)drain(w, &w->box.errors);
        if (drain(w, &w->box.channel) && w->job->watch && !w->stopped)
            w->stopped = !w->job->watch(w->job->watch_ctx, &w->res->channel);
        w->exited = w->exited || fds[3].revents != 0;
    }
    tick(w);
}

static bool cancelled(const sandbox_job *job) {
    return job->cancel && *job->cancel;
}

static bool failed(const sandbox_result *r) {
    return r->output.failed || r->errors.failed || r->channel.failed;
}

/* True once all three pipes are closed: no process can write to them any more. */
static bool pipes_ended(const supervision *w) {
    return w->box.output < 0 && w->box.errors < 0 && w->box.channel < 0;
}

static void supervise(supervision *w) {
    const int64_t limit = (int64_t)(w->job->limits.seconds * 1e9);
    while (!w->exited && !w->stopped && elapsed(w) < limit && !cancelled(w->job) && !failed(w->res))
        poll_once(w, kSlice_ms);
    w->late = !w->exited && !w->stopped;
    if (!w->exited)
        box_kill(&w->box);
    for (int64_t since = w->now; !pipes_ended(w) && w->now - since < kGrace_ns;)
        poll_once(w, kSlice_ms);
}

/* ---- running a program ---- */

static int exit_code(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

snap_status sandbox_run(sandbox *s, const sandbox_job *job, sandbox_result *out, snap_err *err) {
    *out = (sandbox_result){.output.limit = job->limits.output + 1,
                            .errors.limit = 2 * kErrorsLimit + (1 << 16),
                            .channel.limit = kChannelLimit};
    supervision w = {.job = job, .res = out};
    w.began = w.now = clock_now_ns();
    snap_status st = box_start(s, job, &w.box, err);
    if (st == SNAP_OK && w.box.pidfd < 0)
        st = err_set(err, SNAP_E_ENV, "cannot supervise a process: the code judge needs Linux 5.9");
    if (st == SNAP_OK)
        supervise(&w);
    int status = box_end(&w.box);
    out->end = w.stopped ? SANDBOX_STOPPED : w.late ? SANDBOX_TIMEOUT : SANDBOX_EXITED;
    out->status = exit_code(status);
    out->seconds = (double)elapsed(&w) / 1e9;
    if (st == SNAP_OK && cancelled(job))
        st = err_set(err, SNAP_E_CANCELLED, "interrupted");
    if (st == SNAP_OK && out->channel.failed)
        out->end = SANDBOX_STOPPED;
    else if (st == SNAP_OK && failed(out))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a program's output");
    return st;
}

void sandbox_result_release(sandbox_result *r) {
    buf_release(&r->output);
    buf_release(&r->errors);
    buf_release(&r->channel);
}

/* ---- opening the sandbox ---- */

static const char kSpacesHelp[] =
    "unprivileged user namespaces must be allowed: see the sysctls user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; in a "
    "container, its security profile";

static snap_status need(const char *path, const char *package, snap_err *err) {
    if (access(path, X_OK) == 0)
        return SNAP_OK;
    return err_set(err, SNAP_E_ENV,
                   "the code judge runs programs in a sandbox and needs '%s' (apt-get install %s)",
                   path, package);
}

/* Copies the last line of @text that is not blank, or the word "nothing" if there is none. */
static void last_line(const buf *text, char *out, size_t cap) {
    const char *s = buf_str(text), *line = "nothing";
    size_t n = strlen(line);
    for (size_t i = 0, from = 0; i <= text->len; i++)
        if (i == text->len || s[i] == '\n') {
            if (!text_is_blank(s + from, i - from)) {
                line = s + from;
                n = i - from;
            }
            from = i + 1;
        }
    (void)snprintf(out, cap, "%.*s", (int)(n < cap ? n : cap - 1), line);
}

/* Runs a program that tries to reach what it must not reach, and that lists the installed packages.
 * Sets s->missing. SNAP_E_ENV if it reaches anything or does not report; the errors of
 * sandbox_run(). */
static snap_status probe(sandbox *s, snap_err *err) {
    static const char isolated[] = "isolated";
    char why[200];
    buf request = {0};
    (void)buf_printf(&request, "%d ", (int)getpid());
    packages_append(packages_all(), "", " ", &request);
    snap_status st = buf_check(&request, "the sandbox's request", err);
    if (st != SNAP_OK)
        return st;
    const sandbox_job job = {
        .driver = {script_probe, strlen(script_probe)},
        .program = {"", 0},
        .input = {"", 0},
        .request = {buf_str(&request), request.len},
        .limits = {.seconds = 20, .memory = (size_t)1 << 30, .stack = 8 << 20, .output = 4096}};
    sandbox_result r;
    st = sandbox_run(s, &job, &r, err);
    s->missing = packages_all() & ~packages_named((span){buf_str(&r.channel), r.channel.len});
    if (st == SNAP_OK && strncmp(buf_str(&r.channel), isolated, strlen(isolated)) != 0) {
        last_line(r.channel.len ? &r.channel : &r.errors, why, sizeof why);
        st = err_set(err, SNAP_E_ENV, "programs cannot be isolated on this machine (%s): %s", why,
                     kSpacesHelp);
    }
    sandbox_result_release(&r);
    buf_release(&request);
    return st;
}

snap_status sandbox_open(sandbox **out, const sandbox_options *options, snap_err *err) {
    snap_status st;
    snap_err why = {0};
    *out = NULL;
    sandbox *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the sandbox");
    s->bwrap = options && options->bwrap ? options->bwrap : "/usr/bin/bwrap";
    s->python = options && options->python ? options->python : "/usr/bin/python3";
    TRY(need(s->bwrap, "bubblewrap", err));
    TRY(need(s->python, "python3", err));
    TRY(need("/usr/bin/prlimit", "util-linux", err));
    TRY(seccomp_filter(&s->filter, err));
    /* A security module may allow name spaces to bubblewrap only, so mount_scratch() fails. The
     * second attempt uses a /tmp that bubblewrap mounts. */
    s->own_scratch = true;
    TRY(box_arguments(s, err));
    st = probe(s, &why);
    if (st == SNAP_E_ENV) {
        s->own_scratch = false;
        TRY(box_arguments(s, err));
        TRY(probe(s, err));
    } else if (st != SNAP_OK) {
        TRY(err_set(err, st, "%s", why.text));
    }
    *out = s;
    s = NULL;
cleanup:
    sandbox_close(s);
    return st;
}

void sandbox_close(sandbox *s) {
    if (!s)
        return;
    buf_release(&s->filter);
    arena_release(&s->mem);
    free(s);
}

bool sandbox_limits_files(const sandbox *s) {
    return s->own_scratch;
}

package_set sandbox_missing(const sandbox *s) {
    return s->missing;
}
