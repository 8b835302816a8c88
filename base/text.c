#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
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

uint32_t text_code_point(const char *s, size_t n) {
    static const unsigned char first[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t c = (unsigned char)s[0] & first[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3F);
    return c;
}

bool text_is_harmful(uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x61C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

/* ---- showing text from outside ---- */

enum { kShown = 8 }; /* bytes for one shown character or escape and a NUL */

/* "##[group]" (GitHub), "##vso[...]" (Azure), "##teamcity[...]" */
static bool is_command_word(const char *s) {
    return s[0] == '#' && s[1] == '#' && s[2 + strspn(s + 2, "abcdefghijklmnopqrstuvwxyz")] == '[';
}

/* The "::" that may be read as a command, because only spaces or characters outside ASCII precede
 * it; NULL = none. The CI system may also trim spaces outside ASCII. */
static const char *command_in(const char *s) {
    while (*s == ' ' || ((unsigned char)*s & 0x80))
        s++;
    return text_starts(s, "::") ? s : NULL;
}

/* Writes the next character of @s as it is shown. Returns its length in @s in bytes. */
static size_t show_next(const char *s, const char *command, char out[kShown]) {
    size_t n = text_utf8_len(s, strnlen(s, 4));
    uint32_t c = n ? text_code_point(s, n) : 0;
    if (!n)
        (void)snprintf(out, kShown, "\\x%02x", (unsigned)(unsigned char)*s);
    else if (c == '\n' || c == '\t' || c == '\r')
        (void)snprintf(out, kShown, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    else if (text_is_harmful(c) || s == command || is_command_word(s))
        (void)snprintf(out, kShown, "\\u%04x", (unsigned)c);
    else
        (void)snprintf(out, kShown, "%.*s", (int)n, s);
    return n ? n : 1;
}

size_t text_show(char *out, size_t size, const char *s) {
    const char *command = command_in(s);
    char next[kShown];
    size_t len = 0;
    for (size_t taken; *s; s += taken) {
        taken = show_next(s, command, next);
        size_t n = strlen(next);
        if (n >= size - len)
            break;
        memcpy(out + len, next, n);
        len += n;
    }
    out[len] = '\0';
    return len;
}

void text_append_shown(buf *out, const char *s) {
    const char *command = command_in(s);
    char next[kShown];
    while (*s) {
        s += show_next(s, command, next);
        (void)buf_puts(out, next);
    }
}

void text_append_shown_printf(buf *out, const char *fmt, ...) {
    buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    (void)buf_vprintf(&text, fmt, ap);
    va_end(ap);
    text_append_shown(out, buf_str(&text));
    out->failed |= text.failed;
    out->too_long |= text.too_long;
    buf_release(&text);
}

void text_append_shown_json(buf *out, const char *s) {
    char next[kShown];
    while (*s) {
        const char *from = s;
        s += show_next(s, NULL, next);
        (void)buf_puts(out, *from == '\n' ? "\n" : next);
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
