#include "generator/local/ranks/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { kExecFailed = 127, kTickNs = 5000000 };
static const char kProgram[] = "/proc/self/exe";

/* Runs in the new process, where only async-signal-safe calls are allowed until execv(). */
static _Noreturn void become_rank(int fd, pid_t parent, char *const *argv) {
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool ok = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
    ok = ok && dup2(fd, STDIN_FILENO) >= 0;
    ok = ok && nothing >= 0 && dup2(nothing, STDOUT_FILENO) >= 0;
    if (ok)
        (void)execv(kProgram, argv);
    _exit(kExecFailed);
}

snap_status spawn_rank(int rank, char *const *argv, int *fd, pid_t *pid, snap_err *err) {
    int ends[2];
    pid_t parent = getpid();
    *fd = -1;
    *pid = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set_errno(err, "cannot make a socket for rank %d", rank);
    pid_t child = fork();
    if (child == 0)
        become_rank(ends[1], parent, argv);
    (void)close(ends[1]);
    if (child < 0) {
        snap_status st = err_set_errno(err, "cannot start a process for rank %d", rank);
        (void)close(ends[0]);
        return st;
    }
    *fd = ends[0];
    *pid = child;
    return SNAP_OK;
}

/* Whether the process has ended. If another part of the program has waited for it, it has. */
static bool has_ended(pid_t pid, int flags) {
    pid_t got;
    do
        got = waitpid(pid, NULL, flags);
    while (got < 0 && errno == EINTR);
    return got == pid || got < 0;
}

void spawn_end(pid_t *pid, int n, double grace_s) {
    int64_t end = clock_now_ns() + (int64_t)(grace_s * 1e9);
    for (int i = 0; i < n; i++) {
        while (pid[i] > 0 && !has_ended(pid[i], WNOHANG)) {
            if (clock_now_ns() > end) {
                (void)kill(pid[i], SIGKILL);
                (void)has_ended(pid[i], 0);
                break;
            }
            clock_sleep_ns(kTickNs);
        }
        pid[i] = 0;
    }
}
