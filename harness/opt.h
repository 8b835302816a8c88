/* opt.h - one table per command is its parser, its --help, its --print-config and its part of the man page.
 *
 * A value comes from, later wins: the table's default, --config FILE (a JSON object whose keys are the
 * long names), the environment (SNAPMLA_ and the long name in capitals, - as _), the flags. An
 * unknown key or flag is an error that names it. */
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
    OPT_GROUP, /* heading in --help: only `help` is used */
    OPT_END,
} opt_type;

enum { OPT_LIST_MAX = 64 };
typedef struct {
    const char *items[OPT_LIST_MAX];
    int n;
} opt_list;

typedef struct {
    opt_type type;
    const char *name;     /* long name without dashes */
    char letter;          /* short form; 0 = none */
    void *value;          /* see opt_type; holds the default before parsing */
    const char *argument; /* placeholder in help: "FILE", "N"; NULL for flags */
    const char *help;     /* one or two sentences, lower case, no full stop */
    double min, max;      /* OPT_INT and OPT_NUM; both 0 = no bounds */
} opt;

typedef struct {
    const char *name;       /* "bench" */
    const char *synopsis;   /* "[options]", "FILE..." */
    const char *about;      /* one paragraph */
    const char *examples;   /* two lines at least */
    const char *exits;      /* its exit codes; NULL = those that most have */
    const opt *options;     /* OPT_END-terminated; the shared ones (--json ...) are added */
    int min_args, max_args; /* positional arguments; max_args -1 = any number */
} opt_command;

/* What every command has: parsed along with its own options. */
typedef struct {
    bool help, json, print_config, quiet;
    const char *color, *config;
    const char **args; /* positional */
    int n_args;
    js *resolved; /* the whole configuration by long name, owned by opt_release() */
    js *file;     /* what --config brought; strings point into it */
} opt_shared;

/**
 * opt_parse - fill the values of a table
 *
 * @argv: without the program's and the command's name
 *
 * SNAP_E_USAGE with the option quoted and what it accepts. Strings are borrowed from argv, the
 * environment and @shared: keep it until they are no longer used.
 */
snap_status opt_parse(const opt_command *cmd, int argc, const char **argv, opt_shared *shared,
                      snap_err *err) SNAP_CHECK_RESULT;
void opt_release(opt_shared *shared);

/* The --help text, appended. @mdoc: the man page's OPTIONS source instead. */
void opt_help(const opt_command *cmd, buf *out);
void opt_mdoc(const opt_command *cmd, buf *out);

/* The options as words of a shell: " --suite --data ... -s -d". */
void opt_words(const opt_command *cmd, buf *out);

#endif
