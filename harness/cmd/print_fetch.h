/* print_fetch.h - what `snapmla fetch` prints about data sets */
#ifndef SNAPMLA_HARNESS_CMD_PRINT_FETCH_H
#define SNAPMLA_HARNESS_CMD_PRINT_FETCH_H

#include "harness/fetch/choice.h"

/* Prints the chosen data sets and which of them the folder @dir contains, as a table or as JSON.
 * Errors: those of fetch_list() and of printing. */
snap_status print_fetch_list(const fetch_choice *c, const char *dir, bool json,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Prints the home page, the licence and the notice of each chosen data set to standard error. */
void print_fetch_notices(const fetch_choice *c);

#endif
