#include "harness/test/browser.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/text.h"

enum { kAnswerSeconds = 120, kLeaveMs = 5000, kMessageLimit = 64 << 20 };

struct browser {
    pid_t pid;
    int to, from; /* -1 = none */
    char profile[64];
    buf in; /* bytes received but not yet read */
    int id;
    char *session; /* session of the page; NULL = of the browser */
    js *events;
};

/* ---- the process ---- */

static const char *installed(void) {
    static const char *const paths[] = {"/usr/bin/chromium", "/usr/bin/chromium-browser",
                                        "/usr/bin/google-chrome"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (access(paths[i], X_OK) == 0)
            return paths[i];
    return NULL;
}

/* The child process: the protocol is on descriptors 3 and 4, and nothing is written to the
 * terminal. */
static void become(const char *path, const char *profile, int in, int out) {
    char folder[100];
    int quiet = open("/dev/null", O_RDWR);
    (void)snprintf(folder, sizeof folder, "--user-data-dir=%s", profile);
    in = fcntl(in, F_DUPFD, 10); /* the descriptors 3 and 4 are then free */
    out = fcntl(out, F_DUPFD, 10);
    for (int fd = 0; fd < 3; fd++)
        (void)dup2(quiet, fd);
    (void)dup2(in, 3);
    (void)dup2(out, 4);
    (void)execl(path, path, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars",
                "--remote-debugging-pipe", folder, "about:blank", (char *)NULL);
    _exit(127);
}

static bool start(browser *b, const char *path) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return false;
    b->pid = fork();
    if (b->pid == 0)
        become(path, b->profile, in[0], out[1]);
    (void)close(in[0]);
    (void)close(out[1]);
    b->to = in[1];
    b->from = out[0];
    return b->pid > 0;
}

void browser_close(browser *b) {
    if (!b)
        return;
    char command[100];
    if (b->to >= 0)
        (void)close(b->to); /* the browser exits when its pipe is closed */
    for (int ms = 0; b->pid > 0 && waitpid(b->pid, NULL, WNOHANG) == 0; ms += 20) {
        clock_sleep_ns(20000000);
        if (ms == kLeaveMs)
            (void)kill(b->pid, SIGKILL);
    }
    if (b->from >= 0)
        (void)close(b->from);
    (void)snprintf(command, sizeof command, "rm -rf %s", b->profile);
    CU_ASSERT_EQUAL(system(command), 0);
    buf_release(&b->in);
    js_free(b->events);
    free(b->session);
    free(b);
}

/* ---- messages ---- */

static bool send_text(const browser *b, const buf *text) {
    size_t n = text->len + 1;
    const char *p = buf_str(text);
    while (n) {
        ssize_t put = write(b->to, p, n);
        if (put <= 0)
            return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

/* Waits for more bytes. Returns false after a long silence and at the end of the stream. */
static bool read_more(browser *b) {
    char chunk[1 << 16];
    struct pollfd p = {.fd = b->from, .events = POLLIN};
    if (poll(&p, 1, kAnswerSeconds * 1000) <= 0)
        return false;
    ssize_t got = read(b->from, chunk, sizeof chunk);
    return got > 0 && buf_append(&b->in, chunk, (size_t)got);
}

/* The next message, owned by the caller; NULL when there are no more. */
static js *receive(browser *b) {
    char *end = NULL;
    while (!b->in.len || !(end = memchr(b->in.data, '\0', b->in.len)))
        if (!read_more(b))
            return NULL;
    size_t n = (size_t)(end - b->in.data);
    js *message = js_parse(b->in.data, n, "the browser", NULL);
    memmove(b->in.data, end + 1, b->in.len - n - 1);
    b->in.len -= n + 1;
    return message;
}

static bool ask(browser *b, const char *method, js *params) {
    buf text = {0};
    js *message = js_new_object();
    bool ok = js_set_int(message, "id", ++b->id) && js_set_str(message, "method", method) &&
              js_set_new(message, "params", params ? params : js_new_object()) &&
              (!b->session || js_set_str(message, "sessionId", b->session)) &&
              js_write(message, JS_COMPACT, &text, NULL) == SNAP_OK && send_text(b, &text);
    js_free(message);
    buf_release(&text);
    return ok;
}

/* The answer to the last request, owned by the caller. Events that arrive before it are kept. */
static js *answer(browser *b) {
    for (;;) {
        js *message = receive(b);
        if (!message)
            return NULL;
        if (js_get_int(message, "id", 0) == b->id) {
            js *error = js_get_object(message, "error");
            js *result = error ? NULL : js_copy(js_get_object(message, "result"));
            if (error)
                (void)fprintf(stderr, "\n    %s\n", js_get_str(error, "message"));
            js_free(message);
            return result;
        }
        if (js_get_str(message, "method"))
            (void)js_push_new(b->events, message);
        else
            js_free(message);
    }
}

js *browser_call(browser *b, const char *method, js *params) {
    js *result = ask(b, method, params) ? answer(b) : NULL;
    if (!result)
        (void)fprintf(stderr, "\n    the browser does not answer %s\n", method);
    CU_ASSERT_PTR_NOT_NULL_FATAL(result);
    return result;
}

js *browser_callf(browser *b, const char *method, const char *params, ...) {
    char text[4096];
    va_list ap;
    va_start(ap, params);
    (void)vsnprintf(text, sizeof text, params, ap);
    va_end(ap);
    return browser_call(b, method, js_parse(text, strlen(text), method, NULL));
}

const js *browser_events(const browser *b) {
    return b->events;
}

/* ---- pages ---- */

/* Creates a page and the session that controls it. */
static bool attach(browser *b) {
    static const char *const domains[] = {"Page.enable", "Runtime.enable", "Log.enable",
                                          "Network.enable", "Accessibility.enable"};
    if (!ask(b, "Target.createTarget", js_parse("{\"url\":\"about:blank\"}", 21, "", NULL)))
        return false;
    js *target = answer(b), *params = js_new_object();
    bool ok = target && js_set_str(params, "targetId", js_get_str(target, "targetId")) &&
              js_set_bool(params, "flatten", true);
    js *session = ok && ask(b, "Target.attachToTarget", params) ? answer(b) : NULL;
    const char *id = js_get_str(session, "sessionId");
    b->session = id ? strdup(id) : NULL;
    js_free(target);
    js_free(session);
    for (size_t i = 0; b->session && i < sizeof domains / sizeof *domains; i++)
        js_free(browser_call(b, domains[i], NULL));
    return b->session != NULL;
}

browser *browser_open(const char **why) {
    const char *path = installed();
    *why = "Chromium is not installed";
    if (!path)
        return NULL;
    browser *b = calloc(1, sizeof *b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    b->to = b->from = -1;
    b->in.limit = kMessageLimit;
    b->events = js_new_array();
    (void)snprintf(b->profile, sizeof b->profile, "/tmp/snapmla-browser-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(b->profile));
    if (start(b, path) && attach(b))
        return b;
    browser_close(b);
    *why = "Chromium does not start";
    return NULL;
}

void browser_go(browser *b, const char *url) {
    js_free(b->events);
    b->events = js_new_array();
    js_free(browser_callf(b, "Page.navigate", "{\"url\":\"%s\"}", url));
    for (;;) {
        js *state = browser_value(b, "location.href + ' ' + document.readyState");
        bool done = text_starts(js_str(state), url) && text_ends(js_str(state), " complete");
        js_free(state);
        if (done)
            return;
        clock_sleep_ns(20000000);
    }
}

js *browser_value(browser *b, const char *expression) {
    js *params = js_new_object();
    CU_ASSERT(js_set_str(params, "expression", expression) &&
              js_set_bool(params, "returnByValue", true) &&
              js_set_bool(params, "awaitPromise", true));
    js *answer = browser_call(b, "Runtime.evaluate", params);
    if (js_get(answer, "exceptionDetails")) {
        buf text = {0};
        if (js_write(js_get(answer, "exceptionDetails"), JS_COMPACT, &text, NULL) == SNAP_OK)
            (void)fprintf(stderr, "\n    %s\n", buf_str(&text));
        buf_release(&text);
        CU_FAIL("an exception in the page");
    }
    js *value = js_copy(js_get(js_get_object(answer, "result"), "value"));
    js_free(answer);
    return value ? value : js_new_null();
}
