/* python_arm.c - the object behind python:FILE: embeds the user's Python in the program, and makes
 * a plugin with one function (kernels/plugin/attention.h) of a Python file.
 *
 * It is built with `make python-arm` and is no part of the program. Building it needs no Python
 * headers, and it works with Python 3.8 and newer. At the first arm it runs `python3` (or
 * $SNAPMLA_PYTHON), which prints where its shared library and its packages are, and loads that
 * library with dlopen(). It calls functions of Python's stable ABI only.
 *
 * All calls go to one Python function, dispatch() of host.py, with an operation and the address of
 * a python_args. Only the thread that makes the first arm may make calls. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels/plugin/attention.h"

extern char **environ;

/* The text of host.py. */
extern const char snapmla_host_text[];
__asm__(".pushsection .rodata\n"
        ".global snapmla_host_text\n.hidden snapmla_host_text\n"
        "snapmla_host_text:\n.incbin \"adapters/host.py\"\n.byte 0\n"
        ".popsection\n");

enum {
    kTextLimit = 1 << 16, /* bytes that the interpreter may print about itself */
    kAskSeconds = 30,     /* seconds that each wait for its output may take */
    kLimitSeconds = 60,   /* time limit of a call, if the adapter states none */
    kGraceSeconds = 10,   /* further time in which the exception may end a call */
    kLibraries = 16,      /* most candidates for the shared library */
};

/* ---- the functions of Python --------------------------------------------------------------- */

typedef struct python_object python_object;

static struct {
    const char *(*GetVersion)(void);
    void (*InitializeEx)(int signals);
    void *(*SaveThread)(void);
    int (*Ensure)(void);
    void (*Release)(int state);
    python_object *(*AddModule)(const char *name);
    python_object *(*GetDict)(python_object *module);
    python_object *(*CompileString)(const char *text, const char *file, int start);
    python_object *(*EvalCode)(python_object *code, python_object *globals, python_object *locals);
    python_object *(*GetItemString)(python_object *dict, const char *key);
    python_object *(*CallFunction)(python_object *function, const char *format, ...);
    long (*AsLong)(python_object *o);
    python_object *(*Occurred)(void);
    void (*Print)(void);
    int (*SetAsyncExc)(unsigned long thread, python_object *type);
    void (*DecRef)(python_object *o);
    python_object **TimeoutError;
} py;

static const struct {
    const char *name;
    void *place;
} kSymbols[] = {
    {"Py_GetVersion", &py.GetVersion},
    {"Py_InitializeEx", &py.InitializeEx},
    {"PyEval_SaveThread", &py.SaveThread},
    {"PyGILState_Ensure", &py.Ensure},
    {"PyGILState_Release", &py.Release},
    {"PyImport_AddModule", &py.AddModule},
    {"PyModule_GetDict", &py.GetDict},
    {"Py_CompileString", &py.CompileString},
    {"PyEval_EvalCode", &py.EvalCode},
    {"PyDict_GetItemString", &py.GetItemString},
    {"PyObject_CallFunction", &py.CallFunction},
    {"PyLong_AsLong", &py.AsLong},
    {"PyErr_Occurred", &py.Occurred},
    {"PyErr_Print", &py.Print},
    {"PyThreadState_SetAsyncExc", &py.SetAsyncExc},
    {"Py_DecRef", &py.DecRef},
    {"PyExc_TimeoutError", &py.TimeoutError},
};

enum { kFileInput = 257 }; /* Py_file_input */

/* ---- one call ------------------------------------------------------------------------------ */

/* What a call passes to host.py, which mirrors this struct with ctypes. */
typedef struct {
    const char *path, *isa; /* OP_LIMIT, which reads no isa, and OP_MAKE */
    const char *paths;      /* OP_START: what the interpreter printed, JSON */
    /* Results of OP_MAKE, up to `self`. The texts live until OP_DROP. */
    const char *name, *kernel, *device, *format;
    double limit_s; /* also: the time limit of the call; result of OP_LIMIT */
    int64_t without_lse;
    int64_t self, state; /* numbers that host.py chooses */
    const mla_capacity *cap;
    const snapmla_format *fmt;
    const snapmla_step *step;
    const snapmla_queries *q;
    const snapmla_packed *cache;
    void *out;
    float *lse;
    void *stream;
    char *text; /* receives the message of a failure */
    int64_t text_bytes;
    int64_t sizes[6]; /* sizes of this struct and of those that it points to; host.py compares them
                         with its own */
} python_args;

enum { OP_START, OP_LIMIT, OP_MAKE, OP_PLAN, OP_FREE, OP_SCHEDULE, OP_ATTEND, OP_DROP };

static python_object *dispatch;
static bool is_started, is_inside; /* is_inside stays true after a call that did not return */

/* ---- time limit ---- */

/* A thread that raises TimeoutError in the Python code of a call that exceeds its time limit. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_running, armed, fired;
    bool sleeps; /* the thread sleeps, until a time that is not later than `ends` */
    struct timespec ends;
    unsigned long caller; /* the thread that makes all calls */
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Waits until the Python code of the call gives up the interpreter, which it does every few
 * milliseconds, and raises the exception in it if the call still runs. */
static void raise_timeout(void) {
    int state = py.Ensure();
    (void)pthread_mutex_lock(&watch.lock);
    if (watch.armed && watch.fired)
        (void)py.SetAsyncExc(watch.caller, *py.TimeoutError);
    (void)pthread_mutex_unlock(&watch.lock);
    py.Release(state);
}

static void *watch_calls(void *arg) {
    (void)pthread_mutex_lock(&watch.lock);
    for (;;) {
        watch.sleeps = watch.armed && !watch.fired;
        struct timespec until = watch.ends;
        int rc = watch.sleeps ? pthread_cond_timedwait(&watch.changed, &watch.lock, &until)
                              : pthread_cond_wait(&watch.changed, &watch.lock);
        struct timespec now;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        bool over = now.tv_sec > watch.ends.tv_sec ||
                    (now.tv_sec == watch.ends.tv_sec && now.tv_nsec >= watch.ends.tv_nsec);
        if (rc == ETIMEDOUT && watch.armed && !watch.fired && over) {
            watch.fired = true;
            (void)pthread_mutex_unlock(&watch.lock);
            raise_timeout();
            (void)pthread_mutex_lock(&watch.lock);
        }
    }
    return arg;
}

static bool start_watch(void) {
    pthread_condattr_t monotonic;
    pthread_t thread;
    watch.caller = (unsigned long)pthread_self();
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (pthread_cond_init(&watch.changed, &monotonic) != 0 ||
        pthread_create(&thread, NULL, watch_calls, NULL) != 0)
        return false;
    (void)pthread_detach(thread);
    return watch.is_running = true;
}

/* Sets the time at which the thread must wake up. If it already sleeps until an earlier time, it
 * finds the later one when it wakes up, so most calls need not signal it. */
static void arm_watch(double seconds) {
    struct timespec ends;
    if (!watch.is_running)
        return;
    (void)clock_gettime(CLOCK_MONOTONIC, &ends);
    ends.tv_sec += (time_t)seconds;
    ends.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (ends.tv_nsec >= 1000000000) {
        ends.tv_sec++;
        ends.tv_nsec -= 1000000000;
    }
    (void)pthread_mutex_lock(&watch.lock);
    bool early =
        watch.sleeps && (watch.ends.tv_sec < ends.tv_sec ||
                         (watch.ends.tv_sec == ends.tv_sec && watch.ends.tv_nsec <= ends.tv_nsec));
    watch.armed = true;
    watch.fired = false;
    watch.ends = ends;
    if (!early)
        (void)pthread_cond_signal(&watch.changed);
    (void)pthread_mutex_unlock(&watch.lock);
}

static void disarm_watch(void) {
    (void)pthread_mutex_lock(&watch.lock);
    watch.armed = false;
    (void)pthread_mutex_unlock(&watch.lock);
}

/* ---- calling the functions of the adapter ---- */

static snap_status call(int op, python_args *a, double limit_s, snap_err *err) {
    char text[480] = "";
    if (is_inside)
        return plugin_fail(err, SNAP_E_DEVICE,
                           "Python cannot be called any more: an earlier call did not return");
    a->text = text;
    a->text_bytes = sizeof text;
    a->limit_s = limit_s;
    is_inside = true;
    int state = py.Ensure();
    arm_watch(limit_s);
    python_object *result = py.CallFunction(dispatch, "iK", op, (unsigned long long)(uintptr_t)a);
    disarm_watch();
    long code = result ? py.AsLong(result) : SNAP_E_DEVICE;
    if (py.Occurred())
        py.Print(); /* also clears it */
    if (result)
        py.DecRef(result);
    py.Release(state);
    is_inside = false;
    if (code == SNAP_OK)
        return SNAP_OK;
    snap_status st = code == SNAP_E_UNSUPPORTED ? SNAP_E_UNSUPPORTED : SNAP_E_DEVICE;
    return plugin_fail(err, st, "%s", text[0] ? text : "Python failed; see standard error");
}

/* ---- starting Python ----------------------------------------------------------------------- */

static const char kAsk[] =
    "import json, os, sys, sysconfig as s\n"
    "v = s.get_config_var\n"
    "names = [n for n in (v('INSTSONAME'), v('LDLIBRARY'), v('PY3LIBRARY')) if n and '.so' in n]\n"
    "names.append('libpython%d.%d.so.1.0' % sys.version_info[:2])\n"
    "dirs = [v('LIBDIR'), v('LIBPL'), os.path.join(sys.base_prefix, 'lib')]\n"
    "found = [os.path.join(d, n) for d in dirs if d for n in names]\n"
    "found = [f for f in found if os.path.exists(f)]\n"
    "for f in dict.fromkeys(found + names): print('L' + f)\n"
    "print('V%d.%d' % sys.version_info[:2])\n"
    "print('H' + sys.base_prefix)\n"
    "print('J' + json.dumps({'path': [p for p in sys.path if p], 'prefix': sys.prefix,\n"
    "      'exec_prefix': sys.exec_prefix, 'executable': sys.executable}))\n";

/* The lines that the interpreter printed (kAsk), without the letter with which each begins. */
typedef struct {
    char text[kTextLimit];
    const char *library[kLibraries + 1], *version, *home, *json;
} answer;

static const char *interpreter(void) {
    const char *own = getenv("SNAPMLA_PYTHON");
    return own && *own ? own : "python3";
}

/* Reads until the end of the output into @text[@most], which it ends with a NUL byte. Returns false
 * if nothing arrived for kAskSeconds, or if there is no space for more. */
static bool read_all(int fd, char *text, size_t most) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t n = 0;
    ssize_t got = -1;
    while (n + 1 < most && got != 0 && poll(&p, 1, kAskSeconds * 1000) > 0) {
        got = read(fd, text + n, most - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    text[n] = '\0';
    return got == 0;
}

static snap_status ask(answer *a, snap_err *err) {
    char name[4096], code[sizeof kAsk];
    char dash[] = "-c";
    int ends[2], status = -1;
    pid_t child = 0;
    if (strlen(interpreter()) >= sizeof name || pipe2(ends, O_CLOEXEC) != 0)
        return plugin_fail(err, SNAP_E_UNSUPPORTED, "cannot start '%.200s'", interpreter());
    (void)snprintf(name, sizeof name, "%s", interpreter());
    memcpy(code, kAsk, sizeof kAsk);
    char *args[] = {name, dash, code, NULL};
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int failed = posix_spawnp(&child, name, &actions, NULL, args, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    bool done = !failed && read_all(ends[0], a->text, sizeof a->text);
    (void)close(ends[0]);
    if (!failed && !done)
        (void)kill(child, SIGKILL);
    if (!failed)
        (void)waitpid(child, &status, 0);
    if (!failed && !done)
        return plugin_fail(err, SNAP_E_UNSUPPORTED,
                           "'%.200s' is not a Python interpreter: its answer did not end within %d "
                           "seconds and %d bytes",
                           interpreter(), kAskSeconds, kTextLimit);
    if (failed || status != 0)
        return plugin_fail(err, SNAP_E_UNSUPPORTED,
                           "cannot run '%.200s'%s%s: install Python 3.8 or newer, or set "
                           "SNAPMLA_PYTHON to its interpreter",
                           interpreter(), failed ? ": " : "", failed ? strerror(failed) : "");
    return SNAP_OK;
}

static snap_status read_answer(answer *a, snap_err *err) {
    int n = 0;
    char *rest = NULL;
    for (char *line = strtok_r(a->text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == 'L' && n < kLibraries)
            a->library[n++] = line + 1;
        else if (line[0] == 'V')
            a->version = line + 1;
        else if (line[0] == 'H')
            a->home = line + 1;
        else if (line[0] == 'J')
            a->json = line + 1;
    }
    return n && a->version && a->home && a->json
               ? SNAP_OK
               : plugin_fail(err, SNAP_E_UNSUPPORTED, "'%.200s' is not a Python interpreter",
                             interpreter());
}

/* Extension modules expect the symbols of Python in the whole process, hence RTLD_GLOBAL. */
static snap_status load_library(const answer *a, snap_err *err) {
    void *object = NULL;
    for (int i = 0; a->library[i] && !object; i++)
        object = dlopen(a->library[i], RTLD_NOW | RTLD_GLOBAL);
    if (!object)
        return plugin_fail(err, SNAP_E_UNSUPPORTED,
                           "Python %s of '%.200s' has no shared library: install libpython%s, or "
                           "set SNAPMLA_PYTHON to an interpreter that has one",
                           a->version, interpreter(), a->version);
    for (size_t i = 0; i < sizeof kSymbols / sizeof *kSymbols; i++) {
        void *at = dlsym(object, kSymbols[i].name);
        if (!at)
            return plugin_fail(err, SNAP_E_UNSUPPORTED,
                               "the library of Python %s has no %s: Python 3.8 or newer is needed",
                               a->version, kSymbols[i].name);
        memcpy(kSymbols[i].place, &at, sizeof at);
    }
    size_t n = strlen(a->version);
    const char *found = py.GetVersion();
    if (strncmp(found, a->version, n) != 0 || found[n] != '.')
        return plugin_fail(err, SNAP_E_UNSUPPORTED,
                           "'%.200s' is Python %s, but its library is Python %.40s", interpreter(),
                           a->version, found);
    return SNAP_OK;
}

/* Runs host.py in a module of its own. */
static snap_status run_host(snap_err *err) {
    python_object *globals = py.GetDict(py.AddModule("snapmla_host"));
    python_object *code = py.CompileString(snapmla_host_text, "host.py", kFileInput);
    python_object *result = code ? py.EvalCode(code, globals, globals) : NULL;
    dispatch = result ? py.GetItemString(globals, "dispatch") : NULL;
    if (!dispatch && py.Occurred())
        py.Print();
    return dispatch ? SNAP_OK
                    : plugin_fail(err, SNAP_E_UNSUPPORTED,
                                  "this Python cannot run host.py; see standard error");
}

static snap_status start(snap_err *err) {
    static answer a; /* static because it is large; a failed start may be repeated */
    snap_status st = ask(&a, err);
    if (st == SNAP_OK)
        st = read_answer(&a, err);
    if (st == SNAP_OK)
        st = load_library(&a, err);
    if (st != SNAP_OK)
        return st;
    const char *home = getenv("PYTHONHOME");
    char *before = home ? strdup(home) : NULL;
    (void)setenv("PYTHONHOME", a.home, 1);
    py.InitializeEx(0);
    (void)(before ? setenv("PYTHONHOME", before, 1) : unsetenv("PYTHONHOME"));
    free(before);
    st = run_host(err);
    (void)py.SaveThread();
    if (st != SNAP_OK)
        return st;
    if (!start_watch())
        return plugin_fail(err, SNAP_E_UNSUPPORTED, "cannot start a thread for time limits");
    is_started = true;
    python_args args = {.paths = a.json,
                        .sizes = {sizeof(python_args), sizeof(mla_capacity), sizeof(snapmla_format),
                                  sizeof(snapmla_step), sizeof(snapmla_queries),
                                  sizeof(snapmla_packed)}};
    return call(OP_START, &args, kLimitSeconds, err);
}

/* ---- the plugin of one file ---------------------------------------------------------------- */

typedef struct {
    snapmla_attention table;
    int64_t number;
    double limit_s;
} arm;

/* The state of a plan. */
typedef struct {
    arm *of;
    int64_t number;
} plan_state;

static snap_status plan(void *self, void **state, const mla_capacity *cap,
                        const snapmla_format *format, snap_err *err) {
    arm *of = self;
    plan_state *s = calloc(1, sizeof *s);
    if (!s)
        return plugin_fail(err, SNAP_E_NOMEM, "out of memory for a plan");
    python_args a = {.self = of->number, .cap = cap, .fmt = format};
    snap_status st = call(OP_PLAN, &a, of->limit_s, err);
    *s = (plan_state){of, a.state};
    if (st == SNAP_OK)
        *state = s;
    else
        free(s);
    return st;
}

static void plan_free(void *state) {
    const plan_state *s = state;
    if (!s)
        return;
    python_args a = {.self = s->of->number, .state = s->number};
    snap_err ignored = {0};
    (void)call(OP_FREE, &a, s->of->limit_s, &ignored);
    free(state);
}

static snap_status schedule(void *state, const snapmla_step *step, const snapmla_queries *q,
                            const snapmla_packed *cache, void *stream, snap_err *err) {
    const plan_state *s = state;
    python_args a = {.self = s->of->number,
                     .state = s->number,
                     .step = step,
                     .q = q,
                     .cache = cache,
                     .stream = stream};
    return call(OP_SCHEDULE, &a, s->of->limit_s, err);
}

static snap_status attend(void *state, const snapmla_step *step, const snapmla_queries *q,
                          const snapmla_packed *cache, void *out, float *lse, void *stream,
                          snap_err *err) {
    const plan_state *s = state;
    python_args a = {.self = s->of->number,
                     .state = s->number,
                     .step = step,
                     .q = q,
                     .cache = cache,
                     .out = out,
                     .lse = lse,
                     .stream = stream};
    return call(OP_ATTEND, &a, s->of->limit_s, err);
}

static void drop(void *self) {
    arm *of = self;
    python_args a = {.self = of->number};
    snap_err ignored = {0};
    (void)call(OP_DROP, &a, of->limit_s, &ignored);
    free(of);
}

static snap_status make(const snapmla_attention **out, const char *path, const char *isa,
                        snap_err *err) {
    snap_status st = is_started ? SNAP_OK : start(err);
    if (st != SNAP_OK)
        return st;
    arm *of = calloc(1, sizeof *of);
    if (!of)
        return plugin_fail(err, SNAP_E_NOMEM, "out of memory for an arm");
    python_args a = {.path = path, .isa = isa};
    st = call(OP_LIMIT, &a, kLimitSeconds, err);
    if (st == SNAP_OK)
        st = call(OP_MAKE, &a, a.limit_s > 0 ? a.limit_s : kLimitSeconds, err);
    if (st != SNAP_OK) {
        free(of);
        return st;
    }
    of->number = a.self;
    of->limit_s = a.limit_s > 0 ? a.limit_s : kLimitSeconds;
    of->table = (snapmla_attention){SNAPMLA_ATTENTION,
                                    .name = a.name,
                                    .kernel = a.kernel,
                                    .device = a.device,
                                    .limit_s = of->limit_s + kGraceSeconds,
                                    .plan_free = plan_free,
                                    .format = a.format,
                                    .without_lse = a.without_lse != 0,
                                    .self = of,
                                    .plan_packed = plan,
                                    .schedule_packed = schedule,
                                    .attend_packed = attend};
    *out = &of->table;
    return SNAP_OK;
}

const snapmla_attention snapmla_attention_v1 = {SNAPMLA_ATTENTION, .name = "python",
                                                .device = "host", .make = make, .drop = drop};
