/* sandbox_start.c - starts bubblewrap for a job: its command line, files, user and /tmp. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evals/code/sandbox_parts.h"

/* A program with several threads uses CPU time faster than wall-clock time. The CPU limit allows
 * for this many threads. */
enum { kThreadsCounted = 4 };
enum { kFiles = 64, kTasks = 64, kNumber = 40, kLimits = 9, kPipe = 1 << 20 };
static const size_t kScratch = (size_t)64 << 20;
/* Where the program's /tmp is mounted before bubblewrap starts, and with what limits: kScratch
 * bytes and 4096 inodes. Without the second limit, empty files could use any amount of kernel
 * memory. */
static const char kScratchPath[] = "/dev/shm";
static const char kScratchLimits[] = "size=67108864,nr_inodes=4096,mode=1777";
static const char kPrlimit[] = "/usr/bin/prlimit";

/* ---- the command line ---- */

static void add(sandbox *s, const char *arg) {
    if (s->n_args + 1 < kBoxArguments)
        s->args[s->n_args++] = arg;
}

static void add_all(sandbox *s, const char *const *args) {
    for (; *args; args++)
        add(s, *args);
}

/* Makes a top-level folder visible in the sandbox, if the machine has it. On most systems the
 * folder is a link into /usr, and the sandbox gets the same link. */
static snap_status add_link(sandbox *s, const char *path, snap_err *err) {
    char target[256];
    struct stat sb;
    if (lstat(path, &sb) != 0)
        return SNAP_OK;
    if (!S_ISLNK(sb.st_mode)) {
        add_all(s, (const char *const[]){"--ro-bind", path, path, NULL});
        return SNAP_OK;
    }
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return err_set_errno(err, "cannot read the link '%s'", path);
    const char *kept = arena_strndup(&s->mem, target, (size_t)n);
    if (!kept)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the sandbox");
    add_all(s, (const char *const[]){"--symlink", kept, path, NULL});
    return SNAP_OK;
}

snap_status box_arguments(sandbox *s, snap_err *err) {
    static const char *const spaces[] = {"--unshare-user",
                                         "--unshare-ipc",
                                         "--unshare-pid",
                                         "--unshare-net",
                                         "--unshare-uts",
                                         "--unshare-cgroup-try",
                                         "--uid",
                                         "65534",
                                         "--gid",
                                         "65534",
                                         "--hostname",
                                         "box",
                                         "--die-with-parent",
                                         "--new-session",
                                         "--cap-drop",
                                         "ALL",
                                         NULL};
    static const char *const environment[] = {
        "--clearenv", "--setenv", "PATH", "/usr/bin", "--setenv", "LANG", "C.UTF-8",
        /* Python then visits the items of a set in a fixed order, so this order cannot change a
         * verdict */
        "--setenv", "PYTHONHASHSEED", "0", "--setenv", "PYTHONDONTWRITEBYTECODE", "1", "--setenv",
        "OMP_NUM_THREADS", "1", "--setenv", "OPENBLAS_NUM_THREADS", "1", NULL};
    /* From /etc, only what the loader needs to find libraries (for example numpy's) is visible. */
    static const char *const files[] = {
        "--ro-bind",     "/usr/bin",         "/usr/bin",          "--ro-bind",
        "/usr/lib",      "/usr/lib",         "--ro-bind-try",     "/usr/lib64",
        "/usr/lib64",    "--ro-bind-try",    "/etc/alternatives", "/etc/alternatives",
        "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache",  NULL};
    static const char *const links[] = {"/bin", "/lib", "/lib64", NULL};
    snap_status st = SNAP_OK;
    char scratch[kNumber];
    s->n_args = 0;
    (void)snprintf(scratch, sizeof scratch, "%zu", kScratch);
    const char *size = arena_strdup(&s->mem, scratch);
    if (!size)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the sandbox");
    add(s, s->bwrap);
    add_all(s, spaces);
    add_all(s, environment);
    add_all(s, files);
    for (int i = 0; links[i] && st == SNAP_OK; i++)
        st = add_link(s, links[i], err);
    /* bubblewrap's own /tmp has no limit on the number of files */
    add_all(s, s->own_scratch ? (const char *const[]){"--bind", kScratchPath, "/tmp", NULL}
                              : (const char *const[]){"--size", size, "--tmpfs", "/tmp", NULL});
    add_all(s,
            (const char *const[]){"--proc", "/proc", "--dev", "/dev", "--ro-bind-data", "5",
                                  "/box/driver.py", "--ro-bind-data", "6", "/box/program.py",
                                  /* These are read-only, because files written to / or /dev would
                                   * be memory without a limit. */
                                  "--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro",
                                  "/", "--chdir", "/tmp", "--seccomp", "7", "--", NULL});
    if (s->n_args + 1 == kBoxArguments)
        SNAP_BUG("no room for the sandbox's arguments");
    return st;
}

/* Adds the prlimit command, which sets the resource limits. It runs inside the name space, so the
 * limit on tasks does not count the user's processes outside. */
static void add_limits(const sandbox_job *job, char text[kLimits][kNumber], const char **args,
                       size_t *n) {
    const sandbox_limits *l = &job->limits;
    const struct {
        const char *name;
        size_t value;
    } limits[kLimits] = {{"as", l->memory},
                         {"stack", l->stack},
                         {"fsize", kScratch},
                         {"nofile", kFiles},
                         {"nproc", kTasks},
                         {"core", 0},
                         {"memlock", 0},
                         {"msgqueue", 0},
                         {"cpu", (size_t)(l->seconds * kThreadsCounted) + 1}};
    args[(*n)++] = kPrlimit;
    for (int i = 0; i < kLimits; i++) {
        (void)snprintf(text[i], kNumber, "--%s=%zu", limits[i].name, limits[i].value);
        args[(*n)++] = text[i];
    }
}

/* ---- files in memory ---- */

/* Creates a sealed file in memory with the given content, positioned at its start; -1 on
 * failure. */
static int memory_file(span text) {
    int fd = memfd_create("box", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t done = 0;
    while (fd >= 0 && done < text.n) {
        ssize_t n = write(fd, text.s + done, text.n - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            (void)close(fd);
            return -1;
        }
        done += (size_t)n;
    }
    if (fd >= 0)
        (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

static void close_all(int *fds, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
        fds[i] = -1;
    }
}

/* fds[i] becomes file descriptor i of the child. out[i] is this side's end if descriptor i is a
 * pipe (standard output, standard error, BOX_CHANNEL), and is not set otherwise. */
static snap_status open_files(const sandbox *s, const sandbox_job *job, int fds[BOX_FDS],
                              int out[BOX_FDS], snap_err *err) {
    static const int pipes[] = {STDOUT_FILENO, STDERR_FILENO, BOX_CHANNEL};
    const span filter = {buf_str(&s->filter), s->filter.len};
    const struct {
        int at;
        span text;
    } files[] = {{STDIN_FILENO, job->input},
                 {BOX_REQUEST, job->request},
                 {BOX_DRIVER, job->driver},
                 {BOX_PROGRAM, job->program},
                 {BOX_FILTER, filter}};
    for (size_t i = 0; i < sizeof pipes / sizeof *pipes; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            return err_set_errno(err, "cannot open a pipe");
        out[pipes[i]] = ends[0];
        fds[pipes[i]] = ends[1];
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        (void)fcntl(ends[0], F_SETPIPE_SZ, kPipe); /* a larger pipe means fewer context switches;
                                                      may fail */
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fds[files[i].at] = memory_file(files[i].text);
        if (fds[files[i].at] < 0)
            return err_set_errno(err, "cannot keep a program's input in memory");
    }
    return SNAP_OK;
}

/* ---- the process ---- */

/* Drops root if this process is root. Runs between fork and exec, and the parent may have threads.
 * So this function makes the system calls itself, for only its own thread. */
static bool drop_root(void) {
    return syscall(SYS_getuid) != 0 || (syscall(SYS_setgroups, 0, NULL) == 0 &&
                                        syscall(SYS_setresgid, kBoxUser, kBoxUser, kBoxUser) == 0 &&
                                        syscall(SYS_setresuid, kBoxUser, kBoxUser, kBoxUser) == 0);
}

static bool write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t n = strlen(text);
    bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;
    if (fd >= 0)
        (void)close(fd);
    return ok;
}

/* A user and a group as a user name space's maps state them: "1000 1000 1" keeps the id 1000. Root
 * is replaced by kBoxUser. */
typedef struct {
    char uid[kNumber], gid[kNumber];
} user_maps;

static user_maps own_maps(void) {
    user_maps m;
    const unsigned uid = getuid() ? getuid() : kBoxUser, gid = getuid() ? getgid() : kBoxUser;
    (void)snprintf(m.uid, sizeof m.uid, "%u %u 1", uid, uid);
    (void)snprintf(m.gid, sizeof m.gid, "%u %u 1", gid, gid);
    return m;
}

/* Enters new user and mount name spaces and mounts there the file system that becomes the program's
 * /tmp. bubblewrap then runs in these name spaces. */
static bool mount_scratch(const user_maps *maps) {
    /* without PR_SET_DUMPABLE, a process that has changed its user may not write its own maps */
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", maps->uid) &&
           write_file("/proc/self/gid_map", maps->gid) &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("scratch", kScratchPath, "tmpfs", MS_NOSUID | MS_NODEV, kScratchLimits) == 0;
}

/* Moves the files to the descriptors 0 .. BOX_FDS-1, whatever their numbers are now, and closes all
 * other descriptors. */
static bool place_files(int fds[BOX_FDS]) {
    for (int i = 0; i < BOX_FDS; i++) {
        fds[i] = fcntl(fds[i], F_DUPFD, BOX_FDS);
        if (fds[i] < 0)
            return false;
    }
    for (int i = 0; i < BOX_FDS; i++)
        if (dup2(fds[i], i) < 0)
            return false;
    return syscall(SYS_close_range, BOX_FDS, ~0U, 0) == 0;
}

/* Makes the kernel kill this process first if the machine runs out of memory. */
static void raise_oom_score(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        (void)close(fd);
    }
}

/* Runs in the forked process, which becomes bubblewrap. @maps: NULL if bubblewrap mounts /tmp. */
_Noreturn static void child(const char *const *args, int fds[BOX_FDS], const user_maps *maps,
                            pid_t parent) {
    static char *const no_environment[] = {NULL};
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setpgid(0, 0);
    raise_oom_score();
    bool ok = place_files(fds) && chdir("/") == 0 && drop_root() &&
              (!maps || mount_scratch(maps)) && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
              getppid() == parent;
    if (ok) {
        union {
            const char *const *in;
            char *const *out;
        } argv = {args}; /* execve() does not change the strings */
        (void)execve(args[0], argv.out, no_environment);
    }
    _exit(127);
}

snap_status box_start(sandbox *s, const sandbox_job *job, box_process *out, snap_err *err) {
    const char *args[kBoxArguments + kLimits + 5];
    char text[kLimits][kNumber];
    int fds[BOX_FDS], ours[BOX_FDS];
    size_t n = s->n_args;
    *out = (box_process){-1, -1, -1, -1, -1};
    memset(fds, 0xff, sizeof fds);
    memset(ours, 0xff, sizeof ours);
    memcpy(args, s->args, n * sizeof *args);
    add_limits(job, text, args, &n);
    args[n++] = s->python;
    args[n++] = "-S";
    args[n++] = "/box/driver.py";
    args[n] = NULL;
    snap_status st = open_files(s, job, fds, ours, err);
    if (st == SNAP_OK) {
        const user_maps maps = own_maps();
        pid_t parent = getpid();
        out->pid = fork();
        if (out->pid == 0)
            child(args, fds, s->own_scratch ? &maps : NULL, parent);
        if (out->pid < 0)
            st = err_set_errno(err, "cannot start a process");
    }
    if (out->pid > 0) {
        (void)setpgid(out->pid, out->pid); /* as the child does, which may not have run yet */
        out->pidfd = (int)syscall(SYS_pidfd_open, out->pid, 0);
    }
    close_all(fds, BOX_FDS);
    out->output = ours[STDOUT_FILENO];
    out->errors = ours[STDERR_FILENO];
    out->channel = ours[BOX_CHANNEL];
    return st;
}

void box_kill(const box_process *p) {
    (void)kill(-p->pid, SIGKILL);
    (void)kill(p->pid, SIGKILL);
}

int box_end(box_process *p) {
    int status = -1;
    if (p->pid > 0) {
        box_kill(p); /* no effect if it has ended already */
        while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close_all((int[]){p->pidfd, p->output, p->errors, p->channel}, 4);
    *p = (box_process){-1, -1, -1, -1, -1};
    return status;
}
