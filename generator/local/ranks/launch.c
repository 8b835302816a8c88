#include "generator/local/ranks/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "generator/local/ranks/ranks.h"

enum { kReportMost = 4 + 600, kTickMs = 20, kExecFailed = 127 };
static const char kAddress[] = "127.0.0.1";

typedef struct {
    pid_t pid;  /* 0 = not running */
    int report; /* reading end of the pipe for its error; -1 = closed */
    char text[kReportMost];
    size_t n;
    int status;  /* of waitpid() */
    int turn;    /* number of the wait_once() call that found it ended; 0 = it has not ended */
    bool killed; /* by the launcher */
} child;

typedef struct {
    const launch_options *o;
    child of[RANKS_MOST];
    int listener, port;
    int running, turn;
    int64_t kill_at; /* when the ranks that still run are killed; 0 = no rank has failed */
} launch;

/* ---- the environment of a rank ---- */

enum { kSet = 7, kSetBytes = 96 };
typedef struct {
    char text[kSet][kSetBytes];
    char **all; /* NULL-terminated; owned */
} rank_environment;

static bool is_set_here(const char *variable, const rank_environment *e) {
    for (int i = 0; i < kSet; i++) {
        size_t name = strcspn(e->text[i], "=") + 1;
        if (strncmp(variable, e->text[i], name) == 0)
            return true;
    }
    return false;
}

static snap_status make_environment(rank_environment *e, const launch *l, int rank, int report,
                                    snap_err *err) {
    const char *names[kSet] = {"RANK",        "WORLD_SIZE",   "LOCAL_RANK",
                               "MASTER_PORT", RANKS_LISTENER, RANKS_REPORT};
    int values[kSet] = {rank, l->o->size, rank, l->port, l->listener, report};
    size_t n = 0, k = 0;
    for (int i = 0; i < kSet - 1; i++)
        (void)snprintf(e->text[i], kSetBytes, "%s=%d", names[i], values[i]);
    (void)snprintf(e->text[kSet - 1], kSetBytes, "MASTER_ADDR=%s", kAddress);
    while (environ[n])
        n++;
    e->all = malloc((n + kSet + 1) * sizeof *e->all);
    if (!e->all)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the environment of a rank");
    for (int i = 0; i < kSet; i++)
        e->all[k++] = e->text[i];
    for (size_t i = 0; i < n; i++)
        if (!is_set_here(environ[i], e))
            e->all[k++] = environ[i];
    e->all[k] = NULL;
    return SNAP_OK;
}

/* ---- starting ---- */

static bool keep_over_exec(int fd) {
    return fcntl(fd, F_SETFD, 0) == 0;
}

/* Runs in the new process, where only async-signal-safe calls are allowed until execve(). */
static _Noreturn void become_rank(const launch *l, int rank, int report, pid_t parent,
                                  const char *path, char *const *argv, char *const *env) {
    bool ok = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
    ok = ok && keep_over_exec(report) && (rank > 0 || keep_over_exec(l->listener));
    if (rank > 0) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        ok = ok && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
             dup2(nothing, STDOUT_FILENO) >= 0;
    }
    if (ok)
        (void)execve(path, argv, env);
    _exit(kExecFailed);
}

static snap_status start_rank(launch *l, int rank, const char *path, char *const *argv,
                              snap_err *err) {
    int ends[2];
    rank_environment env = {0};
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return err_set_errno(err, "cannot make a pipe for rank %d", rank);
    snap_status st = make_environment(&env, l, rank, ends[1], err);
    pid_t pid = st == SNAP_OK ? fork() : -1;
    if (pid == 0)
        become_rank(l, rank, ends[1], parent, path, argv, env.all);
    if (pid < 0 && st == SNAP_OK)
        st = err_set_errno(err, "cannot start a process for rank %d", rank);
    free(env.all);
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return st;
    }
    l->of[rank].pid = pid;
    l->of[rank].report = ends[0];
    l->running++;
    return SNAP_OK;
}

/* ---- waiting ---- */

/* Reads what the rank has written so far. */
static void read_report(child *c) {
    while (c->report >= 0) {
        ssize_t k = read(c->report, c->text + c->n, sizeof c->text - c->n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EAGAIN)
            return;
        if (k > 0)
            c->n += (size_t)k;
        if (k <= 0 || c->n == sizeof c->text) {
            (void)close(c->report);
            c->report = -1;
        }
    }
}

static void signal_all(launch *l, int signal_number) {
    for (int r = 0; r < l->o->size; r++)
        if (l->of[r].pid > 0) {
            l->of[r].killed = true;
            (void)kill(l->of[r].pid, signal_number);
        }
}

static void note_end(launch *l, child *c, int status) {
    c->status = status;
    c->turn = l->turn;
    c->pid = 0;
    l->running--;
    read_report(c);
    if (c->report >= 0) /* a process that the rank has started may hold the writing end */
        (void)close(c->report);
    c->report = -1;
    if (status != 0 && l->kill_at == 0)
        l->kill_at = clock_now_ns() + (int64_t)(l->o->grace_s * 1e9);
}

/* Waits kTickMs at most for reports, then records the ranks that have ended. */
static void wait_once(launch *l) {
    struct pollfd fds[RANKS_MOST];
    int status = 0;
    l->turn++;
    for (int r = 0; r < l->o->size; r++)
        fds[r] = (struct pollfd){.fd = l->of[r].report, .events = POLLIN};
    if (poll(fds, (nfds_t)l->o->size, kTickMs) > 0)
        for (int r = 0; r < l->o->size; r++)
            if (fds[r].revents)
                read_report(&l->of[r]);
    for (int r = 0; r < l->o->size; r++)
        if (l->of[r].pid > 0 && waitpid(l->of[r].pid, &status, WNOHANG) == l->of[r].pid)
            note_end(l, &l->of[r], status);
}

static void wait_for_all(launch *l) {
    bool sent_sigterm = false;
    while (l->running > 0) {
        wait_once(l);
        if (l->o->cancel && *l->o->cancel && !sent_sigterm) {
            sent_sigterm = true;
            for (int r = 0; r < l->o->size; r++)
                if (l->of[r].pid > 0)
                    (void)kill(l->of[r].pid, SIGTERM);
            if (l->kill_at == 0)
                l->kill_at = clock_now_ns() + (int64_t)(l->o->grace_s * 1e9);
        }
        if (l->kill_at != 0 && clock_now_ns() > l->kill_at)
            signal_all(l, SIGKILL);
    }
}

/* ---- the error of the group ---- */

/* How likely it is that the end of this rank caused the others to fail: the higher, the likelier. A
 * signal that is not the launcher's SIGKILL counts most, then an error that the rank has sent. */
static int weight_of_end(const child *c) {
    if (WIFSIGNALED(c->status) && !c->killed)
        return 3;
    if (WIFEXITED(c->status) && c->status != 0 && c->n > 4)
        return 2;
    return c->status != 0;
}

/* Returns the rank that is named as the cause, or -1 if all ranks have ended well. */
static int find_first_failure(const launch *l) {
    int best = -1;
    for (int r = 0; r < l->o->size; r++) {
        const child *c = &l->of[r], *b = &l->of[best < 0 ? r : best];
        int more = weight_of_end(c) - (best < 0 ? 0 : weight_of_end(b));
        if (more > 0 || (more == 0 && best >= 0 && weight_of_end(c) && c->turn < b->turn))
            best = r;
    }
    return best;
}

static snap_status group_error(const launch *l, const char *path, snap_err *err) {
    int r = find_first_failure(l);
    if (r < 0)
        return SNAP_OK;
    const child *c = &l->of[r];
    uint32_t code = 0;
    if (l->o->cancel && *l->o->cancel)
        return err_set(err, SNAP_E_CANCELLED, "stopped by a signal");
    memcpy(&code, c->text, sizeof code);
    if (WIFSIGNALED(c->status) && c->killed)
        return err_set(err, SNAP_E_DEVICE, "rank %d did not end by itself and was killed", r);
    if (WIFSIGNALED(c->status))
        return err_set(err, SNAP_E_DEVICE, "rank %d was ended by signal %d (%s)", r,
                       WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
    if (c->n > 4 && code != SNAP_OK && code <= SNAP_E_WORSE)
        return err_set(err, (snap_status)code, "%.*s", (int)(c->n - 4), c->text + 4);
    if (WEXITSTATUS(c->status) == kExecFailed)
        return err_set(err, SNAP_E_IO, "cannot run %s", path);
    return err_set(err, SNAP_E_IO, "rank %d ended with exit code %d and without a message", r,
                   WEXITSTATUS(c->status));
}

snap_status launch_ranks(const launch_options *o, const char *path, char *const *argv,
                         snap_err *err) {
    if (o->size < 1 || o->size > RANKS_MOST)
        return err_set(err, SNAP_E_USAGE, "a machine can have 1 to %d ranks", RANKS_MOST);
    launch *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the ranks");
    l->o = o;
    for (int r = 0; r < o->size; r++)
        l->of[r].report = -1;
    snap_status st = ranks_listen(kAddress, &l->port, &l->listener, err);
    for (int r = 0; r < o->size && st == SNAP_OK; r++)
        st = start_rank(l, r, path, argv, err);
    if (l->listener >= 0)
        (void)close(l->listener);
    if (st != SNAP_OK)
        signal_all(l, SIGKILL);
    wait_for_all(l);
    if (st == SNAP_OK)
        st = group_error(l, path, err);
    free(l);
    return st;
}

/* The descriptor for the report; 0 = none. */
static int report_descriptor(void) {
    const char *text = getenv(RANKS_REPORT);
    int64_t fd = 0;
    return text && text_to_int(text, &fd) && fd >= 3 && fd <= 1 << 20 ? (int)fd : 0;
}

bool launch_has_report(void) {
    return report_descriptor() > 0;
}

bool launch_report(const snap_err *err) {
    int fd = report_descriptor();
    char bytes[kReportMost];
    uint32_t code = err->code;
    size_t n = strlen(err->text);
    if (fd == 0)
        return false;
    memcpy(bytes, &code, sizeof code);
    memcpy(bytes + 4, err->text, n);
    return write(fd, bytes, 4 + n) == (ssize_t)(4 + n);
}
