/* opt_names.c - the options and environment variables that a misspelt name may stand for. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/term.h"
#include "base/text.h"
#include "harness/opt_inside.h"

enum { kNames = 512 };

/* A list for nearest_name(). Names beyond the last place are dropped. */
typedef struct {
    const char *names[kNames + 1];
    size_t n;
} name_list;

static void add_name(name_list *list, const char *name) {
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->names[i], name) == 0)
            return;
    if (list->n < kNames)
        list->names[list->n++] = name;
}

static void add_option(const opt *o, void *ctx) {
    add_name(ctx, o->name);
}

const char *opt_hint(const opt_command *cmd, const char *word, char out[NEAREST_HINT]) {
    name_list list = {0};
    bool dashes = text_starts(word, "--");
    opt_each(cmd, add_option, &list);
    return nearest_hint(dashes ? word + 2 : word, list.names, dashes ? "--" : "", out);
}

/* ---- the environment ---- */

static const char kPrefix[] = "SNAPMLA_";

/* Variables that are no options, in the form of an option's name. "gpu" is read by the jobs in
 * ci/jobs, and the launcher of ranks sets the last two (generator/local/ranks/place.h). */
static const char *const kOthers[] = {"api-key",      "langdetect", "punkt",         "share",
                                      "gpu",          "serve-key",  "python",        "python-arm",
                                      "python-trace", "nccl",       "rank-listener", "rank-report"};

void opt_env_name(const char *option, char out[OPT_ENV_NAME]) {
    size_t n = (size_t)snprintf(out, OPT_ENV_NAME, "%s%s", kPrefix, option);
    for (size_t i = sizeof kPrefix - 1; i < n && i < OPT_ENV_NAME - 1; i++)
        out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
}

static void add_command(name_list *list, const opt_command *cmd) {
    opt_each(cmd, add_option, list);
    for (const opt_command *const *v = cmd->verbs; v && *v; v++)
        opt_each(*v, add_option, list);
}

/* Warns about the variable unless it is known. @options: the names of options, and kOthers.
 * @values: the resolved configuration as text. */
static void check_variable(const char *variable, const name_list *options, const char *values) {
    char name[OPT_ENV_NAME], word[OPT_ENV_NAME], known[OPT_ENV_NAME];
    size_t n = strcspn(variable, "="), prefix = sizeof kPrefix - 1;
    (void)snprintf(name, sizeof name, "%.*s", (int)n, variable);
    (void)snprintf(word, sizeof word, "%s", name + prefix);
    for (size_t i = 0; word[i]; i++)
        word[i] = word[i] == '_' ? '-' : (char)tolower((unsigned char)word[i]);
    for (size_t i = 0; i < options->n; i++) {
        opt_env_name(options->names[i], known);
        if (strcmp(known, name) == 0)
            return;
    }
    if (strstr(values, name))
        return;
    const char *near = nearest_name(word, options->names);
    opt_env_name(near ? near : "", known);
    term_warn("the environment variable '%.*s' is unknown and has no effect%s%s%s", (int)n,
              variable, near ? " (did you mean '" : "", near ? known : "", near ? "'?)" : "");
}

void opt_check_environment(const opt_command *const *commands, const js *resolved,
                           char *const *variables) {
    name_list options = {0};
    buf values = {0};
    snap_err unused = {0};
    for (; *commands; commands++)
        add_command(&options, *commands);
    for (size_t i = 0; i < sizeof kOthers / sizeof *kOthers; i++)
        add_name(&options, kOthers[i]);
    bool written = js_write(resolved, JS_COMPACT, &values, &unused) == SNAP_OK;
    for (; written && *variables; variables++)
        if (text_starts(*variables, kPrefix))
            check_variable(*variables, &options, buf_str(&values));
    buf_release(&values);
}
