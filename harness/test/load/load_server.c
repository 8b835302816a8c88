/* load_server.c - a server for measuring a load client: it streams tokens at a fixed rate.
 *
 *   load_server [--port N] [--rate TOKENS_PER_S] [--first MS] [--together 1]
 *
 * Prints its URL. Each request is answered with max_tokens tokens, one event each, as a stream of
 * chat completion chunks. The first token comes after --first ms and, unless --together is 1, up to
 * one token's time later, so that streams that begin together do not stay in step. The others
 * follow at --rate. One thread serves all connections. Writes that would block end the connection,
 * because a client that does not read in time has failed anyway. On SIGINT or SIGTERM it prints how
 * many events were sent, and how late (99th percentile, maximum). */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hist.h"
#include "base/text.h"

enum { kMost = 1 << 16, kEvents = 512, kBurst = 64 };

typedef struct {
    int fd;
    buf in;
    bool busy;
    int64_t due_ns;
    int left, prompt, sent;
    size_t at; /* its place in the heap */
} peer;

static peer *peers[kMost];
static peer *heap[kMost];
static size_t n_heap;
static int64_t gap_ns, first_ns, n_events;
static bool together;
static hist late;
static int poll_fd;
static volatile sig_atomic_t stopped;

static void stop(int sig) {
    (void)sig;
    stopped = 1;
}

/* ---- the heap of streams, the next one due in front ---- */

static void place(peer *p, size_t i) {
    heap[i] = p;
    p->at = i;
}

static void sift_up(size_t i) {
    peer *p = heap[i];
    for (; i && p->due_ns < heap[(i - 1) / 2]->due_ns; i = (i - 1) / 2)
        place(heap[(i - 1) / 2], i);
    place(p, i);
}

static void sift_down(size_t i) {
    peer *p = heap[i];
    for (size_t k; (k = 2 * i + 1) < n_heap; i = k) {
        if (k + 1 < n_heap && heap[k + 1]->due_ns < heap[k]->due_ns)
            k++;
        if (heap[k]->due_ns >= p->due_ns)
            break;
        place(heap[k], i);
    }
    place(p, i);
}

static void heap_remove(peer *p) {
    size_t i = p->at;
    peer *last = heap[--n_heap];
    if (last != p) {
        place(last, i);
        sift_up(i);
        sift_down(last->at);
    }
}

/* ---- connections ---- */

static void hang_up(peer *p) {
    if (p->busy)
        heap_remove(p);
    (void)close(p->fd);
    peers[p->fd] = NULL;
    buf_release(&p->in);
    free(p);
}

static bool put(peer *p, const char *bytes, size_t n) {
    return send(p->fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static int number_after(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at ? atoi(at + strlen(key)) : 0;
}

/* Starts the answer if a whole request has arrived; false if the connection is to be closed. */
static bool begin(peer *p, int64_t now) {
    static const char kHead[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                "Transfer-Encoding: chunked\r\n\r\n";
    const char *end = p->busy ? NULL : strstr(buf_str(&p->in), "\r\n\r\n");
    if (!end)
        return true;
    const char *length = strcasestr(buf_str(&p->in), "\r\ncontent-length:");
    size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    if (p->in.len < (size_t)(end + 4 - p->in.data) + body)
        return true;
    if (text_starts(buf_str(&p->in), "GET ")) { /* of /health or /v1/models, before a run */
        static const char kModel[] =
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 37\r\n\r\n"
            "{\"object\":\"list\",\"data\":[{\"id\":\"m\"}]}";
        buf_clear(&p->in);
        return put(p, kModel, sizeof kModel - 1);
    }
    p->prompt = 5;
    for (const char *s = end + 4; *s; s++)
        p->prompt += *s == ' ';
    p->left = number_after(end, "\"max_tokens\":");
    p->left = p->left > 0 ? p->left : number_after(end, "\"max_completion_tokens\":");
    p->left = p->left > 0 ? p->left : 16;
    p->sent = 0;
    buf_clear(&p->in);
    p->busy = true;
    p->due_ns = now + first_ns + (together ? 0 : random() % gap_ns);
    place(p, n_heap++);
    sift_up(p->at);
    return put(p, kHead, sizeof kHead - 1);
}

static bool put_chunk(peer *p, const char *data) {
    char text[600];
    int n = snprintf(text, sizeof text, "%zx\r\n%s\r\n", strlen(data), data);
    return put(p, text, (size_t)n);
}

static bool put_end(peer *p) {
    char text[500];
    (void)snprintf(
        text, sizeof text,
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,"
        "\"total_tokens\":%d}}\n\ndata: [DONE]\n\n",
        p->prompt, p->sent, p->prompt + p->sent);
    return put_chunk(p, text) && put(p, "0\r\n\r\n", 5);
}

/* Sends the next event of the first stream in the heap. */
static void send_one(int64_t now) {
    static const char kToken[] =
        "data: {\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion.chunk\","
        "\"created\":1700000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":"
        "\" token\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n";
    static char chunk[sizeof kToken + 16];
    static size_t n_chunk;
    peer *p = heap[0];
    if (!n_chunk)
        n_chunk = (size_t)snprintf(chunk, sizeof chunk, "%zx\r\n%s\r\n", sizeof kToken - 1, kToken);
    bool ok = put(p, chunk, n_chunk);
    hist_add(&late, now - p->due_ns);
    n_events++;
    p->sent++;
    p->due_ns += gap_ns;
    if (ok && --p->left) {
        sift_down(0);
        return;
    }
    heap_remove(p);
    p->busy = false;
    if (!ok || !put_end(p))
        hang_up(p);
}

static void receive(peer *p) {
    char bytes[1 << 14];
    ssize_t n;
    while ((n = recv(p->fd, bytes, sizeof bytes, 0)) > 0)
        (void)buf_append(&p->in, bytes, (size_t)n);
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK) || !begin(p, clock_now_ns()))
        hang_up(p);
}

static void accept_all(int listener) {
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        peer *p = fd < kMost ? calloc(1, sizeof *p) : NULL;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        if (!p || epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &e) != 0) {
            free(p);
            (void)close(fd);
            continue;
        }
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        p->fd = fd;
        peers[fd] = p;
    }
}

static int wait_ms(void) {
    if (!n_heap)
        return 100;
    int64_t left = heap[0]->due_ns - clock_now_ns();
    return left <= 0 ? 0 : left > 100000000 ? 100 : (int)((left + 999999) / 1000000);
}

static void serve(int listener) {
    struct epoll_event events[kEvents];
    while (!stopped) {
        int n = epoll_wait(poll_fd, events, kEvents, wait_ms());
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == listener)
                accept_all(listener);
            else if (peers[events[i].data.fd])
                receive(peers[events[i].data.fd]);
        }
        int64_t now = clock_now_ns();
        for (int i = 0; i < kBurst && n_heap && heap[0]->due_ns <= now; i++)
            send_one(now);
    }
}

static int listen_on(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) != 0)
        return -1;
    (void)printf("http://127.0.0.1:%d/v1\n", ntohs(at.sin_port));
    (void)fflush(stdout);
    return fd;
}

static double option(int argc, char **argv, const char *name, double otherwise) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return atof(argv[i + 1]);
    return otherwise;
}

int main(int argc, char **argv) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    (void)signal(SIGINT, stop);
    (void)signal(SIGTERM, stop);
    gap_ns = (int64_t)(1e9 / option(argc, argv, "--rate", 50));
    first_ns = (int64_t)(1e6 * option(argc, argv, "--first", 20));
    together = option(argc, argv, "--together", 0) > 0;
    poll_fd = epoll_create1(0);
    int listener = listen_on((int)option(argc, argv, "--port", 0));
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
    if (listener < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &e) != 0) {
        perror("load_server");
        return 1;
    }
    serve(listener);
    (void)printf("%lld events, late: p99 %.3f ms, max %.3f ms\n", (long long)n_events,
                 (double)hist_quantile_ns(&late, 0.99) * 1e-6, (double)late.max_ns * 1e-6);
    return 0;
}
