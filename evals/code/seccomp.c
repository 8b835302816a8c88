#include "evals/code/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls refused with EPERM. Names that an architecture or libseccomp lacks are skipped. */
static const char *const refused[] = {
    /* access to other processes and to kernel internals */
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise",
    "perf_event_open", "bpf", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register",
    /* memory that neither the address-space limit nor the file-size limit counts, such as the
     * extended attributes of files in /tmp */
    "memfd_create", "memfd_secret", "shmget", "msgget", "semget", "mq_open", "add_key",
    "request_key", "keyctl", "setxattr", "lsetxattr", "fsetxattr", "setxattrat",
    /* mounts and name spaces */
    "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns", "name_to_handle_at",
    "open_by_handle_at", "fanotify_init",
    /* the machine */
    "swapon", "swapoff", "reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "acct", "quotactl", "quotactl_fd", "syslog", "sethostname", "setdomainname",
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "personality", "vhangup",
    "lookup_dcookie", "mknod", "mknodat", "iopl", "ioperm", "modify_ldt", "uselib",
    /* other users */
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups"};

/* Returns -ENOMEM if an allocation has failed, else the result @rc of libseccomp. When memory runs
 * out, libseccomp 2.5 may report another error, or leave out a rule without an error. But malloc()
 * has set errno then. */
static int checked(int rc) {
    return errno == ENOMEM ? -ENOMEM : rc;
}

static int refuse(scmp_filter_ctx filter, const char *name, int error) {
    int call = seccomp_syscall_resolve_name(name);
    return call == __NR_SCMP_ERROR
               ? 0
               : seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint16_t)error), call, 0);
}

/* Refuses a call with @error if the bits @mask of its first argument have the value @bits. */
static int refuse_bits(scmp_filter_ctx filter, int call, unsigned mask, unsigned bits, int error) {
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint16_t)error), call, 1,
                            SCMP_A0_64(SCMP_CMP_MASKED_EQ, mask, bits));
}

/* Refuses new processes with EAGAIN, the error for too many processes. Allows threads, except a
 * thread with new name spaces (EPERM). clone3 keeps its flags in memory, where a filter cannot read
 * them. So clone3 fails with ENOSYS as if it were missing, and the C library uses clone instead. */
static int refuse_processes(scmp_filter_ctx filter) {
    static const unsigned spaces[] = {CLONE_NEWNS,  CLONE_NEWUSER, CLONE_NEWPID,   CLONE_NEWNET,
                                      CLONE_NEWIPC, CLONE_NEWUTS,  CLONE_NEWCGROUP};
    int rc = refuse_bits(filter, SCMP_SYS(clone), CLONE_THREAD, 0, EAGAIN);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces && rc == 0; i++) {
        unsigned bits = CLONE_THREAD | spaces[i];
        rc = refuse_bits(filter, SCMP_SYS(clone), bits, bits, EPERM);
    }
    if (rc == 0)
        rc = refuse(filter, "clone3", ENOSYS);
    if (rc == 0)
        rc = refuse(filter, "fork", EAGAIN);
    return rc == 0 ? refuse(filter, "vfork", EAGAIN) : rc;
}

/* Allows only sockets of the family AF_UNIX. */
static int refuse_sockets(scmp_filter_ctx filter) {
    const struct scmp_arg_cmp other = SCMP_A0_64(SCMP_CMP_NE, AF_UNIX);
    int rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 1, other);
    return rc ? rc
              : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socketpair), 1, other);
}

/* Adds all rules to @filter. A system call of another architecture, such as x32, ends the program;
 * other forbidden calls return an error. */
static int add_rules(scmp_filter_ctx filter) {
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (rc == 0)
        rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree of calls */
    if (rc == 0)
        rc = refuse_processes(filter);
    if (rc == 0)
        rc = refuse_sockets(filter);
    for (size_t i = 0; i < sizeof refused / sizeof *refused && rc == 0; i++)
        rc = refuse(filter, refused[i], EPERM);
    return rc;
}

/* ---- the process that makes the filter ---- */

/* Exit statuses of the process that makes the filter. */
enum { kMade, kNoMemory, kRefused };

/* Limits of the process that makes the filter: processor time in microseconds and elapsed time in
 * seconds. It needs a few milliseconds, but libseccomp 2.5 may loop for ever after a failed
 * allocation. */
enum { kProcessorTime = 500000, kPatience = 10 };

/* Writes the filter to @fd and returns an exit status. Releases nothing, because the process ends,
 * and because seccomp_release() may free a part twice after a failed allocation. */
static int make(int fd) {
    errno = 0;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter)
        return kNoMemory;
    int rc = checked(add_rules(filter));
    if (rc == 0)
        rc = checked(seccomp_export_bpf(filter, fd));
    return rc == 0 ? kMade : rc == -ENOMEM ? kNoMemory : kRefused;
}

/* Runs in the forked process. The signals of a crash and of the limits have their default effect,
 * so they end it. What the C library prints about a damaged heap is discarded. */
_Noreturn static void child(int fd) {
    static const int signals[] = {SIGALRM, SIGPROF, SIGSEGV, SIGABRT,
                                  SIGBUS,  SIGFPE,  SIGILL,  SIGPIPE};
    const struct itimerval time = {.it_value.tv_usec = kProcessorTime};
    sigset_t none;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)signal(signals[i], SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_DUMPABLE, 0); /* no core file */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        (void)dup2(null, STDERR_FILENO);
    (void)setitimer(ITIMER_PROF, &time, NULL);
    (void)alarm(kPatience);
    _exit(make(fd));
}

/* Appends what the process writes to the pipe. Returns its wait status; -1 if that is unknown. */
static int collect(pid_t pid, int fd, buf *out) {
    char chunk[4096];
    int status = -1;
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            (void)buf_append(out, chunk, (size_t)n);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

snap_status seccomp_filter(buf *out, snap_err *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_set_errno(err, "cannot open a pipe");
    pid_t pid = fork();
    if (pid == 0)
        child(ends[1]);
    (void)close(ends[1]);
    if (pid < 0) {
        snap_status st = err_set_errno(err, "cannot start a process");
        (void)close(ends[0]);
        return st;
    }
    const size_t before = out->len;
    int status = collect(pid, ends[0], out);
    (void)close(ends[0]);
    if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == kRefused)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "libseccomp cannot make a system call filter on this machine");
    if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == kMade && out->len > before)
        return buf_check(out, "a system call filter", err);
    if (status != -1 && WIFSIGNALED(status))
        return err_set(err, SNAP_E_NOMEM,
                       "libseccomp was ended by signal %d while it made a system call filter, "
                       "perhaps out of memory",
                       WTERMSIG(status));
    return err_set(err, SNAP_E_NOMEM, "out of memory for a system call filter");
}
