#include "harness/serving/meeting.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum { kLine = 256, kPollMs = 100, kHelloMs = 2000 };

typedef struct {
    int fd; /* -1 = none */
    size_t n;
    char line[kLine]; /* [n] received bytes that take_line() has not moved out yet */
} peer;

struct meeting {
    meeting_options opt;
    int listener;                  /* in part 1: the socket that listens; else -1 */
    peer peers[MEETING_PARTS_MAX]; /* in part 1: [i] is part i + 1; else only [0], part 1 */
};

static bool leads(const meeting *m) {
    return m->opt.part.index == 1;
}

static snap_status check_cancel(const meeting *m, snap_err *err) {
    if (m->opt.cancel && *m->opt.cancel)
        return err_set(err, SNAP_E_CANCELLED, "cancelled");
    return SNAP_OK;
}

static void hang_up(peer *p) {
    if (p->fd >= 0)
        (void)close(p->fd);
    *p = (peer){.fd = -1};
}

/* ---- lines ---- */

static bool send_line(const peer *p, const char *word, const char *rest) {
    char line[kLine];
    int n = snprintf(line, sizeof line, "%s%s%s\n", word, *rest ? " " : "", rest);
    return n > 0 && n < kLine && send(p->fd, line, (size_t)n, MSG_NOSIGNAL) == n;
}

/* Moves a complete line to @line, without its end. */
static bool take_line(peer *p, char line[kLine]) {
    char *end = memchr(p->line, '\n', p->n);
    if (!end)
        return false;
    size_t n = (size_t)(end - p->line);
    memcpy(line, p->line, n);
    line[n] = '\0';
    p->n -= n + 1;
    memmove(p->line, end + 1, p->n);
    return true;
}

/* Reads a line within @ms; -1: as long as it takes. Returns SNAP_E_NET, without a message, if the
 * connection ended, if the line is too long, or if it did not come in time. SNAP_E_CANCELLED. */
static snap_status read_line(const meeting *m, peer *p, int ms, char line[kLine], snap_err *err) {
    int64_t end_ns = ms < 0 ? INT64_MAX : clock_now_ns() + ms * INT64_C(1000000);
    snap_status st = SNAP_OK;
    while (st == SNAP_OK && !take_line(p, line)) {
        struct pollfd one = {.fd = p->fd, .events = POLLIN};
        ssize_t n = 1;
        if (poll(&one, 1, kPollMs) > 0) {
            n = recv(p->fd, p->line + p->n, sizeof p->line - p->n, 0);
            p->n += n > 0 ? (size_t)n : 0;
        }
        st = check_cancel(m, err);
        if (st == SNAP_OK && (n <= 0 || clock_now_ns() > end_ns))
            st = SNAP_E_NET;
    }
    return st;
}

/* ---- the address of part 1 ---- */

/* Resolves "HOST:PORT"; the caller frees the list. */
static snap_status resolve(const char *place, bool listen, struct addrinfo **out, snap_err *err) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = listen ? AI_PASSIVE : 0};
    char host[200];
    const char *colon = strrchr(place, ':');
    size_t n = colon ? (size_t)(colon - place) : 0;
    int64_t port;
    if (!n || n >= sizeof host || !text_to_int(colon + 1, &port) || port < 1 || port > 65535)
        return err_set(err, SNAP_E_USAGE, "--meet '%s' must be HOST:PORT", place);
    bool bracketed = n > 2 && place[0] == '[' && place[n - 1] == ']';
    (void)snprintf(host, sizeof host, "%.*s", (int)(bracketed ? n - 2 : n), place + bracketed);
    int rc = getaddrinfo(host, colon + 1, &hints, out);
    if (rc == EAI_MEMORY)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", place);
    if (rc != 0)
        return err_set(err, SNAP_E_NET, "--meet '%s': %s", place, gai_strerror(rc));
    return SNAP_OK;
}

static int listen_at(const struct addrinfo *at) {
    int one = 1, fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, MEETING_PARTS_MAX) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* Lets the connection end if the other host disappears, and sends lines without delay. */
static void set_up(int fd) {
    const int one = 1, idle_s = 30, gap_s = 10, probes = 3;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &gap_s, sizeof gap_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static int connect_to(const struct addrinfo *list) {
    for (const struct addrinfo *at = list; at; at = at->ai_next) {
        int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0)
            return fd;
        if (fd >= 0)
            (void)close(fd);
    }
    return -1;
}

/* ---- part 1 ---- */

/* Why a connection with this first line is refused; NULL: it is not. *part: the number of the
 * part. */
static const char *fault_of(const meeting *m, const char *hello, int *part) {
    char word[32], who[32], version[kLine], settings[kLine];
    eval_shard is;
    *part = 0;
    if (sscanf(hello, "%31s %31s %255s %255s", word, who, version, settings) != 4 ||
        strcmp(word, "snapmla-part") != 0 || shard_parse(who, &is, NULL) != SNAP_OK)
        return "not a part of a serving run";
    *part = is.index;
    if (is.of != m->opt.part.of)
        return "the run has another number of parts";
    if (is.index == 1 || m->peers[is.index - 1].fd >= 0)
        return "a part with this number is there already";
    if (strcmp(version, m->opt.version) != 0)
        return "part 1 is another version of snapmla";
    return strcmp(settings, m->opt.settings) == 0 ? NULL : "part 1 was started with other options";
}

/* Accepts one connection. Closes it if its first line is not that of a missing part. */
static snap_status let_in(meeting *m, int *missing, snap_err *err) {
    char line[kLine];
    int part;
    peer p = {.fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC)};
    if (p.fd < 0)
        return SNAP_OK;
    set_up(p.fd);
    snap_status st = read_line(m, &p, kHelloMs, line, err);
    if (st == SNAP_E_CANCELLED) {
        hang_up(&p);
        return st;
    }
    const char *fault = st == SNAP_OK ? fault_of(m, line, &part) : "no hello";
    if (!fault && send_line(&p, "welcome", "")) {
        m->peers[part - 1] = p;
        --*missing;
    } else {
        (void)send_line(&p, "refused", fault ? fault : "");
        hang_up(&p);
    }
    return SNAP_OK;
}

static snap_status gather(meeting *m, const struct addrinfo *list, snap_err *err) {
    int64_t end_ns = clock_now_ns() + (int64_t)(m->opt.patience_s * 1e9);
    int missing = m->opt.part.of - 1;
    snap_status st = SNAP_OK;
    for (const struct addrinfo *at = list; at && m->listener < 0; at = at->ai_next)
        m->listener = listen_at(at);
    if (m->listener < 0)
        return err_set_errno(err, "cannot listen at --meet '%s'", m->opt.place);
    while (missing && st == SNAP_OK) {
        struct pollfd one = {.fd = m->listener, .events = POLLIN};
        if (poll(&one, 1, kPollMs) > 0)
            st = let_in(m, &missing, err);
        if (st == SNAP_OK)
            st = check_cancel(m, err);
        if (st == SNAP_OK && missing && clock_now_ns() > end_ns)
            st = err_set(err, SNAP_E_NET, "%d of %d parts did not come to '%s' within %.0f s",
                         missing, m->opt.part.of, m->opt.place, m->opt.patience_s);
    }
    return st;
}

static snap_status refuse_all(meeting *m, const char *why, snap_err *err) {
    for (int i = 1; i < m->opt.part.of; i++)
        (void)send_line(&m->peers[i], "refused", why);
    return err_set(err, SNAP_E_USAGE, "%s", why);
}

static snap_status lead(meeting *m, const char *step, snap_err *err) {
    char line[kLine], why[kLine - 16];
    for (int i = 1; i < m->opt.part.of; i++) {
        snap_status st = read_line(m, &m->peers[i], -1, line, err);
        if (st == SNAP_E_NET)
            return err_set(err, SNAP_E_NET, "part %d/%d has ended", i + 1, m->opt.part.of);
        if (st != SNAP_OK)
            return st;
        if (strncmp(line, "at ", 3) == 0 && strcmp(line + 3, step) == 0)
            continue;
        (void)snprintf(
            why, sizeof why,
            "part %d is at '%.60s' and part 1 at '%.60s': begin again with another --out", i + 1,
            text_starts(line, "at ") ? line + 3 : line, step);
        return refuse_all(m, why, err);
    }
    for (int i = 1; i < m->opt.part.of; i++)
        if (!send_line(&m->peers[i], "go", step))
            return err_set(err, SNAP_E_NET, "part %d/%d has ended", i + 1, m->opt.part.of);
    return SNAP_OK;
}

/* ---- parts other than part 1 ---- */

/* Reads part 1's answer, which must be @wanted. */
static snap_status expect(meeting *m, const char *wanted, snap_err *err) {
    char line[kLine];
    snap_status st = read_line(m, &m->peers[0], -1, line, err);
    if (st == SNAP_E_NET)
        return err_set(err, SNAP_E_NET, "part 1/%d has ended", m->opt.part.of);
    if (st != SNAP_OK || strcmp(line, wanted) == 0)
        return st;
    if (text_starts(line, "refused "))
        return err_set(err, SNAP_E_USAGE, "part %d/%d was refused: %s", m->opt.part.index,
                       m->opt.part.of, line + strlen("refused "));
    return err_set(err, SNAP_E_NET, "'%s' is not part 1 of a serving run", m->opt.place);
}

static snap_status join(meeting *m, const struct addrinfo *list, snap_err *err) {
    int64_t end_ns = clock_now_ns() + (int64_t)(m->opt.patience_s * 1e9);
    char hello[kLine];
    snap_status st = SNAP_OK;
    while (st == SNAP_OK && (m->peers[0].fd = connect_to(list)) < 0) {
        if (clock_now_ns() > end_ns)
            return err_set_errno(err, "part 1 cannot be reached at --meet '%s'", m->opt.place);
        clock_sleep_ns(kPollMs * INT64_C(1000000));
        st = check_cancel(m, err);
    }
    if (st != SNAP_OK)
        return st;
    set_up(m->peers[0].fd);
    (void)snprintf(hello, sizeof hello, "%d/%d %s %s", m->opt.part.index, m->opt.part.of,
                   m->opt.version, m->opt.settings);
    if (!send_line(&m->peers[0], "snapmla-part", hello))
        return err_set_errno(err, "part 1 cannot be reached at --meet '%s'", m->opt.place);
    return expect(m, "welcome", err);
}

/* ---- the interface ---- */

snap_status meeting_open(meeting **out, const meeting_options *o, snap_err *err) {
    struct addrinfo *list = NULL;
    meeting *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the parts");
    m->opt = *o;
    m->listener = -1;
    for (int i = 0; i < MEETING_PARTS_MAX; i++)
        m->peers[i].fd = -1;
    snap_status st =
        o->part.of <= MEETING_PARTS_MAX
            ? resolve(o->place, leads(m), &list, err)
            : err_set(err, SNAP_E_USAGE, "a serving run has at most %d parts", MEETING_PARTS_MAX);
    if (st == SNAP_OK)
        st = leads(m) ? gather(m, list, err) : join(m, list, err);
    if (list)
        freeaddrinfo(list);
    if (st == SNAP_OK)
        *out = m;
    else
        meeting_close(m);
    return st;
}

void meeting_close(meeting *m) {
    if (!m)
        return;
    for (int i = 0; i < MEETING_PARTS_MAX; i++)
        hang_up(&m->peers[i]);
    if (m->listener >= 0)
        (void)close(m->listener);
    free(m);
}

snap_status meeting_wait(meeting *m, const char *step, snap_err *err) {
    char wanted[kLine];
    if (leads(m))
        return lead(m, step, err);
    if (!send_line(&m->peers[0], "at", step))
        return err_set(err, SNAP_E_NET, "part 1/%d has ended", m->opt.part.of);
    (void)snprintf(wanted, sizeof wanted, "go %.*s", MEETING_STEP, step);
    return expect(m, wanted, err);
}
