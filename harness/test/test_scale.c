/* Measures the memory of a long run and the load of its client.
 *
 * SNAPMLA_TEST_SCALE is the number of samples of such a run (rounded down to a multiple of 10000),
 * with a thousand requests in flight, the client on one processor, and answers that take about one
 * second. If it is not set or below 10000, a small run is made as fast as possible. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/term.h"
#include "base/test/sanitized.h"
#include "base/text.h"
#include "generator/test/scripted_server.h"
#include "harness/eval/eval_run.h"
#include "harness/view/run_report.h"

static char folder[48], run[80];

static void folder_open(int problems) {
    buf rows = {0};
    char data[80];
    (void)snprintf(folder, sizeof folder, "/tmp/snapmla-scale-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    (void)snprintf(run, sizeof run, "%s/run", folder);
    (void)snprintf(data, sizeof data, "%s/problems.jsonl", folder);
    for (int i = 0; i < problems; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"is it %d?\", \"answer\": %d}\n",
                         i, i, i % 1000);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(data, buf_str(&rows), rows.len, NULL), SNAP_OK);
    buf_release(&rows);
    term_set_quiet(true);
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static void folder_close(void) {
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void use_processor(int i) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) == 0 && CPU_ISSET((size_t)i, &all)) {
        CPU_SET((size_t)i, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
    }
}

#define WORDS(n) CHAT_DELTA("{\"content\":\"we see that in step " n " something follows \"}")

/* Ten pieces of text, a stop and a count, in writes of the size of one piece. */
static const char answer[] = WORDS("1") WORDS("2") WORDS("3") WORDS("4") WORDS("5") WORDS("6")
    WORDS("7") WORDS("8") WORDS("9") CHAT_DELTA("{\"content\":\"\\\\boxed{7}\"}")
        CHAT_FINISH("stop") CHAT_USAGE "data: [DONE]\n\n";

/* Starts a server in its own process. It ends when *until, which the caller owns, is closed. */
static pid_t start_server(int64_t pause_ns, int *until, char url[64]) {
    int alive[2];
    int ends[2];
    char byte;
    CU_ASSERT_FATAL(pipe2(ends, O_CLOEXEC) == 0 && pipe2(alive, O_CLOEXEC) == 0);
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(alive[1]);
        const reply r = {.type = "text/event-stream",
                         .body = answer,
                         .chunked = true,
                         .step = (int)(sizeof WORDS("1") - 1),
                         .pause_ns = pause_ns};
        if (pause_ns)
            use_processor(1);
        server *s = server_start(&r, 1);
        if (!s || write(ends[1], server_url(s), strlen(server_url(s))) < 0)
            _exit(1);
        (void)close(ends[1]);
        bool told = read(alive[0], &byte, 1) == 0;
        server_free(s);
        _exit(!told);
    }
    (void)close(ends[1]);
    (void)close(alive[0]);
    *until = alive[1];
    memset(url, 0, 64);
    CU_ASSERT_FATAL(read(ends[0], url, 63) > 0);
    (void)close(ends[0]);
    (void)setenv("no_proxy", "127.0.0.1,::1", 0);
    return pid;
}

typedef struct {
    double seconds, cpu_s, rss_kb, lag_p99_ms, lag_max_ms;
    int64_t scored;
} outcome;

/* The memory and load of a run of two arms in its own process. */
static outcome run_of(const char *url, int samples, int in_flight, bool pinned) {
    outcome out = {0};
    char arms[2][120], data[80];
    (void)snprintf(data, sizeof data, "%s/problems.jsonl", folder);
    for (int i = 0; i < 2; i++)
        (void)snprintf(arms[i], sizeof arms[i], "%c=%s/v1,model=m,in_flight=%d", 'a' + i, url,
                       in_flight / 2);
    eval_options o = {.report = run_report_write,
                      .suite = "synth_aime",
                      .data = data,
                      .arms = {.items = {arms[0], arms[1]}, .n = 2},
                      .out = run,
                      .samples = samples,
                      .seed = 1,
                      .temperature = -1};
    (void)nftw(run, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    (void)fflush(stdout);
    int64_t begun = clock_now_ns();
    pid_t child = fork();
    if (child == 0) {
        results *r = NULL;
        snap_err err = {0};
        if (pinned)
            use_processor(0);
        snap_status st = eval_run(&o, NULL, &r, &err);
        if (st != SNAP_OK)
            (void)fprintf(stderr, "%s\n", err.text);
        _exit((int)st);
    }
    struct rusage used;
    int status = 1;
    CU_ASSERT_EQUAL_FATAL(wait4(child, &status, 0, &used), child);
    CU_ASSERT_EQUAL_FATAL(status, 0);
    out.seconds = (double)(clock_now_ns() - begun) / 1e9;
    out.cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    out.rss_kb = (double)used.ru_maxrss;
    results *r = NULL;
    char path[100];
    (void)snprintf(path, sizeof path, "%s/run.json", run);
    CU_ASSERT_EQUAL_FATAL(results_load(&r, path, NULL), SNAP_OK);
    const js *arms_of = js_get_array(js_at(results_section(r, "evals"), 0), "arms");
    for (size_t i = 0; i < js_len(arms_of); i++) {
        const js *client = js_get_object(js_at(arms_of, i), "client");
        double p99 = js_get_num(client, "lag_ms_p99", 1e9),
               max = js_get_num(client, "lag_ms_max", 1e9);
        out.scored += js_get_int(js_at(arms_of, i), "scored", 0);
        out.lag_p99_ms = p99 > out.lag_p99_ms ? p99 : out.lag_p99_ms;
        out.lag_max_ms = max > out.lag_max_ms ? max : out.lag_max_ms;
    }
    results_free(r);
    return out;
}

static const double kBytesEach = kSanitized ? 1e9 : 400; /* sanitizers keep freed memory */

enum { PROBLEMS = 500, IN_FLIGHT = 64 };

/* With ten times the samples, the peak memory of a run grows by less than kBytesEach for each
 * further sample. */
static void test_memory(void) {
    enum { FEW = 1, MANY = 10 };
    int until;
    char url[64];
    const char *set = getenv("SNAPMLA_TEST_SCALE");
    int64_t wanted = 0;
    bool large = set && text_to_int(set, &wanted) && wanted >= 10 * 2 * PROBLEMS;
    int few = large ? (int)(wanted / (10 * 2 * PROBLEMS)) : FEW, many = large ? 10 * few : MANY;
    folder_open(PROBLEMS);
    pid_t server_pid = start_server(large ? 80000000 : 0, &until, url);
    outcome small = run_of(url, few, large ? 1000 : IN_FLIGHT, large),
            big = run_of(url, many, large ? 1000 : IN_FLIGHT, large);
    double cells = 2.0 * PROBLEMS * many, more = cells - 2.0 * PROBLEMS * few;
    double bytes_each = (big.rss_kb - small.rss_kb) * 1024 / more;
    CU_ASSERT_EQUAL(big.scored, (int64_t)cells);
    CU_ASSERT(bytes_each < kBytesEach);
    if (large)
        printf("\n%.0f samples, 1000 in flight, client on one processor: %.0f s, %.0f samples/s, "
               "%.2f ms "
               "of processor time a sample; "
               "memory %.1f MiB at most, %.1f MiB for a tenth of them, %.0f bytes a sample more; "
               "client's lag p99 %.2f ms, longest %.1f ms\n",
               cells, big.seconds, cells / big.seconds, 1e3 * big.cpu_s / cells, big.rss_kb / 1024,
               small.rss_kb / 1024, bytes_each, big.lag_p99_ms, big.lag_max_ms);
    (void)close(until);
    int status = -1;
    CU_ASSERT_EQUAL(waitpid(server_pid, &status, 0), server_pid);
    CU_ASSERT_EQUAL(status, 0);
    folder_close();
}

CU_TestInfo tests_scale[] = {
    {"the peak memory hardly grows with the samples", test_memory},
    CU_TEST_INFO_NULL,
};
