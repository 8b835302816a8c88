/* Tests base/http_url.h. The expected parts follow from RFC 3986 and, for addresses, from what
 * libcurl sends as the header Host. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/http_url.h"

static void test_parts_of_plain_urls(void) {
    static const struct {
        const char *url, *host, *port, *path, *query;
    } cases[] = {
        {"http://example.org", "example.org", "80", "/", NULL},
        {"HTTP://Example.org:080/a//b", "Example.org", "80", "/a//b", NULL},
        {"http://127.1:8000?q", "127.0.0.1", "8000", "/", "q"},
        {"http://[0:0::1]:8000/a?b=c?d&e=/../%20", "[::1]", "8000", "/a", "b=c?d&e=/../%20"},
        {"http://l%6fcalhost/a/./b/../c%41", "localhost", "80", "/a/c%41", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_url_parts p = {0};
        CU_ASSERT_TRUE_FATAL(http_url_plain(cases[i].url, &p));
        CU_ASSERT_STRING_EQUAL(p.host, cases[i].host);
        CU_ASSERT_STRING_EQUAL(p.port, cases[i].port);
        CU_ASSERT_STRING_EQUAL(p.path, cases[i].path);
        CU_ASSERT_STRING_EQUAL(p.query ? p.query : "none",
                               cases[i].query ? cases[i].query : "none");
        http_url_parts_release(&p);
    }
}

static bool is_plain(const char *url) {
    http_url_parts p = {0};
    bool yes = http_url_plain(url, &p);
    http_url_parts_release(&p);
    return yes;
}

static void test_urls_for_libcurl(void) {
    CU_ASSERT_TRUE(is_plain("http://[fe80::1]/"));
    CU_ASSERT_FALSE(is_plain("http://[fe80::1%25eth0]/")); /* two zones are two servers */
    CU_ASSERT_FALSE(is_plain("https://example.org/"));
    CU_ASSERT_FALSE(is_plain("http://example.org/a b"));
    CU_ASSERT_FALSE(is_plain("http://example.org/\xc3\xa9"));
    CU_ASSERT_FALSE(is_plain("http://a%25b/"));
}

static void test_proxies(void) {
    static const char *const names[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CU_ASSERT_EQUAL(setenv(names[i], "http://proxy.example.org:3128", 1), 0);
        CU_ASSERT_FALSE(is_plain("http://example.org/"));
        CU_ASSERT_TRUE(is_plain("http://localhost:8000/"));
        CU_ASSERT_TRUE(is_plain("http://127.9.9.9/"));
        CU_ASSERT_TRUE(is_plain("http://[::1]/"));
        CU_ASSERT_EQUAL(setenv(names[i], "", 1), 0);
        CU_ASSERT_TRUE(is_plain("http://example.org/"));
        CU_ASSERT_EQUAL(unsetenv(names[i]), 0);
    }
}

CU_TestInfo tests_http_url[] = {{"parts of plain URLs", test_parts_of_plain_urls},
                                {"URLs for libcurl", test_urls_for_libcurl},
                                {"proxies", test_proxies},
                                CU_TEST_INFO_NULL};
