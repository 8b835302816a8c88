/* opt.h - the tables of commands and options.
 *
 * One table for each command is its parser, its --help, its --print-config, its part of the man
 * page and its words for a shell's completion. A command may have verbs (`snapmla bench model`),
 * which are commands with tables of their own.
 *
 * A value comes from these places, and a later one wins: the table's default, --config (a JSON
 * object whose keys are the long names), the environment (SNAPMLA_ and the long name in capitals, -
 * as _), the command line. An unknown key or option is an error that names it. A configuration may
 * hold options of several verbs of one command: each verb takes its own. */
#ifndef SNAPMLA_HARNESS_OPT_H
#define SNAPMLA_HARNESS_OPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

typedef enum {
    OPT_FLAG,  /* bool *; --name and --no-name; "true"/"false"/1/0 elsewhere */
    OPT_INT,   /* int64_t *; within [min, max] */
    OPT_NUM,   /* double *; within [min, max] */
    OPT_STR,   /* const char ** */
    OPT_LIST,  /* opt_list *; repeatable: --arm A --arm B */
    OPT_GONE,  /* const opt_gone *; an option of earlier versions: refused, and in no help */
    OPT_GROUP, /* heading in --help: only `help` is used */
    OPT_END,
} opt_type;

enum { OPT_LIST_MAX = 64 };
typedef struct {
    const char *items[OPT_LIST_MAX];
    int n;
} opt_list;

/* What replaced an option that is gone. */
typedef struct {
    const char *value; /* "e2e"; NULL ends the table */
    const char *now;   /* the command to write for that value: "snapmla bench model" */
} opt_gone;

typedef struct {
    opt_type type;
    const char *name;     /* long name without dashes */
    char letter;          /* short form; 0 = none */
    void *value;          /* see opt_type; holds the default before parsing */
    const char *argument; /* placeholder in help: "FILE", "N"; NULL for flags */
    const char *help;     /* one or two sentences, lower case, no full stop */
    double min, max;      /* OPT_INT and OPT_NUM; both 0 = no bounds */
} opt;

/* What every command has: parsed along with its own options. */
typedef struct {
    bool help, json, print_config, quiet;
    const char *color, *config;
    const char **args; /* positional */
    int n_args;
    js *resolved; /* the whole configuration by long name, owned by opt_release() */
    js *file;     /* what --config brought; strings point into it */
} opt_shared;

/* Writes the result to standard output, everything else to standard error. main() turns the status
 * into the exit code and the message. */
typedef snap_status (*opt_run_fn)(opt_shared *shared, snap_err *err);

typedef struct opt_command {
    const char *name;       /* "bench"; of a verb "bench model" */
    const char *summary;    /* a line for the list of commands or verbs; NULL: not listed */
    const char *synopsis;   /* "[options]", "FILE..." */
    const char *about;      /* one paragraph */
    const char *examples;   /* two lines at least */
    const char *exits;      /* its exit codes; NULL = those that most have */
    const opt *options;     /* OPT_END-terminated; the shared ones (--json ...) are added */
    int min_args, max_args; /* positional arguments; max_args -1 = any number */
    opt_run_fn run;         /* without a verb */
    const struct opt_command *const *verbs; /* NULL-terminated; NULL = none */
    const struct opt_command *of;           /* the command of a verb */
} opt_command;

/**
 * opt_select - the verb that a command line names
 *
 * @argc, @argv: without the program's and the command's name; a verb is taken off
 * @out:         the verb, or @cmd itself where none is named
 *
 * SNAP_E_USAGE for a word that is no verb, of a command that takes no arguments.
 */
snap_status opt_select(const opt_command *cmd, int *argc, const char ***argv,
                       const opt_command **out, snap_err *err) SNAP_CHECK_RESULT;

/* The word by which a verb is called: "model" of "bench model". */
const char *opt_verb_word(const opt_command *verb);

/**
 * opt_parse - fill the values of a table
 *
 * @argv: without the program's, the command's and the verb's name
 *
 * SNAP_E_USAGE with the option quoted and what it accepts. Strings are borrowed from argv, the
 * environment and @shared: keep it until they are no longer used.
 */
snap_status opt_parse(const opt_command *cmd, int argc, const char **argv, opt_shared *shared,
                      snap_err *err) SNAP_CHECK_RESULT;
void opt_release(opt_shared *shared);

/* Appends the --help text. */
void opt_help(const opt_command *cmd, buf *out);

/* Appends the command's part of the man page (mdoc), verbs included. */
void opt_mdoc(const opt_command *cmd, buf *out);

/* Calls @fn for each option of the command, those that every command has included. */
void opt_each(const opt_command *cmd, void (*fn)(const opt *o, void *ctx), void *ctx);

#endif
