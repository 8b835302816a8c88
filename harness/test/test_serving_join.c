/* Tests a serving benchmark by several processes, and the joining of their folders. The processes
 * are threads here. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <ftw.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "generator/test/scripted_server.h"
#include "harness/serving/join_parts.h"
#include "harness/serving/meeting.h"
#include "harness/serving/serving_files.h"
#include "harness/serving/serving_results.h"

#define USAGE(n)                                                                                   \
    {                                                                                              \
        .type = "text/event-stream",                                                               \
        .body = CHAT_DELTA("{\"content\":\"x\"}")                                                  \
            CHAT_FINISH("length") "data: {\"choices\":[],"                                         \
                                  "\"usage\":{\"prompt_tokens\":" #n                               \
                                  ",\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"                 \
    }

enum { kParts = 2, kRequests = 30 };

/* The two probes of calibrate.h, then answers. */
static const reply kGood[] = {
    USAGE(19), USAGE(275), {.type = "text/event-stream", .body = CHAT_STREAM("So", "...")}};

static char folder[48], place[32];

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static void folder_close(void) {
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes a folder, and finds a port that nobody uses. */
static void folder_open(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    (void)snprintf(folder, sizeof folder, "/tmp/snapmla-join-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    CU_ASSERT_FATAL(fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0 &&
                    getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    (void)snprintf(place, sizeof place, "127.0.0.1:%d", ntohs(at.sin_port));
    (void)close(fd);
    term_set_quiet(true);
}

/* ---- one process of a run ---- */

typedef struct {
    char out[80], arm[120], part[8];
    serving_options options;
    js *config;
    server *server;
    serving_result result;
    snap_status st;
    snap_err err;
} process;

/* The resolved options of a part; of the whole run if @part is NULL. */
static js *config_of(const char *part, int64_t seed, bool open) {
    js *c = js_new_object(), *arms = js_new_array();
    CU_ASSERT_FATAL(js_push_new(arms, js_new_str("a=http://127.0.0.1:1/v1,model=m")) &&
                    js_set_new(c, "arm", arms) &&
                    js_set_str(c, open ? "rate" : "concurrency", open ? "300" : "5") &&
                    js_set_int(c, "blocks", 2) && js_set_int(c, "seed", seed) &&
                    js_set_int(c, "turns", 1));
    if (part)
        CU_ASSERT_FATAL(js_set_str(c, "part", part) && js_set_str(c, "meet", place));
    return c;
}

/* Process @i of @parts; 0: the only one. */
static void prepare(process *p, int i, bool open) {
    *p = (process){.server = server_start(kGood, 3)};
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->server);
    (void)snprintf(p->out, sizeof p->out, "%s/%d", folder, i);
    (void)snprintf(p->part, sizeof p->part, "%d/%d", i, kParts);
    (void)snprintf(p->arm, sizeof p->arm, "a=%s/v1,model=m", server_url(p->server));
    p->config = config_of(i ? p->part : NULL, 1, open);
    p->options = (serving_options){.rate = open ? "300" : NULL,
                                   .concurrency = open ? NULL : "5",
                                   .prefixes = 1,
                                   .turns = 1,
                                   .warmup = 1, /* fewer requests than there are parts */
                                   .temperature = -1,
                                   .input = "50",
                                   .output = "uniform:3-40",
                                   .requests = kRequests,
                                   .blocks = 2,
                                   .drain_s = 300,
                                   .seed = 1,
                                   .part = i ? p->part : NULL,
                                   .meet = i ? place : NULL,
                                   .out = p->out};
    p->options.arms.items[p->options.arms.n++] = p->arm;
}

static void *run(void *ctx) {
    process *p = ctx;
    p->st = serving_run(&p->options, p->config, &p->result, &p->err);
    return NULL;
}

static void release(process *p) {
    serving_result_release(&p->result);
    server_free(p->server);
    js_free(p->config);
}

/* Runs both parts. */
static void run_parts(process parts[kParts], bool open) {
    pthread_t threads[kParts];
    for (int i = 0; i < kParts; i++)
        prepare(&parts[i], i + 1, open);
    for (int i = 0; i < kParts; i++)
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, run, &parts[i]) == 0);
    for (int i = 0; i < kParts; i++) {
        (void)pthread_join(threads[i], NULL);
        if (parts[i].st != SNAP_OK)
            printf("\n%s\n", parts[i].err.text);
        CU_ASSERT_EQUAL_FATAL(parts[i].st, SNAP_OK);
    }
}

/* ---- tests ---- */

typedef struct {
    double due_s;
    int64_t wanted;
    int part;
} sent;

/* The requests of both blocks, by block and index. */
static void place_requests(const request_list *from, sent to[2 * kRequests]) {
    for (size_t i = 0; i < from->n; i++) {
        const serving_request *r = &from->at[i];
        CU_ASSERT_FATAL(r->block >= 0 && r->block < 2 && r->index >= 0 && r->index < kRequests);
        sent *at = &to[r->block * kRequests + r->index];
        CU_ASSERT_EQUAL(at->wanted, 0); /* no request is sent twice */
        *at = (sent){r->due_s, r->wanted_tokens, r->part};
    }
}

/* Together, the parts of an open loop send the same requests at the same times as one process. */
static void test_same_arrivals(void) {
    process whole, parts[kParts];
    sent by_one[2 * kRequests] = {{0, 0, 0}}, by_parts[2 * kRequests] = {{0, 0, 0}};
    folder_open();
    prepare(&whole, 0, true);
    (void)run(&whole);
    CU_ASSERT_EQUAL_FATAL(whole.st, SNAP_OK);
    run_parts(parts, true);
    place_requests(&whole.result.requests, by_one);
    for (int i = 0; i < kParts; i++)
        place_requests(&parts[i].result.requests, by_parts);
    for (int i = 0; i < 2 * kRequests; i++) {
        CU_ASSERT(by_one[i].wanted > 0 && by_one[i].part == 0);
        CU_ASSERT_EQUAL(by_one[i].wanted, by_parts[i].wanted);
        CU_ASSERT_DOUBLE_EQUAL(by_one[i].due_s, by_parts[i].due_s, 1e-9);
        CU_ASSERT_EQUAL(by_parts[i].part, i % kRequests % kParts + 1);
    }
    release(&whole);
    for (int i = 0; i < kParts; i++)
        release(&parts[i]);
    folder_close();
}

static snap_status join_folders(const char *const *from, size_t n, const char *to, js **config,
                                snap_err *err) {
    *err = (snap_err){0};
    return serving_join(&(join_options){from, n, to}, config, err);
}

/* The first row of a kind and, if @part is above 0, of a part. */
static const js *row_of(const results *r, const char *kind, int part) {
    const js *rows = results_section(r, "serving");
    for (size_t i = 0; i < js_len(rows); i++)
        if (strcmp(js_get_str(js_at(rows, i), "kind"), kind) == 0 &&
            (!part || js_get_int(js_at(rows, i), "part", 0) == part))
            return js_at(rows, i);
    CU_FAIL_FATAL("no such row");
    return NULL;
}

/* The statistics of the joined run are those of all requests of both parts. */
static void test_join(void) {
    process parts[kParts];
    const serving_judgement judge = {.gpus = 0};
    char out[80];
    js *config;
    results *r;
    serving_options o;
    serving_result res;
    snap_err err;
    folder_open();
    run_parts(parts, false);
    const char *from[] = {parts[1].out, parts[0].out};
    (void)snprintf(out, sizeof out, "%s/joined", folder);
    CU_ASSERT_EQUAL_FATAL(join_folders(from, 2, out, &config, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(serving_options_read(config, &o, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(serving_run_read(&o, &res, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(serving_results_make(&o, &res, &judge, config, &r, &err), SNAP_OK);
    double tokens = 0, n = 0;
    for (int i = 0; i < kParts; i++) {
        const request_list *own = &parts[i].result.requests;
        const js *row = row_of(r, "part", i + 1);
        double most = 0;
        for (size_t k = 0; k < own->n; k++) {
            tokens += (double)own->at[k].completion_tokens;
            most = fmax(most, own->at[k].lag_s);
        }
        n += (double)own->n;
        CU_ASSERT_EQUAL(js_get_int(row, "requests", 0), (int64_t)own->n);
        CU_ASSERT_DOUBLE_EQUAL(js_get_num(row, "lag_max_ms", 0), 1e3 * most, 1e-9);
    }
    const js *load = row_of(r, "load", 0);
    CU_ASSERT_EQUAL(js_get_int(load, "requests", 0), 2 * kRequests);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(load, "completion_tokens_mean", 0), tokens / n, 1e-12);
    CU_ASSERT_EQUAL(js_get_int(load, "blocks", 0), 2);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(load, "load", 0), 5, 0);
    js *again;
    CU_ASSERT_EQUAL(join_folders(from, 2, out, &again, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "has a run already"));
    results_free(r);
    serving_result_release(&res);
    js_free(config);
    for (int i = 0; i < kParts; i++)
        release(&parts[i]);
    folder_close();
}

/* Writes the folder of a part that needs no server. */
static void write_part(const char *name, const char *part, const char *version, js *config,
                       int blocks) {
    char dir[100];
    const int arm = 0;
    const serving_request r = {.part = part[0] - '0',
                               .completion_tokens = -1,
                               .prompt_tokens = -1,
                               .first_s = -1,
                               .end_s = -1,
                               .cut = true};
    snap_err err = {0};
    (void)snprintf(dir, sizeof dir, "%s/%s", folder, name);
    serving_files f = serving_files_make(dir);
    CU_ASSERT_EQUAL_FATAL(serving_files_open(&f, config, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(serving_files_put_part(&f, config, part, version, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(serving_files_resume(&f, false, 1, 1, 2, &err), SNAP_OK);
    for (int b = 0; b < blocks; b++) {
        CU_ASSERT_EQUAL_FATAL(serving_files_add(&f, &r, NULL, NULL, &err), SNAP_OK);
        CU_ASSERT_EQUAL_FATAL(serving_files_finish(&f, 0, &arm, 1, b, &err), SNAP_OK);
    }
    serving_files_close(&f);
    js_free(config);
}

static void test_refused_parts(void) {
    static const struct {
        const char *a, *b, *why;
    } kRefused[] = {
        {"1", "absent", "has no run"},          {"1", "1", "are the same folder"},
        {"1", "double", "are both part 1/2"},   {"1", "seed", "--seed differs"},
        {"1", "version", "different versions"}, {"1", "third", "is one of 2 parts"},
        {"1", "short", "is not complete"},      {"1", NULL, "part 2/2 is missing"},
    };
    js *config;
    snap_err err;
    folder_open();
    write_part("1", "1/2", "v", config_of("1/2", 1, true), 2);
    write_part("double", "1/2", "v", config_of("1/2", 1, true), 2);
    write_part("seed", "2/2", "v", config_of("2/2", 2, true), 2);
    write_part("version", "2/2", "w", config_of("2/2", 1, true), 2);
    write_part("third", "2/3", "v", config_of("2/3", 1, true), 2);
    write_part("short", "2/2", "v", config_of("2/2", 1, true), 1);
    for (size_t i = 0; i < sizeof kRefused / sizeof *kRefused; i++) {
        char a[80], b[80], out[80];
        const char *from[] = {a, b};
        (void)snprintf(a, sizeof a, "%s/%s", folder, kRefused[i].a);
        (void)snprintf(b, sizeof b, "%s/%s", folder, kRefused[i].b ? kRefused[i].b : "");
        (void)snprintf(out, sizeof out, "%s/out", folder);
        CU_ASSERT_EQUAL(join_folders(from, kRefused[i].b ? 2 : 1, out, &config, &err),
                        SNAP_E_USAGE);
        if (!strstr(err.text, kRefused[i].why))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, kRefused[i].why));
        CU_ASSERT(!fs_exists(out));
    }
    folder_close();
}

/* ---- the meeting ---- */

typedef struct {
    meeting_options o;
    meeting *m;
    const char *step;
    snap_status opened, waited;
    snap_err err;
} visitor;

static void *visit(void *ctx) {
    visitor *v = ctx;
    v->waited = SNAP_E_CANCELLED;
    v->opened = meeting_open(&v->m, &v->o, &v->err);
    if (v->opened == SNAP_OK && v->step)
        v->waited = meeting_wait(v->m, v->step, &v->err);
    meeting_close(v->m);
    return NULL;
}

static visitor visitor_of(int part, const char *settings, const char *step) {
    return (visitor){.o = {.place = place,
                           .part = {part, kParts},
                           .version = "v",
                           .settings = settings,
                           .patience_s = 20},
                     .step = step};
}

/* A part with other settings is refused. A part with the same settings is accepted, and both reach
 * the same step. A process that tries to listen at the same place fails and does not disturb
 * them. */
static void test_meeting(void) {
    visitor first = visitor_of(1, "s", "begin"), other = visitor_of(2, "t", NULL),
            second = visitor_of(2, "s", "begin"), stranger = visitor_of(1, "s", NULL);
    pthread_t thread;
    folder_open();
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, visit, &first) == 0);
    (void)visit(&other);
    CU_ASSERT_EQUAL(other.opened, SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(other.err.text, "other options"));
    stranger.o.part.of = 1; /* part 1 of 1 need not wait, but the place is already in use */
    (void)visit(&stranger);
    CU_ASSERT_EQUAL(stranger.opened, SNAP_E_IO);
    (void)visit(&second);
    (void)pthread_join(thread, NULL);
    CU_ASSERT(first.opened == SNAP_OK && first.waited == SNAP_OK);
    CU_ASSERT(second.opened == SNAP_OK && second.waited == SNAP_OK);
    folder_close();
}

/* Parts at different steps are refused. If a part ends, the other part gets an error. */
static void test_meeting_ends(void) {
    visitor first = visitor_of(1, "s", "block 1"), second = visitor_of(2, "s", "block 2");
    pthread_t thread;
    folder_open();
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, visit, &first) == 0);
    (void)visit(&second);
    (void)pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(first.waited, SNAP_E_USAGE);
    CU_ASSERT_EQUAL(second.waited, SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(second.err.text, "begin again"));
    first = visitor_of(1, "s", "block 1");
    second = visitor_of(2, "s", NULL);
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, visit, &first) == 0);
    (void)visit(&second);
    (void)pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(first.waited, SNAP_E_NET);
    CU_ASSERT_PTR_NOT_NULL(strstr(first.err.text, "part 2/2 has ended"));
    folder_close();
}

static void test_refused_places(void) {
    static const char *const kBad[] = {"", "7000", "host:", "host:0", "host:70000", ":7000"};
    for (size_t i = 0; i < sizeof kBad / sizeof *kBad; i++) {
        visitor v = visitor_of(1, "s", NULL);
        v.o.place = kBad[i];
        (void)visit(&v);
        CU_ASSERT_EQUAL(v.opened, SNAP_E_USAGE);
    }
}

CU_TestInfo tests_serving_join[] = {
    {"parts send what one process would", test_same_arrivals},
    {"a joined run has the statistics of all parts", test_join},
    {"folders that cannot be joined are refused", test_refused_parts},
    {"parts wait for each other at each step", test_meeting},
    {"a part fails if another part has ended", test_meeting_ends},
    {"bad addresses of part 1 are refused", test_refused_places},
    CU_TEST_INFO_NULL,
};
