#include "base/http_plain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void plain_send(plain_exchange *x) {
    while (!x->output_ends && !is_sent(x)) {
        ssize_t n =
            http_conn_send(x->conn, x->head.data, x->head.len, x->body, x->body_len, x->sent);
        if (n > 0)
            x->sent += (size_t)n;
        else if (would_block())
            break;
        else
            x->output_ends = true;
    }
    if (!http_conn_watch_output(x->conn, !x->output_ends && !is_sent(x)))
        x->output_ends = true;
}

answer_state plain_receive(plain_exchange *x, char *bytes, size_t n, size_t *n_body,
                           int64_t *arrived_ns, bool *came) {
    ssize_t got = http_conn_receive(x->conn, bytes, n, arrived_ns);
    *n_body = 0;
    *came = got >= 0 || !would_block();
    if (got > 0)
        return http_answer_take(&x->answer, bytes, (size_t)got, n_body);
    if (got == 0)
        return http_answer_close(&x->answer);
    if (!*came)
        return ANSWER_OPEN;
    char text[100];
    (void)snprintf(x->why, sizeof x->why, "receiving the response failed: %s",
                   strerror_r(errno, text, sizeof text));
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
