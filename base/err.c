#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Size of a message before text_show() escapes it and cuts it to the size of err->text. */
typedef char raw_message[1024];

snap_status err_set(snap_err *err, snap_status code, const char *fmt, ...) {
    if (!err || err->code != SNAP_OK)
        return code;
    raw_message raw;
    va_list ap;
    va_start(ap, fmt);
    err->code = code;
    (void)vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    (void)text_show(err->text, sizeof err->text, raw);
    return code;
}

snap_status err_set_errno(snap_err *err, const char *fmt, ...) {
    int saved = errno;
    snap_status code = saved == ENOMEM ? SNAP_E_NOMEM : SNAP_E_IO;
    if (!err || err->code != SNAP_OK)
        return code;
    char what[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return err_set(err, code, "%s: %s", what, strerror(saved));
}

void err_prefix(snap_err *err, const char *fmt, ...) {
    if (!err || err->code == SNAP_OK)
        return;
    char old[sizeof err->text];
    raw_message raw;
    memcpy(old, err->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    size_t used = text_show(err->text, sizeof err->text, raw);
    if (used + 3 >= sizeof err->text) /* the prefix alone fills the buffer: the message is lost */
        return;
    memcpy(err->text + used, ": ", 2);
    (void)text_show(err->text + used + 2, sizeof err->text - used - 2, old);
}

int err_exit_code(snap_status code) {
    switch (code) {
    case SNAP_OK:
        return 0;
    case SNAP_E_USAGE:
        return 2;
    case SNAP_E_WRONG:
        return 7;
    case SNAP_E_ENV:
        return 6;
    case SNAP_E_SLOWER:
        return 1;
    case SNAP_E_OPEN:
        return 4;
    case SNAP_E_WORSE:
        return 5;
    default:
        return 3;
    }
}

void err_bug(const char *file, int line, const char *msg) {
    (void)fprintf(stderr, "snapmla: bug at %s:%d: %s\n", file, line, msg);
    abort();
}
