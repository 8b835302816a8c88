#include "generator/http/server_error.h"

#include <string.h>

#include "base/text.h"

enum { kWordsLimit = 300 };

/* Appends one line of valid UTF-8, cut after about kWordsLimit bytes: control characters and runs
 * of spaces become one space, and other bytes that are not UTF-8 become "?". */
static void append_line(buf *out, const char *s, size_t n) {
    size_t start = out->len, i = 0;
    bool space = false;
    while (i < n && out->len - start < kWordsLimit - 4) {
        size_t len = text_utf8_len(s + i, n - i);
        unsigned char c = (unsigned char)s[i];
        bool blank = c <= ' ' || c == 0x7F;
        if (!blank) {
            if (space && out->len > start)
                (void)buf_append(out, " ", 1);
            if (len)
                (void)buf_append(out, s + i, len);
            else
                (void)buf_append(out, "?", 1);
        }
        space = blank;
        i += len ? len : 1;
    }
    if (!text_is_blank(s + i, n - i))
        (void)buf_puts(out, "...");
}

/* Appends a string as it is, and anything else as compact JSON, both as one line. */
static void append_value(buf *out, const js *v) {
    buf text = {0};
    const char *s = js_str(v);
    if (s)
        append_line(out, s, strlen(s));
    else if (js_write(v, JS_COMPACT, &text, NULL) == SNAP_OK)
        append_line(out, buf_str(&text), text.len);
    buf_release(&text);
}

/* The member that holds the error message; NULL if the object is not an error. */
static const js *message_of(js *object) {
    const js *error = js_get(object, "error");
    if (js_is_object(error)) {
        const js *message = js_get(error, "message");
        return message ? message : error;
    }
    if (error)
        return error;
    if (js_get(object, "choices"))
        return NULL;
    const js *message = js_get(object, "message");
    return message ? message : js_get(object, "detail");
}

bool server_error_message(js *object, buf *out) {
    const js *words = message_of(object);
    if (!words)
        return false;
    append_value(out, words);
    return true;
}

static const char *advice(int status) {
    switch (status) {
    case 400:
    case 422:
        return "; check the model name, max tokens and sampling against what the server accepts";
    case 401:
    case 403:
        return "; set SNAPMLA_API_KEY, or the variable that the arm's key_env names, to a key that "
               "this server accepts";
    case 404:
    case 405:
        return "; check that the URL ends in the API's root (often /v1) and that model= names a "
               "served model";
    default:
        return "";
    }
}

/* The server's message may end with a full stop, which the advice continues. */
static void append_advice(buf *out, const char *words) {
    bool stop = out->len >= 2 && out->data[out->len - 1] == '.' && out->data[out->len - 2] != '.';
    if (*words && stop)
        out->len--;
    (void)buf_puts(out, words);
}

void server_error_describe(int status, const char *body, size_t n, const char *location, buf *out) {
    (void)buf_printf(out, "HTTP %d", status);
    if (status >= 300 && status < 400) {
        (void)buf_puts(out, ": the server redirects the request, which is not followed for a POST");
        if (*location) {
            (void)buf_puts(out, "; use the URL that it points to: ");
            append_line(out, location, strlen(location));
        }
        return;
    }
    js *v = js_parse(body, n, "answer", NULL);
    bool described = false;
    if (!text_is_blank(body, n))
        (void)buf_puts(out, ": ");
    if (js_is_object(v))
        described = server_error_message(v, out);
    if (!described)
        append_line(out, body, n);
    js_free(v);
    append_advice(out, advice(status));
}
