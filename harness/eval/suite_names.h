/* suite_names.h - the names of the shipped suites. */
#ifndef SNAPMLA_HARNESS_EVAL_SUITE_NAMES_H
#define SNAPMLA_HARNESS_EVAL_SUITE_NAMES_H

#include "base/arena.h"

enum { SUITE_NAMES = 32 };

/* Writes the names of the files configs/suites/NAME.json in alphabetical order, at most
 * SUITE_NAMES, and NULL after the last one. @mem owns them. The list is empty if the folder cannot
 * be read. */
void suite_names(arena *mem, const char *out[SUITE_NAMES + 1]);

#endif
