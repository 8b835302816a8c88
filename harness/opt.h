/* opt.h - the tables of commands and options.
 *
 * Each command has one table of options. The parser, --help, --print-config, the man page and the
 * completion scripts for shells all use it. A command may have verbs (`snapmla bench model`), which
 * are commands with tables of their own.
 *
 * A value is taken from these places. A later place overrides an earlier one:
 *   1. the default in the table
 *   2. the file of --config: a JSON object with the long names of options as keys
 *   3. the environment variable SNAPMLA_NAME: the long name in capitals, with _ for -
 *   4. the command line
 * An unknown key in the file and an unknown option on the command line are errors that name it. The
 * key "why" is a comment. A configuration may contain options of several verbs of one command. Each
 * verb ignores the options of the others. */
#ifndef SNAPMLA_HARNESS_OPT_H
#define SNAPMLA_HARNESS_OPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

typedef enum {
    OPT_FLAG,  /* bool *; --name or --no-name; true, false, 1 or 0 in a file or variable */
    OPT_INT,   /* int64_t *; within [min, max] */
    OPT_NUM,   /* double *; within [min, max] */
    OPT_STR,   /* const char ** */
    OPT_LIST,  /* opt_list *; repeatable: --arm A --arm B */
    OPT_GONE,  /* const opt_gone *; a removed option: refused with an error, not in --help */
    OPT_GROUP, /* heading in --help: only `help` is used */
    OPT_END,
} opt_type;

enum { OPT_LIST_MAX = 64 };
typedef struct {
    const char *items[OPT_LIST_MAX];
    int n;
    bool from_file; /* the items are from a file: that of --config, or a run's journal */
} opt_list;

/* The replacement for one value of a removed option. */
typedef struct {
    const char *value; /* "e2e"; NULL ends the table and stands for all other values */
    const char *now;   /* what to write for that value: "snapmla bench model"; NULL: nothing */
} opt_gone;

typedef struct {
    opt_type type;
    const char *name;     /* long name without dashes */
    char letter;          /* short form; 0 = none */
    void *value;          /* see opt_type; holds the default before parsing */
    const char *argument; /* placeholder in help: "FILE", "N"; NULL for flags */
    const char *help;     /* text in --help, without a full stop at the end */
    double min, max;      /* OPT_INT and OPT_NUM; both 0 = no bounds */
} opt;

/* The result of opt_parse(): the options that every command has, the arguments, and the
 * configuration. */
typedef struct {
    bool help, json, print_config, quiet;
    const char *color, *config;
    const char **args; /* positional arguments; the array is owned, the texts are borrowed */
    int n_args;
    js *resolved; /* the command's own options by long name with their values; owned */
    js *file;     /* content of the --config file, owned; values of options point into it */
} opt_shared;

/* Runs a command. It writes its result to standard output, and everything else to standard error.
 * main() turns the status into the exit code and the message. */
typedef snap_status (*opt_run_fn)(opt_shared *shared, snap_err *err);

typedef struct opt_command {
    const char *name;       /* "bench"; for a verb "bench model" */
    const char *summary;    /* line in the list of commands or verbs; NULL: not listed */
    const char *synopsis;   /* "[options]", "FILE..." */
    const char *about;      /* one paragraph */
    const char *examples;   /* example commands, one per line or continued after a backslash */
    const char *exits;      /* its exit codes; NULL = the usual ones */
    const opt *options;     /* OPT_END-terminated, without the shared options (--json ...) */
    int min_args, max_args; /* positional arguments; max_args -1 = any number */
    opt_run_fn run;         /* for a command with verbs: called if no verb is given */
    const struct opt_command *const *verbs; /* NULL-terminated; NULL = none */
    const struct opt_command *of;           /* for a verb: its command; otherwise NULL */
} opt_command;

/**
 * opt_select - find the verb that a command line names
 *
 * @argc, @argv: without the names of the program and the command; a verb is removed
 * @out:         the verb, or @cmd itself if no verb is named
 *
 * SNAP_E_USAGE if @cmd has verbs and takes no arguments, and the first word is neither a verb nor
 * an option.
 */
snap_status opt_select(const opt_command *cmd, int *argc, const char ***argv,
                       const opt_command **out, snap_err *err) SNAP_CHECK_RESULT;

/* The last word of a verb's name: "model" for "bench model". */
const char *opt_verb_word(const opt_command *verb);

/**
 * opt_parse - fill the values of a table
 *
 * @argv:   without the names of the program, the command and the verb
 * @shared: release with opt_release(), also after an error
 *
 * SNAP_E_USAGE; the message about a wrong value names its option, key or variable. SNAP_E_NOMEM.
 * Strings are borrowed from argv, the environment and @shared, so keep @shared as long as they are
 * used.
 */
snap_status opt_parse(const opt_command *cmd, int argc, const char **argv, opt_shared *shared,
                      snap_err *err) SNAP_CHECK_RESULT;
void opt_release(opt_shared *shared);

/**
 * opt_check_environment - warn about variables that begin with SNAPMLA_ and are unknown
 *
 * @commands:  all commands of the program, NULL-terminated
 * @resolved:  a variable whose name occurs in a value of this configuration is known, for example
 *             that of an arm's key_env
 * @variables: "NAME=VALUE", NULL-terminated, as environ
 *
 * Known are the variables of the options of all commands, and a few others (opt_names.c). If
 * memory is exhausted, nothing is printed.
 */
void opt_check_environment(const opt_command *const *commands, const js *resolved,
                           char *const *variables);

/* Appends the --help text. The help texts of options are wrapped at 100 columns. */
void opt_help(const opt_command *cmd, buf *out);

/* Appends the command's part of the man page (mdoc), with its listed verbs except the default
 * one. */
void opt_mdoc(const opt_command *cmd, buf *out);

/* Calls @fn for each option of the command, including the options that every command has, but not
 * for headings and removed options. */
void opt_each(const opt_command *cmd, void (*fn)(const opt *o, void *ctx), void *ctx);

#endif
