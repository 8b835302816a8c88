/* Fetches data sets from a scripted server, with fetch_sets() and with datasets/fetch.sh. */
#include <CUnit/CUnit.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "evals/task.h"
#include "generator/test/scripted_server.h"
#include "harness/fetch/fetch.h"
#include "harness/fetch/rows.h"

#define BODY     "first line\nsecond line\nthird line\n" /* 34 bytes */
#define TAIL     "\nsecond line\nthird line\n"           /* from byte 10 on */
#define BODY_TEN "first line"
#define FROM_TEN "Content-Range: bytes 10-33/34\r\n"
#define OTHER    "First line\nsecond line\nthird line\n"
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define WHOLE                                                                                      \
    { .body = BODY }
#define CUT                                                                                        \
    { .body = BODY, .cut = 10, .end = END_CLOSE }
#define REST                                                                                       \
    { .status = 206, .headers = FROM_TEN, .body = TAIL }

/* ---- a folder, a manifest of one set, a server ---- */

typedef struct {
    char dir[40], data[60], target[100], part[110], list[60];
    manifest m;
    server *s;
    fetch_state state;
    snap_err err;
} place;

typedef struct {
    bool no_sum, no_bytes, convert;
    const char *mirror; /* folder on the server */
    const char *url;    /* the URL in the manifest; NULL: that of the server */
    bool pages;
} how;

static void write_manifest(place *p, const how *h) {
    char sum[HASH_HEX], sha[80] = "null", bytes[16] = "null";
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(hash_bytes(BODY, strlen(BODY), sum, NULL), SNAP_OK);
    if (!h->no_sum)
        (void)snprintf(sha, sizeof sha, "\"%s\"", sum);
    if (!h->no_bytes)
        (void)snprintf(bytes, sizeof bytes, "%zu", strlen(BODY));
    (void)buf_printf(
        &text,
        "{\n\"schema\": {\"name\": \"snapmla.manifest\", \"major\": 1, \"minor\": 0},\n\"sets\": "
        "[\n"
        "{\"name\": \"lines\", \"title\": \"Lines\", \"rows\": 3, \"large\": false, "
        "\"licence\": \"ours\", \"notice\": null, \"home\": \"http://127.0.0.1/\", \"files\": [\n"
        "{\"path\": \"lines/test.jsonl\", \"bytes\": %s, \"sha256\": %s, \"url\": \"%s/a\", "
        "\"convert\": %s}\n]}\n]\n}\n",
        bytes, sha, h->url ? h->url : server_url(p->s),
        h->pages     ? "\"hf_pages\""
        : h->convert ? "\"hf_rows\""
                     : "null");
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(p->list, buf_str(&text), text.len, NULL), SNAP_OK);
    buf_release(&text);
}

static void place_open(place *p, const reply *replies, int n, how h) {
    *p = (place){.dir = "/tmp/snapmla-fetch-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(p->dir));
    (void)snprintf(p->data, sizeof p->data, "%s/data", p->dir);
    (void)snprintf(p->target, sizeof p->target, "%s/lines/test.jsonl", p->data);
    (void)snprintf(p->part, sizeof p->part, "%s.part", p->target);
    (void)snprintf(p->list, sizeof p->list, "%s/manifest.json", p->dir);
    p->s = server_start(replies, n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->s);
    write_manifest(p, &h);
    CU_ASSERT_EQUAL_FATAL(manifest_load(&p->m, p->list, &p->err), SNAP_OK);
}

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *ftw) {
    (void)sb;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void place_close(place *p) {
    server_free(p->s);
    manifest_release(&p->m);
    (void)nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text) {
    char *dir = strndup(path, (size_t)(strrchr(path, '/') - path));
    CU_ASSERT_EQUAL_FATAL(fs_mkdirs(dir, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, text, strlen(text), NULL), SNAP_OK);
    free(dir);
}

static void expect_text(const char *path, const char *want) {
    buf b = {0};
    CU_ASSERT_EQUAL(fs_read(path, &b, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&b), want);
    buf_release(&b);
}

static void note_state(void *ctx, const manifest_set *set, const manifest_file *f, fetch_state s) {
    place *p = ctx;
    CU_ASSERT_STRING_EQUAL(set->name, "lines");
    CU_ASSERT_STRING_EQUAL(f->path, "lines/test.jsonl");
    p->state = s;
}

static volatile sig_atomic_t cancelled;

static snap_status fetch(place *p, const char *mirror, int retries) {
    static const bool chosen[] = {true};
    fetch_options o = {
        .dir = p->data, .mirror = mirror, .retries = retries, .wait_s = 0.01, .cancel = &cancelled};
    p->err = (snap_err){0};
    p->state = FETCH_ABSENT;
    return fetch_sets(&p->m, chosen, &o, note_state, p, &p->err);
}

static void expect_whole(const place *p, const char *want) {
    expect_text(p->target, want);
    CU_ASSERT_FALSE(fs_exists(p->part));
    char etag[120];
    (void)snprintf(etag, sizeof etag, "%s.etag", p->part);
    CU_ASSERT_FALSE(fs_exists(etag));
}

static bool asked_for(const place *p, int i, const char *text) {
    return i < server_requests(p->s) && strstr(server_request(p->s, i)->head, text) != NULL;
}

/* ---- datasets/fetch.sh ---- */

/* Runs the script without the program. @out receives both output streams. Returns the exit code. */
static int run_script(const char *const *arguments, buf *out) {
    const char *argv[24] = {"sh", "datasets/fetch.sh"};
    char path[] = "/tmp/snapmla-said-XXXXXX";
    int said = mkstemp(path), status = -1;
    CU_ASSERT_NOT_EQUAL_FATAL(said, -1);
    for (int i = 0; arguments[i] && i < 20; i++)
        argv[2 + i] = arguments[i];
    pid_t child = fork();
    if (child == 0) {
        (void)setenv("SNAPMLA", "", 1);
        (void)dup2(said, STDOUT_FILENO);
        (void)dup2(said, STDERR_FILENO);
        (void)execv("/bin/sh", (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    (void)close(said);
    buf_clear(out);
    CU_ASSERT_EQUAL(fs_read(path, out, NULL), SNAP_OK);
    (void)unlink(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_fetch_sh(const place *p, const char *mirror, buf *out) {
    const char *const arguments[] = {"--dir",
                                     p->data,
                                     "--manifest",
                                     p->list,
                                     "--retries=2",
                                     "lines",
                                     mirror ? "--mirror" : "--list",
                                     mirror,
                                     NULL};
    return run_script(arguments, out);
}

/* ---- success ---- */

typedef struct {
    const char *name;
    reply replies[4];
    int n;
    const char *part;  /* left by an earlier attempt */
    const char *range; /* expected in the last request; NULL: not checked */
    fetch_state state;
    how how;
} good_case;

static const good_case good[] = {
    {"at once", {WHOLE}, 1, NULL, NULL, FETCH_NEW, {0}},
    {"in chunks", {{.body = BODY, .chunked = true, .step = 3}}, 1, NULL, NULL, FETCH_NEW, {0}},
    {"cut, then the rest", {CUT, REST}, 2, NULL, "Range: bytes=10-\r", FETCH_RESUMED, {0}},
    {"of an earlier run", {REST}, 1, BODY_TEN, "Range: bytes=10-\r", FETCH_RESUMED, {0}},
    {"no Range here", {WHOLE}, 1, "XXXXXXXXXX", NULL, FETCH_NEW, {0}},
    {"busy, then not", {{.status = 503}, {.status = 429}, WHOLE}, 3, NULL, NULL, FETCH_NEW, {0}},
    {"reset, then not", {{.raw = "", .end = END_RESET}, WHOLE}, 2, NULL, NULL, FETCH_NEW, {0}},
    {"too much is there",
     {{.status = 416}, WHOLE},
     2,
     BODY BODY,
     NULL,
     FETCH_NEW,
     {.no_bytes = true}},
    {"of another version", {REST, WHOLE}, 2, "XXXXXXXXXX", NULL, FETCH_NEW, {0}},
    {"moved",
     {{.status = 302, .headers = "Location: /b\r\n"}, WHOLE},
     2,
     NULL,
     NULL,
     FETCH_NEW,
     {0}},
    {"size and sum unknown",
     {WHOLE},
     1,
     NULL,
     NULL,
     FETCH_NEW,
     {true, true, false, NULL, NULL, false}},
};

static void test_good(void) {
    for (int i = 0; i < COUNT(good); i++) {
        const good_case *c = &good[i];
        place p;
        place_open(&p, c->replies, c->n, c->how);
        if (c->part)
            put(p.part, c->part);
        if (fetch(&p, NULL, 4) != SNAP_OK)
            CU_FAIL(c->name);
        CU_ASSERT_STRING_EQUAL(p.err.text, "");
        CU_ASSERT_EQUAL(p.state, c->state);
        expect_whole(&p, BODY);
        server_stop(p.s);
        CU_ASSERT_EQUAL(server_requests(p.s), c->n);
        CU_ASSERT_TRUE(!c->range || asked_for(&p, c->n - 1, c->range));
        place_close(&p);
    }
}

static void test_left_alone(void) {
    static const reply none = {.status = 500};
    place p;
    place_open(&p, &none, 1, (how){0});
    put(p.target, BODY);
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_OK);
    CU_ASSERT_EQUAL(p.state, FETCH_THERE);
    put(p.target, OTHER);
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(p.err.text, "exists with another checksum: sha256 "));
    expect_text(p.target, OTHER);
    (void)unlink(p.target);
    put(p.part, BODY); /* complete but not renamed: killed in between */
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_OK);
    expect_whole(&p, BODY);
    server_stop(p.s);
    CU_ASSERT_EQUAL(server_requests(p.s), 0);
    place_close(&p);
}

static void test_mirror(void) {
    static const reply whole = WHOLE;
    place p;
    char url[100];
    place_open(&p, &whole, 1, (how){.url = "http://127.0.0.1:1"});
    (void)snprintf(url, sizeof url, "%s/copies/", server_url(p.s));
    CU_ASSERT_EQUAL(fetch(&p, url, 0), SNAP_OK);
    expect_whole(&p, BODY);
    CU_ASSERT_EQUAL(fetch(&p, "ftp://127.0.0.1/", 0), SNAP_E_USAGE);
    server_stop(p.s);
    CU_ASSERT_TRUE(asked_for(&p, 0, "GET /copies/lines/test.jsonl HTTP/1.1\r\n"));
    place_close(&p);
}

/* ---- without a checksum, the ETag shows whether the rest belongs to the bytes kept ---- */

static void test_etag(void) {
    static const struct {
        reply first, second;
        const char *condition, *want;
    } cases[] = {
        {{.body = BODY, .cut = 10, .end = END_CLOSE, .headers = "ETag: \"v1\"\r\n"},
         REST,
         "Range: bytes=10-\r\nIf-Range: \"v1\"\r\n",
         BODY},
        {{.body = BODY, .cut = 10, .end = END_CLOSE, .headers = "ETag: \"v1\"\r\n"},
         {.body = OTHER, .headers = "ETag: \"v2\"\r\n"},
         "If-Range: \"v1\"\r\n",
         OTHER},
        {{.body = BODY, .cut = 10, .end = END_CLOSE, .headers = "ETag: W/\"v1\"\r\n"},
         {.body = OTHER},
         NULL,
         OTHER},
        {CUT, {.body = OTHER}, NULL, OTHER},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        const reply replies[] = {cases[i].first, cases[i].second};
        place p;
        place_open(&p, replies, 2, (how){.no_sum = true});
        CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_E_NET); /* two runs */
        CU_ASSERT_PTR_NOT_NULL(strstr(p.err.text, "10 bytes are kept"));
        CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_OK);
        expect_whole(&p, cases[i].want);
        server_stop(p.s);
        CU_ASSERT_TRUE(!cases[i].condition || asked_for(&p, 1, cases[i].condition));
        CU_ASSERT_TRUE(cases[i].condition || !asked_for(&p, 1, "Range"));
        place_close(&p);
    }
}

/* ---- failures ---- */

typedef struct {
    const char *name;
    reply replies[2];
    int n;
    snap_status status;
    const char *says;
    int requests;
    bool keeps; /* the part file is kept */
    how how;
} bad_case;

static const bad_case bad[] = {
    {"sum", {{.body = OTHER}}, 1, SNAP_E_INPUT, "has the wrong checksum: sha256 ", 1, false, {0}},
    {"short",
     {{.body = "x"}},
     1,
     SNAP_E_INPUT,
     "has 1 bytes, but the manifest says 34",
     1,
     false,
     {0}},
    {"long", {{.body = BODY BODY}}, 1, SNAP_E_INPUT, "has 68 bytes", 1, false, {0}},
    {"404",
     {{.status = 404, .body = "no"}},
     1,
     SNAP_E_NET,
     "the server answered 404",
     1,
     false,
     {0}},
    {"403", {{.status = 403}}, 1, SNAP_E_NET, "the server answered 403", 1, false, {0}},
    {"500s", {{.status = 500}}, 1, SNAP_E_NET, "the server answered 500", 3, false, {0}},
    {"cuts",
     {CUT, CUT},
     2,
     SNAP_E_NET,
     "10 bytes are kept; the same command continues",
     3,
     true,
     {0}},
    {"round and round",
     {{.status = 302, .headers = "Location: /a\r\n"}},
     1,
     SNAP_E_NET,
     "redirects",
     9,
     false,
     {0}},
    {"other bytes",
     {CUT, {.status = 206, .headers = "Content-Range: bytes 5-33/34\r\n", .body = TAIL}},
     2,
     SNAP_E_NET,
     "requested the bytes from 10 on, but received those from 5 on",
     2,
     true,
     {0}},
    {"nobody there",
     {WHOLE},
     1,
     SNAP_E_NET,
     "no network? --mirror",
     0,
     false,
     {.url = "http://127.0.0.1:1"}},
};

static void test_bad(void) {
    for (int i = 0; i < COUNT(bad); i++) {
        const bad_case *c = &bad[i];
        place p;
        place_open(&p, c->replies, c->n, c->how);
        if (fetch(&p, NULL, 2) != c->status || !strstr(p.err.text, c->says)) {
            (void)fprintf(stderr, "%s: %s\n", c->name, p.err.text);
            CU_FAIL(c->name);
        }
        CU_ASSERT_EQUAL(strncmp(p.err.text, "lines: ", 7), 0);
        CU_ASSERT_FALSE(fs_exists(p.target));
        CU_ASSERT_EQUAL(fs_exists(p.part), c->keeps);
        server_stop(p.s);
        CU_ASSERT_EQUAL(server_requests(p.s), c->requests);
        place_close(&p);
    }
}

static void test_both_sums(void) {
    static const reply other = {.body = OTHER};
    char want[HASH_HEX], got[HASH_HEX];
    place p;
    place_open(&p, &other, 1, (how){0});
    CU_ASSERT_EQUAL(hash_bytes(BODY, strlen(BODY), want, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(hash_bytes(OTHER, strlen(OTHER), got, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(p.err.text, want));
    CU_ASSERT_PTR_NOT_NULL(strstr(p.err.text, got));
    place_close(&p);
}

static const char *awaited;

/* Cancels as soon as the file has the bytes that the server sends before it stalls. */
static void on_alarm(int signal_number) {
    struct stat file;
    (void)signal_number;
    if (stat(awaited, &file) == 0 && file.st_size == (off_t)strlen(BODY_TEN))
        cancelled = 1;
}

static void test_interrupted(void) {
    static const reply replies[] = {{.body = BODY, .cut = 10, .end = END_STALL}, REST};
    place p;
    place_open(&p, replies, 2, (how){0});
    (void)signal(SIGALRM, on_alarm);
    awaited = p.part;
    struct itimerval often = {.it_interval = {.tv_usec = 20000}, .it_value = {.tv_usec = 20000}};
    struct itimerval never = {0};
    CU_ASSERT_EQUAL(setitimer(ITIMER_REAL, &often, NULL), 0);
    CU_ASSERT_EQUAL(fetch(&p, NULL, 2), SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(setitimer(ITIMER_REAL, &never, NULL), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(p.err.text, "interrupted: 10 bytes are kept in "));
    expect_text(p.part, BODY_TEN);
    cancelled = 0;
    CU_ASSERT_EQUAL(fetch(&p, NULL, 2), SNAP_OK);
    CU_ASSERT_EQUAL(p.state, FETCH_RESUMED);
    expect_whole(&p, BODY);
    place_close(&p);
}

/* A limit on the size of files stands in for a full disk. */
static void test_disk_full(void) {
    static const reply replies[] = {WHOLE, REST};
    place p;
    place_open(&p, replies, 2, (how){0});
    pid_t child = fork();
    if (child == 0) {
        struct rlimit ten = {.rlim_cur = 10, .rlim_max = RLIM_INFINITY};
        (void)signal(SIGXFSZ, SIG_IGN);
        bool limited = setrlimit(RLIMIT_FSIZE, &ten) == 0;
        snap_status st = fetch(&p, NULL, 2);
        _exit(limited && st == SNAP_E_IO && strstr(p.err.text, "cannot write '") &&
                      strstr(p.err.text, "(10 bytes are kept): File too large")
                  ? 0
                  : 1);
    }
    int status = -1;
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_FALSE(fs_exists(p.target));
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_OK); /* there is space again */
    CU_ASSERT_EQUAL(p.state, FETCH_RESUMED);
    expect_whole(&p, BODY);
    place_close(&p);
}

static void test_lock(void) {
    static const reply whole = WHOLE;
    place p;
    char lock[80];
    int fd;
    place_open(&p, &whole, 1, (how){0});
    (void)snprintf(lock, sizeof lock, "%s/.fetch.lock", p.data);
    CU_ASSERT_EQUAL(fs_mkdirs(p.data, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(fs_lock(lock, &fd, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(p.err.text, "is held by process"));
    if (access("/usr/bin/flock", X_OK) == 0) { /* the script uses the same lock */
        buf said = {0};
        CU_ASSERT_EQUAL(run_fetch_sh(&p, server_url(p.s), &said), 3);
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&said), "another process fetches into"));
        buf_release(&said);
    }
    (void)close(fd);
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_OK);
    place_close(&p);
}

static void test_look(void) {
    static const reply none = {.status = 500};
    fetch_state s;
    place p;
    place_open(&p, &none, 1, (how){0});
    const manifest_file *f = &p.m.sets[0].files[0];
    CU_ASSERT(fetch_check(f, p.data, &s, NULL) == SNAP_OK && s == FETCH_ABSENT);
    put(p.part, BODY_TEN);
    CU_ASSERT(fetch_check(f, p.data, &s, NULL) == SNAP_OK && s == FETCH_PARTIAL);
    put(p.target, OTHER);
    CU_ASSERT(fetch_check(f, p.data, &s, NULL) == SNAP_OK && s == FETCH_DIFFERS);
    put(p.target, BODY);
    CU_ASSERT(fetch_check(f, p.data, &s, NULL) == SNAP_OK && s == FETCH_THERE);
    place_close(&p);
}

/* ---- converting rows to lines ---- */

#define ROWS                                                                                       \
    "{\"rows\": [{\"row_idx\": 0, \"row\": {\"problem\": \"1+1\", \"answer\": 2}},"                \
    " {\"row_idx\": 1, \"row\": {\"problem\": \"2+2\", \"answer\": 4}}], \"num_rows_total\": 2}"
#define LINES "{\"answer\":2,\"problem\":\"1+1\"}\n{\"answer\":4,\"problem\":\"2+2\"}\n"

static void test_convert(void) {
    static const reply replies[] = {{.body = ROWS}, {.body = LINES}};
    place p;
    place_open(&p, replies, 2, (how){.no_sum = true, .no_bytes = true, .convert = true});
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_OK);
    expect_whole(&p, LINES);
    (void)unlink(p.target);
    CU_ASSERT_EQUAL(fetch(&p, server_url(p.s), 0), SNAP_OK); /* the mirror's file is converted
                                                                already */
    expect_whole(&p, LINES);
    place_close(&p);
}

#define PAGE(from, n, total)                                                                       \
    "{\"rows\": [{\"row_idx\": 0, \"row\": {\"n\": " #from "}}" n "], \"num_rows_total\": " #total \
    "}"
#define AND(k) ", {\"row\": {\"n\": " #k "}}"

/* Two responses make one file. A data set that changes in between, and an empty page, are
 * refused. */
static void test_pages(void) {
    static const reply replies[] = {{.body = PAGE(0, AND(1), 3)}, {.body = PAGE(2, "", 3)}};
    static const reply changing[] = {{.body = PAGE(0, AND(1), 3)}, {.body = PAGE(2, "", 4)}};
    static const reply empty[] = {{.body = PAGE(0, AND(1), 3)},
                                  {.body = "{\"rows\": [], \"num_rows_total\": 3}"}};
    static const how paged = {.no_sum = true, .no_bytes = true, .pages = true};
    place p;
    place_open(&p, replies, 2, paged);
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_OK);
    expect_whole(&p, "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n");
    place_close(&p);
    place_open(&p, changing, 2, paged);
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(p.err.text, "the data set changed during the download (3 rows, then 4)"));
    CU_ASSERT(!fs_exists(p.target) && !fs_exists(p.part));
    place_close(&p);
    place_open(&p, empty, 2, paged);
    CU_ASSERT_EQUAL(fetch(&p, NULL, 0), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(p.err.text, "has 0 rows instead of 3"));
    CU_ASSERT(!fs_exists(p.target));
    place_close(&p);
}

static void test_rows_refused(void) {
    static const char *const cases[] = {
        "",
        "[]",
        "{}",
        "{\"rows\": []}",
        "{\"rows\": 3}",
        "{\"rows\": [1], \"num_rows_total\": 1}",
        "{\"rows\": [{\"row\": 1}]}",
        "{\"rows\": [{\"row\": {}}], \"num_rows_total\": 2}",
        "{\"rows\": [{\"row\": {}}], \"num_rows_total\": 1, \"partial\": true}",
        "{\"rows\": [{\"row\": {}, \"truncated_cells\": [\"a\"]}], \"num_rows_total\": 1}",
        "{\"error\": \"gated\"}",
    };
    for (int i = 0; i < COUNT(cases); i++) {
        buf out = {0};
        snap_err err = {0};
        CU_ASSERT_EQUAL(rows_to_lines(cases[i], strlen(cases[i]), "answer", &out, &err),
                        SNAP_E_INPUT);
        CU_ASSERT_PTR_EQUAL(strstr(err.text, "answer"), err.text);
        buf_release(&out);
    }
}

/* ---- the manifest ---- */

#define HEAD "{\"schema\": {\"name\": \"snapmla.manifest\", \"major\": 1}, \"sets\": "
#define SET                                                                                        \
    "{\"name\": \"a\", \"title\": \"A\", \"licence\": \"MIT\", \"home\": \"http://h/\", "          \
    "\"files\": "

static void test_manifest_refused(void) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{}", "not a manifest"},
        {"[]", "not a manifest"},
        {"{\"schema\": {\"name\": \"snapmla.manifest\", \"major\": 2}}", "has version 2"},
        {HEAD "3}", "sets"},
        {HEAD "[3]}", "set 1"},
        {HEAD "[{\"name\": \"\"}]}", "'name' must not be empty"},
        {HEAD "[" SET "[]}]}", "'files' is empty"},
        {HEAD "[" SET "[{\"path\": \"a\"}]}]}", "url"},
        {HEAD "[" SET "[{\"path\": \"../a\", \"url\": \"http://h/\"}]}]}", "'path' must stay"},
        {HEAD "[" SET "[{\"path\": \"/a\", \"url\": \"http://h/\"}]}]}", "'path' must stay"},
        {HEAD "[" SET "[{\"path\": \"a/../../b\", \"url\": \"http://h/\"}]}]}", "'path' must stay"},
        {HEAD "[" SET "[{\"path\": \"a//b\", \"url\": \"http://h/\"}]}]}", "'path' must stay"},
        {HEAD "[" SET "[{\"path\": \"a b\", \"url\": \"http://h/\"}]}]}", "'path' must stay"},
        {HEAD "[" SET "[{\"path\": \"a\", \"url\": \"file:///etc/passwd\"}]}]}", "'url': "},
        {HEAD "[" SET "[{\"path\": \"a\", \"url\": \"http://h/\", \"sha256\": \"AB\"}]}]}",
         "64 lower-case digits"},
        {HEAD "[" SET "[{\"path\": \"a\", \"url\": \"http://h/\", \"convert\": \"x\"}]}]}",
         "'convert' must be"},
        {HEAD "[" SET "[{\"path\": \"a\", \"url\": \"http://h/\"}]}," SET
              "[{\"path\": \"b\", \"url\": \"http://h/\"}]}]}",
         "the name occurs twice"},
    };
    char path[] = "/tmp/snapmla-manifest-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
    (void)close(fd);
    for (int i = 0; i < COUNT(cases); i++) {
        manifest m;
        snap_err err = {0};
        put(path, cases[i].text);
        CU_ASSERT_EQUAL(manifest_load(&m, path, &err), SNAP_E_INPUT);
        CU_ASSERT_EQUAL(strncmp(err.text, path, strlen(path)), 0);
        if (!strstr(err.text, cases[i].says)) {
            (void)fprintf(stderr, "%s\n", err.text);
            CU_FAIL(cases[i].says);
        }
        manifest_release(&m);
    }
    (void)unlink(path);
}

/* For every task whose problems were published by others, the manifest has an entry with a file
 * that is written where the task's loader looks for it. */
static void test_shipped_manifest(void) {
    manifest m;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(manifest_load(&m, "datasets/manifest.json", &err), SNAP_OK);
    for (const char *const *name = task_known; *name; name++) {
        const manifest_set *s = manifest_find(&m, *name);
        const task_spec *t;
        bool found = false;
        CU_ASSERT_EQUAL_FATAL(task_find(*name, &t, NULL), SNAP_OK);
        if (strncmp(*name, "synth_", 6) == 0 || t->generated)
            continue;
        CU_ASSERT_PTR_NOT_NULL_FATAL(s);
        CU_ASSERT_STRING_EQUAL(s->title, t->title);
        for (int i = 0; i < TASK_FILES && t->files[i]; i++)
            for (size_t j = 0; j < s->n_files; j++)
                found = found || strcmp(t->files[i], s->files[j].path) == 0;
        CU_ASSERT_TRUE(found);
    }
    manifest_release(&m);
}

static void test_verdict(void) {
    static char sums[3][HASH_HEX];
    manifest_file one[] = {{.path = "a", .sha256 = sums[0], .bytes = -1}};
    manifest_file none[] = {{.path = "a", .bytes = -1}};
    manifest_file some[] = {{.path = "a", .sha256 = sums[0]}, {.path = "b"}};
    manifest_file three[] = {{.path = "p1", .sha256 = sums[0]},
                             {.path = "p2", .sha256 = sums[1]},
                             {.path = "list", .sha256 = sums[2]}};
    manifest_set sets[] = {{.name = "one", .files = one, .n_files = 1},
                           {.name = "none", .files = none, .n_files = 1},
                           {.name = "three", .files = three, .n_files = 3},
                           {.name = "some", .files = some, .n_files = 2}};
    manifest m = {.sets = sets, .n = 4};
    char lines[3 * HASH_HEX + 1], sum[HASH_HEX];
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(hash_bytes(&i, sizeof i, sums[i], NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(manifest_verdict(&m, "one", sums[0]), "match");
    CU_ASSERT_STRING_EQUAL(manifest_verdict(&m, "one", sums[1]), "differs");
    CU_ASSERT_STRING_EQUAL(manifest_verdict(&m, "none", sums[0]), "unverified");
    CU_ASSERT_STRING_EQUAL(manifest_verdict(&m, "some", sums[0]), "match");
    CU_ASSERT_STRING_EQUAL(manifest_verdict(&m, "some", sums[2]), "unverified");
    CU_ASSERT(manifest_unverified(&sets[0]) == 0 && manifest_unverified(&sets[1]) == 1 &&
              manifest_unverified(&sets[3]) == 1);
    CU_ASSERT_STRING_EQUAL(manifest_verdict(&m, "else", sums[0]), "unknown");
    (void)snprintf(lines, sizeof lines, "%s\n%s\n%s\n", sums[0], sums[1], sums[2]);
    CU_ASSERT_EQUAL(hash_bytes(lines, strlen(lines), sum, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(manifest_verdict(&m, "three", sum), "match");
    (void)snprintf(lines, sizeof lines, "%s\n%s\n", sums[0], sums[2]); /* --limit 1 */
    CU_ASSERT_EQUAL(hash_bytes(lines, strlen(lines), sum, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(manifest_verdict(&m, "three", sum), "match");
    (void)snprintf(lines, sizeof lines, "%s\n%s\n", sums[1], sums[2]);
    CU_ASSERT_EQUAL(hash_bytes(lines, strlen(lines), sum, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(manifest_verdict(&m, "three", sum), "differs");
}

static void test_verified(void) {
    const manifest_file sum = {.sha256 = "x"}, none = {0}, rows = {.sha256 = "x", .convert = true},
                        pages = {.sha256 = "x", .convert = true, .pages = true};
    CU_ASSERT_TRUE(fetch_is_verified(&sum, FETCH_NEW, NULL));
    CU_ASSERT_TRUE(fetch_is_verified(&sum, FETCH_RESUMED, "http://mirror"));
    CU_ASSERT_TRUE(fetch_is_verified(&sum, FETCH_THERE, NULL));
    CU_ASSERT_TRUE(fetch_is_verified(&rows, FETCH_NEW, NULL));
    CU_ASSERT_FALSE(fetch_is_verified(&rows, FETCH_NEW, "http://mirror"));
    CU_ASSERT_FALSE(fetch_is_verified(&rows, FETCH_UNCHECKED, NULL));
    CU_ASSERT_FALSE(fetch_is_verified(&pages, FETCH_NEW, NULL));
    CU_ASSERT_FALSE(fetch_is_verified(&none, FETCH_NEW, NULL));
    CU_ASSERT_FALSE(fetch_is_verified(&none, FETCH_UNCHECKED, NULL));
}

/* ---- the script fetch.sh in the same cases ---- */

static bool have_curl(void) {
    return access("/usr/bin/curl", X_OK) == 0;
}

static void test_script_good(void) {
    for (int i = 0; i < COUNT(good) && have_curl(); i++) {
        const good_case *c = &good[i];
        place p;
        buf said = {0};
        if (c->n > 2) /* too slow: the script waits whole seconds before it retries */
            continue;
        place_open(&p, c->replies, c->n, c->how);
        if (c->part)
            put(p.part, c->part);
        if (run_fetch_sh(&p, server_url(p.s), &said) != 0) {
            (void)fprintf(stderr, "%s: %s\n", c->name, buf_str(&said));
            CU_FAIL(c->name);
        }
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&said), fetch_state_name(c->state)));
        expect_whole(&p, BODY);
        buf_release(&said);
        place_close(&p);
    }
}

static void test_script_bad(void) {
    static const char *const names[] = {"sum", "short", "long", "404", "round and round"};
    for (int i = 0; i < COUNT(bad) && have_curl(); i++) {
        const bad_case *c = &bad[i];
        bool wanted = false;
        place p;
        buf said = {0};
        for (int j = 0; j < COUNT(names); j++)
            wanted = wanted || strcmp(names[j], c->name) == 0;
        if (!wanted)
            continue;
        place_open(&p, c->replies, c->n, c->how);
        CU_ASSERT_EQUAL(run_fetch_sh(&p, server_url(p.s), &said), 3);
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&said), "fetch.sh: lines: "));
        if (c->status == SNAP_E_INPUT && !strstr(buf_str(&said), c->says))
            CU_FAIL(c->name);
        CU_ASSERT_FALSE(fs_exists(p.target));
        CU_ASSERT_FALSE(fs_exists(p.part));
        buf_release(&said);
        place_close(&p);
    }
}

static void test_script_usage(void) {
    buf said = {0};
    CU_ASSERT_EQUAL(run_script((const char *const[]){"nope", NULL}, &said), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&said), "no data set 'nope' in the manifest"));
    CU_ASSERT_EQUAL(run_script((const char *const[]){"--what", NULL}, &said), 2);
    CU_ASSERT_EQUAL(run_script((const char *const[]){"--dir", NULL}, &said), 2);
    CU_ASSERT_EQUAL(run_script((const char *const[]){"--mirror", "ftp://x", NULL}, &said), 2);
    CU_ASSERT_EQUAL(run_script((const char *const[]){"--manifest", "/nowhere", NULL}, &said), 3);
    CU_ASSERT_EQUAL(run_script((const char *const[]){"--help", NULL}, &said), 0);
    buf_release(&said);
}

/* The script, which reads lines, and the program, which reads JSON, find the same names, titles and
 * licences in the shipped manifest. */
static void test_script_list(void) {
    manifest m;
    buf said = {0}, want = {0};
    CU_ASSERT_EQUAL_FATAL(manifest_load(&m, "datasets/manifest.json", NULL), SNAP_OK);
    for (size_t i = 0; i < m.n; i++)
        (void)buf_printf(&want, "%-14s %-20s %s%s\n", m.sets[i].name, m.sets[i].title,
                         m.sets[i].licence, manifest_unverified(&m.sets[i]) ? " (UNVERIFIED)" : "");
    CU_ASSERT_EQUAL(run_script((const char *const[]){"--list", NULL}, &said), 0);
    CU_ASSERT_STRING_EQUAL(buf_str(&said), buf_str(&want));
    buf_release(&said);
    buf_release(&want);
    manifest_release(&m);
}

CU_TestInfo tests_fetch[] = {{"successful downloads", test_good},
                             {"existing files are not changed", test_left_alone},
                             {"downloads from a mirror", test_mirror},
                             {"without a checksum, the ETag decides", test_etag},
                             {"failed downloads", test_bad},
                             {"the error of a wrong checksum has both checksums", test_both_sums},
                             {"an interrupted download continues", test_interrupted},
                             {"a full disk", test_disk_full},
                             {"one process at a time", test_lock},
                             {"whether a file is present, partial or missing", test_look},
                             {"rows are converted to lines", test_convert},
                             {"several pages of rows become one file", test_pages},
                             {"bad rows are refused", test_rows_refused},
                             {"bad manifests are refused", test_manifest_refused},
                             {"shipped manifest", test_shipped_manifest},
                             {"which files count as verified", test_verified},
                             {"verdict on a checksum", test_verdict},
                             {"fetch.sh: success", test_script_good},
                             {"fetch.sh: failures", test_script_bad},
                             {"fetch.sh: usage", test_script_usage},
                             {"fetch.sh: list", test_script_list},
                             CU_TEST_INFO_NULL};
