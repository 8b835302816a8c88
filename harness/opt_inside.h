/* opt_inside.h - private declarations shared by opt.c and opt_help.c. */
#ifndef SNAPMLA_HARNESS_OPT_INSIDE_H
#define SNAPMLA_HARNESS_OPT_INSIDE_H

#include "base/nearest.h"
#include "harness/opt.h"

/* opt_shared_table() fills @table with the options that every command has, and their heading. Their
 * values are fields of @sh. */
enum { OPT_SHARED = 7 };
void opt_shared_table(opt_shared *sh, opt table[OPT_SHARED]);

/* Appends a JSON scalar in the form that the command line uses. Returns false for any other type,
 * and if memory is exhausted. */
bool opt_scalar_text(const js *v, buf *out);

/* The value of an option in the form of the resolved configuration; NULL if memory is exhausted. */
js *opt_value_json(const opt *o);

/* Writes " (did you mean 'NAME'?)" with the option of the command whose name is nearest to @word,
 * or "" if none is near. If @word begins with two dashes, so does the name. Returns @out. */
const char *opt_hint(const opt_command *cmd, const char *word, char out[NEAREST_HINT]);

/* Writes the name of the environment variable of an option. */
enum { OPT_ENV_NAME = 64 };
void opt_env_name(const char *option, char out[OPT_ENV_NAME]);

#endif
