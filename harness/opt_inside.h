/* opt_inside.h - what opt.c and opt_help.c share. */
#ifndef SNAPMLA_HARNESS_OPT_INSIDE_H
#define SNAPMLA_HARNESS_OPT_INSIDE_H

#include "harness/opt.h"

/* The options that every command has, bound to @sh. */
enum { OPT_SHARED = 7 };
void opt_shared_table(opt_shared *sh, opt table[OPT_SHARED]);

/* A scalar of JSON as the text that a flag would bring, appended; false for anything else. */
bool opt_scalar_text(const js *v, buf *out);

/* The value of an option, as the resolved configuration has it; NULL when out of memory. */
js *opt_value_json(const opt *o);

#endif
