/* Runs hostile programs in the sandbox, each once, and checks their output and from outside that
 * they had no effect. Also tests well-behaved programs, several programs at once, stopping, and the
 * refusals on a machine that cannot isolate programs. */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/parallel.h"
#include "evals/code/sandbox.h"
#include "evals/code/scripts.h"

enum { kOutput = 1 << 16 };
static const size_t kMemory = (size_t)256 << 20;

/* The sandbox, or NULL; the first time, with a message. If python3 or bubblewrap is not installed,
 * or a container forbids user namespaces, only the refusal can be tested. */
static sandbox *open_sandbox(void) {
    static bool reported;
    sandbox *s = NULL;
    snap_err err = {0};
    /* orphans become children of this process, so processes_with() finds them */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (sandbox_open(&s, NULL, &err) == SNAP_OK)
        return s;
    CU_ASSERT_EQUAL(err.code, SNAP_E_ENV);
    if (!reported)
        printf("\nskipped: %s\n", err.text);
    reported = true;
    return NULL;
}

typedef struct {
    buf driver, program;
} box_job;

static sandbox_job job_of(box_job *b, const char *program, double seconds) {
    (void)buf_printf(&b->driver, "%s%s", script_common, script_real);
    (void)buf_puts(&b->program, program);
    return (sandbox_job){
        .driver = {buf_str(&b->driver), b->driver.len},
        .program = {buf_str(&b->program), b->program.len},
        .input = {"3\n4\n", 4},
        .request = {"{\"fn_name\": \"\"}", 15},
        .limits = {
            .seconds = seconds, .memory = kMemory, .stack = (size_t)8 << 20, .output = kOutput}};
}

static void job_release(box_job *b) {
    buf_release(&b->driver);
    buf_release(&b->program);
}

static sandbox_result run(sandbox *s, const char *program, double seconds) {
    box_job b = {0};
    sandbox_job job = job_of(&b, program, seconds);
    sandbox_result r;
    snap_err err = {0};
    if (sandbox_run(s, &job, &r, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL(err.code, SNAP_OK);
    job_release(&b);
    return r;
}

/* The parent of a process; 0 if there is no such process. A process that has ended but was not
 * waited for still has a parent. */
static long parent_of(long pid) {
    char path[64];
    long parent = 0;
    buf text = {0};
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    const char *name_end =
        fs_read(path, &text, NULL) == SNAP_OK ? strrchr(buf_str(&text), ')') : NULL;
    if (name_end) /* "pid (name) state parent" */
        parent = strtol(name_end + 4, NULL, 10);
    buf_release(&text);
    return parent;
}

static bool is_ours(long pid) {
    while (pid > 1 && pid != getpid())
        pid = parent_of(pid);
    return pid == getpid();
}

/* Number of processes with @word in their command line that descend from this one or were orphaned
 * by its children. */
static int processes_with(const char *word) {
    int found = 0;
    DIR *proc = opendir("/proc");
    CU_ASSERT_PTR_NOT_NULL_FATAL(proc);
    for (struct dirent *d; (d = readdir(proc)) != NULL;) {
        char path[300];
        buf text = {0};
        (void)snprintf(path, sizeof path, "/proc/%s/cmdline", d->d_name);
        if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && is_ours(strtol(d->d_name, NULL, 10)) &&
            fs_read(path, &text, NULL) == SNAP_OK)
            found += memmem(buf_str(&text), text.len, word, strlen(word)) != NULL;
        buf_release(&text);
    }
    (void)closedir(proc);
    return found;
}

/* The result of processes_with() after waiting up to ten seconds for killed processes to end. */
static int processes_left(const char *word) {
    int found = processes_with(word);
    for (int i = 0; i < 100 && found > 0; i++) {
        clock_sleep_ns(100000000);
        found = processes_with(word);
    }
    return found;
}

/* ---- well-behaved programs ---- */

static void test_runs(void) {
    static const struct {
        const char *program, *output, *errors;
        int status;
    } cases[] = {
        {"print(int(input()) + int(input()))", "7\n", "", 0},
        {"import sys\nfor line in sys.stdin: print(line, end='')", "3\n4\n", "", 0},
        {"print(open(0).read())\nexit(5)", "3\n4\n\n", "", 0},
        {"import os\nos._exit(5)", "", "", 5},
        {"print(open('/dev/stdin').read(), end='')", "3\n4\n", "", 0},
        {"import threading\nt = threading.Thread(target=print, args=('t',))\nt.start()\nt.join()",
         "t\n", "", 0},
        {"open('x', 'w').write('y')\nprint(open('/tmp/x').read())", "y\n", "", 0},
        {"print(gcd(6, 4), __name__)", "2 __main__\n", "", 0},
        {"print(open('/proc/self/oom_score_adj').read(), end='')", "1000\n", "", 0},
        {"raise ValueError('no')", "", "ValueError: no", 1},
        {"x = (", "", "SyntaxError", 1},
        {"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "", "", 128 + SIGSEGV},
        {"print('caf\\u00e9 \\0 \\U0001f600')", "caf\xc3\xa9 \0 \xf0\x9f\x98\x80\n", "", 0},
    };
    sandbox *s = open_sandbox();
    for (size_t i = 0; s && i < sizeof cases / sizeof *cases; i++) {
        sandbox_result r = run(s, cases[i].program, 60);
        CU_ASSERT(r.end == SANDBOX_EXITED && r.status == cases[i].status && !r.output_cut);
        CU_ASSERT_STRING_EQUAL(buf_str(&r.output), cases[i].output);
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&r.errors), cases[i].errors));
        sandbox_result_release(&r);
    }
    sandbox_close(s);
}

/* ---- hostile programs ---- */

/* A hostile program prints what it could do. Some print "survived" at the end, to show that they
 * are still running. */
typedef struct {
    const char *name, *program;
    double seconds;
    sandbox_end end;
    const char *output; /* expected start of the output; "": no output; NULL: any output */
} hostile;

static const hostile programs[] = {
    {"fork bomb",
     "import os\nn = 0\nfor i in range(1000):\n"
     "    try: n += os.fork() == 0\n    except OSError: pass\nprint('forks', n)",
     60, SANDBOX_EXITED, "forks 0\n"},
    {"fork bomb by a shell",
     "import subprocess\ntry: subprocess.run('yes | yes', shell=True)\n"
     "except OSError as e: print('refused')",
     60, SANDBOX_EXITED, "refused\n"},
    {"thread bomb",
     "import threading, time\nthreading.stack_size(1 << 16)\nn = 0\ntry:\n    while n < 5000:\n"
     "        threading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n        n += 1\n"
     "except RuntimeError: pass\nprint('few' if n < 64 else n)",
     60, SANDBOX_EXITED, "few\n"},
    {"memory bomb",
     "x = []\ntry:\n    while True: x.append(bytearray(1 << 22))\n"
     "except MemoryError:\n    n = len(x)\n    x = 0\n    print('bounded' if n < 64 else n)",
     60, SANDBOX_EXITED, "bounded\n"},
    {"memory bomb in memory files",
     "import os\ntry: os.memfd_create('x')\nexcept OSError: print('refused')", 60, SANDBOX_EXITED,
     "refused\n"},
    {"infinite loop", "while True: pass", 1, SANDBOX_TIMEOUT, ""},
    {"sleeper", "import time\ntime.sleep(10000)", 1, SANDBOX_TIMEOUT, ""},
    {"deaf to signals",
     "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n"
     "    except (OSError, ValueError): pass\nwhile True: pass",
     1, SANDBOX_TIMEOUT, ""},
    {"infinite output", "while True: print('x' * 1000)", 4, SANDBOX_TIMEOUT, "xxx"},
    {"infinite errors", "import sys\nwhile True: sys.stderr.write('x' * 1000)", 1, SANDBOX_TIMEOUT,
     ""},
    {"closed output", "import os, time\nos.close(1)\nos.close(2)\ntime.sleep(10000)", 1,
     SANDBOX_TIMEOUT, ""},
    {"disk filling",
     "n = 0\ntry:\n    for i in range(1000):\n        with open(f'/tmp/{i}', 'wb') as f:\n"
     "            for k in range(64): n += f.write(bytes(1 << 20))\nexcept OSError: pass\n"
     "print('bounded' if n <= 64 << 20 else n)",
     60, SANDBOX_EXITED, "bounded\n"},
    {"extended attributes",
     "import os\nopen('x', 'w')\nseen = set()\n"
     "for f in ('x', os.open('x', os.O_RDWR)):\n    for name in ('user.a', 'trusted.a', "
     "'security.a'):\n"
     "        try: os.setxattr(f, name, bytes(4096))\n        except OSError as e: "
     "seen.add(e.errno)\n"
     "        else: seen.add(0)\n"
     "try: os.setxattr('x', 'user.b', b'', follow_symlinks=False)\n"
     "except OSError as e: seen.add(e.errno)\nprint(seen)",
     60, SANDBOX_EXITED, "{1}\n"},
    {"inode flood",
     "import os\nn = 0\ntry:\n    while n < 50000:\n        os.symlink('x' * 100, f'/tmp/{n}')\n"
     "        n += 1\nexcept OSError: pass\nprint('bounded' if n <= 4096 else n)",
     60, SANDBOX_EXITED, "bounded\n"},
    {"inode flood by hard links",
     "import os\nn = 0\nopen('/tmp/x', 'w')\ntry:\n    while n < 50000:\n"
     "        os.link('/tmp/x', f'/tmp/{n}')\n        n += 1\nexcept OSError: pass\n"
     "print('bounded' if n <= 4096 else n)",
     60, SANDBOX_EXITED, "bounded\n"},
    {"writing to /proc",
     "import os\nn = []\nfor p in ('oom_score_adj', 'oom_adj', 'comm', 'coredump_filter', "
     "'clear_refs', "
     "'timerslack_ns', 'mem', 'setgroups', 'uid_map', 'task/%d/comm' % os.getpid()):\n"
     "    try:\n        open('/proc/self/' + p, 'w').close()\n        n.append(p)\n"
     "    except OSError: pass\nprint(n)",
     60, SANDBOX_EXITED, "[]\n"},
    {"writing elsewhere",
     "import os\nn = 0\nfor d in ('/', '/box', '/dev', '/dev/shm', '/usr/lib', '/proc', '/etc', "
     "'/home', '/root', '/var/tmp', '/run', '/sys'):\n"
     "    try:\n        open(d + '/x', 'w')\n        n += 1\n    except OSError: pass\nprint(n)",
     60, SANDBOX_EXITED, "0\n"},
    {"reading the machine",
     "import os\nfound = []\nfor top, dirs, files in os.walk('/'):\n"
     "    if top.startswith(('/usr/lib', '/usr/bin', '/proc', '/dev')): dirs[:] = []; continue\n"
     "    found += [f for f in files if not top.startswith(('/box', '/etc/alternatives'))]\n"
     "print(sorted(found))",
     60, SANDBOX_EXITED, NULL},
    {"reading the answers",
     "import os\nfor p in ('@DIR@/answers', '/proc/1/root@DIR@/answers', "
     "'/proc/1/cwd/../@DIR@/answers', '/proc/self/root/@DIR@/answers'):\n"
     "    try: print(open(p).read())\n    except OSError: pass\nprint('survived')",
     60, SANDBOX_EXITED, "survived\n"},
    {"reading the environment",
     "import os, glob\nall = repr(dict(os.environ))\nfor p in glob.glob('/proc/*/environ'):\n"
     "    try: all += open(p, 'rb').read().decode('latin-1')\n    except OSError: pass\n"
     "print('leak' if 'hidden-from-programs' in all else 'nothing')",
     60, SANDBOX_EXITED, "nothing\n"},
    {"reading the parent's /proc",
     "import os\nseen = []\nfor p in range(1, 70000):\n"
     "    if p != os.getpid() and os.path.exists(f'/proc/{p}'): seen.append(p)\n"
     "print(len(seen) <= 1)\ntry: print(os.listdir('/proc/1/fd'))\nexcept OSError: "
     "print('closed')\n"
     "try: print(open('/proc/1/mem', 'rb'))\nexcept OSError: print('closed')",
     60, SANDBOX_EXITED, NULL},
    {"open descriptors",
     "import os\nopen_ = []\nfor fd in range(64):\n    try: os.fstat(fd); open_.append(fd)\n"
     "    except OSError: pass\nprint(open_)",
     60, SANDBOX_EXITED, "[0, 1, 2]\n"},
    {"network",
     "import socket\nn = 0\nfor f in range(1, 46):\n    if f == socket.AF_UNIX: continue\n"
     "    for kind in (1, 2, 3):\n"
     "        try:\n            socket.socket(f, kind)\n            n += 1\n"
     "        except OSError: pass\nprint(n)",
     60, SANDBOX_EXITED, "0\n"},
    {"sockets of the machine",
     "import socket\ns = socket.socket(socket.AF_UNIX)\n"
     "for p in ('\\0snapmla-test-@PID@', '@DIR@/socket', '/run/dbus/system_bus_socket'):\n"
     "    try:\n        s.connect(p)\n        print('connected', p)\n    except OSError: pass\n"
     "print('survived')",
     60, SANDBOX_EXITED, "survived\n"},
    {"ptrace and signals to others",
     "import ctypes, os, signal\nlibc = ctypes.CDLL(None)\n"
     "print([libc.ptrace(16, p, 0, 0) for p in (1, @PID@)])\nn = 0\n"
     "for p in (@PID@, -@PID@):\n"
     "    try:\n        os.kill(p, signal.SIGUSR1)\n        n += 1\n    except OSError: pass\n"
     "os.kill(1, signal.SIGKILL)\nprint(n)",
     60, SANDBOX_EXITED, "[-1, -1]\n0\n"},
    {"setuid",
     "import os\nn = 0\nfor f in (os.setuid, os.setgid, os.seteuid, os.setegid):\n"
     "    try:\n        f(0)\n        n += 1\n    except OSError: pass\nprint(n, os.getuid())",
     60, SANDBOX_EXITED, "0 65534\n"},
    {"setuid programs",
     "import os\ntry: os.execv('/usr/bin/su', ['su', '-c', 'id'])\n"
     "except OSError: print('refused')",
     60, SANDBOX_EXITED, NULL},
    {"new namespaces and mounts",
     "import ctypes\nlibc = ctypes.CDLL(None)\n"
     "print([libc.unshare(0x10000000), libc.mount(b'x', b'/tmp', b'tmpfs', 0, None), "
     "libc.chroot(b'/tmp'), libc.setns(0, 0), libc.umount(b'/usr/lib')])",
     60, SANDBOX_EXITED, "[-1, -1, -1, -1, -1]\n"},
    {"surviving children",
     "import os, subprocess, threading\n"
     "for start in (os.fork, os.forkpty, lambda: subprocess.Popen(['sleep', '98765']), "
     "lambda: os.posix_spawn('/usr/bin/sleep', ['sleep', '98765'], {})):\n"
     "    try:\n        start()\n        print('started')\n    except OSError: pass\n"
     "os.setsid() if os.getpid() != os.getsid(0) else None\n"
     "os.execv('/usr/bin/sleep', ['sleep', '98765'])",
     3, SANDBOX_TIMEOUT, ""},
    {"symlink tricks",
     "import os\nos.symlink('@DIR@/answers', '/tmp/a')\nos.symlink('/', '/tmp/b')\n"
     "os.symlink('/tmp/c', '/tmp/c')\n"
     "for p in ('/tmp/a', '/tmp/b@DIR@/answers', '/tmp/c'):\n"
     "    try: print(open(p).read())\n    except OSError: pass\n"
     "try: os.link('/usr/bin/python3', '/tmp/d'); print('linked')\nexcept OSError: pass\n"
     "try: os.rename('/box', '/tmp/e'); print('moved')\nexcept OSError: pass\nprint('survived')",
     60, SANDBOX_EXITED, "survived\n"},
    {"unicode and NUL output",
     "import sys\nsys.stdout.buffer.write(b'\\0\\xff\\xfe\\xed\\xa0\\x80\\x1b[2J' * 3)\n"
     "sys.stderr.buffer.write(b'\\0\\xff')",
     60, SANDBOX_EXITED, NULL},
    {"kills itself", "import os\nos.kill(0, 9)", 60, SANDBOX_EXITED, ""},
    {"deep recursion", "def f(n): return f(n + 1) + [f]\nf(0)", 60, SANDBOX_EXITED, ""},
    {"overwrites the driver's memory", "import ctypes\nctypes.memset(0, 1, 1)", 60, SANDBOX_EXITED,
     ""},
};

static char folder[] = "/tmp/snapmla-sandbox-XXXXXX";

/* Replaces @DIR@ by a folder with a readable file of answers, and @PID@ by the id of this
 * process. */
static char *fill_in(const char *program) {
    buf text = {0};
    for (const char *at = program; *at;) {
        if (strncmp(at, "@DIR@", 5) == 0)
            (void)buf_puts(&text, folder);
        else if (strncmp(at, "@PID@", 5) == 0)
            (void)buf_printf(&text, "%d", (int)getpid());
        else
            (void)buf_append(&text, at, 1);
        at +=
            at[0] == '@' && (strncmp(at, "@DIR@", 5) == 0 || strncmp(at, "@PID@", 5) == 0) ? 5 : 1;
    }
    return buf_steal(&text);
}

static volatile sig_atomic_t signalled;

static void on_signal(int number) {
    (void)number;
    signalled = 1;
}

enum { PROGRAMS = sizeof programs / sizeof *programs };

typedef struct {
    sandbox *s;
    sandbox_result results[PROGRAMS];
    snap_status status[PROGRAMS];
} hostile_run;

/* Runs one of the programs. Several run at once, so their checks also show that they do not affect
 * each other. */
static void run_hostile(void *ctx, int worker, int64_t i) {
    hostile_run *h = ctx;
    box_job b = {0};
    char *program = fill_in(programs[i].program);
    sandbox_job job = job_of(&b, program ? program : "", programs[i].seconds);
    (void)worker;
    h->status[i] = sandbox_run(h->s, &job, &h->results[i], NULL);
    free(program);
    job_release(&b);
}

static void check_hostile(const sandbox *s, const hostile *h, const sandbox_result *r) {
    const char *out = buf_str(&r->output);
    if (strncmp(h->name, "inode flood", 11) == 0 && !sandbox_limits_files(s)) {
        printf("\n%s: not checked, /tmp has no limit on files here\n", h->name);
        return;
    }
    bool ok = r->end == h->end && (!h->output || strncmp(out, h->output, strlen(h->output)) == 0) &&
              (!h->output || h->output[0] || !r->output.len) && r->output.len <= kOutput &&
              !strstr(out, "the answer is 42");
    if (!ok)
        printf("\n%s: end %d status %d, output '%.200s', errors '%.600s'\n", h->name, (int)r->end,
               r->status, out, buf_str(&r->errors));
    CU_ASSERT(ok);
}

static void run_all_hostile(sandbox *s) {
    hostile_run *h = calloc(1, sizeof *h);
    parallel *pool;
    CU_ASSERT_PTR_NOT_NULL_FATAL(h);
    CU_ASSERT_EQUAL_FATAL(parallel_create(&pool, 6, NULL), SNAP_OK);
    h->s = s;
    parallel_for(pool, PROGRAMS, run_hostile, h);
    parallel_free(pool);
    for (size_t i = 0; i < PROGRAMS; i++) {
        CU_ASSERT_EQUAL(h->status[i], SNAP_OK);
        check_hostile(s, &programs[i], &h->results[i]);
        sandbox_result_release(&h->results[i]);
    }
    free(h);
}

/* Listens under a name that the program "sockets of the machine" tries: an abstract one, or that of
 * a file. Outside the sandbox, a client can connect. */
static int listen_at(const char *name, bool abstract) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = snprintf(address.sun_path + abstract, sizeof address.sun_path - 1, "%s", name);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    const struct sockaddr *at = (const struct sockaddr *)&address;
    CU_ASSERT(fd >= 0 && bind(fd, at, size) == 0 && listen(fd, 8) == 0);
    CU_ASSERT(client >= 0 && connect(client, at, size) == 0);
    (void)close(client);
    return fd;
}

static void test_hostile(void) {
    static const char answers[] = "the answer is 42\n";
    sandbox *s = open_sandbox();
    char path[64], name[64];
    if (!s)
        return;
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    CU_ASSERT_EQUAL(chmod(folder, 0755), 0);
    (void)snprintf(name, sizeof name, "snapmla-test-%d", (int)getpid());
    int hidden = listen_at(name, true);
    (void)snprintf(name, sizeof name, "%s/socket", folder);
    int file = listen_at(name, false);
    CU_ASSERT_EQUAL(chmod(name, 0777), 0);
    (void)snprintf(path, sizeof path, "%s/answers", folder);
    CU_ASSERT_EQUAL(fs_write_atomic(path, answers, sizeof answers - 1, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(chmod(path, 0644), 0);
    (void)setenv("SNAPMLA_API_KEY", "hidden-from-programs", 1);
    (void)signal(SIGUSR1, on_signal);
    run_all_hostile(s);
    (void)signal(SIGUSR1, SIG_DFL);
    CU_ASSERT_FALSE(signalled);
    (void)close(hidden);
    (void)close(file);
    CU_ASSERT_EQUAL(unlink(name), 0);
    (void)unsetenv("SNAPMLA_API_KEY");
    CU_ASSERT_EQUAL(processes_left("98765"), 0);
    CU_ASSERT_EQUAL(processes_left("/box/driver.py"), 0);
    CU_ASSERT_EQUAL(unlink(path), 0);
    CU_ASSERT_EQUAL(rmdir(folder), 0); /* the folder is empty: no program created a file there */
    sandbox_close(s);
}

/* ---- several programs at once ---- */

typedef struct {
    sandbox *s;
    bool bad;
    int status;
    char output[8];
} runner;

static void *run_one(void *ctx) {
    runner *r = ctx;
    static const char bad[] = "import os\nx = []\nwhile True:\n    try: os.fork()\n"
                              "    except OSError: x.append(bytearray(1 << 20))";
    box_job b = {0};
    sandbox_job job = job_of(&b, r->bad ? bad : "print(int(input()) + int(input()))", 30);
    sandbox_result res;
    r->status = sandbox_run(r->s, &job, &res, NULL) == SNAP_OK ? res.status : -1;
    (void)snprintf(r->output, sizeof r->output, "%s", buf_str(&res.output));
    sandbox_result_release(&res);
    job_release(&b);
    return NULL;
}

/* Programs that are fork bombs and memory bombs do not disturb the programs beside them. */
static void test_neighbours(void) {
    enum { N = 6 };
    sandbox *s = open_sandbox();
    runner runners[N];
    pthread_t threads[N];
    for (int i = 0; s && i < N; i++) {
        runners[i] = (runner){.s = s, .bad = i % 2 == 0};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, run_one, &runners[i]), 0);
    }
    for (int i = 0; s && i < N; i++) {
        CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
        CU_ASSERT_STRING_EQUAL(runners[i].output, i % 2 == 0 ? "" : "7\n");
        CU_ASSERT_EQUAL(runners[i].status == 0, i % 2 == 1);
    }
    sandbox_close(s);
}

/* ---- stopping ---- */

static bool stop_at_first(void *ctx, buf *channel) {
    (void)ctx, (void)channel;
    return false;
}

static void test_stopping(void) {
    static const volatile sig_atomic_t cancelled = 1;
    sandbox *s = open_sandbox();
    box_job b = {0};
    sandbox_result r;
    if (!s)
        return;
    sandbox_job job = job_of(&b, "while True: pass", 60);
    job.cancel = &cancelled;
    CU_ASSERT_EQUAL(sandbox_run(s, &job, &r, NULL), SNAP_E_CANCELLED);
    sandbox_result_release(&r);
    job.cancel = NULL;
    job.watch = stop_at_first;
    int64_t began = clock_now_ns();
    CU_ASSERT_EQUAL(sandbox_run(s, &job, &r, NULL), SNAP_OK);
    CU_ASSERT(r.end == SANDBOX_STOPPED && clock_now_ns() - began < 50000000000);
    sandbox_result_release(&r);
    CU_ASSERT_EQUAL(processes_left("/box/driver.py"), 0);
    job_release(&b);
    sandbox_close(s);
}

/* ---- a machine that cannot isolate programs ---- */

/* Two false bubblewraps. The first cannot create namespaces: it prints that and exits with 1. The
 * second creates none and runs the program anyway. */
static void test_refusals(void) {
    char dir[] = "/tmp/snapmla-bwrap-XXXXXX", path[64];
    static const char no_spaces[] =
        "#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n";
    static const char no_walls[] = "#!/bin/sh\nexec /usr/bin/python3 - <&5\n";
    static const struct {
        const char *script, *message;
    } cases[] = {{no_spaces, "No permissions to create a new namespace"}, {no_walls, "isolated"}};
    sandbox *s;
    snap_err err = {0};
    CU_ASSERT_EQUAL(sandbox_open(&s, &(sandbox_options){.bwrap = "/nowhere/bwrap"}, &err),
                    SNAP_E_ENV);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "apt-get install bubblewrap"));
    CU_ASSERT_EQUAL(err_exit_code(err.code), 6);
    s = open_sandbox();
    if (!s)
        return;
    sandbox_close(s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/bwrap", dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err = (snap_err){0};
        CU_ASSERT_EQUAL(fs_write_atomic(path, cases[i].script, strlen(cases[i].script), NULL),
                        SNAP_OK);
        CU_ASSERT(chmod(dir, 0755) == 0 && chmod(path, 0755) == 0);
        CU_ASSERT_EQUAL(sandbox_open(&s, &(sandbox_options){.bwrap = path}, &err), SNAP_E_ENV);
        CU_ASSERT_PTR_NULL(s);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "user.max_user_namespaces"));
    }
    CU_ASSERT(unlink(path) == 0 && rmdir(dir) == 0);
}

CU_TestInfo tests_sandbox[] = {
    {"well-behaved programs", test_runs},
    {"hostile programs reach nothing outside", test_hostile},
    {"fork bombs and memory bombs do not disturb other programs", test_neighbours},
    {"a running program can be stopped", test_stopping},
    {"a bubblewrap without namespaces is refused", test_refusals},
    CU_TEST_INFO_NULL,
};
