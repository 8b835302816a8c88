/* main.c - the program's entry point: it selects a command, runs it, and turns its status into an
 * exit code. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/nearest.h"
#include "base/term.h"
#include "base/text.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/cmd/rank_process.h"
#include "harness/completion.h"
#include "harness/record/results.h"

/* All commands, in the order of --help. */
static const opt_command *const cmd_table[] = {
    &cmd_bench,       &cmd_eval,    &cmd_merge,   &cmd_grade,  &cmd_fidelity,
    &cmd_gate,        &cmd_report,  &cmd_compare, &cmd_verify, &cmd_pack,
    &cmd_generate,    &cmd_serve,   &cmd_synth,   &cmd_fetch,  &cmd_roofline,
    &cmd_conformance, &cmd_formats, &cmd_info,    NULL};

volatile sig_atomic_t cmd_cancelled;

/* A second signal ends the program at once. Signals that come within 0.1 s of the first count as
 * one: timeout(1) sends its signal to the program and then to the group that the program is in. */
static void on_signal(int signal_number) {
    static int64_t first_ns;
    int64_t now = clock_now_ns();
    if (!cmd_cancelled)
        first_ns = now;
    else if (now - first_ns > 100000000)
        _exit(128 + signal_number);
    cmd_cancelled = 1;
}

static void install_signals(void) {
    struct sigaction sa = {.sa_handler = on_signal};
    (void)sigemptyset(&sa.sa_mask);
    (void)sigaddset(&sa.sa_mask, SIGINT); /* one handler at a time */
    (void)sigaddset(&sa.sa_mask, SIGTERM);
    (void)sigaction(SIGINT, &sa, NULL);
    (void)sigaction(SIGTERM, &sa, NULL);
    sa.sa_handler = SIG_IGN; /* writing to a closed pipe then fails with an error instead of ending
                                the program */
    (void)sigaction(SIGPIPE, &sa, NULL);
    (void)sigaction(SIGXFSZ, &sa, NULL); /* writing beyond the file size limit then fails with an
                                            error, too */
}

static void usage(FILE *to) {
    (void)fputs("usage: snapmla COMMAND [options]\n\n"
                "Measures FP8 Multi-head Latent Attention decoding (SnapMLA) against a BF16\n"
                "baseline, in speed and in quality.\n\nCommands\n",
                to);
    for (const opt_command *const *c = cmd_table; *c; c++)
        (void)fprintf(to, "  %-11s %s\n", (*c)->name, (*c)->summary);
    (void)fputs(
        "\n"
        "'snapmla COMMAND --help' lists the options of a command.\n"
        "'snapmla --version' prints the version and the commit of this build.\n"
        "'snapmla --completion SHELL' prints a completion script for bash, zsh or fish.\n"
        "\n"
        "Exit codes: 0 done, 1 gate failed on speed, 2 usage or configuration, 3 runtime (files,\n"
        "device, network), 4 gate inconclusive, 5 gate failed on quality, 6 environment invalid,\n"
        "7 wrong result\n",
        to);
}

static const opt_command *find(const char *name) {
    for (const opt_command *const *c = cmd_table; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static snap_status print_help(const opt_command *spec, snap_err *err) {
    buf out = {0};
    opt_help(spec, &out);
    snap_status st = print_text(&out, "the help", err);
    buf_release(&out);
    return st;
}

/* @argv: the arguments after the command's name. */
static snap_status run(const opt_command *command, int argc, const char **argv, snap_err *err) {
    const opt_command *c;
    opt_shared shared;
    snap_status st = opt_select(command, &argc, &argv, &c, err);
    if (st != SNAP_OK)
        return st;
    st = opt_parse(c, argc, argv, &shared, err);
    if (st == SNAP_OK) {
        term_set_color(text_equal(shared.color, "always")  ? TERM_ALWAYS
                       : text_equal(shared.color, "never") ? TERM_NEVER
                                                           : TERM_AUTO);
        term_set_quiet(shared.quiet);
        opt_check_environment(cmd_table, shared.resolved, environ);
    }
    if (st == SNAP_OK && shared.help)
        st = print_help(c, err);
    else if (st == SNAP_OK && shared.print_config)
        st = print_json(shared.resolved, err);
    else if (st == SNAP_OK)
        st = c->run(&shared, err);
    opt_release(&shared);
    return st;
}

/* A result that could not be written completely, for example to a full disk, is a failure. */
static snap_status flush_stdout(snap_status st, snap_err *err) {
    bool failed = ferror(stdout) != 0;
    if (fclose(stdout) != 0 || failed)
        return err_set_errno(st == SNAP_OK ? err : NULL, "cannot write standard output");
    return st;
}

static snap_status manual(snap_err *err) {
    buf out = {0};
    for (const opt_command *const *c = cmd_table; *c; c++)
        opt_mdoc(*c, &out);
    snap_status st = print_text(&out, "the manual", err);
    buf_release(&out);
    return st;
}

/* @shell: NULL = bash */
static snap_status completion(const char *shell, snap_err *err) {
    buf out = {0};
    snap_status st = completion_write(shell ? shell : "bash", cmd_table, &out, err);
    if (st == SNAP_OK)
        st = print_text(&out, "the script", err);
    buf_release(&out);
    return st;
}

enum { kCommands = 64 }; /* further ones are not suggested */

static snap_status unknown_command(const char *name, snap_err *err) {
    const char *names[kCommands + 1] = {0};
    char hint[NEAREST_HINT];
    for (size_t i = 0; cmd_table[i] && i < kCommands; i++)
        names[i] = cmd_table[i]->name;
    return err_set(err, SNAP_E_USAGE,
                   "unknown command '%.100s'%s: 'snapmla --help' lists the commands", name,
                   nearest_hint(name, names, "", hint));
}

static snap_status dispatch(int argc, const char **argv, snap_err *err) {
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name)
        return err_set(err, SNAP_E_USAGE,
                       "no command is given: 'snapmla --help' lists the commands");
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        usage(stdout);
    else if (strcmp(name, "--version") == 0)
        (void)printf("snapmla %s (%s)\n", results_program_version(), results_program_commit());
    else if (strcmp(name, "--man-options") == 0)
        return manual(err);
    else if (strcmp(name, RANK_FOLLOW) == 0)
        rank_follow();
    else if (strcmp(name, "--completion") == 0)
        return completion(argc > 2 ? argv[2] : NULL, err);
    else if (!find(name))
        return unknown_command(name, err);
    else
        return run(find(name), argc - 2, argv + 2, err);
    return SNAP_OK;
}

int main(int argc, char **argv) {
    (void)setlocale(LC_ALL, "C"); /* numbers in files have the same form in every locale */
    install_signals();
    rank_prepare_split();
    snap_err err = {0};
    snap_status st = dispatch(argc, (const char **)(void *)argv, &err);
    st = fault_of_process(st, &err);
    st = flush_stdout(st, &err);
    if (st != SNAP_OK)
        (void)fprintf(stderr, "snapmla: %s\n", err.text[0] ? err.text : "failed");
    return err_exit_code(st);
}
