#include "base/http_url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fault.h"
#include "base/http.h"

/* Gets a part of a URL, to be freed with curl_free(). Notes a fault if memory is exhausted, so that
 * credentials are not overlooked. */
static bool get_part(CURLU *u, CURLUPart part, char **value) {
    CURLUcode rc = curl_url_get(u, part, value, 0);
    if (rc == CURLUE_OUT_OF_MEMORY)
        fault_note(SNAP_E_NOMEM, "out of memory for a URL");
    return rc == CURLUE_OK;
}

static bool has_part(CURLU *u, CURLUPart part) {
    char *value = NULL;
    bool found = get_part(u, part, &value);
    curl_free(value);
    return found;
}

static bool is_http(CURLU *u) {
    char *scheme = NULL;
    bool ok = get_part(u, CURLUPART_SCHEME, &scheme) &&
              (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0);
    curl_free(scheme);
    return ok;
}

snap_status http_check_url(const char *url, snap_err *err) {
    CURLU *u = curl_url();
    if (!u)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a URL");
    snap_status st = SNAP_OK;
    fault_mark before = fault_begin();
    CURLUcode rc = curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
    if (rc == CURLUE_OUT_OF_MEMORY)
        fault_note(SNAP_E_NOMEM, "out of memory for a URL");
    /* checked first, with a message that does not quote the URL: it must not show the
     * credentials */
    if (rc == CURLUE_OK && (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD)))
        st = err_set(err, SNAP_E_USAGE, "a URL must not contain a user or a password");
    else if (rc != CURLUE_OK || !has_part(u, CURLUPART_HOST))
        st = err_set(err, SNAP_E_USAGE, "'%s' is not an absolute URL", url);
    else if (!is_http(u))
        st = err_set(err, SNAP_E_USAGE, "'%s' is neither an http nor an https URL", url);
    else if (has_part(u, CURLUPART_FRAGMENT))
        st = err_set(err, SNAP_E_USAGE, "'%s' must not have a '#' part", url);
    curl_url_cleanup(u);
    return fault_result(before, st, err);
}

/* True if the host is a loopback address, "localhost" or a name that ends in ".localhost". libcurl
 * itself resolves these names to the loopback. */
static bool is_loopback(CURLU *u) {
    char *host = NULL;
    struct in_addr v4;
    struct in6_addr v6;
    bool found = get_part(u, CURLUPART_HOST, &host);
    size_t n = found ? strlen(host) : 0;
    bool is_v6 = n > 2 && host[0] == '[';
    if (is_v6)
        host[n - 1] = '\0';
    bool yes =
        found && (strcasecmp(host, "localhost") == 0 ||
                  (n > 10 && strcasecmp(host + n - 10, ".localhost") == 0) ||
                  (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127) ||
                  (is_v6 && inet_pton(AF_INET6, host + 1, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6)));
    curl_free(host);
    return yes;
}

static bool is_https(CURLU *u) {
    char *scheme = NULL;
    bool yes = get_part(u, CURLUPART_SCHEME, &scheme) && strcasecmp(scheme, "https") == 0;
    curl_free(scheme);
    return yes;
}

bool http_is_private(const char *url) {
    CURLU *u = curl_url();
    if (!u)
        fault_note(SNAP_E_NOMEM, "out of memory for a URL");
    bool yes =
        u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK && (is_https(u) || is_loopback(u));
    curl_url_cleanup(u);
    return yes;
}

/* ---- URLs that need no libcurl for the transfer ---- */

void http_url_parts_release(http_url_parts *p) {
    curl_free(p->host);
    curl_free(p->port);
    curl_free(p->path);
    curl_free(p->query);
    *p = (http_url_parts){0};
}

/* Whether a proxy may be used for the host. */
static bool may_have_proxy(CURLU *u) {
    static const char *const names[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    bool named = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        named = named || (value && *value);
    }
    return named && !is_loopback(u);
}

/* Whether a text can be part of a request line unchanged: it has only printable ASCII characters
 * and no space. */
static bool is_printable(const char *text) {
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

bool http_url_plain(const char *url, http_url_parts *p) {
    CURLU *u = curl_url();
    bool ok = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK && !is_https(u) &&
              !may_have_proxy(u) && !has_part(u, CURLUPART_ZONEID) &&
              get_part(u, CURLUPART_HOST, &p->host) &&
              curl_url_get(u, CURLUPART_PORT, &p->port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
              get_part(u, CURLUPART_PATH, &p->path);
    if (ok)
        (void)get_part(u, CURLUPART_QUERY, &p->query);
    curl_url_cleanup(u);
    return ok && is_printable(url) && !strchr(p->host, '%');
}

char *http_url_resolve(const char *base, const char *reference) {
    char *url = NULL;
    CURLU *u = curl_url();
    if (u && curl_url_set(u, CURLUPART_URL, base, 0) == CURLUE_OK &&
        curl_url_set(u, CURLUPART_URL, reference, 0) == CURLUE_OK)
        (void)get_part(u, CURLUPART_URL, &url);
    curl_url_cleanup(u);
    return url;
}
