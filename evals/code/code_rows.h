/* code_rows.h - code that the tasks with programs share. Their rows are read again when a
 * program is judged, because the tests may be larger than memory (those of LiveCodeBench take
 * several GB). */
#ifndef SNAPMLA_EVALS_CODE_CODE_ROWS_H
#define SNAPMLA_EVALS_CODE_CODE_ROWS_H

#include "evals/task_rows.h"

/* Reads a file of JSON lines row by row and adds its problems. A name that ends in .gz means gzip.
 * The gold of a row is the SHA-256 of its line. *digest becomes the file's SHA-256. */
snap_status code_rows_read(task_rows *r, const char *path, char digest[HASH_HEX],
                           snap_err *err) SNAP_CHECK_RESULT;

/* task_spec.load for a set with one file. */
snap_status code_rows_load(task_rows *r, snap_err *err) SNAP_CHECK_RESULT;

/* Unpacks gzip and appends to @out. SNAP_E_INPUT with @where; SNAP_E_NOMEM, also past
 * out->limit. */
snap_status code_gunzip(const buf *packed, buf *out, const char *where,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
