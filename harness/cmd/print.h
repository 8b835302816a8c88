/* print.h - how results reach standard output. */
#ifndef SNAPMLA_HARNESS_CMD_PRINT_H
#define SNAPMLA_HARNESS_CMD_PRINT_H

#include "base/json.h"
#include "harness/opt.h"
#include "harness/record/results.h"
#include "harness/view/table.h"

snap_status print_bytes(const char *s, size_t n, snap_err *err) SNAP_CHECK_RESULT;

/* Prints @text, which messages call @what, and empties it. SNAP_E_NOMEM where it is incomplete. */
snap_status print_text(buf *text, const char *what, snap_err *err) SNAP_CHECK_RESULT;

/* Prints a value over several lines, as --json does. NULL: SNAP_E_NOMEM. */
snap_status print_json(const js *value, snap_err *err) SNAP_CHECK_RESULT;

/* Prints the columns, their heads in bold where the terminal takes colours. */
snap_status print_table(const table *t, snap_err *err) SNAP_CHECK_RESULT;

/* The document with --json, else the table. */
snap_status print_results(const results *r, const opt_shared *shared, const table *t,
                          snap_err *err) SNAP_CHECK_RESULT;

/* The document with --json, else the table of its evaluations. */
snap_status print_evals(const results *r, const opt_shared *shared,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
