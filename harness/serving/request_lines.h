/* request_lines.h - requests.jsonl: one line for each request of a serving benchmark.
 *
 *   {"arm":0,"point":0,"block":1,"index":7,"due":1.25,"sent":1.250012,"first":1.301,"end":2.5,
 *    "prompt_tokens":512,"completion_tokens":64,"wanted_tokens":64,"pieces":64,
 *    "gap_us":[19012,18990],"lag":0.000041,"received_lag":0.000029,"cut":true,"failed":true,
 *    "error":"HTTP 503"}
 *
 * A run by several processes also has "part": the process that sent the request, from 1.
 * Times are seconds with six decimals, gaps are microseconds. What is unknown (-1 in
 * serving_request) and what is false is left out. */
#ifndef SNAPMLA_HARNESS_SERVING_REQUEST_LINES_H
#define SNAPMLA_HARNESS_SERVING_REQUEST_LINES_H

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "harness/serving/request.h"

/* Appends the line of a request, with its newline. */
void request_line_append(const serving_request *r, buf *out);

typedef struct {
    serving_request *at; /* [n], owned by mem, as are their gaps and errors */
    size_t n, capacity;
    arena mem;
} request_list;

/**
 * request_lines_parse - read lines
 *
 * @name: stands for the text in messages
 * @out:  all zero; release with request_list_release(), also after a failure
 *
 * SNAP_E_INPUT with "name:line: reason" for a line of another form: times that are negative or not
 * in order, counts below 0, a number of gaps other than pieces - 1. SNAP_E_NOMEM.
 */
snap_status request_lines_parse(const char *text, size_t n, const char *name, request_list *out,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Reads the lines of a file of at most 4 GiB. The errors are those of request_lines_parse() and
 * SNAP_E_IO. */
snap_status request_lines_read(const char *path, request_list *out,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Reads what was appended to such a file since the last call: all lines after the first *from
 * bytes. Sets *from to the size of the file. Errors of request_lines_read(). */
snap_status request_lines_read_new(const char *path, int64_t *from, request_list *out,
                                   snap_err *err) SNAP_CHECK_RESULT;

/* Appends a copy of a request. SNAP_E_NOMEM. */
snap_status request_list_add(request_list *list, const serving_request *r,
                             snap_err *err) SNAP_CHECK_RESULT;
void request_list_release(request_list *list);

#endif
