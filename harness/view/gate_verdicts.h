/* gate_verdicts.h - writes a gate's verdicts for readers and for CI: a table, files, log lines.
 *
 * Each writer appends to a buffer. If memory is exhausted, it sets the buffer's `failed`. Names and
 * reasons come from files. They are shown as by text_show(), and all writers but verdicts_text()
 * also escape them for their format. @rows: the `verdicts` section (gate/verdicts.h). */
#ifndef SNAPMLA_HARNESS_VIEW_GATE_VERDICTS_H
#define SNAPMLA_HARNESS_VIEW_GATE_VERDICTS_H

#include "base/json.h"
#include "harness/record/verdict.h"
#include "harness/view/table.h"

/* Writes a table for a terminal, then each reason once. @color: heads in bold. */
void verdicts_text(const js *rows, bool color, buf *out);

/* Writes a Markdown table for a pull request or for the summary page of a CI job. @title: the
 * heading above the table, for example "snapmla gate". */
void verdicts_markdown(const js *rows, const char *title, buf *out);

/* Writes JUnit XML with one test case for each row. Regressions and wrong results are failures.
 * Other bad verdicts, such as inconclusive, are errors. The other rows pass; their message is the
 * output of the test case. */
void verdicts_junit(const js *rows, buf *out);

/* Writes workflow commands of GitHub Actions: one ::error or ::warning line for each row with a bad
 * verdict (verdict_is_bad()) or the verdict `noise`. */
void verdicts_github(const js *rows, buf *out);

/* Writes GitLab's code quality report, an array with one issue for each bad verdict. @file: the
 * path that GitLab shows for the issues. */
void verdicts_gitlab(const js *rows, const char *file, buf *out);

/* The rows of history_changes() as a table; the caller releases it. */
table changes_table(const js *rows);

/* ---- shared by the writers ---- */

/* "fp8 kernel H16 s1 b1 c1024, mean": the name of the row and, if it has one, its statistic. */
void verdict_title(const verdict_record *v, buf *out);

/* "regressed: +5.10 %, 90 % interval [+4.20, +6.00] %, threshold +2.00 %; reason" */
void verdict_message(const verdict_record *v, buf *out);

bool verdict_is_failure(const verdict_record *v); /* the verdict is regressed or wrong */

#endif
