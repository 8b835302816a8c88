#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool text_to_int(const char *s, int64_t *out) {
    if (!(*s == '-' || (*s >= '0' && *s <= '9')))
        return false;
    char *end;
    errno = 0;
    intmax_t v = strtoimax(s, &end, 10);
    if (errno || end == s || *end || v < INT64_MIN || v > INT64_MAX)
        return false;
    *out = (int64_t)v;
    return true;
}

bool text_to_double(const char *s, double *out) {
    if (!*s || strchr(" \t\n\r\f\v", *s))
        return false;
    char *end;
    errno = 0;
    double v = strtod(s, &end);
    if (end == s || *end || !isfinite(v))
        return false;
    *out = v;
    return true;
}

bool text_is_blank(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r' && s[i] != '\n')
            return false;
    return true;
}

bool text_starts(const char *s, const char *prefix) {
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool text_ends(const char *s, const char *suffix) {
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool text_equal(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

size_t text_utf8_len(const char *s, size_t n) {
    const unsigned char *p = (const unsigned char *)s;
    if (!n)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t len = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || n < len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xED && p[1] >= 0xA0;
    bool beyond = p[0] == 0xF4 && p[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : len;
}

bool text_is_utf8(const char *s, size_t n) {
    while (n) {
        size_t len = text_utf8_len(s, n);
        if (!len)
            return false;
        s += len;
        n -= len;
    }
    return true;
}

void text_append_utf8_lossy(buf *out, const char *s, size_t n) {
    while (n) {
        size_t len = text_utf8_len(s, n);
        if (len)
            (void)buf_append(out, s, len);
        else
            (void)buf_puts(out, "\xEF\xBF\xBD");
        s += len ? len : 1;
        n -= len ? len : 1;
    }
}

void text_append_without_nul(buf *out, const char *s, size_t n) {
    while (n) {
        const char *nul = memchr(s, '\0', n);
        size_t run = nul ? (size_t)(nul - s) : n;
        (void)buf_append(out, s, run);
        if (nul)
            (void)buf_puts(out, "\xEF\xBF\xBD");
        s += run + (nul ? 1 : 0);
        n -= run + (nul ? 1 : 0);
    }
}

static const char *xml_entity(char c) {
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return (unsigned char)c < 0x20 && !strchr("\t\n\r", c) ? "\xEF\xBF\xBD" : NULL;
    }
}

/* U+FFFE and U+FFFF are well-formed UTF-8 but not allowed in XML. */
static bool is_xml_char(const char *s, size_t len) {
    return len && !(len == 3 && memcmp(s, "\xEF\xBF", 2) == 0 && (unsigned char)s[2] >= 0xBE);
}

void text_append_xml(buf *out, const char *s) {
    for (size_t n = strlen(s); n;) {
        const char *entity = xml_entity(*s);
        size_t len = text_utf8_len(s, n);
        if (entity)
            (void)buf_puts(out, entity);
        else if (is_xml_char(s, len))
            (void)buf_append(out, s, len);
        else
            (void)buf_puts(out, "\xEF\xBF\xBD");
        s += len ? len : 1;
        n -= len ? len : 1;
    }
}

snap_status text_split(const char *list, char separator, const char *what, text_part_fn fn,
                       void *ctx, snap_err *err) {
    char *copy = strdup(list);
    if (!copy)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %s", what);
    snap_status st = SNAP_OK;
    for (char *p = copy; p && st == SNAP_OK;) {
        char *next = strchr(p, separator);
        if (next)
            *next++ = '\0';
        if (*p)
            st = fn(ctx, p, err);
        else
            st = err_set(err, SNAP_E_USAGE, "%s has an empty part in '%s'", what, list);
        p = next;
    }
    free(copy);
    return st;
}
