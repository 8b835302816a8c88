/* gate_verdicts.h - a gate's verdicts for people and for CI: a table, files, lines of a job's log.
 *
 * Each writer appends to a buffer, whose `failed` says whether memory ran out. Names and reasons
 * come from outside and are escaped. @rows: of the `verdicts` section (gate/verdicts.h). */
#ifndef SNAPMLA_HARNESS_VIEW_GATE_VERDICTS_H
#define SNAPMLA_HARNESS_VIEW_GATE_VERDICTS_H

#include "base/json.h"
#include "harness/record/verdict.h"
#include "harness/view/table.h"

/* A table for a terminal, then each reason once. @color: heads in bold. */
void verdicts_text(const js *rows, bool color, buf *out);

/* A table for a pull request or a job's summary. @title: "snapmla gate". */
void verdicts_markdown(const js *rows, const char *title, buf *out);

/* JUnit XML, one test case for each row. Regressions and wrong results are failures, what is
 * undecided is an error; noise and reports pass with a note. */
void verdicts_junit(const js *rows, buf *out);

/* Workflow commands of GitHub Actions, ::error and ::warning: one line for each row that is not
 * ok. */
void verdicts_github(const js *rows, buf *out);

/* GitLab's code quality report: an array of issues. @file: the path that GitLab shows them at. */
void verdicts_gitlab(const js *rows, const char *file, buf *out);

/* The rows of history_changes() as a table; the caller releases it. */
table changes_table(const js *rows);

/* ---- what the writers share ---- */

/* "regressed: +5.10 %, 90 % interval [+4.20, +6.00] %, threshold +2.00 %; reason" */
void verdict_message(const verdict_record *v, buf *out);

bool verdict_is_failure(const verdict_record *v); /* regressed or wrong */

#endif
