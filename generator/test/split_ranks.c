#include "generator/test/split_ranks.h"

#include <CUnit/CUnit.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/test/failing_alloc.h"
#include "generator/local/split.h"
#include "generator/test/tiny_model.h"

/* environment variables: rank and bytes; a path */
static const char kLimit[] = "SPLIT_RANKS_LIMIT", kFolder[] = "SPLIT_RANKS_FOLDER";
static char kName[] = "rank-of-a-test", kOption[] = "--suite";

static void end(const snap_err *why) {
    (void)fprintf(stderr, "%s\n", why->text);
    _exit(err_exit_code(why->code));
}

static void end_silently(const snap_err *why) {
    _exit(err_exit_code(why->code));
}

static void *no_work(void *unused) {
    return unused;
}

/* The test that calls this starts a thread. So a run of only those tests that start threads has it,
 * too (`make sanitize`), and the tests after it need it. */
void split_ranks_prepare(const char *suite) {
    static char name[32], *argv[] = {kName, kOption, name, NULL};
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, no_work, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_join(thread, NULL), 0);
    (void)snprintf(name, sizeof name, "%s", suite);
    split_set_program(&(split_program){.argv = argv, .end = end});
}

/* The pages of this process's address space. */
static long pages_now(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    CU_ASSERT_FATAL(f && fscanf(f, "%ld", &pages) == 1);
    (void)fclose(f);
    return pages;
}

/* Sets the limit of this process to @bytes more than it has now; 0 = no limit. */
static void limit_address_space(int64_t bytes) {
    struct rlimit r;
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_AS, &r), 0);
    r.rlim_cur = bytes ? (rlim_t)(bytes + pages_now() * sysconf(_SC_PAGESIZE)) : r.rlim_max;
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_AS, &r), 0);
}

void split_ranks_limit(int rank, int64_t bytes) {
    char text[64];
    (void)snprintf(text, sizeof text, "%d %lld", rank, (long long)bytes);
    (void)setenv(kLimit, text, 1);
    limit_address_space(rank ? 0 : bytes);
}

void split_ranks_folder(const char *dir) {
    if (dir)
        (void)setenv(kFolder, dir, 1);
    else
        (void)unsetenv(kFolder);
}

static void run_out_of_memory(int signal_number) {
    (void)signal_number;
    failing_alloc_arm(1, true);
}

/* Rank 0 starts the ranks in their order. So the number of this rank is the number of processes
 * that rank 0 has started so far. */
static void limit_rank(const char *text) {
    pid_t ranks[SPLIT_RANKS_MOST];
    int rank = 0;
    long long bytes = 0;
    bool limited = text && sscanf(text, "%d %lld", &rank, &bytes) == 2 &&
                   rank == split_ranks_of(getppid(), ranks);
    limit_address_space(limited ? bytes : 0);
}

void split_ranks_follow(void) {
    snap_err err = {0};
    const char *folder = getenv(kFolder);
    if (strcmp(program_invocation_name, kName) != 0)
        return;
    (void)signal(SPLIT_RANKS_NO_MEMORY, run_out_of_memory);
    limit_rank(getenv(kLimit));
    if (folder && chdir(folder) != 0)
        _exit(2);
    _exit(split_follow(end_silently, &err) ? err_exit_code(err.code) : 2);
}

/* The parent of a process, and its state: 'Z' if it has ended. */
static pid_t parent_of(pid_t pid, char *state) {
    char path[64], text[512];
    int parent = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    *state = 'Z';
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    const char *after = strrchr(text, ')');
    return after && sscanf(after + 1, " %c %d", state, &parent) == 2 ? parent : 0;
}

int split_ranks_of(pid_t pid, pid_t out[SPLIT_RANKS_MOST]) {
    int n = 0;
    char state;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d)) && n < SPLIT_RANKS_MOST;) {
        pid_t p = (pid_t)atoi(e->d_name);
        if (p > 0 && parent_of(p, &state) == pid && state != 'Z')
            out[n++] = p;
    }
    if (d)
        (void)closedir(d);
    return n;
}

bool split_ranks_gone(pid_t pid) {
    char state;
    for (int i = 0; i < 2000; i++) {
        (void)parent_of(pid, &state);
        if (state == 'Z')
            return true;
        clock_sleep_ns(10000000);
    }
    return false;
}

void split_ranks_expect_none(void) {
    pid_t left[SPLIT_RANKS_MOST];
    CU_ASSERT_EQUAL(split_ranks_of(getpid(), left), 0);
}

/* Gives a tiny model a longer context. */
static void lengthen_context(const char *dir) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/config.json", dir);
    js *config = js_parse_file(path, 1 << 20, NULL);
    CU_ASSERT_FATAL(config && js_set_int(config, "max_position_embeddings", SPLIT_RANKS_CONTEXT));
    CU_ASSERT_EQUAL_FATAL(js_write_file(config, path, NULL), SNAP_OK);
    js_free(config);
}

void split_ranks_model(char dir[64], const char *name) {
    tiny_folder(dir, name);
    lengthen_context(dir);
}
