/* print.h - prints results to standard output. */
#ifndef SNAPMLA_HARNESS_CMD_PRINT_H
#define SNAPMLA_HARNESS_CMD_PRINT_H

#include "base/json.h"
#include "harness/opt.h"
#include "harness/record/results.h"
#include "harness/view/table.h"

/* SNAP_E_IO if writing fails. After a noted fault it prints nothing and returns the error of
 * fault_of_process(). */
snap_status print_bytes(const char *s, size_t n, snap_err *err) SNAP_CHECK_RESULT;

/* Prints @text and empties it. @what names the text in messages. SNAP_E_NOMEM if the text is
 * incomplete; errors of print_bytes(). */
snap_status print_text(buf *text, const char *what, snap_err *err) SNAP_CHECK_RESULT;

/* Prints a value as indented JSON, the form of --json, shown as by js_write_shown(). SNAP_E_NOMEM
 * if @value is NULL. */
snap_status print_json(const js *value, snap_err *err) SNAP_CHECK_RESULT;

/* Prints a table as text. Heads are bold if colours are used. */
snap_status print_table(const table *t, snap_err *err) SNAP_CHECK_RESULT;

/* Prints the result document with --json, else the table. */
snap_status print_results(const results *r, const opt_shared *shared, const table *t,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Prints the result document with --json, else the tables of its evaluations. */
snap_status print_evals(const results *r, const opt_shared *shared,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
