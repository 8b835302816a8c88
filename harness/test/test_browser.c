/* Checks reports in a real browser: its complaints, requests, pictures and accessibility tree. The
 * tests run only if Chromium is installed and no sanitizer is on. */
#include <CUnit/CUnit.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/test/sanitized.h"
#include "base/text.h"
#include "harness/test/browser.h"
#include "harness/test/report_fixture.h"
#include "harness/view/pages.h"

enum { kCells = 500, kNarrow = 360, kWide = 1280 };

static char page_path[64];
static buf checks; /* page_checks.js */

/* ---- general checks ---- */

static void expect_none(const char *page, const char *how, const js *faults) {
    for (size_t i = 0; i < js_len(faults); i++)
        (void)fprintf(stderr, "\n    %s, %s: %s", page, how, js_str(js_at(faults, i)));
    CU_ASSERT_TRUE(js_is_array(faults));
    CU_ASSERT_EQUAL(js_len(faults), 0);
}

static js *check(browser *b, const char *name) {
    buf text = {0};
    (void)buf_printf(&text, "(%s).%s()", buf_str(&checks), name);
    js *value = browser_value(b, buf_str(&text));
    buf_release(&text);
    return value;
}

static void expect_check(browser *b, const char *page, const char *how, const char *name) {
    js *faults = check(b, name);
    expect_none(page, how, faults);
    js_free(faults);
}

/* The browser must not complain, and must not request anything but files and embedded data. */
static void expect_quiet(const browser *b, const char *page) {
    const js *events = browser_events(b);
    for (size_t i = 0; i < js_len(events); i++) {
        const js *e = js_at(events, i), *params = js_get_object(e, "params");
        const char *method = js_get_str(e, "method");
        const char *url = js_get_str(js_get_object(params, "request"), "url");
        bool asked = text_equal(method, "Network.requestWillBeSent") &&
                     !text_starts(url, "file://") && !text_starts(url, "data:");
        bool complained = text_equal(method, "Log.entryAdded") ||
                          text_equal(method, "Runtime.exceptionThrown") ||
                          text_equal(method, "Runtime.consoleAPICalled");
        if (asked || complained)
            (void)fprintf(stderr, "\n    %s: %s %s", page, method, url ? url : "");
        CU_ASSERT_FALSE(asked || complained);
    }
}

/* ---- colours and widths ---- */

static void set_media(browser *b, const char *media, const char *scheme) {
    js_free(browser_callf(b, "Emulation.setEmulatedMedia",
                          "{\"media\":\"%s\",\"features\":[{\"name\":\"prefers-color-scheme\","
                          "\"value\":\"%s\"}]}",
                          media, scheme));
}

static void set_width(browser *b, int width) {
    js_free(browser_callf(b, "Emulation.setDeviceMetricsOverride",
                          "{\"width\":%d,\"height\":800,\"deviceScaleFactor\":1,\"mobile\":false}",
                          width));
}

/* A picture of the window, as base64 of PNG. It must have more than 8000 characters, which is meant
 * to exclude an empty window. */
static char *picture(browser *b) {
    js *shot = browser_callf(b, "Page.captureScreenshot", "{\"format\":\"png\"}");
    const char *data = js_get_str(shot, "data");
    char *copy = data ? strdup(data) : NULL;
    CU_ASSERT(copy && strlen(copy) > 8000);
    js_free(shot);
    return copy;
}

static void expect_looks(browser *b, const char *page) {
    static const char *const ways[][2] = {{"", "light"}, {"", "dark"}, {"print", "dark"}};
    char *shots[3];
    for (size_t i = 0; i < 3; i++) {
        char how[40];
        (void)snprintf(how, sizeof how, "%s %s", ways[i][0], ways[i][1]);
        set_media(b, ways[i][0], ways[i][1]);
        expect_check(b, page, how, "contrast");
        shots[i] = picture(b);
    }
    CU_ASSERT_STRING_NOT_EQUAL(shots[0], shots[1]); /* dark differs from light */
    CU_ASSERT_STRING_NOT_EQUAL(shots[1], shots[2]); /* print differs from dark */
    for (size_t i = 0; i < 3; i++)
        free(shots[i]);
    set_media(b, "", "light");
    js *pdf = browser_callf(b, "Page.printToPDF", "{\"printBackground\":true}");
    const char *data = js_get_str(pdf, "data");
    CU_ASSERT(text_starts(data, "JVBERi0") && strlen(data) > 20000); /* "%PDF-" */
    js_free(pdf);
}

static void expect_room(browser *b, const char *page) {
    static const int widths[] = {kNarrow, 768, kWide, 1600};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char how[24];
        (void)snprintf(how, sizeof how, "%d wide", widths[i]);
        set_width(b, widths[i]);
        expect_check(b, page, how, "room");
        expect_check(b, page, how, "figures");
        free(picture(b));
    }
}

/* ---- keyboard ---- */

/* The tab key reaches every interactive element exactly once, and the focus is visible. */
static void expect_keyboard(browser *b, const char *page) {
    js *stops = check(b, "stops");
    int n = (int)js_num(stops), seen = 0, last = -1;
    CU_ASSERT(n > 3);
    for (int i = 0; i < n; i++) {
        js_free(browser_callf(b, "Input.dispatchKeyEvent",
                              "{\"type\":\"rawKeyDown\",\"key\":\"Tab\",\"code\":\"Tab\","
                              "\"windowsVirtualKeyCode\":9}"));
        js *at = check(b, "focus");
        const char *what = js_str(at), *space = what ? strrchr(what, ' ') : NULL;
        int place = space ? atoi(space) : -1;
        if (place <= last || text_starts(what, "unseen"))
            (void)fprintf(stderr, "\n    %s: stop %d of %d: '%s'", page, i, n, what);
        CU_ASSERT_FALSE(text_starts(what, "unseen"));
        seen += place > last;
        last = place;
        js_free(at);
    }
    CU_ASSERT_EQUAL(seen, n); /* in the order of the page */
    js_free(stops);
}

/* ---- screen readers ---- */

static const char *value_of(const js *node, const char *key) {
    const char *s = js_get_str(js_get_object(node, key), "value");
    return s ? s : "";
}

typedef struct {
    int mains, navigations, tables, images, headings;
} heard;

static bool needs_name(const char *role) {
    static const char *const roles[] = {"table",   "image",        "figure", "region",
                                        "link",    "navigation",   "radio",  "DisclosureTriangle",
                                        "heading", "complementary"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0)
            return true;
    return false;
}

static void hear(const js *node, const char *page, heard *h) {
    const char *role = value_of(node, "role"), *name = value_of(node, "name");
    if (js_get_bool(node, "ignored", false))
        return;
    h->mains += strcmp(role, "main") == 0;
    h->navigations += strcmp(role, "navigation") == 0;
    h->tables += strcmp(role, "table") == 0;
    h->images += strcmp(role, "image") == 0;
    h->headings += strcmp(role, "heading") == 0;
    if (needs_name(role) && !name[0]) {
        (void)fprintf(stderr, "\n    %s: a %s without a name", page, role);
        CU_FAIL("a nameless part");
    }
}

static void expect_heard(browser *b, const char *page) {
    heard h = {0};
    js *tree = browser_call(b, "Accessibility.getFullAXTree", NULL);
    js *shown = browser_value(b, "[document.querySelectorAll('table').length,"
                                 " document.querySelectorAll('svg').length,"
                                 " document.querySelectorAll('h1,h2,h3,h4').length]");
    const js *nodes = js_get_array(tree, "nodes");
    for (size_t i = 0; i < js_len(nodes); i++)
        hear(js_at(nodes, i), page, &h);
    CU_ASSERT_EQUAL(h.mains, 1);
    CU_ASSERT_EQUAL(h.navigations, 1);
    CU_ASSERT_EQUAL(h.tables, (int)js_num(js_at(shown, 0)));
    CU_ASSERT_EQUAL(h.images, (int)js_num(js_at(shown, 1)));
    CU_ASSERT(h.headings > 1);
    js_free(shown);
    js_free(tree);
}

/* Without scripts the page has the same tables, and no controls. */
static void expect_static(browser *b, const char *page, const char *url) {
    js *with = browser_value(b, "document.querySelectorAll('tbody tr').length");
    js_free(browser_callf(b, "Emulation.setScriptExecutionDisabled", "{\"value\":true}"));
    browser_go(b, url);
    js *without = browser_value(b, "document.querySelectorAll('tbody tr').length");
    js *tools = browser_value(b, "document.querySelectorAll('.tools,thead button').length");
    CU_ASSERT(js_num(with) > 0);
    CU_ASSERT_EQUAL(js_num(without), js_num(with));
    CU_ASSERT_EQUAL(js_num(tools), 0);
    expect_check(b, page, "without scripts", "structure");
    expect_check(b, page, "without scripts", "room");
    js_free(browser_callf(b, "Emulation.setScriptExecutionDisabled", "{\"value\":false}"));
    js_free(with);
    js_free(without);
    js_free(tools);
}

/* ---- pages ---- */

static void expect_good(browser *b, const report_model *m, const char *page) {
    buf html = {0};
    char url[96];
    write_page(m, &html);
    CU_ASSERT(html.len < 1000000);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(page_path, buf_str(&html), html.len, NULL), SNAP_OK);
    (void)snprintf(url, sizeof url, "file://%s", page_path);
    set_width(b, kWide);
    browser_go(b, url);
    expect_check(b, page, "structure", "structure");
    expect_heard(b, page);
    expect_keyboard(b, page);
    expect_looks(b, page);
    expect_room(b, page);
    expect_check(b, page, "tools", "tools");
    expect_quiet(b, page);
    expect_static(b, page, url);
    buf_release(&html);
}

static void bench_page(browser *b) {
    results *r = fixture_sweep(kCells);
    report_model *m = fixture_model(r);
    expect_good(b, m, "bench");
    report_model_free(m);
    results_free(r);
}

/* Answers of two arms to twelve questions. */
static void write_answers(const char *path) {
    static const char *const verdicts[] = {"correct", "wrong", "unparsed"};
    buf rows = {0};
    for (int i = 0; i < 24; i++)
        (void)buf_printf(&rows,
                         "{\"task\":\"t\",\"arm\":\"%s\",\"problem\":\"q%d\",\"sample\":0,"
                         "\"gold\":\"7\",\"verdict\":\"%s\",\"extracted\":\"8\","
                         "\"response\":\"so it is 8\"}\n",
                         i % 2 ? "fp8" : "bf16", i / 2, verdicts[i % 3]);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, buf_str(&rows), rows.len, NULL), SNAP_OK);
    buf_release(&rows);
}

/* A page with questions and answers of a run. */
static void eval_page(browser *b) {
    results *r = fixture_load();
    report_model *m = fixture_model(r);
    char path[80];
    (void)snprintf(path, sizeof path, "%s.jsonl", page_path);
    write_answers(path);
    CU_ASSERT_EQUAL(report_model_add_samples(m, "run", path, false, NULL), SNAP_OK);
    expect_good(b, m, "eval");
    (void)unlink(path);
    report_model_free(m);
    results_free(r);
}

/* A comparison of two devices. */
static void compare_page(browser *b) {
    results *runs[] = {fixture_load(), fixture_load()};
    static const char *const names[] = {"a.json", "b.json"};
    report_model *m = NULL;
    CU_ASSERT_FATAL(report_model_new(&m, runs, names, 2, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(report_compare(m, NULL, NULL, 0, NULL) == SNAP_OK);
    expect_good(b, m, "compare");
    report_model_free(m);
    results_free(runs[0]);
    results_free(runs[1]);
}

static void paper_page(browser *b) {
    results *r = fixture_sweep(kCells);
    report_model *m = fixture_model(r);
    CU_ASSERT_EQUAL(report_paper(m, NULL), SNAP_OK);
    expect_good(b, m, "paper");
    report_model_free(m);
    results_free(r);
}

/* A map of predicted layouts, which has the longest names of layouts. */
static void predicted_page(browser *b) {
    results *r;
    glob_t files;
    CU_ASSERT_EQUAL_FATAL(glob("results/predicted/*-deepseek-v3-map.json", 0, NULL, &files), 0);
    CU_ASSERT_EQUAL_FATAL(results_load(&r, files.gl_pathv[files.gl_pathc - 1], NULL), SNAP_OK);
    report_model *m = fixture_model(r);
    expect_good(b, m, "predicted");
    report_model_free(m);
    results_free(r);
    globfree(&files);
}

/* The checks themselves: they must count the known faults of a page. */
static void bad_page(browser *b) {
    static const char bad[] =
        "<!DOCTYPE html><html><body><h1>a</h1><h3>b</h3><a href=\"#nowhere\">c</a>"
        "<table id=\"t\"><tr><th>d</th></tr><tr><td>e</td><td>f</td></tr></table>"
        "<p style=\"color:#aaa\">pale</p><div style=\"width:3000px\">wide</div>"
        "<div style=\"width:50px;overflow:auto\"><pre>much longer than fifty pixels</pre></div>"
        "<main><figure style=\"margin:0\"><svg viewBox=\"0 0 100 50\" width=\"100\">"
        "<text x=\"90\" y=\"20\">cut</text><text x=\"9\" y=\"30\">one</text>"
        "<text x=\"12\" y=\"32\">two</text></svg></figure></main>"
        "</body></html>";
    char url[96];
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(page_path, bad, sizeof bad - 1, NULL), SNAP_OK);
    (void)snprintf(url, sizeof url, "file://%s", page_path);
    browser_go(b, url);
    js *structure = check(b, "structure"), *room = check(b, "room"), *pale = check(b, "contrast");
    js *figures = check(b, "figures"); /* too narrow, cut, two texts at one place */
    CU_ASSERT_EQUAL(js_len(figures), 3);
    js_free(figures);
    CU_ASSERT_EQUAL(js_len(structure), 10); /* "main" is there */
    CU_ASSERT_EQUAL(js_len(room), 2);
    CU_ASSERT_EQUAL(js_len(pale), 1);
    js_free(structure);
    js_free(room);
    js_free(pale);
}

static void test_pages(void) {
    const char *why;
    if (kSanitized) {
        (void)fprintf(stderr, "\n    SKIPPED, nothing was tested: a sanitizer is on\n");
        return;
    }
    browser *b = browser_open(&why);
    if (!b) {
        (void)fprintf(stderr, "\n    SKIPPED, nothing was tested: %s\n", why);
        return;
    }
    (void)snprintf(page_path, sizeof page_path, "/tmp/snapmla-page-%d.html", (int)getpid());
    CU_ASSERT_EQUAL_FATAL(fs_read("harness/test/page_checks.js", &checks, NULL), SNAP_OK);
    bad_page(b);
    bench_page(b);
    eval_page(b);
    compare_page(b);
    paper_page(b);
    predicted_page(b);
    (void)unlink(page_path);
    buf_release(&checks);
    browser_close(b);
}

CU_TestInfo tests_browser[] = {
    {"pages in a browser", test_pages},
    CU_TEST_INFO_NULL,
};
