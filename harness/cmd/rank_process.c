#include "harness/cmd/rank_process.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "generator/local/ranks/launch.h"
#include "generator/local/split.h"
#include "harness/bench/grid.h"
#include "harness/cmd/cmd.h"
#include "harness/record/results.h"
#include "kernels/mla.h"

static const double kGrace = 8; /* seconds after a failure; ranks end by themselves before */

snap_status rank_devices_read(rank_devices *out, const char *list, snap_err *err) {
    int64_t numbers[RANK_DEVICES];
    *out = (rank_devices){0};
    if (!list)
        return SNAP_OK;
    snap_status st =
        bench_parse_list(list, "--devices", 0, 1023, numbers, RANK_DEVICES, &out->n, err);
    for (int i = 0; i < out->n && st == SNAP_OK; i++)
        out->of[i] = (int)numbers[i];
    return st;
}

static bool has_cuda(void) {
    for (const char *const *name = mla_backend_list(); *name; name++)
        if (strcmp(*name, "cuda") == 0)
            return true;
    return false;
}

/* The arguments of this process, from /proc. They point into @text. */
static snap_status read_arguments(buf *text, char ***argv, snap_err *err) {
    size_t n = 0;
    snap_status st = fs_read("/proc/self/cmdline", text, err);
    *argv = NULL;
    if (st != SNAP_OK)
        return st;
    for (size_t i = 0; i < text->len; i++)
        n += text->data[i] == '\0';
    char **list = malloc((n + 1) * sizeof *list);
    if (!list)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the arguments of a rank");
    char *at = text->data;
    for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
        list[i] = at;
    list[n] = NULL;
    *argv = list;
    return SNAP_OK;
}

snap_status rank_processes_run(int size, snap_err *err) {
    buf text = {0};
    char **argv = NULL;
    launch_options how = {.size = size, .grace_s = kGrace, .cancel = &cmd_cancelled};
    if (!has_cuda())
        return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
    snap_status st = read_arguments(&text, &argv, err);
    if (st == SNAP_OK)
        st = launch_ranks(&how, "/proc/self/exe", argv, err);
    free(argv);
    buf_release(&text);
    return st;
}

snap_status rank_program_facts(buf *facts, snap_err *err) {
    char executable[HASH_HEX];
    snap_status st = hash_file("/proc/self/exe", executable, err);
    if (st != SNAP_OK)
        return st;
    (void)buf_printf(facts, "program=%s (%s)\nexecutable=%.16s\n", results_program_version(),
                     results_program_commit(), executable);
    return buf_check(facts, "the facts to compare", err);
}

static atomic_bool reported; /* the message of the group is printed, by this process or by rank 0 */

/* Prints the message at once: some launchers kill the other ranks as soon as one has ended. */
static void report(const snap_err *why, bool from_rank_0) {
    if (!from_rank_0)
        (void)fprintf(stderr, "snapmla: %s\n", why->text);
    reported = true;
}

void rank_leave_message(const snap_err *err) {
    if (launch_report(err) || reported) {
        (void)fflush(NULL);
        _exit(err_exit_code(err->code));
    }
}

static void end_stuck(const snap_err *why) {
    rank_leave_message(why);
    (void)fprintf(stderr, "snapmla: %s\n", why->text);
    _exit(err_exit_code(why->code));
}

ranks_options rank_join_options(void) {
    ranks_options how = ranks_defaults;
    how.on_stuck = end_stuck;
    how.cancel = &cmd_cancelled;
    how.on_failure = launch_has_report() ? NULL : report;
    return how;
}

/* ---- the ranks of a split model ---- */

/* Ends another rank than rank 0, which prints the failure. */
static void end_follower(const snap_err *why) {
    _exit(err_exit_code(why->code));
}

void rank_prepare_split(void) {
    static char name[] = "snapmla", follow[] = RANK_FOLLOW;
    static char *argv[] = {name, follow, NULL};
    split_set_program(&(split_program){.argv = argv, .end = end_stuck});
}

_Noreturn void rank_follow(void) {
    snap_err err = {0};
    if (!split_follow(end_follower, &err)) {
        (void)err_set(&err, SNAP_E_USAGE, "%s is for processes that the program starts itself",
                      RANK_FOLLOW);
        (void)fprintf(stderr, "snapmla: %s\n", err.text);
    }
    _exit(err_exit_code(err.code));
}
