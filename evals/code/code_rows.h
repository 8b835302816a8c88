/* code_rows.h - what the tasks share whose answers are programs: rows that are read again when a
 * program is judged, since their tests may be larger than memory (LiveCodeBench has 4.5 GB of them). */
#ifndef SNAPMLA_EVALS_CODE_CODE_ROWS_H
#define SNAPMLA_EVALS_CODE_CODE_ROWS_H

#include "evals/task_rows.h"

/* Reads a file of JSON lines (a name that ends in .gz: packed by gzip), row by row, and adds its
 * problems. A row's gold is the SHA-256 of its line. *digest: of the file. */
snap_status code_rows_read(task_rows *r, const char *path, char digest[HASH_HEX],
                           snap_err *err) SNAP_CHECK_RESULT;

/* task_spec.load for a set of one file. */
snap_status code_rows_load(task_rows *r, snap_err *err) SNAP_CHECK_RESULT;

/* Unpacks gzip: appended. SNAP_E_INPUT naming @where; SNAP_E_NOMEM past out->limit. */
snap_status code_gunzip(const buf *packed, buf *out, const char *where,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
