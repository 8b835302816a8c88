#include "base/http_plain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fault.h"

/* ---- the request ---- */

static bool is_header(const char *line, const char *name) {
    size_t n = strlen(name);
    return strncasecmp(line, name, n) == 0 && line[n] == ':';
}

static bool has_header(const http_request *req, const char *name) {
    for (int i = 0; i < req->n_headers + req->n_secrets; i++)
        if (is_header(i < req->n_headers ? req->headers[i] : req->secrets[i - req->n_headers],
                      name))
            return true;
    return false;
}

bool plain_can_send(const http_request *req) {
    static const char *const special[] = {"Content-Length", "Transfer-Encoding", "Connection",
                                          "Expect",         "Upgrade",           "TE"};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (has_header(req, special[i]))
            return false;
    return req->body != NULL;
}

/* Writes the headers that have a value. libcurl, too, sends no header "Name:". */
static void write_headers(buf *out, const char *const *headers, int n) {
    for (int i = 0; i < n; i++) {
        const char *value = strchr(headers[i], ':') + 1;
        if (value[strspn(value, " \t")])
            (void)buf_printf(out, "%s\r\n", headers[i]);
    }
}

static void write_head(buf *out, const http_request *req, const http_url_parts *p) {
    static const char *const defaults[][2] = {
        {"User-Agent", "snapmla"},
        {"Accept", "*/*"},
        {"Content-Type", "application/x-www-form-urlencoded"}};
    bool usual = strcmp(p->port, "80") == 0;
    (void)buf_printf(out, "POST %s%s%s HTTP/1.1\r\n", p->path, p->query ? "?" : "",
                     p->query ? p->query : "");
    if (!has_header(req, "Host"))
        (void)buf_printf(out, "Host: %s%s%s\r\n", p->host, usual ? "" : ":", usual ? "" : p->port);
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (!has_header(req, defaults[i][0]))
            (void)buf_printf(out, "%s: %s\r\n", defaults[i][0], defaults[i][1]);
    write_headers(out, req->headers, req->n_headers);
    write_headers(out, req->secrets, req->n_secrets);
    (void)buf_printf(out, "Content-Length: %zu\r\n\r\n", req->body_len);
}

bool plain_prepare(plain_exchange *x, const http_request *req, const http_url_parts *p) {
    buf origin = {0};
    (void)buf_printf(&origin, "%s:%s", p->host, p->port);
    write_head(&x->head, req, p);
    x->body = req->body;
    x->body_len = req->body_len;
    x->origin = buf_steal(&origin);
    buf_release(&origin);
    return x->origin && !x->head.failed;
}

/* ---- the exchange ---- */

static void close_connection(plain_exchange *x) {
    if (x->conn)
        http_conn_close(x->conn);
    x->conn = NULL;
}

void plain_release(plain_exchange *x) {
    close_connection(x);
    free(x->origin);
    buf_release(&x->head);
    http_answer_release(&x->answer);
}

static bool would_block(void) {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static bool is_sent(const plain_exchange *x) {
    return x->sent == x->head.len + x->body_len;
}

static void note_error(plain_exchange *x, const char *what) {
    char text[100];
    (void)snprintf(x->why, sizeof x->why, "%s failed: %s", what,
                   strerror_r(errno, text, sizeof text));
}

static void end_output(plain_exchange *x) {
    x->output_ends = true;
    note_error(x, "sending the request");
}

void plain_send(plain_exchange *x) {
    while (!x->output_ends && !is_sent(x)) {
        ssize_t n =
            http_conn_send(x->conn, x->head.data, x->head.len, x->body, x->body_len, x->sent);
        if (n > 0)
            x->sent += (size_t)n;
        else if (would_block())
            break;
        else
            end_output(x);
    }
    if (!http_conn_watch_output(x->conn, !x->output_ends && !is_sent(x)))
        fault_note(SNAP_E_IO, "a socket cannot be watched");
}

answer_state plain_receive(plain_exchange *x, char *bytes, size_t n, plain_input *in) {
    *in = (plain_input){0};
    ssize_t got = http_conn_receive(x->conn, bytes, n, &in->arrived_ns);
    in->came = got >= 0 || !would_block();
    in->is_full = got == (ssize_t)n;
    if (got > 0)
        return http_answer_take(&x->answer, bytes, (size_t)got, &in->n_body);
    if (!in->came)
        return ANSWER_OPEN;
    /* Once send() has returned the error of a reset, recv() reports the end of the connection. So
     * after an error of send() the end does not mean that the body is complete. */
    if (got == 0 && !x->output_ends)
        return http_answer_close(&x->answer);
    if (got < 0)
        note_error(x, "receiving the response");
    return ANSWER_BROKEN;
}

bool plain_may_retry(const plain_exchange *x) {
    return http_conn_is_reused(x->conn) && !x->answer.begun;
}

void plain_restart(plain_exchange *x) {
    close_connection(x);
    http_answer_clear(&x->answer);
    x->sent = 0;
    x->output_ends = false;
    x->why[0] = '\0';
}

void plain_end(plain_exchange *x) {
    if (x->conn && x->answer.state == ANSWER_COMPLETE && x->answer.keeps && is_sent(x)) {
        http_conn_keep(x->conn);
        x->conn = NULL;
    }
    close_connection(x);
}
