/* http_url.h - the URLs of base/http.c, read with libcurl. http_check_url() and http_is_private()
 * of base/http.h are implemented here as well. */
#ifndef SNAPMLA_BASE_HTTP_URL_H
#define SNAPMLA_BASE_HTTP_URL_H

#include <stdbool.h>

typedef struct {
    char *host;  /* an IPv6 address in brackets */
    char *port;  /* decimal; "80" if the URL has none */
    char *path;  /* begins with '/' */
    char *query; /* without '?'; NULL = none */
} http_url_parts;

/* Finds the parts of an http URL. False if libcurl must make the transfer: if the URL is https,
 * if a proxy may be used for its host, if the host is an IPv6 address with a zone
 * ("[fe80::1%25eth0]"), if the URL has bytes that a request line or a host cannot have, or if the
 * parts cannot be read. @p: zeroed by the caller, who releases the parts in either case. */
bool http_url_plain(const char *url, http_url_parts *p);
void http_url_parts_release(http_url_parts *p);

/* Resolves @reference, such as "/there" in a Location header, against @base, the URL that sent it.
 * Returns the absolute URL, or NULL if there is none. The caller frees it with curl_free(). */
char *http_url_resolve(const char *base, const char *reference);

#endif
