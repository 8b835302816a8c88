/* parquet.h - reads Parquet files, row by row, as JSON objects.
 *
 * It reads data pages of both versions; the encodings PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY and,
 * for truth values, RLE; no compression, Snappy, gzip and Zstandard; lists, structs and maps of the
 * types BOOLEAN, INT32, INT64, FLOAT, DOUBLE and BYTE_ARRAY.
 *
 * A list becomes an array, a struct an object, a map an array of {"key", "value"} objects, and a
 * missing value null. A BYTE_ARRAY becomes a text, in which malformed UTF-8 is U+FFFD. NaN and
 * infinities become null. Dates and times keep the integer that the file has. */
#ifndef SNAPMLA_BASE_PARQUET_H
#define SNAPMLA_BASE_PARQUET_H

#include "base/json.h"

/* Limits for a file from an untrusted source. Reading takes about 20 bytes of memory for each value
 * of a row group, and its unpacked pages. */
typedef struct {
    size_t values; /* limit for all columns and dictionaries together. A missing value and an empty
                      list count as one value. A file of n bytes may not have more than 2^20 + 1000
                      n values in any case. */
    size_t bytes;  /* limit for all unpacked pages and all texts in the rows together. Each text in
                      a row counts, because many rows may share one text of a dictionary. */
} parquet_limits;

/* Receives a row, which is valid during the call; @number counts from 1. An error stops the
 * reading. */
typedef snap_status (*parquet_row_fn)(void *ctx, js *row, long number, snap_err *err);

/**
 * parquet_each_row - read a file from memory
 *
 * @name: stands for the file in messages
 *
 * SNAP_E_INPUT: not a Parquet file, damaged, or beyond the limits. SNAP_E_UNSUPPORTED: an encrypted
 * file, or a column of another type, encoding or compression; the message names the column.
 * SNAP_E_NOMEM. Errors of @fn.
 */
snap_status parquet_each_row(const void *bytes, size_t n, const char *name, parquet_limits limits,
                             parquet_row_fn fn, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
