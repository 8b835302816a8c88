/* download.h - downloads one URL into one file over an unreliable connection.
 *
 * The bytes that arrived are kept in the part file. The next attempt, by this process or by a later
 * one, requests only the rest (RFC 9110, sec. 14: Range). The rest must belong to the same version
 * of the file. There are two means: the caller compares a checksum afterwards, and the server's
 * strong ETag is kept beside the file, in PART.etag, and sent as If-Range. Without either, the
 * download starts over. A server that ignores Range sends the whole file again. */
#ifndef SNAPMLA_HARNESS_FETCH_DOWNLOAD_H
#define SNAPMLA_HARNESS_FETCH_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/http.h"

typedef struct {
    const char *url, *part; /* source and destination; a PART that already exists is continued */
    const char *name;       /* name of the file in the progress line */
    int64_t bytes;          /* expected; -1 = not known */
    bool checked;           /* true if the caller compares a checksum afterwards */
    int retries;            /* most retries in a row without progress; errors that are not transient
                               are not retried */
    double wait_s;          /* longest wait in seconds before the second attempt; doubles with each
                               failure, up to 30, unless the server names a time (retry.h) */
} download_request;

/**
 * download - download the whole file into @req->part and sync it to disk
 *
 * @resumed: set to whether the beginning came from an earlier attempt; may be NULL
 *
 * Follows at most 8 redirects. Returns SNAP_E_NET with the URL if the file cannot be fetched,
 * SNAP_E_IO if the part file or its ETag cannot be written, SNAP_E_INPUT if the file is longer or
 * shorter than expected (SNAP_E_NET if longer by more than 1 MiB), SNAP_E_USAGE if http_check_url()
 * refuses the URL, SNAP_E_CANCELLED and SNAP_E_NOMEM. After SNAP_E_INPUT, or if it is empty after
 * another failure, the part file is deleted; otherwise it keeps the bytes that arrived. After a
 * failure @h may only be freed.
 */
snap_status download(http *h, const download_request *req, bool *resumed,
                     snap_err *err) SNAP_CHECK_RESULT;

/* Deletes PART and PART.etag. */
void download_forget(const char *part);

#endif
