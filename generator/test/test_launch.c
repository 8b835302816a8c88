/* Tests the launcher of ranks, with shell scripts as ranks. In the tests of whole groups, the ranks
 * are processes of this test program, in which become_rank() runs before main(). */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "generator/local/ranks/launch.h"
#include "generator/local/ranks/ranks.h"

static char folder[64];

static snap_status run(int size, const char *script, double grace_s, snap_err *err) {
    static volatile sig_atomic_t never;
    char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, strdup(script), NULL};
    launch_options o = {.size = size, .grace_s = grace_s, .cancel = &never};
    CU_ASSERT_FATAL(argv[2] != NULL);
    *err = (snap_err){0};
    snap_status st = launch_ranks(&o, "/bin/sh", argv, err);
    free(argv[2]);
    return st;
}

static void expect_file(const char *name, const char *text) {
    char path[128];
    buf got = {0};
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    CU_ASSERT_EQUAL(fs_read(path, &got, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&got), text);
    buf_release(&got);
    (void)unlink(path);
}

static void test_environment(void) {
    snap_err err;
    (void)snprintf(folder, sizeof folder, "/tmp/snapmla-launch-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    CU_ASSERT_EQUAL_FATAL(setenv("RANK", "7", 1), 0); /* the launcher must replace it */
    CU_ASSERT_EQUAL_FATAL(setenv("LAUNCH_FOLDER", folder, 1), 0);
    CU_ASSERT_EQUAL(
        run(3,
            "test $MASTER_PORT -gt 0 || exit 1\n"
            "test $RANK -gt 0 || test -S /proc/self/fd/$SNAPMLA_RANK_LISTENER || exit 2\n"
            "echo $RANK $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR >$LAUNCH_FOLDER/$RANK\n"
            "test $RANK = 0 || echo this must not be seen",
            10, &err),
        SNAP_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    expect_file("0", "0 3 0 127.0.0.1\n");
    expect_file("1", "1 3 1 127.0.0.1\n");
    expect_file("2", "2 3 2 127.0.0.1\n");
    (void)rmdir(folder);
    (void)unsetenv("RANK");
    (void)unsetenv("LAUNCH_FOLDER");
}

static void test_killed(void) {
    snap_err err;
    CU_ASSERT_EQUAL(run(3, "test $RANK = 1 && kill -9 $$; exec sleep 600", 0.1, &err),
                    SNAP_E_DEVICE);
    CU_ASSERT_STRING_EQUAL(err.text, "rank 1 was ended by signal 9 (Killed)");
}

static void test_exit_code(void) {
    snap_err err;
    CU_ASSERT_EQUAL(run(2, "test $RANK = 0 || exit 5", 10, &err), SNAP_E_IO);
    CU_ASSERT_STRING_EQUAL(err.text, "rank 1 ended with exit code 5 and without a message");
}

/* A rank sends its error. This error has precedence over the exit code of another rank that sent
 * none. */
static void test_report(void) {
    snap_err err;
    CU_ASSERT_EQUAL(run(2,
                        "test $RANK = 0 && exit 3\n"
                        "printf '\\006\\000\\000\\000rank 1: no memory' "
                        ">/proc/self/fd/$SNAPMLA_RANK_REPORT; exit 3",
                        10, &err),
                    SNAP_E_NOMEM);
    CU_ASSERT_STRING_EQUAL(err.text, "rank 1: no memory");
}

/* A process that a rank has started still holds the rank's end of the report pipe. The launcher
 * does not wait for it. */
static void test_held_report(void) {
    snap_err err;
    CU_ASSERT_EQUAL(run(1, "sleep 600 & echo $! >/tmp/snapmla-launch-$PPID; exit 4", 10, &err),
                    SNAP_E_IO);
    CU_ASSERT_STRING_EQUAL(err.text, "rank 0 ended with exit code 4 and without a message");
    buf pid = {0};
    char path[64];
    int64_t left = 0;
    (void)snprintf(path, sizeof path, "/tmp/snapmla-launch-%d", (int)getpid());
    CU_ASSERT_EQUAL(fs_read(path, &pid, NULL), SNAP_OK);
    if (pid.len > 1)
        pid.data[pid.len - 1] = '\0'; /* the end of the line */
    CU_ASSERT(text_to_int(buf_str(&pid), &left) && kill((pid_t)left, SIGKILL) == 0);
    buf_release(&pid);
    (void)unlink(path);
}

static void test_no_program(void) {
    snap_err err = {0};
    char *argv[] = {(char[]){"none"}, NULL};
    launch_options o = {.size = 2, .grace_s = 10};
    CU_ASSERT_EQUAL(launch_ranks(&o, "/does/not/exist", argv, &err), SNAP_E_IO);
    CU_ASSERT_STRING_EQUAL(err.text, "cannot run /does/not/exist");
}

static void test_cancel(void) {
    snap_err err = {0};
    volatile sig_atomic_t now = 1;
    char *argv[] = {(char[]){"sleep"}, (char[]){"600"}, NULL};
    launch_options o = {.size = 2, .grace_s = 10, .cancel = &now};
    CU_ASSERT_EQUAL(launch_ranks(&o, "/bin/sleep", argv, &err), SNAP_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.text, "stopped by a signal");
}

static void test_size(void) {
    snap_err err = {0};
    launch_options o = {.size = RANKS_MOST + 1};
    CU_ASSERT_EQUAL(launch_ranks(&o, "/bin/true", NULL, &err), SNAP_E_USAGE);
}

static void test_no_launcher(void) {
    snap_err err = {.code = SNAP_E_NOMEM, .text = "text"};
    CU_ASSERT_FALSE(launch_report(&err));
}

/* ---- whole groups ---- */

static const char kMode[] = "SNAPMLA_TEST_RANK"; /* variable that names what the ranks do */

static _Noreturn void end_rank(const snap_err *err) {
    if (err->code != SNAP_OK)
        (void)launch_report(err);
    _exit(err_exit_code(err->code));
}

static snap_status work(ranks *g, const char *mode, snap_err *err) {
    int mine = ranks_rank(g), all[RANKS_MOST];
    snap_status st = ranks_all_gather(g, "numbers", &mine, sizeof mine, all, err);
    for (int r = 0; r < ranks_size(g) && st == SNAP_OK; r++)
        if (all[r] != r)
            st = err_set(err, SNAP_E_WRONG, "rank %d gave %d", r, all[r]);
    bool chosen = mine == 1 && st == SNAP_OK;
    if (chosen && strcmp(mode, "fail") == 0)
        return err_set(err, SNAP_E_NOMEM, "no memory");
    if (chosen && strcmp(mode, "kill") == 0)
        (void)raise(SIGKILL);
    if (chosen && strcmp(mode, "stop") == 0)
        (void)raise(SIGSTOP);
    while (chosen && strcmp(mode, "hang") == 0)
        (void)pause();
    return st == SNAP_OK ? ranks_all_gather(g, "an all-reduce", &mine, sizeof mine, all, err) : st;
}

__attribute__((constructor)) static void become_rank(void) {
    const char *mode = getenv(kMode);
    snap_err err = {0};
    rank_place place;
    ranks *g = NULL;
    ranks_options opt = ranks_defaults;
    if (!mode || !getenv(RANKS_REPORT))
        return;
    opt.on_stuck = end_rank;
    opt.stuck_s = 0.1;
    if (strcmp(mode, "stop") == 0)
        opt.silence_s = 2;
    if (strcmp(mode, "hang") == 0)
        opt.exchange_s = 1;
    snap_status st = rank_place_read(&place, &err);
    if (st == SNAP_OK)
        st = ranks_join(&g, &place, "test=launch\n", &opt, &err);
    if (st == SNAP_OK)
        st = work(g, mode, &err);
    if (st != SNAP_OK && g)
        ranks_fail(g, &err);
    if (ranks_close(g, &err) != st)
        (void)err_set(&err, SNAP_E_WRONG, "another failure when it was closed");
    end_rank(&err);
}

static void expect_group(const char *mode, snap_status code, const char *text) {
    snap_err err = {0};
    char *argv[] = {(char[]){"ranks"}, NULL};
    launch_options o = {.size = 3, .grace_s = 3};
    CU_ASSERT_EQUAL_FATAL(setenv(kMode, mode, 1), 0);
    CU_ASSERT_EQUAL(launch_ranks(&o, "/proc/self/exe", argv, &err), code);
    CU_ASSERT_STRING_EQUAL(err.text, text);
    (void)unsetenv(kMode);
}

static void test_group(void) {
    expect_group("work", SNAP_OK, "");
}

static void test_group_fails(void) {
    expect_group("fail", SNAP_E_NOMEM, "rank 1: no memory");
    expect_group("kill", SNAP_E_DEVICE, "rank 1 was ended by signal 9 (Killed)");
    expect_group("stop", SNAP_E_NET, "rank 1: no sign of life for 2 s");
    expect_group("hang", SNAP_E_DEVICE, "rank 1: an all-reduce: it did not begin within 1 s");
}

CU_TestInfo tests_launch[] = {
    {"a group of ranks", test_group},
    {"a rank of a group fails", test_group_fails},
    {"the environment of a rank", test_environment},
    {"a rank is killed", test_killed},
    {"a rank ends with an exit code", test_exit_code},
    {"a rank sends its error", test_report},
    {"a rank leaves a process behind", test_held_report},
    {"no such program", test_no_program},
    {"a signal stops the launcher", test_cancel},
    {"too many ranks", test_size},
    {"nothing is reported to a missing launcher", test_no_launcher},
    CU_TEST_INFO_NULL,
};
