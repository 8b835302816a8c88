/* Tests connections to a server: valid and invalid TLS, IPv6, proxies. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/http/client.h"
#include "generator/test/certificates.h"
#include "generator/test/drive.h"
#include "generator/test/scripted_server.h"
#include "generator/test/show.h"

enum { kDay = 86400 };

static const retry_policy quick = {.base_s = 0.002, .cap_s = 0.01, .server_cap_s = 0.5};
static const reply good = {.type = "text/event-stream", .body = CHAT_STREAM("4", "2")};
static const char kKey[] = "sk-secret-0123456789";

/* Runs eight requests to @url, four at once. Returns the status of the run. */
static snap_status run(const char *url, drive *d) {
    generator *g;
    generator_options opt = {.in_flight = 4, .max_retries = 1, .api_key = kKey};
    *d = (drive){0};
    CU_ASSERT_EQUAL_FATAL(client_open(&g, url, &opt, &quick, &d->err), SNAP_OK);
    snap_status st = drive_run(d, g, 8);
    generator_close(g);
    return st;
}

static void expect_answers(const char *url) {
    drive d;
    CU_ASSERT_EQUAL(run(url, &d), SNAP_OK);
    if (d.err.text[0])
        printf("\n%s\n", d.err.text);
    CU_ASSERT_EQUAL(d.n_kept, 8);
    for (int i = 0; i < d.n_kept; i++)
        CU_ASSERT_STRING_EQUAL(d.kept[i].text, "42");
    drive_release(&d);
}

/* The run must end with a reason and without results, because the fault is not that of a sample. */
static void expect_no_server(const char *url, const char *why) {
    drive d;
    CU_ASSERT_EQUAL(run(url, &d), SNAP_E_NET);
    CU_ASSERT_EQUAL(d.n_kept, 0);
    if (!strstr(d.err.text, why))
        printf("\n%s\n", d.err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(d.err.text, " cannot be reached: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(d.err.text, why));
    show_row(NULL, d.err.text, 0);
    drive_release(&d);
}

/* Sets an environment variable for one test; @value NULL removes it. */
static void set(const char *name, const char *value) {
    CU_ASSERT_EQUAL_FATAL(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

/* ---- TLS ---- */

/* Starts a server with this certificate. @trusted: make the client trust this authority. */
static server *start_tls(SSL_CTX *tls, const authority *trusted) {
    server *s = server_start_with(&good, 1, (server_options){.tls = tls});
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    set("CURL_CA_BUNDLE", trusted ? authority_file(trusted) : NULL);
    return s;
}

static void end_tls(server *s, SSL_CTX *tls) {
    set("CURL_CA_BUNDLE", NULL);
    server_free(s);
    SSL_CTX_free(tls);
}

static void test_a_trusted_certificate(void) {
    authority *a = authority_new();
    SSL_CTX *tls = certificate_for(a, "IP:127.0.0.1", -kDay, kDay);
    server *s = start_tls(tls, a);
    expect_answers(server_url(s));
    server_stop(s);
    CU_ASSERT_EQUAL(server_requests(s), 8);
    CU_ASSERT_EQUAL(server_connections(s), 4); /* connections are kept: fewer handshakes than
                                                  requests */
    end_tls(s, tls);
    authority_free(a);
}

static void test_bad_certificates(void) {
    authority *a = authority_new();
    const struct {
        SSL_CTX *tls;
        const authority *trusted;
        const char *why;
    } cases[] = {
        {certificate_for(NULL, "IP:127.0.0.1", -kDay, kDay), NULL, "self-signed certificate"},
        {certificate_for(NULL, "IP:127.0.0.1", -kDay, kDay), a, "self-signed certificate"},
        {certificate_for(a, "IP:127.0.0.1", -kDay, kDay), NULL, "unable to get local issuer"},
        {certificate_for(a, "IP:127.0.0.1", -2 * kDay, -kDay), a, "certificate has expired"},
        {certificate_for(a, "IP:127.0.0.1", kDay, 2 * kDay), a, "certificate is not yet valid"},
        {certificate_for(a, "DNS:example.org", -kDay, kDay), a, "matches target host name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        server *s = start_tls(cases[i].tls, cases[i].trusted);
        expect_no_server(server_url(s), cases[i].why);
        server_stop(s);
        CU_ASSERT_EQUAL(server_requests(s), 0); /* so the key was not sent */
        end_tls(s, cases[i].tls);
    }
    authority_free(a);
}

static void test_a_missing_bundle_is_named(void) {
    authority *a = authority_new();
    SSL_CTX *tls = certificate_for(a, "IP:127.0.0.1", -kDay, kDay);
    server *s = start_tls(tls, NULL);
    set("CURL_CA_BUNDLE", "/nowhere/ca.pem");
    expect_no_server(server_url(s), "/nowhere/ca.pem");
    end_tls(s, tls);
    authority_free(a);
}

/* Every request must fail with @why in its message. The server answers, but can't be used. */
static void expect_failures(const char *url, const char *why) {
    drive d;
    CU_ASSERT_EQUAL(run(url, &d), SNAP_OK);
    CU_ASSERT_EQUAL(d.n_kept, 8);
    for (int i = 0; i < d.n_kept; i++) {
        CU_ASSERT_TRUE(d.kept[i].failed);
        CU_ASSERT_PTR_NOT_NULL(strstr(d.kept[i].error, why));
        CU_ASSERT_PTR_NULL(strstr(d.kept[i].error, kKey));
    }
    if (d.n_kept && !strstr(d.kept[0].error, why))
        printf("\n%s\n", d.kept[0].error);
    if (d.n_kept)
        show_row(NULL, d.kept[0].error, d.kept[0].res.attempts);
    drive_release(&d);
}

static void test_tls_to_a_plain_server(void) {
    server *s = server_start(&good, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    char url[80];
    (void)snprintf(url, sizeof url, "https%s", server_url(s) + strlen("http"));
    expect_failures(url, "wrong version number (after 2 attempts)");
    server_free(s);
}

/* ---- addresses ---- */

static void test_ipv6(void) {
    server *s = server_start_with(&good, 1, (server_options){.ipv6 = true});
    if (!s) {
        printf("\nno IPv6 here: not tested\n");
        return;
    }
    CU_ASSERT_EQUAL(strncmp(server_url(s), "http://[::1]:", 13), 0);
    expect_answers(server_url(s));
    server_stop(s);
    CU_ASSERT_EQUAL(server_requests(s), 8);
    CU_ASSERT_PTR_NOT_NULL(strstr(server_request(s, 0)->head, "\r\nHost: [::1]:"));
    server_free(s);
}

/* ---- proxies ---- */

/* A proxy does not see what is sent to this machine itself. */
static void test_no_proxy_for_this_machine(void) {
    server *s = server_start(&good, 1),
           *v6 = server_start_with(&good, 1, (server_options){.ipv6 = true});
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    const char *port = strrchr(server_url(s), ':');
    char url[80];
    char *before = getenv("no_proxy") ? strdup(getenv("no_proxy")) : NULL;
    set("http_proxy", "http://127.0.0.1:9"); /* nothing listens there */
    set("no_proxy", NULL);
    expect_answers(server_url(s));
    set("no_proxy", "example.org");
    expect_answers(server_url(s));
    (void)snprintf(url, sizeof url, "http://localhost%s", port);
    expect_answers(url);
    (void)snprintf(url, sizeof url, "http://a.localhost%s", port);
    expect_answers(url);
    if (v6)
        expect_answers(server_url(v6));
    set("no_proxy", "*");
    expect_answers(server_url(s));
    set("no_proxy", "");
    expect_no_server("http://model.invalid/v1", "port 9"); /* others go through the proxy */
    set("no_proxy", before);
    set("http_proxy", NULL);
    free(before);
    server_free(v6);
    server_free(s);
}

static void test_an_http_proxy_is_used(void) {
    server *s = server_start(&good, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    set("http_proxy", server_url(s));
    expect_answers("http://model.invalid/v1");
    set("http_proxy", NULL);
    server_stop(s);
    static const char line[] = "POST http://model.invalid/v1/chat/completions HTTP/1.1\r\n";
    CU_ASSERT_EQUAL(server_requests(s), 8);
    CU_ASSERT_EQUAL(strncmp(server_request(s, 0)->head, line, strlen(line)), 0);
    server_free(s);
}

static void test_no_proxy_goes_direct(void) {
    server *s = server_start(&good, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    set("http_proxy", "http://127.0.0.1:9"); /* nothing listens there */
    set("no_proxy", "example.org,model.invalid");
    expect_no_server("http://model.invalid/v1", "resolve host");
    set("no_proxy", "example.org");
    expect_no_server("http://model.invalid/v1", "port 9");
    set("no_proxy", NULL);
    set("http_proxy", NULL);
    server_free(s);
}

/* The proxy receives the host name and port in the CONNECT request; all that follows is TLS. */
static void test_an_https_proxy_is_tunnelled_through(void) {
    const reply script[] = {
        {.raw = "HTTP/1.1 200 Connection established\r\n\r\n", .then_tls = true}, good};
    authority *a = authority_new();
    SSL_CTX *tls = certificate_for(a, "DNS:model.invalid", -kDay, kDay);
    server *s = server_start_with(script, 2, (server_options){.tls = tls, .tls_later = true});
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    set("CURL_CA_BUNDLE", authority_file(a));
    set("https_proxy", server_url(s));
    generator *g;
    drive d = {0};
    generator_options opt = {.in_flight = 1, .api_key = kKey};
    CU_ASSERT_EQUAL_FATAL(client_open(&g, "https://model.invalid/v1", &opt, &quick, &d.err),
                          SNAP_OK);
    CU_ASSERT_EQUAL(drive_run(&d, g, 3), SNAP_OK);
    generator_close(g);
    set("https_proxy", NULL);
    server_stop(s);
    CU_ASSERT_EQUAL(d.n_kept, 3);
    for (int i = 0; i < d.n_kept; i++)
        CU_ASSERT_STRING_EQUAL(d.kept[i].text, "42");
    CU_ASSERT_EQUAL(server_requests(s), 4);
    CU_ASSERT_EQUAL(server_connections(s), 1);
    const char *connect = server_request(s, 0)->head, *post = server_request(s, 1)->head;
    CU_ASSERT_EQUAL(strncmp(connect, "CONNECT model.invalid:443 HTTP/1.1\r\n", 36), 0);
    CU_ASSERT_PTR_NULL(strstr(connect, kKey));
    CU_ASSERT_EQUAL(strncmp(post, "POST /v1/chat/completions HTTP/1.1\r\n", 36), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(post, kKey));
    drive_release(&d);
    end_tls(s, tls);
    authority_free(a);
}

static void test_a_proxy_that_refuses(void) {
    static const reply no = {.status = 403, .body = "not through here"};
    server *s = server_start(&no, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    set("https_proxy", server_url(s));
    expect_failures("https://model.invalid/v1", "403");
    set("https_proxy", NULL);
    server_free(s);
}

CU_TestInfo tests_network[] = {{"a trusted certificate", test_a_trusted_certificate},
                               {"bad certificates", test_bad_certificates},
                               {"a missing bundle", test_a_missing_bundle_is_named},
                               {"TLS to a plain server", test_tls_to_a_plain_server},
                               {"IPv6", test_ipv6},
                               {"http_proxy", test_an_http_proxy_is_used},
                               {"no_proxy", test_no_proxy_goes_direct},
                               {"no proxy for this machine", test_no_proxy_for_this_machine},
                               {"https_proxy", test_an_https_proxy_is_tunnelled_through},
                               {"a proxy that refuses", test_a_proxy_that_refuses},
                               CU_TEST_INFO_NULL};
