/* Tests groups of ranks, which are real processes. They connect, exchange numbers, and end
 * together, also if one of them fails or another program connects to the port. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "generator/local/ranks/ranks.h"
#include "generator/local/ranks/wire.h"

enum { kMostRanks = 4, kLonger = 8 /* processes of a test, which may start a rank twice */ };
static const char kFacts[] = "program=0.2.0 abc\nlayout=TP2\n";

typedef snap_status (*rank_work)(ranks *g, snap_err *err);

/* The processes of one test. Each writes its error to a pipe when it ends. */
typedef struct {
    int size, port, listener;
    ranks_options opt;
    struct {
        pid_t pid;
        int from;
        snap_err err;
        bool received; /* its failure is from rank 0 */
    } of[kLonger];
    int n;
} test_group;

static int verdict_fd; /* in the process of a rank: the pipe to the test */

static bool received; /* in the process of a rank: the failure is from rank 0 */
static int failures;  /* in the process of a rank: calls of on_failure() */

static void note_failure(const snap_err *why, bool from_rank_0) {
    received = from_rank_0;
    if (++failures > 1 || why->code == SNAP_OK)
        _exit(1);
}

static void write_verdict(const snap_err *err) {
    if (write(verdict_fd, err, sizeof *err) != (ssize_t)sizeof *err ||
        write(verdict_fd, &received, sizeof received) != (ssize_t)sizeof received)
        _exit(1);
}

static void group_init(test_group *t, int size) {
    snap_err err = {0};
    *t = (test_group){.size = size, .opt = ranks_defaults, .listener = -1};
    t->opt.on_failure = note_failure;
    CU_ASSERT_FATAL(ranks_listen("127.0.0.1", &t->port, &t->listener, &err) == SNAP_OK);
}

static void run_rank(test_group *t, int rank, int size, const char *facts, rank_work work) {
    snap_err err = {0};
    ranks *g = NULL;
    rank_place place = {.rank = rank,
                        .size = size,
                        .address = "127.0.0.1",
                        .port = t->port,
                        .listener = rank == 0 ? t->listener : -1};
    if (rank != 0)
        (void)close(t->listener);
    snap_status st = ranks_join(&g, &place, facts, &t->opt, &err);
    if (st == SNAP_OK && work)
        st = work(g, &err);
    if (st != SNAP_OK && g)
        ranks_fail(g, &err);
    if (g && ranks_close(g, &err) != SNAP_OK && err.code == SNAP_OK)
        (void)err_set(&err, SNAP_E_WRONG, "a failure without a message");
    write_verdict(&err);
    _exit(0);
}

/* Starts a process that joins as @rank of @size and then works. */
static void start(test_group *t, int rank, int size, const char *facts, rank_work work) {
    int ends[2] = {-1, -1};
    CU_ASSERT_FATAL(t->n < kLonger && pipe(ends) == 0);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        verdict_fd = ends[1];
        run_rank(t, rank, size, facts, work);
    }
    (void)close(ends[1]);
    t->of[t->n].pid = pid;
    t->of[t->n++].from = ends[0];
}

/* Waits for all processes. One that died by a signal has no error: its code becomes
 * SNAP_E_CANCELLED. */
static void finish(test_group *t) {
    for (int i = 0; i < t->n; i++) {
        snap_err *err = &t->of[i].err;
        if (read(t->of[i].from, err, sizeof *err) != (ssize_t)sizeof *err)
            *err = (snap_err){.code = SNAP_E_CANCELLED};
        if (read(t->of[i].from, &t->of[i].received, sizeof(bool)) != (ssize_t)sizeof(bool))
            t->of[i].received = false;
        (void)close(t->of[i].from);
        (void)kill(t->of[i].pid, SIGKILL); /* it may be stopped */
        (void)waitpid(t->of[i].pid, NULL, 0);
    }
    if (t->listener >= 0)
        (void)close(t->listener);
    t->listener = -1;
}

static void expect(const test_group *t, int i, snap_status code, const char *text) {
    CU_ASSERT_EQUAL(t->of[i].err.code, code);
    CU_ASSERT_STRING_EQUAL(t->of[i].err.text, text);
    if (t->of[i].err.code != code || strcmp(t->of[i].err.text, text) != 0)
        (void)fprintf(stderr, "process %d: %d '%s'\n", i, (int)t->of[i].err.code,
                      t->of[i].err.text);
}

static void expect_all(const test_group *t, snap_status code, const char *text) {
    for (int i = 0; i < t->n; i++)
        expect(t, i, code, text);
}

/* Waits for the failure of another rank. */
static snap_status until_failure(ranks *g, snap_err *err) {
    while (ranks_check(g, err) == SNAP_OK)
        clock_sleep_ns(1000000);
    return err->code;
}

/* ---- gathers without faults ---- */

static snap_status gather_often(ranks *g, snap_err *err) {
    uint8_t mine[RANKS_BLOB_MOST], all[kMostRanks * RANKS_BLOB_MOST];
    static const size_t sizes[] = {0, 1, 128, RANKS_BLOB_MOST, 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        memset(mine, (int)(16 * i) + ranks_rank(g), sizeof mine);
        snap_status st = ranks_all_gather(g, "numbers of a test", mine, n, all, err);
        if (st != SNAP_OK)
            return st;
        for (size_t k = 0; k < n * (size_t)ranks_size(g); k++)
            if (all[k] != 16 * i + k / n)
                return err_set(err, SNAP_E_WRONG, "gather %zu: byte %zu is %d", i, k, all[k]);
    }
    return SNAP_OK;
}

static void test_all_gather(void) {
    test_group t;
    group_init(&t, kMostRanks);
    for (int r = kMostRanks - 1; r >= 0; r--)
        start(&t, r, t.size, kFacts, gather_often);
    finish(&t);
    expect_all(&t, SNAP_OK, "");
}

static void test_one_rank(void) {
    test_group t;
    group_init(&t, 1);
    start(&t, 0, 1, kFacts, gather_often);
    finish(&t);
    expect_all(&t, SNAP_OK, "");
}

static snap_status gather_unequal(ranks *g, snap_err *err) {
    uint8_t mine[8] = {0}, all[16];
    return ranks_all_gather(g, "numbers", mine, ranks_rank(g) ? 7 : 8, all, err);
}

static void test_unequal_gather(void) {
    test_group t;
    group_init(&t, 2);
    start(&t, 0, 2, kFacts, gather_unequal);
    start(&t, 1, 2, kFacts, gather_unequal);
    finish(&t);
    expect_all(&t, SNAP_E_SHAPE, "rank 1: it gathers another number of bytes than this rank");
}

/* ---- one failure ends all ---- */

static snap_status die(ranks *g, snap_err *err) {
    (void)g;
    (void)err;
    (void)raise(SIGKILL);
    return SNAP_OK;
}

static void expect_death_of(int dead) {
    char text[80];
    test_group t;
    group_init(&t, 3);
    for (int r = 0; r < 3; r++)
        start(&t, r, 3, kFacts, r == dead ? die : until_failure);
    finish(&t);
    (void)snprintf(text, sizeof text, "rank %d: its process has ended without a message", dead);
    for (int r = 0; r < 3; r++)
        expect(&t, r, r == dead ? SNAP_E_CANCELLED : SNAP_E_NET, r == dead ? "" : text);
}

static void test_death(void) {
    expect_death_of(1);
    expect_death_of(0);
}

static snap_status run_out_of_memory(ranks *g, snap_err *err) {
    (void)g;
    return err_set(err, SNAP_E_NOMEM, "4 GB of device memory: out of memory");
}

static void test_error(void) {
    for (int failing = 0; failing < 3; failing++) {
        char text[80];
        test_group t;
        group_init(&t, 3);
        for (int r = 0; r < 3; r++)
            start(&t, r, 3, kFacts, r == failing ? run_out_of_memory : until_failure);
        finish(&t);
        (void)snprintf(text, sizeof text, "rank %d: 4 GB of device memory: out of memory", failing);
        expect_all(&t, SNAP_E_NOMEM, text);
        for (int r = 0; r < 3; r++)
            CU_ASSERT_EQUAL(t.of[r].received, r != 0 && r != failing);
    }
}

static snap_status stop_itself(ranks *g, snap_err *err) {
    (void)raise(SIGSTOP);
    return until_failure(g, err);
}

static void test_silence(void) {
    test_group t;
    group_init(&t, 2);
    t.opt.silence_s = 2;
    start(&t, 0, 2, kFacts, until_failure);
    start(&t, 1, 2, kFacts, stop_itself);
    snap_err *err = &t.of[0].err;
    CU_ASSERT(read(t.of[0].from, err, sizeof *err) == (ssize_t)sizeof *err);
    expect(&t, 0, SNAP_E_NET, "rank 1: no sign of life for 2 s");
    (void)kill(t.of[1].pid, SIGKILL);
    finish(&t);
}

static snap_status begin_exchange(ranks *g, snap_err *err) {
    snap_status st = ranks_begin(g, "all-reduce of 16384 bytes", err);
    return st == SNAP_OK ? until_failure(g, err) : st;
}

static snap_status end_exchange(ranks *g, snap_err *err) {
    snap_status st = ranks_begin(g, "all-reduce of 16384 bytes", err);
    st = st == SNAP_OK ? ranks_end(g, err) : st;
    return st == SNAP_OK ? until_failure(g, err) : st;
}

/* The message names the rank that did not begin, not those that wait for it. */
static void test_hang_before_exchange(void) {
    for (int hanging = 0; hanging < 3; hanging++) {
        char text[100];
        test_group t;
        group_init(&t, 3);
        t.opt.exchange_s = 1;
        for (int r = 0; r < 3; r++)
            start(&t, r, 3, kFacts, r == hanging ? until_failure : begin_exchange);
        finish(&t);
        (void)snprintf(text, sizeof text,
                       "rank %d: all-reduce of 16384 bytes: it did not begin within 1 s", hanging);
        expect_all(&t, SNAP_E_DEVICE, text);
    }
}

static void test_hang_in_exchange(void) {
    test_group t;
    group_init(&t, 3);
    t.opt.exchange_s = 1;
    for (int r = 0; r < 3; r++)
        start(&t, r, 3, kFacts, r == 2 ? begin_exchange : end_exchange);
    finish(&t);
    expect_all(&t, SNAP_E_DEVICE, "rank 2: all-reduce of 16384 bytes: it did not end within 1 s");
}

static void end_stuck(const snap_err *why) {
    snap_err err = {.code = why->code};
    (void)snprintf(err.text, sizeof err.text, "stuck: %.500s", why->text);
    write_verdict(&err);
    _exit(0);
}

static snap_status wait_for_ever(ranks *g, snap_err *err) {
    (void)err;
    while (g)
        (void)pause();
    return SNAP_OK;
}

/* A rank that waits for its GPU for ever is ended by its own thread. */
static void test_stuck(void) {
    test_group t;
    group_init(&t, 2);
    t.opt.stuck_s = 0.1;
    t.opt.on_stuck = end_stuck;
    start(&t, 0, 2, kFacts, run_out_of_memory);
    start(&t, 1, 2, kFacts, wait_for_ever);
    finish(&t);
    expect(&t, 1, SNAP_E_NOMEM, "stuck: rank 0: 4 GB of device memory: out of memory");
}

/* ---- connecting ---- */

static void test_difference(void) {
    test_group t;
    group_init(&t, 3);
    start(&t, 0, 3, kFacts, NULL);
    start(&t, 1, 3, kFacts, NULL);
    start(&t, 2, 3, "program=0.2.0 abc\nlayout=DP2\n", NULL);
    finish(&t);
    expect_all(&t, SNAP_E_USAGE, "rank 2: its layout is 'DP2', and that of rank 0 is 'TP2'");
    for (int r = 0; r < 3; r++)
        CU_ASSERT_EQUAL(t.of[r].received, r != 0);

    group_init(&t, 2);
    start(&t, 0, 2, kFacts, NULL);
    start(&t, 1, 2, "layout=TP2\n", NULL);
    finish(&t);
    expect_all(&t, SNAP_E_USAGE, "rank 1: its program is '', and that of rank 0 is '0.2.0 abc'");
}

static void test_other_size(void) {
    test_group t;
    group_init(&t, 2);
    t.opt.silence_s = 0.2; /* rank 0 waits half of it for others that need the message */
    start(&t, 0, 2, kFacts, NULL);
    start(&t, 1, 3, kFacts, NULL);
    finish(&t);
    expect_all(&t, SNAP_E_USAGE, "rank 1: its group has 3 ranks, and that of rank 0 has 2");
}

static void test_absence(void) {
    char text[120];
    test_group t;
    group_init(&t, 4);
    t.opt.arrive_s = 1;
    start(&t, 0, 4, kFacts, NULL);
    start(&t, 2, 4, kFacts, NULL);
    finish(&t);
    (void)snprintf(text, sizeof text,
                   "ranks 1, 3 of 4 did not arrive at 127.0.0.1, port %d, within 1 s", t.port);
    expect_all(&t, SNAP_E_NET, text);

    group_init(&t, 2);
    (void)close(t.listener);
    t.listener = -1;
    t.opt.arrive_s = 0.2;
    start(&t, 1, 2, kFacts, NULL);
    finish(&t);
    (void)snprintf(text, sizeof text,
                   "rank 0 did not arrive at 127.0.0.1, port %d, within 0.2 s: Connection refused",
                   t.port);
    expect_all(&t, SNAP_E_NET, text);
}

/* The port does not answer: its queue of connections is full, and nobody accepts them. */
static void test_no_answer(void) {
    enum { kWaiting = 4 };
    char text[120];
    test_group t;
    group_init(&t, 2);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)t.port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int waiting[kWaiting];
    CU_ASSERT_EQUAL(listen(t.listener, 0), 0); /* the length of the queue becomes 0 */
    for (int i = 0; i < kWaiting; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        CU_ASSERT(connect(waiting[i], (struct sockaddr *)&at, sizeof at) == 0 ||
                  errno == EINPROGRESS);
    }
    t.opt.arrive_s = 0.2;
    start(&t, 1, 2, kFacts, NULL);
    finish(&t);
    (void)snprintf(
        text, sizeof text,
        "rank 0 did not arrive at 127.0.0.1, port %d, within 0.2 s: Connection timed out", t.port);
    expect_all(&t, SNAP_E_NET, text);
    for (int i = 0; i < kWaiting; i++)
        (void)close(waiting[i]);
}

/* A rank arrives before rank 0 listens. */
static void test_late_rank_0(void) {
    test_group t;
    group_init(&t, 2);
    (void)close(t.listener);
    t.listener = -1; /* rank 0 opens the port itself */
    start(&t, 1, 2, kFacts, gather_often);
    start(&t, 0, 2, kFacts, gather_often);
    finish(&t);
    expect_all(&t, SNAP_OK, "");
}

static void test_second_rank_1(void) {
    test_group t;
    group_init(&t, 3);
    start(&t, 0, 3, kFacts, gather_often);
    start(&t, 1, 3, kFacts, gather_often);
    start(&t, 1, 3, kFacts, gather_often);
    /* The one of the two that arrives later is refused. Then the last rank arrives. */
    int refused = -1;
    fd_set ready;
    FD_ZERO(&ready);
    FD_SET(t.of[1].from, &ready);
    FD_SET(t.of[2].from, &ready);
    CU_ASSERT_FATAL(select(t.of[2].from + 1, &ready, NULL, NULL, NULL) == 1);
    refused = FD_ISSET(t.of[1].from, &ready) ? 1 : 2;
    start(&t, 2, 3, kFacts, gather_often);
    finish(&t);
    for (int i = 0; i < t.n; i++)
        expect(&t, i, i == refused ? SNAP_E_USAGE : SNAP_OK,
               i == refused ? "rank 1: another process has arrived as this rank" : "");
    CU_ASSERT(!t.of[refused].received);
}

static int connect_to(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    CU_ASSERT_FATAL(s >= 0 && connect(s, (struct sockaddr *)&at, sizeof at) == 0);
    return s;
}

static int send_to_port(int port, const void *bytes, size_t n) {
    int s = connect_to(port);
    CU_ASSERT(send(s, bytes, n, MSG_NOSIGNAL) == (ssize_t)n);
    return s;
}

/* Other programs at the port: a browser, a message that claims 4 GB, half a message, a hello of an
 * impossible rank, a message of another type, silence, and a connection that closes at once. */
static void test_garbage(void) {
    static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    uint8_t huge[16] = {'S', 'N', 'R', 'K', 1, 0, 0, 0, 255, 255, 255, 255};
    uint8_t hello[24] = {'S', 'N', 'R', 'K', 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2};
    uint8_t data[16] = {'S', 'N', 'R', 'K', WIRE_DATA};
    test_group t;
    group_init(&t, 2);
    start(&t, 0, 2, kFacts, gather_often);
    int open[] = {
        send_to_port(t.port, http, sizeof http), send_to_port(t.port, huge, sizeof huge),
        send_to_port(t.port, hello, 10),         send_to_port(t.port, hello, sizeof hello),
        send_to_port(t.port, data, sizeof data), connect_to(t.port)};
    (void)close(connect_to(t.port));
    start(&t, 1, 2, kFacts, gather_often);
    finish(&t);
    expect_all(&t, SNAP_OK, "");
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        (void)close(open[i]);
}

/* More connections than rank 0 keeps at the same time. It closes the oldest ones. */
static void test_many_connections(void) {
    enum { kConnections = 100 };
    int open[kConnections];
    test_group t;
    group_init(&t, 2);
    start(&t, 0, 2, kFacts, gather_often);
    for (int i = 0; i < kConnections; i++)
        open[i] = connect_to(t.port);
    start(&t, 1, 2, kFacts, gather_often);
    finish(&t);
    expect_all(&t, SNAP_OK, "");
    for (int i = 0; i < kConnections; i++)
        (void)close(open[i]);
}

/* A rank finds another program where rank 0 should be. */
static void test_other_program(void) {
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    char text[120];
    test_group t;
    group_init(&t, 2);
    start(&t, 1, 2, kFacts, NULL);
    int s = accept(t.listener, NULL, NULL);
    CU_ASSERT_FATAL(s >= 0);
    CU_ASSERT(send(s, answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer);
    finish(&t);
    (void)close(s);
    (void)snprintf(text, sizeof text,
                   "what listens at 127.0.0.1, port %d, is not rank 0 of snapmla", t.port);
    expect_all(&t, SNAP_E_NET, text);
}

/* A rank that has arrived sends garbage. */
static void test_garbage_later(void) {
    uint8_t hello[16 + 8 + sizeof kFacts - 1] = {
        'S', 'N', 'R', 'K', 1, 0, 0, 0, 8 + sizeof kFacts - 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2};
    char welcome[16];
    test_group t;
    memcpy(hello + 24, kFacts, sizeof kFacts - 1);
    group_init(&t, 2);
    start(&t, 0, 2, kFacts, until_failure);
    int s = send_to_port(t.port, hello, sizeof hello);
    CU_ASSERT(recv(s, welcome, sizeof welcome, MSG_WAITALL) == (ssize_t)sizeof welcome);
    CU_ASSERT(send(s, "nonsense", 8, MSG_NOSIGNAL) == 8);
    finish(&t);
    expect_all(&t, SNAP_E_NET, "rank 1: it sent something that is no message");
    (void)close(s);
}

/* ---- the place of a process ---- */

static const char *const kVariables[] = {"RANK",
                                         "WORLD_SIZE",
                                         "LOCAL_RANK",
                                         "OMPI_COMM_WORLD_RANK",
                                         "OMPI_COMM_WORLD_SIZE",
                                         "OMPI_COMM_WORLD_LOCAL_RANK",
                                         "PMI_RANK",
                                         "PMI_SIZE",
                                         "MPI_LOCALRANKID",
                                         "SLURM_PROCID",
                                         "SLURM_NTASKS",
                                         "SLURM_LOCALID",
                                         "SLURM_STEP_NUM_TASKS",
                                         "SLURM_STEP_ID",
                                         "MASTER_ADDR",
                                         "MASTER_PORT",
                                         "TORCHELASTIC_USE_AGENT_STORE",
                                         RANKS_LISTENER,
                                         RANKS_REPORT};

/* Sets the variables of a line such as "RANK=1 WORLD_SIZE=2", and reads the place. */
static snap_status place_of(const char *line, rank_place *out, snap_err *err) {
    char copy[256], *at = NULL;
    CU_ASSERT_FATAL(strlen(line) < sizeof copy);
    for (size_t i = 0; i < sizeof kVariables / sizeof *kVariables; i++)
        (void)unsetenv(kVariables[i]);
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *one = strtok_r(copy, " ", &at); one; one = strtok_r(NULL, " ", &at)) {
        char *value = strchr(one, '=');
        *value = '\0';
        (void)setenv(one, value + 1, 1);
    }
    *err = (snap_err){0};
    return rank_place_read(out, err);
}

static void test_place(void) {
    static const struct {
        const char *line;
        int rank, size, local_rank, port;
    } good[] = {
        {"", 0, 0, -1, RANKS_PORT},
        {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=h MASTER_PORT=4000", 1, 2, 1, 4000},
        /* torchrun, which listens at the port itself, or does not */
        {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=h MASTER_PORT=29500 "
         "TORCHELASTIC_USE_AGENT_STORE=True",
         1, 2, 1, 29501},
        {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=h MASTER_PORT=37000 "
         "TORCHELASTIC_USE_AGENT_STORE=False",
         0, 2, 0, 37000},
        /* this program, started by torchrun as a single process */
        {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=h MASTER_PORT=37000 "
         "TORCHELASTIC_USE_AGENT_STORE=True SNAPMLA_RANK_REPORT=9",
         1, 2, 1, 37000},
        /* a single process, which is no group, with other variables or without */
        {"RANK=0 WORLD_SIZE=1", 0, 0, -1, RANKS_PORT},
        {"RANK=0 WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 MASTER_ADDR=h", 1, 2,
         -1, RANKS_PORT},
        {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 MASTER_ADDR=h",
         3, 4, 1, RANKS_PORT},
        {"PMI_RANK=1 PMI_SIZE=8 MASTER_ADDR=h", 1, 8, -1, RANKS_PORT},
        {"PMI_RANK=3 PMI_SIZE=8 MPI_LOCALRANKID=1 MASTER_ADDR=h", 3, 8, 1, RANKS_PORT},
        /* What Slurm 22.05 sets: srun, srun of two tasks with the variables of a job of four
         * (--preserve-env), and srun --mpi=pmi2. */
        {"SLURM_PROCID=5 SLURM_NTASKS=16 SLURM_LOCALID=1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=16 "
         "MASTER_ADDR=h",
         5, 16, 1, RANKS_PORT},
        {"SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_LOCALID=1 SLURM_STEP_ID=2 SLURM_STEP_NUM_TASKS=2 "
         "MASTER_ADDR=h",
         1, 2, 1, RANKS_PORT},
        {"PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1 SLURM_STEP_ID=0 "
         "SLURM_STEP_NUM_TASKS=2 MASTER_ADDR=h",
         1, 2, 1, RANKS_PORT},
        /* no rank: a batch script, the shell that salloc starts in a job of four tasks, and a
         * batch script that was submitted from it */
        {"SLURM_PROCID=0 SLURM_NTASKS=16 SLURM_LOCALID=0", 0, 0, -1, RANKS_PORT},
        {"SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_STEP_ID=4294967290 "
         "SLURM_STEP_NUM_TASKS=1",
         0, 0, -1, RANKS_PORT},
        {"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1", 0,
         0, -1, RANKS_PORT},
        /* the launchers of Open MPI and MPICH in a batch job of four tasks */
        {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_PROCID=0 SLURM_NTASKS=1 "
         "SLURM_LOCALID=0 SLURM_STEP_ID=3 SLURM_STEP_NUM_TASKS=1 MASTER_ADDR=h",
         1, 2, -1, RANKS_PORT},
        {"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 "
         "SLURM_STEP_ID=4 SLURM_STEP_NUM_TASKS=1 MASTER_ADDR=h",
         1, 2, 1, RANKS_PORT},
        {"RANK=255 WORLD_SIZE=256 MASTER_ADDR=h", 255, 256, -1, RANKS_PORT},
    };
    rank_place p;
    snap_err err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CU_ASSERT_EQUAL(place_of(good[i].line, &p, &err), SNAP_OK);
        CU_ASSERT(p.rank == good[i].rank && p.size == good[i].size);
        CU_ASSERT(p.local_rank == good[i].local_rank && p.port == good[i].port);
        CU_ASSERT_EQUAL(rank_place_size(), p.size);
    }
    CU_ASSERT_EQUAL(place_of("PMI_RANK=1 PMI_SIZE=300 MASTER_ADDR=h", &p, &err), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(rank_place_size(), 300);
}

static void test_impossible_place(void) {
    static const struct {
        const char *line, *text;
    } bad[] = {
        {"RANK=0", "the environment variable WORLD_SIZE is not set"},
        {"WORLD_SIZE=2 MASTER_ADDR=h", "the environment variable RANK is not set"},
        {"RANK=0 WORLD_SIZE=0",
         "the environment variable WORLD_SIZE must be an integer within 2..256, got '0'"},
        {"RANK=0 WORLD_SIZE=1000000",
         "the environment variable WORLD_SIZE must be an integer within 2..256, got '1000000'"},
        {"RANK=2 WORLD_SIZE=2",
         "the environment variable RANK must be an integer within 0..1, got '2'"},
        {"RANK=-1 WORLD_SIZE=2",
         "the environment variable RANK must be an integer within 0..1, got '-1'"},
        {"RANK=1x WORLD_SIZE=2",
         "the environment variable RANK must be an integer within 0..1, got '1x'"},
        {"RANK=1 WORLD_SIZE=2",
         "RANK is set, but MASTER_ADDR is not: set it to the host name of rank 0, or to 127.0.0.1 "
         "if all ranks are on one machine"},
        {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=70000",
         "the environment variable MASTER_PORT must be an integer within 1..65535, got '70000'"},
        {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=65535 TORCHELASTIC_USE_AGENT_STORE=True",
         "the environment variable MASTER_PORT must be an integer within 1..65534, got '65535'"},
        {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=2 MASTER_ADDR=h",
         "the environment variable LOCAL_RANK must be an integer within 0..1, got '2'"},
    };
    rank_place p;
    snap_err err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT_EQUAL(place_of(bad[i].line, &p, &err), SNAP_E_USAGE);
        CU_ASSERT_STRING_EQUAL(err.text, bad[i].text);
    }
    CU_ASSERT_EQUAL(place_of("", &p, &err), SNAP_OK);
}

CU_TestInfo tests_ranks[] = {
    {"all-gather", test_all_gather},
    {"a group of one rank", test_one_rank},
    {"unequal numbers of bytes", test_unequal_gather},
    {"a rank dies", test_death},
    {"all ranks get the error of one rank", test_error},
    {"a rank is stopped", test_silence},
    {"a rank does not begin an exchange", test_hang_before_exchange},
    {"a rank does not end an exchange", test_hang_in_exchange},
    {"a rank waits for ever", test_stuck},
    {"ranks with different facts are refused", test_difference},
    {"another number of ranks", test_other_size},
    {"a rank does not arrive", test_absence},
    {"the port of rank 0 does not answer", test_no_answer},
    {"rank 0 arrives late", test_late_rank_0},
    {"a second rank 1", test_second_rank_1},
    {"garbage at the port", test_garbage},
    {"many connections at the port", test_many_connections},
    {"another program at the port", test_other_program},
    {"garbage from a rank", test_garbage_later},
    {"rank and size are read from the environment", test_place},
    {"impossible ranks and sizes are refused", test_impossible_place},
    CU_TEST_INFO_NULL,
};
