/* Runs must survive SIGKILL at random moments, a full disk, a folder that cannot be written, a
 * second process and a change of the clock. SNAPMLA_TEST_KILLS is the number of kills; its default
 * is 20. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/rng.h"
#include "base/term.h"
#include "base/text.h"
#include "generator/test/scripted_server.h"
#include "harness/eval/eval_run.h"
#include "harness/eval/run_files.h"
#include "harness/view/run_report.h"

enum { PROBLEMS = 10, SAMPLES = 4, ARMS = 2, CELLS = PROBLEMS * SAMPLES * ARMS, KILLS = 20 };

/* ---- a clock that tests can set: this function replaces that of the C library ---- */

static _Atomic int64_t clock_set_s;

time_t time(time_t *out) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    time_t t = now.tv_sec + (time_t)atomic_load(&clock_set_s);
    if (out)
        *out = t;
    return t;
}

/* ---- a folder with problems ---- */

static char folder[48], data[80], run[80]; /* data: the problems; run: the RUN folder */

/* A path in the folder. Static memory for eight paths at a time. */
static const char *in_folder(const char *name) {
    static char paths[8][120];
    static int next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void folder_open(void) {
    buf rows = {0};
    (void)snprintf(folder, sizeof folder, "/tmp/snapmla-last-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    (void)chmod(folder, 0755);
    (void)snprintf(data, sizeof data, "%s/problems.jsonl", folder);
    (void)snprintf(run, sizeof run, "%s/run", folder);
    for (int i = 0; i < PROBLEMS; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"is it %d?\", \"answer\": %d}\n",
                         i, i, i);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(data, buf_str(&rows), rows.len, NULL), SNAP_OK);
    buf_release(&rows);
    term_set_quiet(true);
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static void remove_run(void) {
    (void)nftw(run, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void folder_close(void) {
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- a server in its own process; all its answers differ ---- */

enum { REPLIES = 20000, ANSWER = 600 };

typedef struct {
    pid_t pid;
    int alive; /* closing it stops the server */
    char arms[ARMS][120];
} answering;

static void serve(int url, int until) {
    static reply replies[REPLIES];
    static char bodies[REPLIES][ANSWER];
    char byte;
    for (int i = 0; i < REPLIES; i++) {
        (void)snprintf(bodies[i], ANSWER,
                       CHAT_DELTA("{\"content\":\"answer %d is \"}")
                           CHAT_DELTA("{\"content\":\"\\\\boxed{%d}\"}") CHAT_FINISH("stop")
                               CHAT_USAGE "data: [DONE]\n\n",
                       i, i % PROBLEMS);
        replies[i] = (reply){.type = "text/event-stream",
                             .body = bodies[i],
                             .chunked = true,
                             .step = 50,
                             .pause_ns = 1500000};
    }
    server *s = server_start(replies, REPLIES);
    if (!s || write(url, server_url(s), strlen(server_url(s))) < 0)
        _exit(1);
    (void)close(url);
    while (read(until, &byte, 1) < 0 && errno == EINTR) {
    }
    server_free(s);
    _exit(0);
}

static answering answering_start(void) {
    answering a = {.alive = -1};
    int url[2], until[2];
    char address[64] = "";
    CU_ASSERT_FATAL(pipe2(url, O_CLOEXEC) == 0 && pipe2(until, O_CLOEXEC) == 0);
    (void)fflush(stdout);
    a.pid = fork();
    if (a.pid == 0) {
        (void)close(url[0]);
        (void)close(until[1]);
        serve(url[1], until[0]);
    }
    (void)close(url[1]);
    (void)close(until[0]);
    a.alive = until[1];
    CU_ASSERT_FATAL(read(url[0], address, sizeof address - 1) > 0);
    (void)close(url[0]);
    (void)setenv("no_proxy", "127.0.0.1,::1", 0);
    for (int i = 0; i < ARMS; i++)
        (void)snprintf(a.arms[i], sizeof a.arms[i], "%c=%s/v1,model=m,in_flight=3", 'a' + i,
                       address);
    return a;
}

static void answering_stop(answering *a) {
    int status = -1;
    (void)close(a->alive);
    CU_ASSERT_EQUAL_FATAL(waitpid(a->pid, &status, 0), a->pid);
    CU_ASSERT_EQUAL(status, 0); /* a sanitizer also reports faults of the server here */
}

static eval_options options_of(const answering *a) {
    return (eval_options){.report = run_report_write,
                          .suite = "synth_aime",
                          .data = data,
                          .arms = {.items = {a->arms[0], a->arms[1]}, .n = ARMS},
                          .out = run,
                          .samples = SAMPLES,
                          .seed = 1,
                          .temperature = -1};
}

/* Starts a process that evaluates. Its exit status is that of the run. @message: the pipe that
 * receives the error message; -1: none. */
static pid_t start_eval(const eval_options *o, int message) {
    (void)fflush(stdout);
    pid_t child = fork();
    if (child)
        return child;
    results *r = NULL;
    snap_err err = {0};
    snap_status st = eval_run(o, NULL, &r, &err);
    if (message >= 0 && write(message, err.text, strlen(err.text)) < 0)
        _exit(99);
    _exit((int)st);
}

/* ---- kills ---- */

/* The known state of a cell (one sample of one problem by one arm): its answer, and the number of
 * its rows. */
typedef struct {
    char answer[40];
    int rows;
} seen;

static seen *cell_of(seen *cells, const js *row) {
    const char *arm = js_get_str(row, "arm"), *problem = js_get_str(row, "problem");
    int64_t q = 0, sample = js_get_int(row, "sample", -1);
    CU_ASSERT_FATAL(arm && problem && text_to_int(problem + 1, &q));
    CU_ASSERT_FATAL(q >= 0 && q < PROBLEMS && sample >= 0 && sample < SAMPLES);
    return &cells[((arm[0] - 'a') * PROBLEMS + q) * SAMPLES + sample];
}

/* Reads all complete lines. No cell may occur twice, have another answer than before, or be missing
 * after it was there. Returns the number of lines. */
static int check_rows(seen *before) {
    buf text = {0};
    static seen now[CELLS];
    int n = 0;
    memset(now, 0, sizeof now);
    if (fs_exists(in_folder("run/samples.jsonl")))
        CU_ASSERT_EQUAL(fs_read(in_folder("run/samples.jsonl"), &text, NULL), SNAP_OK);
    const char *line = buf_str(&text);
    for (const char *end; (end = strchr(line, '\n')); line = end + 1) {
        js *row = js_parse(line, (size_t)(end - line), "row", NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(row);
        CU_ASSERT_FALSE(js_get_bool(row, "failed", true));
        seen *cell = cell_of(now, row);
        const char *answer = js_get_str(row, "response");
        (void)snprintf(cell->answer, sizeof cell->answer, "%s", answer ? answer : "");
        CU_ASSERT_EQUAL(cell->rows, 0);
        cell->rows++;
        n++;
        js_free(row);
    }
    for (int i = 0; i < CELLS; i++) {
        if (before[i].rows)
            CU_ASSERT_STRING_EQUAL(now[i].answer, before[i].answer);
        before[i] = now[i];
    }
    buf_release(&text);
    return n;
}

/* Checks that the run is complete: each cell has one row, and the result has as many samples. */
static void check_complete(seen *cells) {
    results *r = NULL;
    CU_ASSERT_EQUAL(check_rows(cells), CELLS);
    CU_ASSERT_EQUAL_FATAL(results_load(&r, in_folder("run/run.json"), NULL), SNAP_OK);
    const js *arms = js_get_array(js_at(results_section(r, "evals"), 0), "arms");
    for (size_t i = 0; i < js_len(arms); i++) {
        CU_ASSERT_EQUAL(js_get_int(js_at(arms, i), "samples", 0), PROBLEMS * SAMPLES);
        CU_ASSERT_EQUAL(js_get_int(js_at(arms, i), "scored", 0), PROBLEMS * SAMPLES);
    }
    results_free(r);
}

static const int64_t kLong = INT64_C(300000000000); /* most time of a run that ends by itself */

static int kills_wanted(void) {
    const char *set = getenv("SNAPMLA_TEST_KILLS");
    int64_t n;
    return set && text_to_int(set, &n) && n > 0 && n < 100000 ? (int)n : KILLS;
}

/* Runs until the process ends or the time is up. Returns true if it was killed. */
static bool run_for(const eval_options *o, int64_t ns) {
    int status = 0;
    pid_t child = start_eval(o, -1), ended = 0;
    for (int64_t end = clock_now_ns() + ns, left = ns; !ended && left > 0;
         left = end - clock_now_ns()) {
        clock_sleep_ns(left < 1000000 ? left : 1000000);
        ended = waitpid(child, &status, WNOHANG);
    }
    if (!ended) {
        (void)kill(child, SIGKILL);
        CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    }
    if (WIFEXITED(status))
        CU_ASSERT_EQUAL(WEXITSTATUS(status), SNAP_OK);
    return WIFSIGNALED(status);
}

/* Each run is killed again and again, at moments spread over its whole length, until it is
 * complete. Then the next run begins. */
static void test_killed_at_random(void) {
    folder_open();
    answering at = answering_start();
    eval_options o = options_of(&at);
    int64_t begun = clock_now_ns();
    CU_ASSERT_FALSE(run_for(&o, kLong));
    double length_ns = (double)(clock_now_ns() - begun);
    remove_run();
    static seen cells[CELLS];
    rng r = rng_make(7, (uint64_t)getpid());
    int kills = 0, runs = 0, midway = 0, wanted = kills_wanted();
    memset(cells, 0, sizeof cells);
    /* Under the thread sanitizer, samples were under way at 10 of 60 kills only. At this rate, the
     * probability is 3 % that no sample was under way at any of 20 kills. So the test continues
     * until one was. */
    while (kills < wanted || (!midway && kills < 10 * wanted)) {
        bool killed = run_for(&o, (int64_t)(rng_uniform(&r) * 1.2 * length_ns));
        int n = check_rows(cells);
        kills += killed;
        midway += killed && n > 0 && n < CELLS;
        if (killed)
            continue;
        check_complete(cells);
        remove_run();
        memset(cells, 0, sizeof cells);
        runs++;
    }
    while (run_for(&o, kLong)) {
    }
    check_complete(cells);
    CU_ASSERT(midway > 0);
    if (getenv("SNAPMLA_TEST_KILLS"))
        printf("\n%d kills, %d of them with samples under way, over %d runs\n", kills, midway,
               runs + 1);
    answering_stop(&at);
    folder_close();
}

/* ---- a full disk ---- */

/* The status of a run and its message. */
static int status_of(pid_t child, int message, char said[600]) {
    int status = 0;
    ssize_t n = read(message, said, 599);
    said[n > 0 ? n : 0] = '\0';
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    CU_ASSERT_TRUE_FATAL(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Runs with files limited to @limit bytes: a write beyond it fails, as on a full disk. */
static int run_with_limit(const eval_options *o, rlim_t limit, char said[600]) {
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_CLOEXEC), 0);
    struct rlimit was, now;
    (void)getrlimit(RLIMIT_FSIZE, &was);
    now = (struct rlimit){limit, was.rlim_max};
    (void)fflush(stdout);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &now);
    pid_t child = start_eval(o, ends[1]);
    (void)setrlimit(RLIMIT_FSIZE, &was);
    (void)signal(SIGXFSZ, handler);
    (void)close(ends[1]);
    int status = status_of(child, ends[0], said);
    (void)close(ends[0]);
    return status;
}

/* Files are limited to growing sizes, so that writing fails at different places of the run. Each
 * time the message names the reason, no complete row is lost, and no unfinished samples.jsonl.new
 * stays. Without the limit, the same command completes the run. */
static void test_files_that_cannot_grow(void) {
    folder_open();
    answering at = answering_start();
    eval_options o = options_of(&at);
    static seen cells[CELLS];
    struct stat sb;
    CU_ASSERT_FALSE(run_for(&o, kLong));
    CU_ASSERT_EQUAL_FATAL(stat(in_folder("run/samples.jsonl"), &sb), 0);
    remove_run();
    memset(cells, 0, sizeof cells);
    int failed = 0, told = 0;
    for (int i = 1; i <= 8; i++) {
        char said[600];
        int status = run_with_limit(&o, (rlim_t)sb.st_size * (rlim_t)i / 8 - 11, said);
        CU_ASSERT(status == SNAP_E_IO || status == SNAP_OK);
        failed += status == SNAP_E_IO;
        told += strstr(said, "samples are kept") && strstr(said, "the same command continues");
        if (status == SNAP_E_IO)
            CU_ASSERT_PTR_NOT_NULL(strstr(said, "File too large"));
        CU_ASSERT(check_rows(cells) <= CELLS);
        CU_ASSERT_FALSE(fs_exists(in_folder("run/samples.jsonl.new")));
    }
    CU_ASSERT(failed >= 5);
    CU_ASSERT(told >= 3);
    while (run_for(&o, kLong)) {
    }
    check_complete(cells);
    answering_stop(&at);
    folder_close();
}

static bool write_to(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        (void)close(fd);
    return ok;
}

/* Mounts that only this process sees: root may make them, any other user in a user namespace. */
static bool own_mounts(void) {
    char users[40], groups[40];
    (void)snprintf(users, sizeof users, "0 %ld 1", (long)geteuid());
    (void)snprintf(groups, sizeof groups, "0 %ld 1", (long)getegid());
    if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0)
        return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_to("/proc/self/setgroups", "deny") &&
           write_to("/proc/self/gid_map", groups) && write_to("/proc/self/uid_map", users);
}

/* Runs on a disk of 56 KiB, and then on the same disk with more space. */
static void run_on_small_disk(const eval_options *o, int message) {
    results *r = NULL;
    snap_err err = {0};
    if (!own_mounts() || mkdir(o->out, 0755) != 0 ||
        mount("none", o->out, "tmpfs", 0, "size=56k") != 0)
        _exit(98);
    int full = (int)eval_run(o, NULL, &r, &err);
    bool good = full == SNAP_E_IO && strstr(err.text, "No space left on device") &&
                strstr(err.text, "samples are kept");
    if (!good && write(message, err.text, strlen(err.text)) < 0)
        _exit(97);
    static seen cells[CELLS];
    int kept = check_rows(cells);
    if (!good || kept <= 0 || mount("none", o->out, "tmpfs", MS_REMOUNT, "size=8m") != 0)
        _exit(96);
    if (eval_run(o, NULL, &r, &err) != SNAP_OK || check_rows(cells) != CELLS)
        _exit(95);
    _exit(0);
}

static void test_a_full_disk(void) {
    folder_open();
    answering at = answering_start();
    eval_options o = options_of(&at);
    int ends[2];
    char said[600];
    CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_CLOEXEC), 0);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        run_on_small_disk(&o, ends[1]);
    (void)close(ends[1]);
    int status = status_of(child, ends[0], said);
    if (status && status != 98) /* 98: namespaces are not allowed */
        printf("\n%d: %s\n", status, said);
    CU_ASSERT(status == 0 || status == 98);
    (void)close(ends[0]);
    answering_stop(&at);
    folder_close();
}

/* ---- a folder that cannot be written ---- */

static int run_as_nobody(const eval_options *o, char said[600]) {
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_CLOEXEC), 0);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) /* root may write
                                                                             anywhere */
            _exit(98);
        pid_t grandchild = start_eval(o, ends[1]);
        int status = 0;
        (void)waitpid(grandchild, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 97);
    }
    (void)close(ends[1]);
    int status = status_of(child, ends[0], said);
    (void)close(ends[0]);
    return status;
}

static void test_a_folder_that_cannot_be_written(void) {
    folder_open();
    answering at = answering_start();
    eval_options o = options_of(&at);
    char said[600];
    (void)chmod(folder, 0555);
    CU_ASSERT_EQUAL(run_as_nobody(&o, said), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "/run'"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "Permission denied"));
    (void)chmod(folder, 0755);
    CU_ASSERT_FALSE(fs_exists(in_folder("run")));
    CU_ASSERT_FALSE(run_for(&o, kLong)); /* complete, then made read-only */
    (void)chmod(in_folder("run"), 0555);
    (void)chmod(in_folder("run/journal"), 0444);
    (void)chmod(in_folder("run/journal.lock"), 0444);
    CU_ASSERT_EQUAL(run_as_nobody(&o, said), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "journal"));
    (void)chmod(in_folder("run"), 0755);
    answering_stop(&at);
    folder_close();
}

/* ---- a second process ---- */

static void test_a_second_process(void) {
    folder_open();
    answering at = answering_start();
    eval_options o = options_of(&at);
    int ready[2];
    char byte, said[600], wanted[80];
    CU_ASSERT_EQUAL_FATAL(pipe2(ready, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL_FATAL(mkdir(in_folder("run"), 0755), 0);
    (void)fflush(stdout);
    pid_t first = fork();
    if (first == 0) {
        results_journal *j = NULL;
        if (run_journal_open(&j, in_folder("run"), NULL) != SNAP_OK || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    CU_ASSERT_EQUAL_FATAL(read(ready[0], &byte, 1), 1);
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_CLOEXEC), 0);
    pid_t second = start_eval(&o, ends[1]);
    (void)close(ends[1]);
    CU_ASSERT_EQUAL(status_of(second, ends[0], said), SNAP_E_IO);
    (void)snprintf(wanted, sizeof wanted, "is held by process %ld", (long)first);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, wanted));
    CU_ASSERT_FALSE(fs_exists(in_folder("run/samples.jsonl")));
    (void)kill(first, SIGKILL); /* a lock ends with its process */
    (void)waitpid(first, NULL, 0);
    CU_ASSERT_FALSE(run_for(&o, kLong));
    (void)close(ends[0]);
    (void)close(ready[0]);
    (void)close(ready[1]);
    answering_stop(&at);
    folder_close();
}

/* ---- changes of the clock ---- */

static bool is_time(const js *row, const char *key, double most_ms) {
    double ms = js_get_num(row, key, -1);
    return ms >= 0 && ms <= most_ms;
}

static void evaluate_here(const eval_options *o, int64_t *took_ns, results **out) {
    snap_err err = {0};
    int64_t start = clock_now_ns();
    if (eval_run(o, NULL, out, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    *took_ns = clock_now_ns() - start;
}

/* time() jumps a year ahead, a year back, a day ahead and an hour back while the program runs.
 * Durations must stay below the run's own, and dates must stay in order. */
static void test_a_clock_that_is_set(void) {
    static const int64_t steps[] = {31536000, -31536000, 86400, -3600};
    static seen cells[CELLS];
    folder_open();
    answering at = answering_start();
    eval_options o = options_of(&at);
    char before[21], after[21];
    clock_utc(before);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        results *r = NULL;
        int64_t took_ns;
        atomic_store(&clock_set_s, steps[i]);
        evaluate_here(&o, &took_ns, &r);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        const js *p = js_get_object(results_document(r), "provenance");
        clock_utc(after);
        CU_ASSERT(strcmp(before, js_get_str(p, "started")) <= 0);
        CU_ASSERT(strcmp(js_get_str(p, "started"), js_get_str(p, "ended")) <= 0);
        CU_ASSERT(strcmp(js_get_str(p, "ended"), after) <= 0);
        buf text = {0};
        CU_ASSERT_EQUAL(fs_read(in_folder("run/samples.jsonl"), &text, NULL), SNAP_OK);
        js *row = js_parse(buf_str(&text), strcspn(buf_str(&text), "\n"), "row", NULL);
        CU_ASSERT(is_time(row, "ttft_ms", (double)took_ns / 1e6));
        CU_ASSERT(is_time(row, "total_ms", (double)took_ns / 1e6));
        js_free(row);
        buf_release(&text);
        results_free(r);
        memset(cells, 0, sizeof cells);
        check_complete(cells);
        remove_run();
    }
    atomic_store(&clock_set_s, 0);
    answering_stop(&at);
    folder_close();
}

CU_TestInfo tests_durability[] = {
    {"kills at random moments", test_killed_at_random},
    {"files that can't grow", test_files_that_cannot_grow},
    {"a full disk", test_a_full_disk},
    {"a folder that can't be written", test_a_folder_that_cannot_be_written},
    {"a second process cannot write to the run", test_a_second_process},
    {"the clock is set during a run", test_a_clock_that_is_set},
    CU_TEST_INFO_NULL,
};
