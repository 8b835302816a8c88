#include "base/test/failing_alloc_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 1 << 20, kTries = 30000, kPauseNs = 10000000, kSeconds = 200 };

static char request[kMost], reply[kMost];

static size_t read_file(const char *path, char *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, kMost - 1) : 0;
    out[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        (void)close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* The port of the URL that the server prints; 0 if the server ended or printed no whole URL in
 * time. */
static int await_port(pid_t server) {
    const struct timespec pause = {.tv_nsec = kPauseNs};
    for (int i = 0; i < kTries && getppid() == server; i++) {
        (void)read_file("/proc/self/fd/1", reply);
        const char *at = strstr(reply, "http://127.0.0.1:");
        if (at && strstr(at, "/v1\n"))
            return atoi(at + strlen("http://127.0.0.1:"));
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

/* Sends the request and reads up to the end of the connection. False if nothing arrived for
 * kSeconds. */
static bool exchange(int port, size_t n) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = kSeconds};
    size_t have = 0;
    ssize_t got = 0;
    bool late = false;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
        _exit(125);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
        send(fd, request, n, MSG_NOSIGNAL) == (ssize_t)n) {
        while (have < kMost - 1 && (got = recv(fd, reply + have, kMost - 1 - have, 0)) > 0)
            have += (size_t)got;
        late = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
    (void)close(fd);
    reply[have] = '\0';
    return !late;
}

static void print_reply(bool in_time) {
    const char *body = strstr(reply, "\r\n\r\n");
    if (!in_time)
        (void)dprintf(STDOUT_FILENO, "timeout\n");
    else if (!body || strncmp(reply, "HTTP/1.", 7) != 0)
        (void)dprintf(STDOUT_FILENO, "no answer\n");
    else
        (void)dprintf(STDOUT_FILENO, "status %d\n%s", atoi(reply + strlen("HTTP/1.x ")), body + 4);
}

void failing_alloc_client(const char *path) {
    pid_t server = getpid();
    if (fork() != 0)
        return;
    size_t n = read_file(path, request);
    int port = await_port(server);
    if (port) {
        print_reply(exchange(port, n));
        (void)kill(server, SIGTERM);
    }
    _exit(0);
}
