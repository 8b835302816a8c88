/* download.h - one URL into one file, over a network that breaks off.
 *
 * What came is kept in the file, so that the next attempt, of this process or of a later one, asks
 * for the rest (RFC 9110, sec. 14: Range). The rest is taken only of the same file: either a
 * checksum will be compared afterwards, or the server's strong ETag is kept beside the file, in
 * PART.etag, and sent as If-Range. A server that ignores Range sends the whole file again. */
#ifndef SNAPMLA_HARNESS_FETCH_DOWNLOAD_H
#define SNAPMLA_HARNESS_FETCH_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/http.h"

typedef struct {
    const char *url, *part; /* from, to; what PART holds already is gone on with */
    const char *name;       /* for the progress line */
    int64_t bytes;          /* expected; -1 = not known */
    bool checked;           /* a checksum will be compared */
    int retries;            /* attempts in a row, after the first, that may bring nothing */
    double wait_s;          /* before the second attempt; doubles */
} download_request;

/**
 * download - bring the whole file into @req->part, synced to disk
 *
 * @resumed: whether its beginning is of an earlier attempt; may be NULL
 *
 * Follows at most 8 redirects. SNAP_E_NET with the URL when it can't be had; SNAP_E_IO when the
 * disk refuses; SNAP_E_INPUT when it is longer or shorter than expected; SNAP_E_CANCELLED. All but
 * SNAP_E_INPUT keep what came. After a failure @h may only be freed.
 */
snap_status download(http *h, const download_request *req, bool *resumed,
                     snap_err *err) SNAP_CHECK_RESULT;

/* Deletes PART and what is kept beside it. */
void download_forget(const char *part);

#endif
