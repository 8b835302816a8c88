#include "harness/fetch/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/rng.h"
#include "base/term.h"
#include "base/text.h"
#include "generator/http/retry.h"

enum {
    kRedirects = 8,
    kSilenceS = 60,
    kEtagLimit = 1 << 10,
    kSlackBytes = 1 << 20, /* added to the expected size: error pages must fit */
    kCapS = 30,
    kServerCapS = 300,
};
static const int64_t kUnknownSizeLimit = INT64_C(1) << 40; /* limit for a file of unknown size */

typedef struct {
    const download_request *req;
    http *engine;
    int fd;
    int64_t size, most;  /* bytes in the part file: now; largest so far */
    bool resumed, begun; /* resumed: the part continues an earlier attempt; begun: this attempt's
                            body is being stored */
    bool ended;
    http_outcome outcome;
    int status;
    double retry_after_s;
    char message[200];
    snap_err disk; /* why the body could not be stored */
    term_progress progress;
} job;

/* ---- the incomplete file on disk ---- */

static char *etag_path(const char *part) {
    buf path = {0};
    char *s = buf_printf(&path, "%s.etag", part) ? buf_steal(&path) : NULL;
    buf_release(&path);
    return s;
}

void download_forget(const char *part) {
    char *etag = etag_path(part);
    (void)unlink(part);
    if (etag)
        (void)unlink(etag);
    free(etag);
}

static snap_status open_part(job *j, snap_err *err) {
    const char *part = j->req->part;
    struct stat sb;
    j->fd = open(part, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (j->fd < 0 || fstat(j->fd, &sb) != 0)
        return err_set_errno(err, "cannot open '%s'", part);
    if (!S_ISREG(sb.st_mode))
        return err_set(err, SNAP_E_IO, "cannot write '%s': it is not a regular file", part);
    j->size = j->most = sb.st_size;
    return SNAP_OK;
}

static snap_status start_over(job *j, snap_err *err) {
    j->resumed = false;
    j->size = 0;
    if (ftruncate(j->fd, 0) != 0)
        return err_set_errno(err, "cannot empty '%s'", j->req->part);
    return SNAP_OK;
}

/* Keeps a strong ETag for a later If-Range, and deletes the kept one otherwise. Only a strong ETag
 * guarantees that two answers are equal byte for byte. */
static snap_status keep_etag(const job *j, const char *etag, snap_err *err) {
    char *path = etag_path(j->req->part);
    snap_status st = SNAP_OK;
    if (!path)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", j->req->part);
    else if (etag[0] == '"' && strlen(etag) < kEtagLimit)
        st = fs_write_atomic(path, etag, strlen(etag), err);
    else
        (void)unlink(path);
    free(path);
    return st;
}

/* Reads the kept ETag. It is "" if there is none, if it cannot be read, or if it is not one line
 * that begins with a quote. */
static void read_etag(const job *j, buf *out) {
    char *path = etag_path(j->req->part);
    if (path && fs_exists(path) && fs_read(path, out, NULL) != SNAP_OK)
        buf_clear(out);
    if (strpbrk(buf_str(out), "\r\n") || buf_str(out)[0] != '"')
        buf_clear(out);
    free(path);
}

static snap_status append(job *j, const char *bytes, size_t n, snap_err *err) {
    while (n) {
        ssize_t w = write(j->fd, bytes, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return err_set_errno(err, "cannot write '%s' (%lld bytes are kept)", j->req->part,
                                 (long long)j->size);
        bytes += w;
        n -= (size_t)w;
        j->size += w;
    }
    return SNAP_OK;
}

/* ---- one attempt ---- */

/* Prepares the part file for the body: it is continued, or emptied for a whole new body. */
static snap_status place_body(job *j, const http_response *head, snap_err *err) {
    j->begun = true;
    if (head->status == 206 && head->first_byte == j->size) {
        j->resumed = true;
        return SNAP_OK;
    }
    if (head->status == 206)
        return err_set(err, SNAP_E_NET,
                       "%s: requested the bytes from %lld on, but received those from %lld on",
                       j->req->url, (long long)j->size, (long long)head->first_byte);
    snap_status st = start_over(j, err);
    return st == SNAP_OK ? keep_etag(j, head->etag, err) : st;
}

static bool on_body(void *ctx, const http_response *head, const char *bytes, size_t n) {
    job *j = ctx;
    if (head->status != 200 && head->status != 206)
        return true; /* the body of an error response is not kept */
    if (!j->begun && place_body(j, head, &j->disk) != SNAP_OK)
        return false;
    if (append(j, bytes, n, &j->disk) != SNAP_OK)
        return false;
    term_progress_update(&j->progress, j->size, j->req->name);
    return true;
}

static void on_done(void *ctx, const http_response *res) {
    job *j = ctx;
    j->ended = true;
    j->outcome = res->outcome;
    j->status = res->status;
    j->retry_after_s = res->retry_after_s;
    (void)snprintf(j->message, sizeof j->message, "%s", res->message);
    if (res->outcome == HTTP_COMPLETE && res->status == 200 && !j->begun)
        (void)place_body(j, res, &j->disk); /* an empty file */
}

static snap_status interrupted(const job *j, snap_err *err) {
    return err_set(err, SNAP_E_CANCELLED,
                   "interrupted: %lld bytes are kept in '%s'; the same command continues",
                   (long long)j->size, j->req->part);
}

static snap_status step(const job *j, int64_t until_ns, snap_err *err) {
    snap_err why = {0};
    snap_status st = http_step(j->engine, until_ns, &why);
    if (st == SNAP_E_CANCELLED)
        return interrupted(j, err);
    return st == SNAP_OK ? st : err_set(err, st, "%s: %s", j->req->url, why.text);
}

static snap_status attempt(job *j, snap_err *err) {
    buf etag = {.limit = kEtagLimit};
    char range[64], if_range[kEtagLimit + 16];
    const char *headers[2];
    int n = 0;
    snap_status st = SNAP_OK;
    read_etag(j, &etag);
    if (j->size && !etag.len && !j->req->checked)
        TRY(start_over(j, err)); /* the remaining bytes could belong to another version */
    if (j->size) {
        (void)snprintf(range, sizeof range, "Range: bytes=%lld-", (long long)j->size);
        headers[n++] = range;
    }
    if (j->size && etag.len) {
        (void)snprintf(if_range, sizeof if_range, "If-Range: %s", buf_str(&etag));
        headers[n++] = if_range;
    }
    j->begun = j->ended = false;
    int64_t most = j->req->bytes >= 0 ? j->req->bytes + kSlackBytes : kUnknownSizeLimit;
    http_request req = {.url = j->req->url,
                        .headers = headers,
                        .n_headers = n,
                        .max_redirects = kRedirects,
                        .silence_s = kSilenceS,
                        .body_limit = (size_t)most,
                        .on_body = on_body,
                        .on_done = on_done,
                        .ctx = j};
    TRY(http_start(j->engine, &req, err));
    while (!j->ended)
        TRY(step(j, INT64_MAX, err));
cleanup:
    buf_release(&etag);
    return st;
}

/* ---- retries ---- */

static snap_status fetch_error(const job *j, snap_err *err) {
    char what[260];
    if (j->outcome == HTTP_COMPLETE)
        (void)snprintf(what, sizeof what, "the server answered %d", j->status);
    else
        (void)snprintf(what, sizeof what, "%s", j->message);
    if (j->size)
        return err_set(err, SNAP_E_NET,
                       "cannot fetch %s: %s (%lld bytes are kept; the same command continues)",
                       j->req->url, what, (long long)j->size);
    return err_set(err, SNAP_E_NET, "cannot fetch %s: %s%s", j->req->url, what,
                   j->outcome == HTTP_UNREACHABLE
                       ? " (no network? --mirror fetches from another server)"
                       : "");
}

static bool is_transient(const job *j) {
    if (j->outcome == HTTP_COMPLETE)
        return retry_status(j->status) || j->status == 416;
    return j->outcome == HTTP_UNREACHABLE || j->outcome == HTTP_SILENT || j->outcome == HTTP_BROKEN;
}

static snap_status wait_for(const job *j, int failures, snap_err *err) {
    retry_policy p = {.base_s = j->req->wait_s, .cap_s = kCapS, .server_cap_s = kServerCapS};
    rng r = rng_make((uint64_t)clock_now_ns(), rng_stream_of(j->req->url));
    double wait_s = retry_delay_s(&p, failures, j->retry_after_s, rng_uniform(&r));
    int64_t until = clock_now_ns() + (int64_t)(wait_s * 1e9);
    snap_status st = SNAP_OK;
    while (st == SNAP_OK && clock_now_ns() < until)
        st = step(j, until, err);
    return st;
}

/* Makes attempts until the whole body has arrived, or until a failure is final. */
static snap_status download_body(job *j, snap_err *err) {
    snap_status st;
    for (int failures = 0;;) {
        TRY(attempt(j, err));
        if (j->disk.code != SNAP_OK)
            return err_set(err, j->disk.code, "%s", j->disk.text);
        if (j->outcome == HTTP_COMPLETE && (j->status == 200 || j->status == 206))
            return SNAP_OK;
        /* Only bytes beyond the largest size so far count as progress. A server that restarts from
         * byte 0 each time and always fails at the same place makes none. */
        failures = j->size > j->most ? 1 : failures + 1;
        j->most = j->size > j->most ? j->size : j->most;
        if (!is_transient(j) || failures > j->req->retries)
            return fetch_error(j, err);
        if (j->status == 416 && j->outcome == HTTP_COMPLETE)
            TRY(start_over(j, err)); /* the part is as long as the file, or longer */
        TRY(wait_for(j, failures, err));
    }
cleanup:
    return st;
}

static snap_status check_size(const job *j, snap_err *err) {
    if (j->req->bytes < 0 || j->size == j->req->bytes)
        return SNAP_OK;
    download_forget(j->req->part);
    return err_set(err, SNAP_E_INPUT,
                   "%s has %lld bytes, but the manifest says %lld; the download was deleted",
                   j->req->url, (long long)j->size, (long long)j->req->bytes);
}

snap_status download(http *h, const download_request *req, bool *resumed, snap_err *err) {
    job j = {.req = req, .engine = h, .fd = -1};
    snap_status st;
    TRY(open_part(&j, err));
    if (req->bytes >= 0 && j.size > req->bytes)
        TRY(start_over(&j, err));
    j.progress = term_progress_start("fetch", req->bytes > 0 ? req->bytes : 0);
    j.resumed = j.size > 0 && j.size == req->bytes; /* all bytes came earlier; only the check is
                                                       left */
    if (!j.resumed)
        st = download_body(&j, err);
    term_progress_end(&j.progress);
    if (st == SNAP_OK && fsync(j.fd) != 0)
        st = err_set_errno(err, "cannot sync '%s'", req->part);
    if (st == SNAP_OK)
        st = check_size(&j, err);
    if (resumed)
        *resumed = j.resumed;
cleanup:
    if (j.fd >= 0 && st != SNAP_OK && j.size == 0) /* there is nothing to continue from */
        download_forget(req->part);
    if (j.fd >= 0)
        (void)close(j.fd);
    return st;
}
